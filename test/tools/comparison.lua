-- Two profiles compared: folded, top and flame graph.
-- BASE: none, it reads no profile of this LuaJIT

local t = require("tools_test")
local B = require("stream_builder")
local G = require("sysprof.base.grammar")
local json = require("json_decode")
local reader = require("sysprof.read.reader")
local view = require("sysprof.show.view")
local F = B.F

-- a, b, c: samples of main;a, main;b, main;b;c.
local function profile(a, b, c, compiled)
  local s = B.new():context()
  for fid, name in ipairs { "main", "a", "b", "c" } do s:lfunc(fid, fid, "@x", name) end
  s:stack(1, { F.cbound, F.lfunc(1), F.lfunc(2) })
  s:stack(2, { F.cbound, F.lfunc(1), F.lfunc(3), compiled and F.trace(1, 1) or nil })
  s:stack(3, { F.cbound, F.lfunc(1), F.lfunc(3), F.lfunc(4) })
  for id, n in ipairs { a, b, c } do
    if n > 0 then s:sample(id, 0, n) end
  end
  return s:finish()
end

local AFTER, BEFORE = profile(10, 60, 30, true), profile(60, 40, 100)

local function compare(format, options, after, before)
  local v = view.new(assert(reader.parse_string(after or AFTER)), options)
  v:compare_with(view.new(assert(reader.parse_string(before or BEFORE)), options))
  local out = {}
  require("sysprof.formats." .. format).render(v, function(s) out[#out + 1] = s end)
  return table.concat(out)
end

-- -- folded ----------------------------------------------------------------

-- Where much CPU time of one of two has no place, both are weighed by it.
do
  local s = B.new():context():event(0, "cpu", G.SPF_UNIT_US, 10000000)
  s:lfunc(1, 1, "@x", "main"):stack(1, { F.cbound, F.lfunc(1) }):stack(2, { F.work(G.SPF_WORK_OTHERS) })
  s:sample(1, 0, 4, 0, 10000, 0, {}):sample(2, 0, 1, 0, 60000, 0, {})
  local short = s:finish()
  t.equal(t.render(short), "[threads not sampled] 60000\nmain (x:1) 40000\n", "time without a place")
  t.equal(t.render(short, "folded", { weight = "samples" }), "[threads not sampled] 1\nmain (x:1) 4\n", "its samples")
  s = B.new():context():event(0, "cpu", G.SPF_UNIT_US, 10000000)
  s:lfunc(1, 1, "@x", "main"):stack(1, { F.cbound, F.lfunc(1) }):sample(1, 0, 10, 0, 10000, 0, {})
  local all = s:finish()
  t.equal(t.render(all), "main (x:1) 10\n", "all time has a place")
  s = B.new():context():event(0, "cpu", G.SPF_UNIT_US, 10000000)
  s:lfunc(1, 1, "@x", "main"):stack(1, { F.cbound, F.lfunc(1) }):stack(2, { F.work(G.SPF_WORK_OTHERS) })
  s:stack(3, { F.work(G.SPF_WORK_UNSEEN, G.SPF_UNSEEN_NO_TICK) })
  s:sample(1, 0, 9, 0, 10000, 0, {}):sample(2, 0, 1, 0, 3000, 0, {}):sample(3, 0, 1, 0, 3000, 0, {})
  local unplaced = require("sysprof.show.headline").unplaced(assert(require("sysprof.read.reader").parse_string(s:finish())))
  t.equal(unplaced, "3.1% of cpu has no place: [threads not sampled], " ..
	  "3.1% of cpu has no place: [stack unknown: no tick came]", "what has no place")
  t.equal(t.render(s:finish()), "[stack unknown: no tick came] 3000\n[threads not sampled] 3000\nmain (x:1) 90000\n",
	  "what has no place counts together")
  t.equal(compare("folded", {}, all, short), "[threads not sampled] 60000 0\nmain (x:1) 40000 100000\n", "weighed alike")
end

t.equal(compare("folded"), "main (x:1);a (x:2) 30 10\nmain (x:1);b (x:3) 20 60\n" ..
	"main (x:1);b (x:3);c (x:4) 50 30\n", "folded")
t.equal(compare("folded", { include = { "a (" } }), "main (x:1);a (x:2) 10 10\n",
	"folded, a filter on both")
t.equal(compare("folded", { weight = "cpu" }), "main (x:1);a (x:2) 30000 10000\n" ..
	"main (x:1);b (x:3) 20000 60000\nmain (x:1);b (x:3);c (x:4) 50000 30000\n",
	"folded, CPU time")
t.equal(compare("folded", {}, profile(10, 0, 0), profile(0, 1, 0)),
	"main (x:1);a (x:2) 0 10\nmain (x:1);b (x:3) 10 0\n", "folded, only in one")
t.equal(compare("folded", {}, profile(1, 0, 0), B.new():finish()),
	"main (x:1);a (x:2) 0 1\n", "folded, empty base")
t.equal(compare("folded", {}, B.new():finish(), profile(1, 0, 0)),
	"main (x:1);a (x:2) 0 0\n", "folded, empty profile")

-- -- top -------------------------------------------------------------------

local HEAD = "   self%%   change   total%%   change  %s\n"
local function rows(out) return out:match("\n\n(.*)$") end
t.equal(rows(compare("top")), HEAD:format("function") .. [[
    60.0    +40.0     90.0    +20.0  b (x:3)
    10.0    -20.0     10.0    -20.0  a (x:2)
    30.0    -20.0     30.0    -20.0  c (x:4)
     0.0      0.0    100.0      0.0  main (x:1)
]], "top")
t.equal(rows(compare("top", { by = "vmstate" })), HEAD:format("vmstate") ..
	"   100.0      0.0    100.0      0.0  LFUNC\n", "top, states")
t.equal(rows(compare("top", { limit = 1 })), HEAD:format("function") ..
	"    60.0    +40.0     90.0    +20.0  b (x:3)\n" ..
	"         ... 3 more functions (--limit=0 shows all)\n", "top, limit")
t.equal(rows(compare("top", {}, B.new():finish(), profile(1, 0, 0))), HEAD:format("function") ..
	"     0.0   -100.0      0.0   -100.0  a (x:2)\n" ..
	"     0.0      0.0      0.0   -100.0  main (x:1)\n", "top, empty profile")

-- -- flame graph -----------------------------------------------------------

local page = compare("flamegraph", {}, AFTER, profile(60, 40, 100, true))
local data = json.decode(page:match('id="data">\n(.-)\n</script>'))
t.equal(data.diff, true, "page: a comparison")
local got, path = {}, {}
for i = 1, #data.nodes, 4 do
  local depth = data.nodes[i]
  path[depth] = data.names[data.nodes[i + 1] + 1]
  local stack = table.concat(path, ";", 1, depth)
  got[stack] = got[stack] or { 0, 0 }
  got[stack][1] = got[stack][1] + data.nodes[i + 2]
  got[stack][2] = got[stack][2] + data.nodes[i + 3]
end
local count = 0
for stack, expected in pairs {
  ["main (x:1)"] = { 0, 0 }, ["main (x:1);a (x:2)"] = { 10, 30 },
  ["main (x:1);b (x:3)"] = { 60, 20 }, ["main (x:1);b (x:3);c (x:4)"] = { 30, 50 },
} do
  count = count + 1
  t.equal(table.concat(got[stack] or {}, " "), table.concat(expected, " "), "page: " .. stack)
end
for _ in pairs(got) do count = count - 1 end
t.equal(count, 0, "page: number of frames")
-- Pictures name the base, and say what they compare.
local SHARES = "larger share, the same share, smaller share"
local options = { title = "b.bin", base_title = "a<\27.bin" }
t.equal(table.concat(data.changes, ", "), SHARES, "page: legend")
data = json.decode(compare("flamegraph", options):match('id="data">\n(.-)\n</script>'))
t.equal(data.base, "a<?.bin", "page: name of the base")
local picture = compare("svg", options)
t.contains(picture, "samples, compared with a&lt;?.bin</text>", "svg: name of the base")
for words in SHARES:gmatch("[^,]+") do t.contains(picture, ">" .. words:match("^ *(.*)") .. "</text>", "svg: legend") end
t.ok(not picture:find(">less<") and not picture:find("more than before"), "svg: no amounts")
-- The verb diff compares times, not shares.
options = { title = "b.bin", base_title = "a.bin", weight = "event", amounts = true }
picture = compare("svg", options)
t.contains(picture, "cpu: 100.000 ms, compared with a.bin: 200.000 ms</text>", "svg: both names and totals")
for _, words in ipairs { "slower", "the same", "faster" } do
  t.contains(picture, ">" .. words .. "</text>", "svg: legend of times")
end
data = json.decode(compare("flamegraph", options):match('id="data">\n(.-)\n</script>'))
t.equal(data.amounts, true, "page: amounts")
t.equal(table.concat(data.changes, ", "), "slower, the same, faster", "page: legend of times")
t.contains(compare("folded", options), "main (x:1);a (x:2) 60000 10000\n", "folded: amounts")
data = json.decode(t.render(AFTER, "flamegraph"):match('id="data">\n(.-)\n</script>'))
t.equal(data.diff, false, "page: no comparison")
t.equal(data.changes or data.base, nil, "page: no legend of a comparison")

-- -- Command ---------------------------------------------------------------

t.with_file(AFTER, function(after)
  t.with_file(BEFORE, function(before)
    local function command(arguments, status, out, err)
      local got_status, stdout, stderr = t.parse(arguments .. " " .. after)
      t.equal(got_status, status, arguments .. ": status " .. stderr)
      if out then t.contains(stdout, out, arguments .. ": output") end
      if err then t.contains(stderr, err, arguments .. ": message")
      else t.equal(stderr, "", arguments .. ": no message") end
    end
    command("--diff=" .. before, 0, "main (x:1);a (x:2) 30 10\n")
    command("--format=top --diff " .. before, 0, "+40.0     90.0")
    command("--format=flamegraph --diff " .. before, 0, '"diff":true')
    command("--diff=" .. after, 0, "main (x:1);a (x:2) 10 10\n")
    command("--diff=/no/such/file", 1, nil, "/no/such/file: No such file")
    command("--diff=/dev/null", 1, nil, "/dev/null: empty file")
    command("--diff=", 2, nil, "expected BASE")
    command("--format=pprof --diff=" .. before, 2, nil, "--diff needs --format")
    command("--annotate=x --diff=" .. before, 2, nil, "--diff needs --format")
    command(("-o %s --diff=%s"):format(before, before), 2, nil, "--diff and output")
    command("--include=nobody --diff=" .. before, 0, nil, before .. ": warning: no sample passes the filters")
    t.with_file(BEFORE:sub(1, -3), function(cut)
      command("--diff=" .. cut, 3, nil, cut .. ": offset ")
    end)
  end)
end)

-- A function that only calls others has no row: each of its numbers is 0.
t.equal(rows(compare("top", { brief = true, by = "function", weight = "event" }, profile(2, 3, 0), profile(1, 3, 0))), [[
     change   before ms       after  before%   after%  function
     +1.000       1.000       2.000     25.0     40.0  a (x:2)
      0.000       3.000       3.000     75.0     60.0  b (x:3)
]], "diff: rows without a number")
t.equal(rows(compare("top", { brief = true, by = "function", limit = 2 }, profile(2, 3, 0), profile(1, 3, 0))):find("more"),
	nil, "diff: and no line for them")

-- -- Events ----------------------------------------------------------------

-- A profile of one event, or of wall, which is cpu and offcpu together.
local function of_event(clock)
  local b = B.new():context(7):meta("clock", clock == "wall" and "cpu,offcpu" or clock):lfunc(1, 1, "@x", "f")
  if clock == "wall" then
    b:meta("wall", "cpu,offcpu"):event(0, "ctimer", G.SPF_UNIT_US, 1e6):event(1, "switch-records", G.SPF_UNIT_NS, 0)
  else
    b:event(0, clock, clock == "cpu" and G.SPF_UNIT_US or clock == "offcpu" and G.SPF_UNIT_NS or G.SPF_UNIT_COUNT, 0)
  end
  b:stack(1, { F.lfunc(1, 1) }):sample(1, 0, 1, nil, 1000, 0)
  if clock == "wall" then b:sample(1, 0, 1, nil, 3e6, 1) end
  return b:finish()
end

local CLOCKS = { "wall", "offcpu", "cycles", "instructions", "cpu" }
local streams = {}
for i, clock in ipairs(CLOCKS) do streams[i] = of_event(clock) end
t.with_files(streams, function(paths)
  local file = {}
  for i, clock in ipairs(CLOCKS) do file[clock] = paths[i] end
  local function diff(arguments, base, new)
    return t.shell(("'%s' '%s/tools/luajit-sysprof.lua' diff %s %s %s"):format(t.luajit, t.source, arguments,
										 file[base], file[new]))
  end
  local function refuses(base, new, why)
    for _, weight in ipairs { "", "--weight=samples" } do
      local status, out, err = diff(weight, base, new)
      t.equal(("%d %s"):format(status, out), "1 ", base .. " against " .. new)
      t.contains(err, ("%s: event '%s' and event '%s' %s\n"):format(file[base], base, new, why), base .. ": why")
    end
  end
  refuses("wall", "offcpu", "are different events; choose an event of both by --event: offcpu")
  refuses("offcpu", "wall", "are different events; choose an event of both by --event: offcpu")
  refuses("cycles", "instructions", "are different events; the profiles have no event in common")
  t.contains(select(2, diff("", "cpu", "cpu")), "\nevent     cpu\nsampled   1.000 ms before, ", "the event is named")
  t.contains(select(2, diff("-e offcpu", "wall", "offcpu")), "\nevent     offcpu\nsampled   3.000 ms before, ",
	     "an event of both")
  local _, out = t.parse(("--event=offcpu --format=top --diff=%s %s"):format(file.wall, file.offcpu))
  t.contains(out, "\nshown              offcpu: ", "shares: the event is named")
end)

t.finish()
