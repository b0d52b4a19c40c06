-- Profiles that were made to take long, or much memory: each command ends within its CPU time and memory, with a
-- sentence where something is left out.
-- TIMEOUT: 600
-- BASE: none, a command beside a program; tools/live_programs tries each LuaJIT
-- LONG: 34

local ffi = require("ffi")
local t = require("tools_test")
local B = require("stream_builder")
local G = require("sysprof.base.grammar")
local bytes = require("sysprof.base.bytes")
local client = require("http_client")
local deep_stacks = require("deep_stacks")
local files = require("sysprof.base.files")
local input = require("sysprof.read.input")
local limits = require("sysprof.base.limits")
local programs = require("live_programs")
local server = require("live_server")
local sort = require("sysprof.base.sort")
local F, uleb, str, record = B.F, B.uleb, B.str, B.record

os.execute("rm -rf ./*")

-- What a linear command takes is far below.
local SECONDS = 30
local KIBYTES = (os.getenv("CFLAGS") or ""):find("sanitize") and "unlimited" or "1500000"
local N = 20000

-- As of the builder, whose checksum takes long.
local function chunk(seq, records)
  local all = records .. B.u32(seq) .. B.u32(#records)
  local crc = bytes.crc32(0, ffi.cast("const uint8_t *", all), 0, #all) % 2^32
  return G.MAGIC_CHUNK .. string.char(G.SPF_VERSION) .. B.u32(seq) .. B.u32(#records) .. B.u32(crc) .. records
end

local function context(tid, time, session)
  return record(G.SPF_CONTEXT, uleb(tid) .. uleb(time) .. uleb(session or 0) .. uleb(0))
end

local HEAD = context(7, 0) .. record(G.SPF_META, str("clock") .. str("cpu")) ..
	     record(G.SPF_EVENT, uleb(0) .. str("cpu-clock") .. uleb(G.SPF_UNIT_US) .. uleb(1000000))
local END = record(G.SPF_END, "")

local function sample(lua, host)
  return string.char(G.SPF_SAMPLE + G.SPF_SAMPLE_WEIGHT_USUAL + G.SPF_VMST_LFUNC) .. uleb(2) .. uleb(lua) .. uleb(host)
end

local function stack(frames)
  local payload = uleb(0) .. uleb(0) .. frames
  if #payload < G.SPF_STACK_LENGTH then return string.char(G.SPF_STACK + #payload) .. payload end
  return string.char(G.SPF_STACK + G.SPF_STACK_LENGTH) .. uleb(#payload - G.SPF_STACK_LENGTH) .. payload
end

-- Returns a stream with make(i) for i from 1 to n.
local function many(n, make)
  local out, size, seq, all = { HEAD }, 0, 0, { B.PROLOGUE }
  for i = 1, n do
    local s = make(i)
    out[#out + 1], size = s, size + #s
    if size > 2^20 or i == n then
      all[#all + 1] = chunk(seq, table.concat(out) .. (i == n and END or ""))
      out, size, seq = { context(7, i) }, 0, seq + 1
    end
  end
  return table.concat(all)
end

local function one(s) return many(1, function() return s end) end

-- Runs a command on a stream. problem: what it must say, or nil.
local function check(what, stream, problem, formats)
  t.with_file(stream, function(path)
    for _, format in ipairs(formats or { "top" }) do
      local status, _, err = t.shell(("ulimit -t %d; ulimit -v %s; %s --format=%s %s >/dev/null"):format(SECONDS, KIBYTES,
	t.parser, format, path))
      t.ok(status == 0 or status == 3, ("%s, %s: status %s %s"):format(what, format, status, err))
      t.ok(select(2, err:gsub("\n", "")) <= 2 and not err:find("internal error", 1, true), what .. ": " .. err)
      if problem then t.contains(err, problem, what .. ", " .. format) end
    end
  end)
end

local function lfunc(id, chunk_name, name)
  return record(G.SPF_LFUNC, uleb(id) .. uleb(1) .. uleb(2) .. str(chunk_name) .. str(name))
end

local function module(first, last, path)
  return record(G.SPF_MODULE, uleb(first) .. uleb(last) .. uleb(0) .. str("") .. str(path))
end

local function hsym(addr, name) return record(G.SPF_HSYM, uleb(addr) .. str(name) .. uleb(8)) end
local function shown(frame) return stack(frame) .. sample(1, 0) end

-- -- Many things -----------------------------------------------------------

local TEXTS = { "top", "gecko" }
check("threads", many(7 * N, function(i) return context(i, i) .. sample(0, 0) end), "more than 131072 threads")
check("threads", many(N, function(i) return context(i, i) .. sample(0, 0) end), nil, { "gecko" })
check("labels", many(2 * N, function(i)
  return record(G.SPF_LABELS, uleb(i) .. str("k") .. str(tostring(i))) .. (i > 31 and
	 string.char(G.SPF_LABELLED + G.SPF_LABELLED_ID) .. uleb(i - 31) or "") .. sample(0, 0)
end))
check("modules", many(N, function(i)
  return module(0x1000 * i, 0x1000 * i + 0x1800, "/x" .. i) .. stack(F.host(0x1000 * i + 0x1200)) .. sample(0, 1)
end), "more than 4096 modules")
check("modules that change", many(2 * N, function(i)
  local first = 4096 * (i % 4000)
  return module(first, first + (math.floor(i / 4000) % 2 == 1 and 4096 or 5000), "x")
end))
local sessions = { B.PROLOGUE }
for i = 1, 17000 do sessions[i + 1] = chunk(0, context(i, i, i) .. sample(0, 0)) end
check("sessions", table.concat(sessions), "more than 16384 sessions at a time")
check("damaged places", B.PROLOGUE .. (G.MAGIC_CHUNK .. string.char(G.SPF_VERSION) .. ("\0"):rep(12) .. "?"):rep(N))
check("facts", many(N, function(i) return record(G.SPF_META, str("k" .. i) .. str("x")) end), "more than 256 facts")

-- Frames at which the join looks at all others again.
local broken = {}
for i = 1, 8000 do broken[i] = F.broken(0) .. F.vm end
local deep = stack(table.concat(broken))
check("broken frames", many(20, function() return deep .. deep .. sample(1, 2) end))

-- -- Texts -----------------------------------------------------------------

local LONG = 400000
check("spaces", one(lfunc(1, (" "):rep(2 * LONG) .. "x", "") .. shown(F.lfunc(1, 1))), nil, TEXTS)
check("a path", one(module(0, 2^40, "/" .. ("a"):rep(LONG) .. "/b") .. stack(F.host(5)) .. sample(0, 1)), nil, TEXTS)
check("folders", one(lfunc(1, "@" .. ("./"):rep(LONG) .. "x.lua", "f") .. shown(F.lfunc(1, 1))), nil, TEXTS)
check("names of C++", many(2000, function(i)
  return hsym(16 * i, "_Z" .. i .. ("S"):rep(1000)) .. stack(F.host(16 * i + 8)) .. sample(0, 1)
end), nil, TEXTS)
check("a name of C++", one(hsym(16, "_Z" .. ("S"):rep(LONG)) .. stack(F.host(24)) .. sample(0, 1)), nil, TEXTS)
check("parentheses", many(2000, function(i)
  return lfunc(i, "@f", i .. (" ("):rep(500)) .. shown(F.lfunc(i, 1))
end), nil, TEXTS)
check("commas", one(record(G.SPF_META, str("clock") .. str((","):rep(LONG))) .. sample(0, 0)), nil, TEXTS)

-- -- Numbers ---------------------------------------------------------------

local ENDLESS = ("\255"):rep(9) .. "\127"
local DAMAGED = "expected a record of sysprof, skipped the last"
for what, s in pairs {
  ["a period"] = record(G.SPF_EVENT, uleb(0) .. str("e") .. uleb(0) .. ENDLESS),
  ["a unit"] = record(G.SPF_EVENT, uleb(0) .. str("e") .. ENDLESS .. uleb(1)),
  ["a symbol"] = record(G.SPF_HSYM, ENDLESS .. str("x") .. uleb(1)),
  ["a function"] = record(G.SPF_LFUNC, ENDLESS .. uleb(1) .. uleb(2) .. str("x") .. str("y")),
  ["lines"] = record(G.SPF_LFUNC, uleb(1) .. ENDLESS .. ENDLESS .. str("x") .. str("y")),
  ["a builtin"] = record(G.SPF_FFUNC, ENDLESS .. str("x")),
  ["a C function"] = record(G.SPF_CFUNC, ENDLESS .. uleb(0) .. str("x")),
  ["a counter"] = record(G.SPF_COUNTERS, uleb(3) .. ENDLESS),
  ["the id of a counter"] = record(G.SPF_COUNTERS, ENDLESS .. uleb(3)),
  ["a module"] = record(G.SPF_MODULE, uleb(0) .. ENDLESS .. uleb(0) .. str("") .. str("x")),
  ["a mark"] = record(G.SPF_MARK, ENDLESS .. uleb(0)),
  ["an age"] = record(G.SPF_ENDED, uleb(0) .. uleb(0) .. uleb(1) .. ENDLESS),
  ["a text"] = record(G.SPF_TEXT, ENDLESS .. str("x")),
  ["a set of labels"] = record(G.SPF_LABELS, ENDLESS .. str("x") .. str("y")),
  ["a thread"] = record(G.SPF_THREAD, ENDLESS .. str("x")),
  ["a context"] = record(G.SPF_CONTEXT, ENDLESS .. uleb(1)),
} do
  check(what, one(sample(0, 0) .. s .. sample(0, 0)), DAMAGED)
end

-- The age of eleven bytes.
local fields = uleb(G.SPF_FIELD_THING) .. str("live")
check("an age of a block", one(
  record(G.SPF_EVENT, uleb(0) .. str("alloc") .. uleb(G.SPF_UNIT_BYTES) .. uleb(4096) .. fields) ..
  string.char(G.SPF_SAMPLE + G.SPF_SAMPLE_WEIGHT_USUAL) .. uleb(2) .. uleb(7) .. uleb(0) .. uleb(0) ..
  record(G.SPF_ENDED, uleb(0) .. uleb(0) .. uleb(7) .. ENDLESS)), DAMAGED)

-- -- Files that grow --------------------------------------------------------

-- Who writes a file may append while it is read.
t.with_file("begin", function(path)
  local file = assert(io.open(path, "rb"))
  local inp, size = input.from_file(file)
  t.equal(size, 5, "size of a file")
  local more = assert(io.open(path, "ab"))
  more:write(("more"):rep(100000))
  more:close()
  t.equal(inp:need(1000), 5, "bytes of a file that has grown")
  file:close()
  local got = {}
  t.equal(files.copy(path, function(s) got[#got + 1] = s end, 400005), nil, "copy")
  t.equal(#table.concat(got), 400005, "bytes of a copy")
  t.equal(files.copy(path, error, 400004), "it has more than 400004 bytes", "copy of a long file")
  t.equal(select(2, files.text(path, 400004)), "it has more than 400004 bytes", "text of a long file")
  t.equal(#files.text(path, 400005), 400005, "text of a file")
end)

-- -- Orders ----------------------------------------------------------------

-- Returns the numbers from 1 to n in an order for which table.sort() takes the square of n steps.
local function killer(n)
  local list, half = {}, n / 2
  for i = 1, half do
    if i % 2 == 1 then list[i], list[i + 1] = i, half + i end
    list[half + i] = 2 * i
  end
  return list
end

local order, comparisons = killer(4096), 0
sort(order, function(a, b)
  comparisons = comparisons + 1
  return a < b
end)
t.ok(comparisons <= 4096 * 12, comparisons .. " comparisons")
for i = 1, #order do
  if order[i] ~= i then t.ok(false, "order at " .. i) break end
end
order = killer(2 * N)
check("marks out of order", many(2 * N, function(i)
  return record(G.SPF_MARK, uleb(order[i]) .. uleb(0))
end), nil, { "gecko" })

-- -- Recordings of live programs --------------------------------------------

do	-- More different stacks, or more names, than a second of a real program has.
  local pid = server.start("contents")
  local function says(stream, limit, sentence)
    t.write_file("live_server.profile", stream)
    for arguments, its in pairs { ["top --once -d 100ms "] = { 3, 3 }, ["record -d 100ms --force -o r.bin "] = { 0, 3 },
				  ["dump "] = { 0, 2 } } do
      local got = { programs.try(arguments .. pid, ("ulimit -t %d; ulimit -v %s; "):format(SECONDS, KIBYTES)) }
      t.equal(got[1], its[1], arguments .. limit .. ": status: " .. got[3])
      t.contains(got[its[2]], sentence or limits.sentence(limit), arguments .. limit)
    end
    return t.parse("--format=top r.bin")
  end
  local status, out, err = says(many(limits.LIVE_STACKS / 2 + 1, function(i)
    return (i == 1 and lfunc(1, "@a.lua", "f") or "") .. stack(F.lfunc(1, i)) .. sample(1, 0)
  end), "LIVE_STACKS")
  t.equal(status .. err, "0", "the file that record wrote is whole")
  t.contains(out, "f (a.lua:1)", "the file that record wrote")
  says(deep_stacks.stream_of(16000, 3000), "LIVE_FRAMES", ("are left out: the stacks have more than %d frames"):format(limits.LIVE_FRAMES))
  t.write_file("live_server.profile", deep_stacks.stream_of(16000, 3000, true))
  status, out, err = programs.try("record -d 100ms --force -o r.html " .. pid)
  t.equal(status .. out, "3", "a page that lacks stacks: " .. err)
  t.contains(err, "samples are left out: ", "a page that lacks stacks")
  -- A deep stack of long names, in each of several threads.
  local b, frames = B.new(3):context(7):lfunc(1, 1, "@a.lua", ("x"):rep(1000)):lfunc(2, 1, "@a.lua", ("y"):rep(1000)), {}
  for i = 1, 8000 do frames[i] = F.lfunc(i % 2 + 1, 3) end
  b:stack(1, frames)
  for i = 1, 10 do b:context(i, i):sample(1, 0, 1) end
  t.write_file("live_server.profile", b:finish())
  local dumped = select(2, programs.try("dump " .. pid))
  t.contains(dumped, limits.sentence("DUMP_STACKS"), "long names")
  t.ok(#dumped > 2^23 and #dumped < 2^25, "long names: bytes: " .. #dumped)
  says(many(33 * 64, function(i) return lfunc(i, "@a.lua", i .. ("x"):rep(2^14)) .. shown(F.lfunc(i, 1)) end), "LIVE_DEFINITIONS")
  local served = client.serve(pid)
  local _, body
  status, _, body = client.get(served.port, "/debug/pprof/profile?seconds=0.1&debug=1")
  t.equal(status, 200, "serve: status")
  t.contains(body:gsub("%s+", " "), limits.sentence("LIVE_DEFINITIONS"), "serve")
  client.stop(served)
end

server.finish()
