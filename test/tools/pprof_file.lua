-- The format pprof, decoded by the tests' own decoder, and by Go's tool if it is
-- installed.
-- BASE: none, it reads no profile of this LuaJIT

local t = require("tools_test")
local made = require("made_profile")
local pprof = require("pprof_decode")
local B = require("stream_builder")
local G = require("sysprof.base.grammar")
local selfreport = require("sysprof.show.selfreport")

-- -- The same as folded stacks ---------------------------------------------

local stream = made.stream()
local decoded = pprof.decode((t.render(stream, "pprof")))

t.equal(pprof.folded(decoded, 1, 1), (t.render(stream)), "samples")
t.equal(pprof.folded(decoded, 2, 1000), (t.render(stream, "folded", { weight = "cpu" })),
	"CPU time")

-- -- The rest of it --------------------------------------------------------

local _, p = t.render(stream)
t.equal(table.concat(decoded.types, " "), "samples/count cpu/nanoseconds", "types")
local m = decoded.message
t.equal(m[12][1], 1000000, "period")
t.equal(decoded.str(pprof.message(m[11][1])[1][1]), "wall", "type of the period")
t.equal(m.exact9, 1700000000ULL * 1000000000, "time")
t.equal(m[10][1], p.last_time * 1000, "duration")

-- Nothing may happen at the end: the session's own time counts.
local b = B.new():context(7, 0):event(0, "cpu", 0, 10000):meta("interval_ns", "10000000")
b:counters { { G.SPF_COUNTER_WALL_US, 200000 } }
t.equal(pprof.decode((t.render(b:finish(), "pprof"))).message[10][1], 200000000, "duration without a sample at the end")
t.equal(decoded.str(m[14][1]), "samples", "default type")
t.equal(decoded.comments[1], "samples: " .. selfreport.lines(p)[1][2], "comment")
local cpu_first = pprof.decode((t.render(stream, "pprof", { weight = "cpu" })))
t.equal(cpu_first.str(cpu_first.message[14][1]), "cpu", "default type, --weight=cpu")
t.equal(pprof.folded(cpu_first, 1, 1), (t.render(stream)), "nothing dropped with --weight=cpu")

t.equal(decoded.mappings[1].file, "/usr/bin/program", "file of a mapping")
t.equal(decoded.mappings[1].build_id, "abcdef01", "build-id of a mapping")
t.equal(decoded.mappings[1].first, 0x100000, "start of a mapping")
t.equal(decoded.mappings[1].last, 0x180000, "end of a mapping")
t.equal(decoded.mappings[1].named, 1, "a mapping has its names")
t.equal(decoded.mappings[2].build_id, "", "no build-id")
local by_state, by_thread, lines = {}, {}, {}
for _, s in ipairs(decoded.samples) do
  local state, thread = s.labels.vmstate, s.labels.thread
  by_state[state] = (by_state[state] or 0) + s.values[1]
  by_thread[thread] = (by_thread[thread] or 0) + s.values[1]
  for _, l in ipairs(s) do
    if l.func.name:find("^f2 ") then
      lines[l.line] = true
      t.equal(l.func.file .. ":" .. l.func.first, "src/a.lua:20", "place of a function")
      t.equal(l.mapping, nil, "a Lua function is in no mapping")
    elseif l.func.name == "c1" then
      t.equal(l.addr, 0x100010, "address")
      t.equal(l.mapping, decoded.mappings[1], "mapping of an address")
    elseif l.func.name == "0x300210" then
      t.equal(l.mapping, nil, "no mapping")
    end
  end
end
local count = 0
for line in pairs(lines) do
  t.ok(line >= 20 and line <= 23, "line of a function")
  count = count + 1
end
t.ok(count > 1, "current lines of a function")
for state, n in pairs(p:states()) do
  t.equal(by_state[selfreport.state_name(state)], n, "label vmstate " .. state)
end
for _, tid in ipairs { "100", "101", "102" } do
  t.ok(by_thread[tid] and by_thread[tid] > 0, "label thread " .. tid)
end

local empty = pprof.decode((t.render(require("stream_builder").new():finish(), "pprof")))
t.equal(#empty.samples, 0, "empty profile")

t.equal(#empty.message[12], 0, "no period")

-- -- Compression -----------------------------------------------------------

local gzip = require("sysprof.formats.gzip")
local function same(s, what)
  t.ok(pprof.unzip(gzip.compress(s, "c")) == s, "compress " .. what)
  t.ok(pprof.unzip(gzip.compress(s, "c", true)) == s, "store " .. what)
end
local noise = {}
for i = 1, 70000 do noise[i] = string.char((i * i * 7919 + i) % 251) end
noise = table.concat(noise)
for n = 0, 9 do same(("ab"):rep(n), n .. " repeats") end
same(("x"):rep(100000), "one byte")
same(noise, "noise")
for n = 65534, 65537 do same(noise:sub(1, n), n .. " bytes, about a stored block") end
same(noise:sub(1, 65535) .. noise:sub(1, 65535), "two whole blocks")

-- Without zlib a file is larger than its bytes, by little.
local ffi = require("ffi")
local load, loaded = ffi.load, {}
local function size_by(lib_load)
  ffi.load, package.loaded["sysprof.formats.gzip"] = lib_load, nil
  local s = require("sysprof.formats.gzip").compress(noise, "")
  ffi.load = load
  t.ok(pprof.unzip(s) == noise, "another library")
  return #s
end
t.equal(size_by(function(name)
  loaded[name] = true
  error("no such library")
end), #noise + 2 * 5 + 19, "no library: stored")
t.ok(loaded["libz.so.1"], "zlib is looked for")
t.equal(size_by(function() return ffi.C end), #noise + 2 * 5 + 19, "a library without the functions")
if pcall(load, "libz.so.1") then
  t.ok(#gzip.compress(("x"):rep(100000), "") < 1000, "repeats are small")
end

-- -- Go's own tool ---------------------------------------------------------

-- Returns { self, total } by function of a table of "go tool pprof -top".
local function top_of_go(out)
  local rows, n = {}, 0
  for self, total, name in out:gmatch("\n +(%-?[%d.]+)%a* +%S+ +%S+ +(%-?[%d.]+)%a* +%S+  ([^\n]+)") do
    rows[name], n = { tonumber(self), tonumber(total) }, n + 1
  end
  return rows, n
end

local function check_go(path)
  local function go(arguments)
    local status, out, err = t.shell("go tool pprof " .. arguments .. " " .. path)
    t.equal(status, 0, "go tool pprof " .. arguments .. ": " .. err)
    return out
  end
  local ALL = "-nodefraction=0 -edgefraction=0 -nodecount=100000 "
  local rows, count = top_of_go(go("-top " .. ALL))
  local top, n = t.render(stream, "top", { limit = 0 }), 0
  for self, total, name in
      top:gmatch("\n +(%d+) +[%d.]+ +(%d+) +[%d.]+ [%d. ]+  ([^\n]+)") do
    n = n + 1
    t.ok(rows[name], "Go knows " .. name)
    local row = rows[name] or {}
    t.equal(row[1], tonumber(self), "Go: self of " .. name)
    t.equal(row[2], tonumber(total), "Go: total of " .. name)
  end
  t.ok(n > 20, "rows of the table")
  t.equal(count, n, "Go: number of functions")

  local sum = 0
  for line in go("-traces"):gmatch("[^\n]+") do
    -- The first line of a stack has its value.
    sum = sum + (tonumber(line:match("^ +(%d+)   %S")) or 0)
  end
  t.equal(sum, (p:totals()), "Go: samples of all traces")

  local diff = top_of_go(go("-top " .. ALL .. "-diff_base=" .. path))
  for name, row in pairs(diff) do
    t.equal(row[1], 0, "Go: difference to itself, self of " .. name)
    t.equal(row[2], 0, "Go: difference to itself, total of " .. name)
  end
  t.contains(go("-tags"), "vmstate", "Go: tags")

  -- Lines of a source file, by all functions in it.
  os.execute("mkdir -p src")
  t.write_file("src/a.lua", ("text\n"):rep(90))
  local listed = {}
  for self, line in go("-list=src/a.lua -source_path=."):gmatch("\n +([%d.]+) +[%d.]+ +(%d+):text") do
    listed[line] = (listed[line] or 0) + (tonumber(self) or 0)
  end
  local view = require("sysprof.show.view").new(p)
  local annotated = {}
  assert(require("sysprof.formats.annotate").new(view, "src/a.lua")):render(function(s)
    annotated[#annotated + 1] = s
  end)
  n = 0
  for self, line in table.concat(annotated):gmatch("\n +(%d+) +[%d.]+ +%d+ +[%d.]+ +(%d+)  text") do
    n = n + 1
    t.equal(listed[line], tonumber(self), "Go: self of line " .. line)
  end
  t.ok(n > 1, "lines with samples")
end

local has_go = t.shell("go tool pprof -h 2>&1 | grep -q diff_base") == 0
if has_go then
  t.with_file((t.render(stream, "pprof")), check_go)
else
  print("Go is not installed: 'go tool pprof' was not asked")
end

t.finish()
