-- What a thread waits for: names in the leaf, and events without a period in each format. The
-- order in a stack is in join_rules.
-- BASE: none, it reads no profile of this LuaJIT

local t = require("tools_test")
local B = require("stream_builder")
local G = require("sysprof.base.grammar")
local events = require("sysprof.model.events")
local json = require("json_decode")
local pprof = require("pprof_decode")
local random_waits = require("random_waits")
local reader = require("sysprof.read.reader")
local view = require("sysprof.show.view")
local F = B.F

-- -- Names -----------------------------------------------------------------

local function name_of(what, arg)
  local b = B.new():context():stack(1, { F.work(what, arg) }):sample(1, 0)
  local out, p = t.render(b:finish(), "folded", { weight = "samples" })
  t.equal(p:problem_text(), nil, "problems")
  return (out:gsub(" 1\n$", ""))
end

for _, w in ipairs {
  { G.SPF_WORK_WAIT, 1, "[waiting: read]" },
  { G.SPF_WORK_WAIT, 233, "[waiting: epoll_wait]" },
  { G.SPF_WORK_WAIT, 335, "[waiting: rseq]" },
  { G.SPF_WORK_WAIT, 336, "[waiting: system call 335]" },
  { G.SPF_WORK_WAIT, 401, "[waiting: system call 400]" },
  { G.SPF_WORK_WAIT, 424, "[waiting: system call 423]" },
  { G.SPF_WORK_WAIT, 425, "[waiting: pidfd_send_signal]" },
  { G.SPF_WORK_WAIT, 2^32 - 1, "[waiting: system call 4294967294]" },
  -- Only a system call and a reason have an argument.
  { G.SPF_WORK_FAULT, 7, "[page fault]" },
  { G.SPF_WORK_READY, 7, "[runnable]" },
  { G.SPF_WORK_SHORT, 7, "[short waits]" },
} do
  t.equal(name_of(w[1], w[2]), w[3], w[3])
end
for _, w in ipairs(random_waits.OTHERS) do t.equal(name_of(w[1], w[2]), w[3], w[3]) end
for name, value in pairs(G) do
  if name:find("^SPF_UNSEEN_") then
    t.ok(not name_of(G.SPF_WORK_UNSEEN, value):find("reason", 1, true), "words for " .. name)
  end
end

-- -- An event without a period ---------------------------------------------

local US, COUNT, BYTES, NS = G.SPF_UNIT_US, G.SPF_UNIT_COUNT, G.SPF_UNIT_BYTES, G.SPF_UNIT_NS
local MS = 1000000	-- Nanoseconds.

-- f waits in epoll_wait twice, g in a page fault; the rest has no stack.
local function stream()
  local b = B.new():context(7, 0):meta("clock", "offcpu"):meta("pid", "7")
  b:event(0, "switch-records", NS, 0, { { G.SPF_FIELD_COUNT, "waits" } })
  b:lfunc(1, 1, "@a.lua", "f"):lfunc(2, 2, "@a.lua", "g"):hsym(0x1010, 0x1000, "main"):hsym(0x2010, 0x2000, "wait")
  b:stack(1, { F.cbound, F.lfunc(1, 1), F.work(G.SPF_WORK_WAIT, 233) })
  b:stack(2, { F.host(0x1010), F.vm, F.host(0x2010) })
  b:stack(3, { F.cbound, F.lfunc(2, 2), F.work(G.SPF_WORK_FAULT) }):stack(4, { F.host(0x1010), F.vm })
  b:stack(5, { F.work(G.SPF_WORK_READY) }):stack(6, { F.work(G.SPF_WORK_SHORT) })
  b:sample(1, 2, 2, nil, 100 * MS, 0, { 1 }):sample(3, 4, 1, nil, 30 * MS, 0, { 1 })
  b:sample(5, 0, 1, nil, 15 * MS, 0, { 40 }):sample(6, 0, 1, nil, 5 * MS, 0, { 900 })
  return b:finish()
end

local bytes = stream()
local WAIT, FAULT = "main;f (a.lua:1);wait;[waiting: epoll_wait]", "main;g (a.lua:2);[page fault]"

local function render(format, options, s, base)
  return (assert(t.render(s or bytes, format, options, base)))
end

local list = events.list(assert(reader.parse_string(bytes)))
t.equal(#list[1].periods, 0, "periods")

-- Real time is shown by itself, without --weight.
local FOLDED = ("[runnable] 15000000\n[short waits] 5000000\n%s 200000000\n%s 30000000\n"):format(WAIT, FAULT)
t.equal(render("folded", {}), FOLDED, "folded")
t.equal(render("folded", { weight = "waits" }), "[runnable] 40\n[short waits] 900\n" .. WAIT .. " 2\n" .. FAULT .. " 1\n",
	"folded, --weight=waits")
t.equal(render("folded", {}, bytes, bytes), (FOLDED:gsub("(%d+)\n", "%1 %1\n")), "folded, compared")
t.equal(render("folded", { include = { "[waiting" } }), WAIT .. " 200000000\n", "folded, a filter by the wait")

local top = render("top", {})
local event = top:match("\nevent offcpu[^\n]*")
t.contains(event or top, "5 samples, 0.250 s of real time, 943 waits", "top: report")
t.ok(not (event or top):find("asked", 1, true), "top: no period was asked for")
t.contains(top, "\n     200.000    80.0      200.000    80.0  [waiting: epoll_wait]\n", "top: a wait")
t.contains(top, "\n       0.000     0.0      200.000    80.0  f (a.lua:1)\n", "top: who waits")
t.contains(render("top", { by = "module" }), "  [waiting]\n", "top: by module")
t.ok(render("top", {}, bytes, bytes):find("\n +80.0 [^\n]*  %[waiting: epoll_wait%]\n"), "top, compared")
t.contains(render("tree", {}), "\n     250.000   100.0        0.000     0.0  all\n", "tree: all")
t.contains(render("tree", {}), "\n     200.000    80.0      200.000    80.0          [waiting: epoll_wait]\n", "tree: a wait")
t.contains(render("svg", {}), "<title>[waiting: epoll_wait] (200.000 ms, 80.00%)</title>", "svg")

local page = render("flamegraph", {})
local data = json.decode(page:match('id="data">\n(.-)\n</script>'))
t.equal(data.unit .. " " .. data.event, "ns offcpu", "flamegraph: unit")
local values = {}
for i = 1, #data.nodes, 3 do values[data.names[data.nodes[i + 1] + 1]] = data.nodes[i + 2] end
t.equal(values["[waiting: epoll_wait]"], 200 * MS, "flamegraph: a wait")
t.equal(values["[short waits]"], 5 * MS, "flamegraph: short waits")

local d = json.decode(render("json", {}))
t.equal(("%s %s %.0f %.0f %s"):format(d.events[1].name, d.events[1].unit, d.events[1].weight,
  d.events[1].second_weight, tostring(d.events[1].period)), "offcpu ns 250000000 943 nil", "json: event")
local leaf = d.stacks[d.samples[1].stack + 1]
leaf = d.frames[leaf[#leaf] + 1]
t.equal(leaf.name .. " " .. leaf.kind, "[waiting: epoll_wait] waiting", "json: frame")

d = pprof.decode(render("pprof", {}))
t.equal(table.concat(d.types, " "), "offcpu_waits/count offcpu/nanoseconds", "pprof: types")
t.equal(pprof.folded(d, 2, 1), FOLDED, "pprof: values")
t.ok(#d.message[11] == 0 and #d.message[12] == 0, "pprof: no period")

d = json.decode(render("speedscope", {})).profiles[1]
t.equal(("%s %.0f"):format(d.unit, d.endValue), "nanoseconds 250000000", "speedscope")

d = json.decode(render("gecko", {}))
t.equal(d.meta.interval, 1, "gecko: interval")
t.equal(#d.threads[1].samples.data, 5, "gecko: samples")

t.write_file("a.lua", "one\ntwo\n")
t.with_file(bytes, function(path)
  local status, out = t.parse("--annotate=a.lua " .. path)
  t.equal(status, 0, "annotate: status")
  t.contains(out, " 200.000    80.0            2       1  one\n", "annotate")
end)

-- -- A part of the time -----------------------------------------------------

-- A wait of 500 ms ends at 600 ms, one of 900 ms in two parts at 1500 ms. CPU time, sums and waits of coroutines.
local function range_stream()
  local b = B.new():context(7, 0):meta("clock", "cpu,offcpu,coroutine-wait"):meta("wall", "cpu,offcpu"):meta("pid", "7")
  b:event(0, "task-clock", US, MS)
  for index = 1, 2 do
    b:event(index, ({ "switch-records", "coroutine-wait" })[index], NS, 0, { { G.SPF_FIELD_COUNT, "waits" } })
  end
  b:lfunc(1, 1, "@a.lua", "f"):stack(1, { F.cbound, F.lfunc(1, 1), F.work(G.SPF_WORK_WAIT, 233) })
  b:stack(2, { F.work(G.SPF_WORK_SHORT) }):stack(3, { F.cbound, F.lfunc(1, 1) })
  b:stack(4, { F.lfunc(1, 1), F.work(G.SPF_WORK_UNSEEN, G.SPF_UNSEEN_MANY) })
  b:stack(5, { F.work(G.SPF_WORK_UNSEEN, G.SPF_UNSEEN_LATE) })
  local function sample(ms, ...)
    b:context(7, ms * 1000 - 1000)
    b:sample(...)
  end
  sample(600, 1, 0, 1, nil, 500 * MS, 1, { 1 })
  sample(1300, 5, 0, 1, nil, 400 * MS, 1, { 1 })
  sample(1500, 5, 0, 1, nil, 200 * MS, 1, { 0 })
  sample(1500, 2, 0, 1, nil, 80 * MS, 1, { 90 })
  sample(1500, 3, 0, 1, nil, 20000, 0)
  sample(1501, 3, 0, 1, nil, 300 * MS, 2, { 1 })
  sample(1501, 4, 0, 1, nil, 700 * MS, 2, { 30 })
  return b:finish()
end

local ranged = range_stream()
local RANGED_WAIT, RANGED_LATE = "f (a.lua:1);[waiting: epoll_wait]", "[stack unknown: seen too late]"

-- Returns the folded stacks of a part of the time, in seconds.
local function range_of(from, to, event, weight)
  local p = assert(reader.parse_string(ranged, { from = from and from * 1e6, to = to and to * 1e6, timeline = true }))
  for time in p.timeline:in_order() do
    t.ok(time >= (from or 0) * 1e6 and time <= (to or math.huge) * 1e6, "a clipped wait ends in the range")
  end
  local v = assert(view.new(p, { event = event, weight = weight }))
  local out = {}
  require("sysprof.formats.folded").render(v, function(s) out[#out + 1] = s end)
  return table.concat(out)
end

local function lines_of(...)
  local list = {}
  for i = 1, select("#", ...), 2 do
    local name, value = select(i, ...)
    list[#list + 1] = ("%s %.0f\n"):format(name, value)
  end
  table.sort(list)
  return table.concat(list)
end

for _, c in ipairs {
  { nil, nil, { RANGED_WAIT, 500 * MS, RANGED_LATE, 600 * MS, "[short waits]", 80 * MS } },
  { 0, 0.1, {} },
  { 0, 0.11, { RANGED_WAIT, 10 * MS } },
  { 0.2, 0.31, { RANGED_WAIT, 110 * MS } },	-- It ends later.
  { 0.5, 0.6, { RANGED_WAIT, 100 * MS } },
  { 0.6, 0.8, {} },	-- At its end it is over; the next one begins at 900 ms.
  { 0.6, 1, { RANGED_LATE, 100 * MS } },
  { 1.2, 1.4, { RANGED_LATE, 200 * MS } },	-- Of both parts.
  { 1.4999999, nil, { RANGED_LATE, 100, "[short waits]", 80 * MS } },
  { 1.5, 1.51, { "[short waits]", 80 * MS } },	-- A sum counts where it stands.
} do
  t.equal(range_of(c[1], c[2], "offcpu"), lines_of(unpack(c[3])), ("from %s to %s"):format(c[1], c[2]))
end
t.equal(range_of(0.2, 0.31, "offcpu", "waits"), RANGED_WAIT .. " 1\n", "a wait counts in each part that it lies in")
t.equal(range_of(1.2, 1.4, "offcpu", "waits"), RANGED_LATE .. " 1\n", "a wait of several samples counts once")
t.equal(range_of(1.3, 1.4, "offcpu", "waits"), RANGED_LATE .. " 1\n", "its later part counts where its first one is not")
t.equal(range_of(1.45, 1.6, "offcpu", "waits"), lines_of(RANGED_LATE, 1, "[short waits]", 90), "the same beside a sum")
t.equal(range_of(1.3, 1.4, "coroutine-wait", "waits"), "f (a.lua:1) 1\n", "a coroutine's wait counts in each part")
do	-- The report says which part it has, and why its sums may differ from the length.
  local function head(from, to, event, format, brief)
    local p = assert(reader.parse_string(ranged, { from = from and from * 1e6, to = to and to * 1e6 }))
    local out = {}
    require("sysprof.formats." .. format).render(assert(view.new(p, { event = event, brief = brief, title = "x.bin" })),
						 function(s) out[#out + 1] = s end)
    return (table.concat(out):gsub("\n          ", " "))
  end
  local LATE = "\npart      [short waits] stands up to a second late, so the real time may differ from the part's length\n"
  t.contains(head(1.2, 1.6, "wall", "top", true), "profile   x.bin: from 1.2 to 1.6 s\n", "the head has the part")
  t.contains(head(1.2, 1.6, "wall", "top", true), LATE, "the head: sums")
  t.contains(head(1.2, 1.4, "wall", "top", true), LATE, "the head: sums stand behind the part")
  t.contains(head(nil, 0.1, "offcpu", "top", true), LATE, "the head: the same of waits")
  t.ok(not head(1.2, 1.6, "cpu", "top", true):find("\npart", 1, true), "the head: CPU time has no sums")
  t.contains(head(1.4, nil, "wall", "top"), "\npart                 from 1.4 s on; what was lost, ", "the whole report")
  t.contains(head(nil, 1.4, "wall", "flamegraph"), "<tr><th>part</th><td>up to 1.4 s; what was lost, ", "the page")
  t.contains(head(nil, 1.4, "wall", "flamegraph"), "<td>4, 0.000 s of CPU time, 1 thread</td>", "the page has amounts of the part")
end
t.with_file(ranged, function(path)
  t.contains(select(2, t.parse("--format=flamegraph --from=1 --to=1.25 " .. path)), ", wall, from 1 to 1.25 s</title>", "the page's title")
end)
t.equal(range_of(1.5, 1.51, "cpu", "event"), "f (a.lua:1) 20000\n", "CPU time counts where it stands")
t.equal(range_of(1.3, 1.4, "coroutine-wait"), ("f (a.lua:1) %.0f\n"):format(100 * MS), "a coroutine's wait")
t.equal(range_of(1.5, 1.51, "coroutine-wait"),
	lines_of("f (a.lua:1)", 1 * MS, "f (a.lua:1);[stack unknown: too many waits]", 700 * MS), "many waits stand at their end")

-- -- Below the table --------------------------------------------------------

-- What has no line says how to see it. What the function has called is told where the table has some of it.
local ABOUT = "\nSelf has C code and VM work"
local function foot_of(short_ms, wait_ms, leaf, event)
  local s = B.new():context(7, 0):meta("clock", event or "offcpu"):meta("pid", "7")
  s:event(0, event or "switch-records", NS, 0, { { G.SPF_FIELD_COUNT, "waits" } }):lfunc(1, 1, "@a.lua", "f")
  s:stack(1, leaf):stack(2, { F.work(G.SPF_WORK_SHORT) }):sample(1, 0, 1, nil, 90 * MS, 0, { 90 / wait_ms })
  if short_ms > 0 then s:sample(2, 0, 1, nil, short_ms * MS, 0, { 1 }) end
  local out = render("top", { by = "lua", brief = true }, s:finish())
  return (out:find(ABOUT, 1, true) and "about " or "") .. (out:match("\n%[short waits%] are below .-: (.-)\n") or "")
end
local IN_C, IN_LUA = { F.lfunc(1, 1), F.ffunc(1), F.work(G.SPF_WORK_WAIT, 1) }, { F.lfunc(1, 1) }
for _, c in ipairs {
  { 10, 3, IN_C, "about -e offcpu/threshold=500000/" }, { 4, 3, IN_C, "about " }, { 0, 3, IN_LUA, "" },
  { 10, 0.6, IN_LUA, "-e offcpu/threshold=500000/" }, { 10, 0.5, IN_LUA, "-e offcpu/threshold=100000/" },
  { 10, 0.1, IN_LUA, "" },
} do
  t.equal(foot_of(c[1], c[2], c[3]), c[4], ("%g ms of short waits beside waits of %g ms: below the table"):format(c[1], c[2]))
end
t.equal(foot_of(10, 3, { F.lfunc(1, 1), F.ffunc(1) }, "coroutine-wait"), "", "waits of coroutines have no C code")
t.contains(render("top", { weight = "waits", include = { "[page fault]" } }), "\nshown              1 wait, 1 sample\n", "one wait")

-- -- Waits of coroutines ---------------------------------------------------

-- A thread computes for 100 ms and sleeps for 400 ms. Coroutines wait for 2.25 s.
local function coroutine_stream(clocks, index)
  local b = B.new():context(7, 500000):meta("clock", clocks):meta("pid", "7"):meta("wall", "cpu,offcpu")
  local _, commas = clocks:gsub(",", "")
  if commas == 2 then
    b:event(1 - index % 2, "task-clock", US, MS):event(2, "switch-records", NS, 0, { { G.SPF_FIELD_COUNT, "waits" } })
  end
  b:event(index, "coroutine-wait", NS, 0, { { G.SPF_FIELD_COUNT, "waits" } })
  b:lfunc(1, 1, "@a.lua", "f"):ffunc(1, "coroutine.yield"):hsym(0x1010, 0x1000, "main")
  b:stack(1, { F.lfunc(1, 3), F.ffunc(1) }):stack(2, { F.lfunc(1, 3), F.ffunc(1), F.work(G.SPF_WORK_BUSY) })
  b:stack(3, { F.lfunc(1, 3), F.work(G.SPF_WORK_SHORT) }):stack(4, { F.work(G.SPF_WORK_UNSEEN, G.SPF_UNSEEN_MANY) })
  b:stack(5, { F.host(0x1010) }):stack(6, { F.work(G.SPF_WORK_WAIT, 233) })
  if commas == 2 then
    b:sample(0, 5, 1, G.SPF_VMST_C, 100000, 1 - index % 2):sample(6, 5, 1, G.SPF_VMST_C, 400 * MS, 2, { 1 })
  end
  b:sample(1, 0, 2, G.SPF_VMST_CFUNC, 500 * MS, index, { 1 }):sample(2, 0, 1, G.SPF_VMST_CFUNC, 250 * MS, index, { 0 })
  b:sample(3, 0, 1, G.SPF_VMST_CFUNC, 400 * MS, index, { 40 }):sample(4, 0, 1, G.SPF_VMST_CFUNC, 600 * MS, index, { 3 })
  local of_event = G.SPF_COUNTER_EVENT + index * G.SPF_COUNTER_EVENT_STEP
  b:counters { { of_event + G.SPF_EVENT_TOTAL, 2250 * MS }, { of_event + G.SPF_EVENT_SAMPLES, 5 },
	       { G.SPF_VMST_CFUNC, 5 }, { G.SPF_COUNTER_HANDLER_NS, 50000 } }
  return b:finish()
end

local LINE = "event coroutine-wait 5 samples, 2.250 s of 2.250 s (100.0%) waited, 45 waits; 50.000 ms each"
local COROUTINES = [[
[stack unknown: too many waits] 600000000
f (a.lua:1);[short waits] 400000000
f (a.lua:1);coroutine.yield 1000000000
f (a.lua:1);coroutine.yield;[thread busy] 250000000
]]

bytes = coroutine_stream("coroutine-wait/threshold=5/", 0)
t.equal(render("folded", {}), COROUTINES, "coroutines alone: folded")
top = render("top", {})
t.contains(top, "\n" .. LINE .. "\n", "coroutines alone: header")
-- The thread itself takes these samples.
t.contains(top, "\nhandler              10.0 us mean", "coroutines alone: time of a sample")
t.contains(render("json", {}), '"name":"[thread busy]","kind":"waiting"', "coroutines: kind of the leaf")

-- The mean of a wait has a unit that shows it.
for _, case in ipairs { { 100, "0.100 us" }, { 99999, "99.999 us" }, { 100000, "0.100 ms" } } do
  local b = B.new():context(7):meta("clock", "coroutine-wait")
  b:event(0, "coroutine-wait", NS, 0, { { G.SPF_FIELD_COUNT, "waits" } }):lfunc(1, 1, "@a.lua", "f")
  b:stack(1, { F.lfunc(1, 3), F.work(G.SPF_WORK_SHORT) }):sample(1, 0, 1, nil, case[1] * 1000, 0, { 1000 })
  t.contains(render("top", {}, b:finish()), " waited, 1000 waits; " .. case[2] .. " each\n", "a short wait")
end

for _, case in ipairs { { "cpu,coroutine-wait,offcpu", 1 }, { "coroutine-wait,cpu,offcpu", 0 } } do
  bytes = coroutine_stream(case[1], case[2])
  local o = { event = "coroutine-wait" }
  t.equal(render("folded", o), COROUTINES, case[1] .. ": folded")
  t.contains(render("folded", { event = "coroutine-wait", weight = "waits" }),
	     "f (a.lua:1);[short waits] 40\nf (a.lua:1);coroutine.yield 2\n", case[1] .. ": waits")
  t.contains(render("top", o), "\n" .. LINE, case[1] .. ": header")
  -- The sum and the rows of threads have real time only.
  t.contains(render("top", { event = "wall" }), "0.500 s of real time: 0.100 s on CPU, 0.400 s waiting, 0.000 s runnable",
	     case[1] .. ": wall")
  local p = assert(reader.parse_string(bytes, { activity = true }))
  local _, tracks = p.activity:tracks()
  t.equal(#tracks, 1, case[1] .. ": rows")
  t.ok(math.abs(tracks[1].total - 500000) < 1, ("%s: %.0f us in the row"):format(case[1], tracks[1].total))
end

-- -- No division by zero ---------------------------------------------------

-- Returns a stream of an event without a period, beside CPU time with one.
local function odd_stream(unit, weight, cpu_first)
  local b, index = B.new():context(7, 0):meta("clock", cpu_first and "cpu,odd" or "odd,cpu"), cpu_first and 1 or 0
  b:event(index, "odd", unit, 0):event(1 - index, "cpu", US, MS)
  b:lfunc(1, 1, "@a.lua", "f"):stack(1, { F.cbound, F.lfunc(1, 1), F.work(G.SPF_WORK_READY) })
  b:sample(1, 0, 2, nil, weight, index):sample(1, 0, 1, nil, nil, 1 - index)
  return b:finish()
end

local function has_no_number(out)
  return out:find("%f[%a]nan%f[%A]") or out:find("%f[%a]inf%f[%A]") or out:find("one in 0", 1, true)
end

local function check_odd(unit, weight, cpu_first)
  local s, what = odd_stream(unit, weight, cpu_first), ("unit %d, weight %d"):format(unit, weight)
  for _, o in ipairs { { event = "odd" }, { event = "odd", weight = "event" } } do
    for _, format in ipairs { "folded", "top", "tree", "svg", "speedscope", "gecko", "json" } do
      t.ok(not has_no_number(render(format, o, s)), ("%s: %s"):format(what, format))
    end
    for _, format in ipairs { "folded", "top", "flamegraph" } do
      local out = render(format, o, s, s):gsub("<script>.-</script>", "")
      t.ok(not has_no_number(out), ("%s: %s, compared"):format(what, format))
    end
    local profile = pprof.decode(render("pprof", o, s))
    t.ok(#profile.message[11] == 0 and #profile.message[12] == 0, what .. ": pprof")
    t.equal(json.decode(render("gecko", o, s)).meta.interval, 1, what .. ": gecko, interval")
  end
  local all = json.decode(render("json", {}, s)).events
  t.equal(all[cpu_first and 2 or 1].period, nil, what .. ": json, no period")
  t.equal(all[cpu_first and 1 or 2].period, MS, what .. ": json, the other event's period")
end

for _, unit in ipairs { US, COUNT, BYTES, NS } do
  for _, weight in ipairs { 0, 5 * MS } do
    check_odd(unit, weight, true)
    check_odd(unit, weight, false)
  end
end

-- Weights are then less the time, as those of CPU time.
local b = B.new():context(7, 0):event(0, "offcpu", NS, 0):stack(1, { F.work(G.SPF_WORK_READY) })
t.equal(render("folded", {}, b:sample(1, 0, 2):finish()), "[runnable] 2000\n", "usual weights")

-- What is left of things has no period, either.
b = B.new():context(7, 0):event(0, "alloc", BYTES, 0, { { G.SPF_FIELD_THING, "live" }, { G.SPF_FIELD_SIZE, "size" } })
d = json.decode(render("json", {}, b:sample(0, 0, 1, nil, 64, 0, { 1, 64 }):finish()))
t.equal(d.events[2].name .. " " .. tostring(d.events[2].period), "live nil", "what is left")

t.finish()
