-- json, speedscope and gecko: decoded, they give the folded stacks again, sample by
-- sample in the order of time.
-- BASE: none, it reads no profile of this LuaJIT

local t = require("tools_test")
local B = require("stream_builder")
local G = require("sysprof.base.grammar")
local json = require("json_decode")
local made = require("made_profile")
local reader = require("sysprof.read.reader")
local selfreport = require("sysprof.show.selfreport")
local text = require("sysprof.base.text")
local view = require("sysprof.show.view")
local F = B.F

local function render(stream, format, options)
  local p = assert(reader.parse_string(stream, { timeline = true }))
  local out = {}
  require("sysprof.formats." .. format).render(view.new(p, options), function(s)
    out[#out + 1] = s
  end)
  out = table.concat(out)
  t.equal(text.clean(out:gsub("\n", "")), (out:gsub("\n", "")), format .. ": clean text")
  t.ok(not out:find("<", 1, true), format .. ": nothing that HTML would take for an element")
  return out, p
end

-- Sums of values by stack, as folded lines.
local function collector()
  local sums = {}
  return function(names, value)
    for i, name in ipairs(names) do names[i] = text.folded(name) end
    local line = table.concat(names, ";")
    sums[line] = (sums[line] or 0) + value
  end, function()
    local lines = {}
    for line, value in pairs(sums) do
      if value > 0 then lines[#lines + 1] = ("%s %.0f\n"):format(line, value) end
    end
    table.sort(lines)
    -- Folded lines have the order of the stacks.
    return table.concat(lines)
  end
end

local function sorted(folded)
  local lines = {}
  for line in folded:gmatch("[^\n]*\n") do lines[#lines + 1] = line end
  table.sort(lines)
  return table.concat(lines)
end

-- -- json ------------------------------------------------------------------

local function check_json(stream, options)
  local out, p = render(stream, "json", options)
  local d = json.decode(out)
  t.equal(d.format .. d.version, "sysprof1", "json: format")
  t.equal(d.meta.clock, p.meta.clock, "json: meta")
  t.equal(d.report.samples, selfreport.lines(p)[1][2], "json: report")
  t.equal(#d.modules, #p.modules, "json: modules")
  local add, folded = collector()
  local last, states = 0, {}
  for _, s in ipairs(d.samples) do
    local names = {}
    for i, frame in ipairs(d.stacks[s.stack + 1]) do names[i] = d.frames[frame + 1].name end
    add(names, options.weight == "cpu" and s.weight or 1)
    t.ok(s.time >= last, "json: order of time")
    last = s.time
    states[s.state] = (states[s.state] or 0) + 1
  end
  t.equal(folded(), sorted((t.render(stream, "folded", options))), "json: stacks")
  return d, states, p
end

local stream = made.stream()
local d, states, p = check_json(stream, {})
for state, n in pairs(p:states()) do
  t.equal(states[selfreport.state_name(state)], n, "json: samples by state")
end
check_json(stream, { weight = "cpu" })
check_json(stream, { no_host = true, include = { "f1" }, states = { G.SPF_VMST_GC } })
t.equal(d.modules[1].build_id, "abcdef01", "json: build-id")
t.equal(d.modules[2].path, "/usr/lib/lib <x>.so.1", "json: path")
t.equal(d.modules[1].start, "0x100000", "json: start of a module")
local seen = {}
for _, frame in ipairs(d.frames) do
  seen[frame.kind] = true
  if frame.name == "c1" then
    t.equal(frame.address .. frame.module, "0x1000100", "json: place of C code")
  elseif frame.name:find("^f2 ") then
    t.equal(frame.file .. ":" .. frame.first_line, "src/a.lua:20", "json: place of a function")
    t.ok(frame.line >= 20 and frame.line <= 23, "json: line")
  end
end
for _, kind in ipairs { "lua", "compiled", "builtin", "c", "vm", "marker", "unknown" } do
  t.ok(seen[kind], "json: a frame of kind " .. kind)
end
local first = d.samples[1]
t.ok(first.time == 1001000 and first.thread == 101, "json: first sample")

-- -- speedscope ------------------------------------------------------------

local function check_speedscope(stream, options)
  local s = json.decode((render(stream, "speedscope", options)))
  t.equal(s["$schema"], "https://www.speedscope.app/file-format-schema.json",
	  "speedscope: schema")
  local add, folded = collector()
  for _, profile in ipairs(s.profiles) do
    t.equal(profile.type, "sampled", "speedscope: type")
    t.equal(#profile.samples, #profile.weights, "speedscope: as many weights as samples")
    local sum = 0
    for i, frames in ipairs(profile.samples) do
      local names = {}
      for k, frame in ipairs(frames) do
	t.ok(s.shared.frames[frame + 1], "speedscope: a frame")
	names[k] = s.shared.frames[frame + 1].name
      end
      add(names, profile.weights[i])
      sum = sum + profile.weights[i]
    end
    t.equal(profile.endValue - profile.startValue, sum, "speedscope: length")
    t.equal(profile.unit, options.weight == "cpu" and "microseconds" or "none",
	    "speedscope: unit")
  end
  t.equal(folded(), sorted((t.render(stream, "folded", options))), "speedscope: stacks")
  return s
end

local s = check_speedscope(stream, { title = "a<b\n" })
t.equal(s.name, "a<b?", "speedscope: name")
t.equal(#s.profiles, 3, "speedscope: threads")
t.equal(s.profiles[1].name, "thread 101", "speedscope: name of a thread")
check_speedscope(stream, { weight = "cpu", no_lua = true })
check_speedscope(stream, { lines = true })
for _, frame in ipairs(s.shared.frames) do
  if frame.name:find("^f2 ") then
    t.equal(frame.file .. ":" .. frame.line, "src/a.lua:20", "speedscope: place")
  end
  t.ok(frame.line == nil or frame.line > 0, "speedscope: line")
end

-- A first line that cannot be right counts as none.
local large = B.new():context():lfunc(1, 2^31 - 1, "@l.lua", "f"):lfunc(2, 2^31, "@l.lua", "g")
large:stack(1, { F.cbound, F.lfunc(1, 3), F.lfunc(2, 3) }):sample(1, 0)
for _, frame in ipairs(check_speedscope(large:finish(), {}).shared.frames) do
  t.equal(frame.line, frame.name:find("^f ") and 2^31 - 1 or nil, "speedscope: line of " .. frame.name)
end

-- -- gecko -----------------------------------------------------------------

-- A name without what the profiler needs to know a kind of function.
local function plain(name)
  name = name:gsub(" $", ""):gsub(" %(in [^)]*%)$", "")
  local own = name:match("^(main chunk .*) %b():0%)$") or name:match("^(main chunk .*) %(.*:0%)$")
  return own or name
end

local function check_gecko(stream, options)
  local out, profile = render(stream, "gecko", options)
  local g = json.decode(out)
  t.equal(g.meta.version, 24, "gecko: version")
  t.equal(g.meta.interval, 1, "gecko: interval")
  t.equal(g.meta.startTime, 1700000000000, "gecko: start")
  local add, folded = collector()
  for _, th in ipairs(g.threads) do
    local frames, table_of = th.frameTable.data, th.stackTable.data
    for _, name in ipairs { "frameTable", "stackTable", "samples", "markers" } do
      local columns = 0
      for _ in pairs(th[name].schema) do columns = columns + 1 end
      for _, row in ipairs(th[name].data) do
	t.ok(#row <= columns, "gecko: columns of " .. name)
      end
    end
    t.ok(th.samples.schema.responsiveness and th.frameTable.schema.column and
	 th.frameTable.schema.innerWindowID, "gecko: columns that are required")
    for i, row in ipairs(table_of) do
      t.ok(row[1] == json.null or row[1] < i - 1, "gecko: callers come first")
      t.ok(frames[row[2] + 1], "gecko: frame of a stack")
    end
    local last = 0
    for _, sample in ipairs(th.samples.data) do
      local names, at = {}, sample[1]
      while at ~= json.null do
	local row = frames[table_of[at + 1][2] + 1]
	t.ok(g.meta.categories[row[8] + 1], "gecko: category")
	table.insert(names, 1, plain(th.stringTable[row[1] + 1]))
	at = table_of[at + 1][1]
      end
      add(names, options.weight == "cpu" and sample[3] or 1)
      t.ok(sample[2] >= last, "gecko: order of time")
      last = sample[2]
    end
  end
  return g, folded(), profile
end

-- Names of this one are as they are.
local b = B.new():context(7, 0):meta("interval_ns", "1000000")
b:meta("start_time", "1700000000"):meta("pid", "77")
b:module(0x1000, 0x2000, 0x1000, "/bin/p"):hsym(0x1010, 0x1000, "main")
b:lfunc(1, 0, "@dir/x.lua"):lfunc(2, 5, "@dir/x.lua", "f")
b:stack(1, { F.cbound, F.lfunc(1, 3), F.lfunc(2, 6), F.trace(1, 1) })
b:stack(2, { F.host(0x1010), F.vm, F.host(0x5000) })
b:sample(1, 2, 3):context(8, 1500):sample(0, 2, 1)
local g, got = check_gecko(b:finish(), {})
t.equal(got, "main;0x5000 1\nmain;main chunk (dir/x.lua);f (dir/x.lua:5);0x5000 3\n",
	"gecko: stacks")
t.equal(#g.threads, 2, "gecko: threads")
local th = g.threads[1]
t.equal(th.name .. th.tid .. "/" .. th.pid, "thread 77/77", "gecko: thread")
t.equal(th.samples.data[2][2], 2, "gecko: milliseconds")
t.equal(th.samples.data[2][3], 1000, "gecko: CPU time")
t.equal(th.stringTable[1], "main (in p)", "gecko: file of C code")
t.equal(th.stringTable[2], "main chunk (dir/x.lua) (dir/x.lua:0)", "gecko: main chunk")
t.equal(th.stringTable[4], "f (dir/x.lua:5)", "gecko: function")
t.equal(th.frameTable.data[3][6], 6, "gecko: line")
t.equal(th.stringTable[th.frameTable.data[3][4] + 1], "jit", "gecko: compiled")

-- Kinds of functions that the profiler distinguishes: of a script, of a file, others.
local function kind_of(location)
  if location:find("^.* %(in [^)]*%)$") then return "file" end
  if location:find("^.* %(.+:%d+%)$") or location:find("^.+:%d+$") or
     location:find("^.+:%d+%[%d+%]$") then
    return "script"
  end
  return "other"
end
b = B.new():context():module(0x1000, 0x2000, 0x1000, "/bin/a (b)")
local ODD = { "x:5", "x (y:5)", "x:5[3]", "x (in y)", "x" }
for i, name in ipairs(ODD) do
  b:hsym(i, i, name):ffunc(i, name):lfunc(i, 1, "@f", name):lfunc(i + 10, 7, "=" .. name)
  b:stack(i, { F.cbound, F.lfunc(i, 1), F.ffunc(i), F.lfunc(i + 10, 1) })
  b:stack(i + 10, { F.host(i), F.host(0x1000 + i), F.vm }):sample(i, i + 10)
end
g = check_gecko(b:meta("start_time", "1700000000"):finish(), {})
for _, row in ipairs(g.threads[1].frameTable.data) do
  local location, kind = g.threads[1].stringTable[row[1] + 1], row[8]
  local expected = kind == 1 and "script" or "other"
  if location:find("(in y)", 1, true) and kind ~= 1 then expected = kind_of(location) end
  t.equal(kind_of(location), expected, "gecko: kind of '" .. location .. "'")
end

local samples
g, got, samples = check_gecko(stream, {})
local n = 0
for _, thread in ipairs(g.threads) do n = n + #thread.samples.data end
t.equal(n, (samples:totals()), "gecko: samples")
t.ok(#got > 1000, "gecko: stacks of hostile names")

-- -- Nothing, and streams without times ------------------------------------

local empty = B.new():finish()
t.equal(#json.decode((render(empty, "json"))).samples, 0, "json: empty")
t.equal(#json.decode((render(empty, "speedscope"))).profiles, 1, "speedscope: empty")
t.equal(#json.decode((render(empty, "gecko"))).threads, 0, "gecko: empty")

local OLD = "ljs\2\0\0\0\128" .. "ljp\1\0\0\0" .. ("\0\0"):rep(3) .. "\128"
local old = json.decode((render(OLD, "json")))
t.equal(#old.samples, 3, "a stream without times")
t.ok(old.samples[1].time == 0 and old.samples[3].time == 2, "samples stand one apart")

t.with_file(stream, function(path)
  for _, format in ipairs { "json", "speedscope", "gecko" } do
    local status, out = t.parse(("--format=%s --from=2 --to=4 %s"):format(format, path))
    t.equal(status, 0, format .. ": status")
    t.ok(pcall(json.decode, out), format .. ": by the command")
  end
end)

t.finish()
