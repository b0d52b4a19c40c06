-- Real time as the sum of two events, in each format, and the states of threads.

local t = require("tools_test")
local B = require("stream_builder")
local G = require("sysprof.base.grammar")
local events = require("sysprof.model.events")
local json = require("json_decode")
local pprof = require("pprof_decode")
local profile = require("sysprof.model.profile")
local reader = require("sysprof.read.reader")
local F = B.F

local US, NS = G.SPF_UNIT_US, G.SPF_UNIT_NS
local MS = 1000000	-- Nanoseconds.

-- A thread computes in f for 30 ms, waits in f for 50 ms and in g for 100 ms, and is runnable for
-- 20 ms. without: as if the start had asked for cpu,offcpu.
local function stream(without)
  local b = B.new():context(7, 0):meta("clock", "cpu,offcpu"):meta("pid", "7")
  if not without then b:meta("wall", "cpu,offcpu") end
  b:event(0, "ctimer", US, 10 * MS):event(1, "switch-records", NS, 0, { { G.SPF_FIELD_COUNT, "waits" } })
  b:lfunc(1, 1, "@a.lua", "f"):lfunc(2, 2, "@a.lua", "g")
  b:stack(1, { F.lfunc(1, 1) }):stack(2, { F.lfunc(1, 1), F.work(G.SPF_WORK_WAIT, 233) })
  b:stack(3, { F.lfunc(2, 2), F.work(G.SPF_WORK_WAIT, 1) }):stack(4, { F.work(G.SPF_WORK_READY) })
  b:stack(5, { F.work(G.SPF_WORK_UNSEEN, G.SPF_UNSEEN_NO_TICK) })
  -- A sample is a millisecond after its context.
  b:context(7, 9000):sample(1, 0, 1, nil, 10000, 0):context(7, 59000):sample(2, 0, 1, nil, 50 * MS, 1, { 1 })
  b:context(7, 74000):sample(1, 0, 1, nil, 15000, 0):context(7, 174000):sample(3, 0, 1, nil, 100 * MS, 1, { 1 })
  b:context(7, 194000):sample(4, 0, 1, nil, 20 * MS, 1, { 3 }):context(7, 199000):sample(5, 0, 1, nil, 5000, 0)
  b:counters { { G.SPF_COUNTER_WALL_US, 200000 } }
  return b:finish()
end

local bytes = stream()
local function render(format, options, s, base)
  return (assert(t.render(s or bytes, format, options, base)))
end

-- -- Events ----------------------------------------------------------------

local function names_of(s)
  local list = events.list(assert(reader.parse_string(s)))
  for i, e in ipairs(list) do list[i] = e.name end
  return table.concat(list, " ")
end
t.equal(names_of(bytes), "wall cpu offcpu", "events")
t.equal(names_of(stream(true)), "cpu offcpu", "nobody asked for the sum")
-- Two ticks in 30 ms. The rest after the last one is none.
t.contains(render("top"), "100 samples a second asked, 66.7 got;", "rate")

local FOLDED = "[runnable] 20000000\n[stack unknown: no tick came] 5000000\nf (a.lua:1) 25000000\n" ..
	       "f (a.lua:1);[waiting: epoll_wait] 50000000\ng (a.lua:2);[waiting: read] 100000000\n"
t.equal(render("folded", {}), FOLDED, "folded")
t.equal(render("folded", { event = "cpu", weight = "cpu" }),
	"[stack unknown: no tick came] 5000\nf (a.lua:1) 25000\n", "a part")
t.equal(render("folded", { weight = "samples" }), "[runnable] 1\n[stack unknown: no tick came] 1\nf (a.lua:1) 2\n" ..
	"f (a.lua:1);[waiting: epoll_wait] 1\ng (a.lua:2);[waiting: read] 1\n", "folded, samples")
local _, err = require("sysprof.show.view").new(assert(reader.parse_string(bytes)), { weight = "waits" })
t.equal(err, "the event 'wall' has no weight 'waits', its weights are: samples, event", "no second weight")

local top = render("top", {})
t.contains(top, "\nevent wall         6 samples, 0.200 s of 0.200 s (100.0%) of real time: 0.030 s on CPU, " ..
	   "0.150 s waiting, 0.020 s runnable\nevent cpu ", "report")
t.contains(top, "\n     100.000    50.0      100.000    50.0  [waiting: read]\n", "a row")

local d = json.decode(render("json", {}))
t.equal(("%s %s %.0f %.0f %s"):format(d.events[1].name, d.events[1].unit, d.events[1].weight, d.events[1].total,
	table.concat(d.events[1].parts, "+")), "wall ns 200000000 200000000 cpu+offcpu", "json: event")
t.equal(d.samples[1].event .. " " .. d.samples[2].event, "cpu offcpu", "json: samples are of the parts")

d = pprof.decode(render("pprof", {}))
t.equal(table.concat(d.types, " "), "samples/count wall/nanoseconds cpu-samples/count cpu/nanoseconds " ..
	"offcpu_waits/count offcpu/nanoseconds", "pprof: types")
t.equal(pprof.folded(d, 2, 1), FOLDED, "pprof: values")

d = json.decode(render("speedscope", {})).profiles[1]
t.equal(("%s %.0f"):format(d.unit, d.endValue), "nanoseconds 200000000", "speedscope")

d = json.decode(render("gecko", {}))
local cpu = {}
for i, row in ipairs(d.threads[1].samples.data) do cpu[i] = row[3] end
t.equal(table.concat(cpu, " "), "10000 0 15000 0 0 5000", "gecko: CPU time of each sample")

-- -- Stacks that nobody has seen --------------------------------------------

do	-- The VM's state is unknown there. A wait with a C stack is outside of Lua.
  local C = G.SPF_VMST_CFUNC
  local b = B.new():context(7, 0):meta("clock", "cpu,offcpu"):meta("pid", "7"):meta("wall", "cpu,offcpu")
  b:event(0, "ctimer", US, MS):event(1, "switch-records", NS, 0):lfunc(1, 1, "@a.lua", "f"):hsym(0x1010, 0x1000, "poll")
  b:stack(1, { F.lfunc(1, 1) }):stack(2, { F.work(G.SPF_WORK_READY) }):stack(4, { F.host(0x1010) })
  b:stack(3, { F.work(G.SPF_WORK_UNSEEN, G.SPF_UNSEEN_LATE) }):stack(5, { F.work(G.SPF_WORK_WAIT, 233) })
  b:sample(1, 0, 1, G.SPF_VMST_LFUNC, 1000, 0):sample(2, 0, 1, C, 4 * MS, 1):sample(3, 0, 1, C, 3 * MS, 1)
  local unseen = b:sample(5, 4, 1, C, 2 * MS, 1):finish()
  -- The stream may have any state there.
  t.contains(render("top", { by = "lua" }, (B.new():context():stack(1, { F.work(G.SPF_WORK_UNSEEN, G.SPF_UNSEEN_NO_TICK) })
    :sample(1, 0, 1, G.SPF_VMST_TRACE):finish())), "100.0  [stack unknown: no tick came]\n", "a state alone")
  local function rows(by, options)
    options = options or {}
    options.by, options.event = by, options.event or "wall"
    local list = {}
    for value, name in render("top", options, unseen):match("\n\n(.*)$"):gmatch("\n +([%d.]+) [^\n]*%%?  ([^\n]+)") do
      list[#list + 1] = value .. " " .. name
    end
    return table.concat(list, ", ")
  end
  for _, case in ipairs { { "vmstate", "2.000 CFUNC, 1.000 LFUNC" }, { "lua", "2.000 [no Lua function], 1.000 f (a.lua:1)" } } do
    t.equal(rows(case[1]), "4.000 [runnable], 3.000 [stack unknown: seen too late], " .. case[2], "by " .. case[1])
  end
  t.contains(render("top", { by = "lua", event = "wall" }, unseen), "\n[no Lua function] is C code outside of Lua: ", "a sentence")
  t.ok(not render("top", { event = "wall" }, unseen):find("no Lua function", 1, true), "no row, no sentence")
  local broken = B.new():context(7, 0):stack(1, { F.broken(G.SPF_BROKEN_CHAIN) }):stack(2, { F.host(1) }):sample(1, 0, 1):sample(0, 2, 1)
  local vague = render("top", { by = "lua" }, broken:finish())
  t.contains(vague, "  [no Lua function]\n", "broken stacks: a row")
  t.ok(not vague:find("is C code", 1, true), "broken stacks: no sentence")
  t.equal(rows("vmstate", { states = { C } }), "2.000 CFUNC", "what is in C")
  t.equal(rows("vmstate", { states = { require("sysprof.show.filters").state("unknown") } }),
	  "4.000 [runnable], 3.000 [stack unknown: seen too late]", "what is unknown")
  t.contains(render("top", {}, unseen), "\nvm states          LFUNC 25.0%  CFUNC 25.0%  UNKNOWN 50.0%\n", "report: states")
  local states = {}
  for i, sample in ipairs(json.decode(render("json", {}, unseen)).samples) do states[i] = sample.state end
  t.equal(table.concat(states, " "), "LFUNC UNKNOWN UNKNOWN CFUNC", "json: states")
end

-- -- Limits in the head ----------------------------------------------------

do	-- Sentences on the event of the table, and on all; those on a rate that was reached are left out.
  local function head(limit, event)
    local b = B.new():context(7, 0):meta("clock", "cpu,offcpu"):meta("wall", "cpu,offcpu"):meta("limit", limit)
    b:event(0, "ctimer", US, 10 * MS):event(1, "switch-records", NS, 0, { { G.SPF_FIELD_COUNT, "waits" } })
    b:lfunc(1, 1, "@a.lua", "f"):stack(1, { F.lfunc(1, 1) }):stack(2, { F.lfunc(1, 1), F.work(G.SPF_WORK_WAIT, 233) })
    b:sample(1, 0, 10, nil, 10000, 0):sample(2, 0, 1, nil, 50 * MS, 1, { 1 })
    b:counters { { G.SPF_COUNTER_WALL_US, 150000 } }
    return (render("top", { brief = true, event = event, title = "x.bin" }, b:finish()):gsub("\n          ", " "))
  end
  local SHARES = "ctimer ticks with the kernel, which gave the processor to others 40 times a second: shares may be off"
  local LOOKS = "offcpu: a wait is exact to a look, 2.0 ms: locked memory is used up"
  local ALL = "threads without samples: 3, because clone(2) created them"
  local FEW = "ctimer takes 100 samples a second instead of 500: it keeps to the kernel's tick"
  local limit = table.concat({ ALL, SHARES, FEW, LOOKS }, ". ")
  for event, sentences in pairs { cpu = { ALL, SHARES }, offcpu = { ALL, LOOKS }, wall = { ALL, SHARES, LOOKS } } do
    t.equal(head(limit, event):match("\nlimit +([^\n]*)\n"), table.concat(sentences, ". "), "limit: " .. event)
  end
  t.ok(not head(FEW, "cpu"):find("\nlimit", 1, true), "limit: the rate was reached")
end

-- -- Pictures --------------------------------------------------------------

local svg = render("svg", {})
local _, boxes = svg:gsub("<title>f %(a.lua:1%) %(75.000 ms, 37.50%%%)</title><rect [^>]+/><rect [^>]+/>", "")
t.equal(boxes, 1, "svg: a box has both colours")
_, boxes = svg:gsub("<title>g %(a.lua:2%) %(100.000 ms, 50.00%%%)</title><rect [^>]+/><text", "")
t.equal(boxes, 1, "svg: a box off CPU has one")
_, boxes = svg:gsub("<title>%[runnable%] %(20.000 ms, 10.00%%%)</title><rect [^>]+fill=\"hsl%(4%d,9%d%%,%d+%%%)\"/><text", "")
t.equal(boxes, 1, "svg: what is runnable is yellow")
_, boxes = svg:gsub("<title>all %(200.000 ms, 100.00%%%)</title><rect [^>]+/><rect [^>]+/><rect [^>]+/><text", "")
t.equal(boxes, 1, "svg: the whole has all three colours")
for _, state in ipairs { "on CPU", "runnable", "off CPU" } do t.contains(svg, ">" .. state .. "</text>", "svg: legend") end
t.ok(not render("svg", { event = "offcpu" }):find("on CPU", 1, true), "svg: one event has no states")

-- Returns the data in the page of a profile that was read for it.
local function page_of(s, options)
  local v = assert(require("sysprof.show.view").new(assert(reader.parse_string(s, { activity = true })), options))
  local out = {}
  require("sysprof.formats.flamegraph").render(v, function(part) out[#out + 1] = part end)
  return json.decode(table.concat(out):match('id="data">\n(.-)\n</script>'))
end

d = page_of(bytes, {})
local off = {}
for i = 1, #d.nodes, 4 do
  local name = d.names[d.nodes[i + 1] + 1]
  off[name] = (off[name] or 0) + d.nodes[i + 3]
end
t.equal(d.states, true, "page: states")
t.equal(("%.0f %.0f %.0f %.0f"):format(off["f (a.lua:1)"], off["[waiting: epoll_wait]"], off["[runnable]"],
	off["[stack unknown: no tick came]"]), "0 50000000 20000000 0", "page: off CPU")
-- A part has all digits of the whole: otherwise it could exceed it.
local b = B.new():context(7, 0):meta("clock", "offcpu"):meta("pid", "7"):meta("wall", "offcpu")
b:event(0, "switch-records", NS, 0):lfunc(1, 1, "@a.lua", "f"):stack(1, { F.lfunc(1, 1) })
local nodes = page_of(b:sample(1, 0, 1, nil, 1234567891, 0):finish(), {}).nodes
t.equal(("%.0f %.0f"):format(nodes[3], nodes[4]), "1234567891 1234567891", "page: all digits")
t.equal(page_of(bytes, { event = "cpu" }).states, false, "page: one event has no states")

-- Steps of a millisecond. A sample of ready time stands for the second before it, so it has a tenth
-- of each step, and leaves less room for CPU time.
local track = d.threads.list[1]
local function shares_at(ms)
  return table.concat(track.shares, " ", 3 * ms + 1, 3 * ms + 3)
end
t.equal(("%s %d %d"):format(track.name, #d.threads.list, d.threads.step), "thread 7 1 1000", "page: threads")
t.equal(("%s, %s, %s"):format(shares_at(5), shares_at(30), shares_at(197)), "90 0 10, 0 100 10, 100 0 0",
	"page: what the thread did after 5, 30 and 197 ms")
t.equal(#page_of(bytes, { threads = { 8 } }).threads.list, 0, "page: a thread that is not shown")

-- Steps get longer with time; the sums stay.
local function long_profile(seconds)
  local p = profile.new { activity = true }
  p:set_meta("clock", "offcpu")
  p:set_meta("wall", "offcpu")
  p:set_event(0, "switch-records", NS, 0, "waits")
  p:set_thread(1)
  for i = 1, seconds do p.add(i * 1e6, 1e9, 0, 0, 0, 0) end
  return p
end
local p = long_profile(5000)
local step, tracks = p.activity:tracks()
t.equal(step, 8192000, "length of a step")
t.ok(math.abs(tracks[1].total - 5000e6) < 1, "all time is there")
step, tracks = assert(reader.parse_string(bytes, { activity = true })).activity:tracks()
local sums = { 0, 0, 0 }
for _, time in ipairs(tracks[1].steps) do
  for state = 1, 3 do sums[state] = sums[state] + time[state] end
end
t.ok(step == 1000 and sums[1] > 27000 and sums[1] <= 30000, "CPU time, as far as there is room: " .. sums[1])
t.equal(("%.0f %.0f"):format(sums[2], sums[3]), "150000 20000", "time off CPU")

-- -- Several profiles ------------------------------------------------------

-- Only samples that were taken for the sum count in it.
t.write_file("a.bin", bytes)
t.write_file("b.bin", stream(true))
local both = assert(reader.read_all { "a.bin", "b.bin" })
local sum = 0
for _, e in ipairs(events.list(both)) do
  if e.name == "wall" then sum = e.weight end
  if e.name == "cpu" then t.equal(e.weight, 60000, "CPU time of both") end
end
t.equal(sum, 200 * MS, "the sum of one of two profiles")

-- A stream may name anything as parts.
for _, parts in ipairs { "", ",", "wall", "cpu", "offcpu,nothing", ("x,"):rep(1000) } do
  local b = B.new():context(1, 0):meta("clock", "cpu,wall"):meta("wall", parts)
  b:event(0, "ctimer", US, 10 * MS):event(1, "wall", US, 10 * MS):event(2, "page-faults", G.SPF_UNIT_COUNT, 1)
  b:lfunc(1, 1, "@a.lua", "f"):stack(1, { F.lfunc(1, 1) }):sample(1, 0, 10000, nil, 10000, 0):sample(1, 0, 1, nil, 5, 1)
  local s = b:finish()
  for _, format in ipairs { "folded", "top", "json", "pprof", "speedscope", "gecko", "flamegraph", "svg", "tree" } do
    t.ok(#render(format, {}, s) > 0, format .. " of strange parts: " .. parts:sub(1, 20))
  end
end

t.finish()
