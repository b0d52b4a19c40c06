-- Samples of several events: never mixed, chosen by --event, with weights in the event's
-- unit.
-- BASE: none, it reads no profile of this LuaJIT

local t = require("tools_test")
local B = require("stream_builder")
local G = require("sysprof.base.grammar")
local events = require("sysprof.model.events")
local json = require("json_decode")
local pprof = require("pprof_decode")
local reader = require("sysprof.read.reader")
local view = require("sysprof.show.view")
local F = B.F

local US, COUNT = G.SPF_UNIT_US, G.SPF_UNIT_COUNT

-- cpu takes an available clock: 3 samples of it, 2 of page faults, 1 of cycles.
local function stream(clock, used)
  local b = B.new():context(7, 0)
  b:meta("clock", clock or "cpu,page-faults,cycles:u/period=500/"):meta("pid", "9")
  b:meta("start_time", "1700000000")
  b:event(0, used or "task-clock", US, 1000000):event(1, "page-faults", COUNT, 10)
  b:event(2, "cycles:u", COUNT, 500)
  b:lfunc(1, 1, "@a.lua", "f"):lfunc(2, 2, "@a.lua", "g")
  b:stack(1, { F.lfunc(1, 1) }):stack(2, { F.lfunc(2, 2) })
  b:sample(1, 0, 2, nil, nil, 0)
  b:sample(1, 0, 1, nil, 12, 1):sample(2, 0, 1, nil, 30, 1)
  b:sample(2, 0, 1, nil, 600, 0)
  b:sample(2, 0, 1, nil, 3e9, 2)
  b:counters { { G.SPF_COUNTER_TOTAL, 2700 }, { G.SPF_COUNTER_TOTAL + 1, 60 },
	       { G.SPF_COUNTER_WALL_US, 10000 } }
  return b:finish()
end

local bytes = stream()

-- -- Weights of each -------------------------------------------------------

local function check(what, options, expected)
  t.equal((t.render(bytes, "folded", options)), expected, what)
end
local f, g = "f (a.lua:1) ", "g (a.lua:2) "
check("the first event", {}, f .. "2\n" .. g .. "1\n")
check("its CPU time", { weight = "cpu" }, f .. "2000\n" .. g .. "600\n")
check("the same", { weight = "event" }, f .. "2000\n" .. g .. "600\n")
check("by the name that was asked for", { event = "cpu" }, f .. "2\n" .. g .. "1\n")
check("by the name that was used", { event = "task-clock" }, f .. "2\n" .. g .. "1\n")
check("another event", { event = "page-faults" }, f .. "1\n" .. g .. "1\n")
check("its occurrences", { event = "page-faults", weight = "event" }, f .. "12\n" .. g .. "30\n")
check("many occurrences", { event = "cycles:u", weight = "event" }, g .. "3000000000\n")

local p = assert(reader.parse_string(bytes))
local _, err = view.new(p, { event = "page-fault" })
t.equal(err, "the profile has no event 'page-fault', its events are: cpu, page-faults, cycles:u",
	"no such event")
_, err = view.new(p, { event = "page-faults", weight = "cpu" })
t.equal(err, "the event 'page-faults' counts occurrences, use --weight=event",
	"no CPU time in it")
local samples, us = p:totals()
t.ok(samples == 6 and us == 2600, "totals")

-- Only the same name and unit make an event that is described again the same one.
for what, again in pairs { same = { "a", COUNT, 1 }, name = { "b", COUNT, 2 }, unit = { "a", US, 2 } } do
  local b = B.new():context(7, 0):lfunc(1, 1, "@a.lua", "f"):stack(1, { F.lfunc(1, 1) })
  b:event(0, "a", COUNT, 10):sample(1, 0):event(0, again[1], again[2], 20):sample(1, 0)
  t.equal(reader.parse_string(b:finish()).slots:count(), again[3], "described again: " .. what)
end

-- -- Formats ---------------------------------------------------------------

local out = t.render(bytes, "top", {})
t.contains(out, "\nevent cpu          3 samples, 0.003 s of 0.003 s (96.3%) of CPU time; " ..
  "1000 samples a second asked, 1111.1 got; by task-clock\n", "top: cpu")
t.contains(out, "\nevent page-faults  2 samples, 42 of 60 (70.0%) counted; one in 10 asked, " ..
  "one in 30.0 got\n", "top: page faults")
t.contains(out, "\nevent cycles:u     1 sample, 3000000000 counted; one in 500 asked, " ..
  "one in 3000000000.0 got\n", "top: cycles")
t.contains(out, "\nshown              cpu: 3 samples\n", "top: which is shown")
t.contains(t.render(bytes, "top", { event = "page-faults", weight = "event" }),
	   "\nshown              page-faults: 42, 2 samples\n", "top: another one")
t.contains(t.render(bytes, "tree", { event = "page-faults", weight = "event" }),
	   "\n          42   100.0            0     0.0  all\n", "tree")
t.contains(t.render(bytes, "svg", { event = "page-faults", weight = "event" }),
	   "<title>g (a.lua:2) (30 page-faults, 71.43%)</title>", "svg")
out = t.render(bytes, "flamegraph", { event = "page-faults", weight = "event" })
t.contains(out, '{"unit":"count","event":"page-faults","diff":false', "flamegraph: unit")
t.contains(out, "<tr><th>shown</th><td>event page-faults</td></tr>", "flamegraph: about")
t.contains(out, '"nodes":[1,0,12,1,1,30]', "flamegraph: values")

-- Renders with single samples and decodes.
local function decoded(format, options)
  local profile = assert(reader.parse_string(bytes, { timeline = true }))
  local parts = {}
  require("sysprof.formats." .. format).render(view.new(profile, options),
    function(s) parts[#parts + 1] = s end)
  return json.decode(table.concat(parts))
end

local d = decoded("json", {})
local got = {}
for i, s in ipairs(d.samples) do got[i] = s.event .. " " .. s.weight end
t.equal(table.concat(got, ", "), "cpu 1000, cpu 1000, page-faults 12, page-faults 30, " ..
	"cpu 600, cycles:u 3000000000", "json: samples of all events")
local e = d.events[2]
t.equal(("%s %s %d %d %d %d"):format(e.name, e.unit, e.samples, e.weight, e.total, e.period),
	"page-faults count 2 42 60 10", "json: events")
t.equal(d.events[3].total, nil, "json: a total that is not known")
t.equal(#decoded("json", { event = "page-faults" }).samples, 2, "json: one event")

d = decoded("speedscope", { event = "page-faults", weight = "event" })
t.equal(d.profiles[1].endValue, 42, "speedscope: sum")
t.equal(d.profiles[1].unit, "none", "speedscope: unit")
t.equal(decoded("speedscope", { weight = "event" }).profiles[1].unit, "microseconds",
	"speedscope: unit of the first event")

d = decoded("gecko", {})
t.equal(#d.threads[1].samples.data, 3, "gecko: samples")
t.equal(d.threads[1].samples.data[3][3], 600, "gecko: CPU time")
d = decoded("gecko", { event = "page-faults" })
t.equal(#d.threads[1].samples.data, 2, "gecko: samples of another event")
t.equal(d.threads[1].samples.schema.threadCPUDelta, nil, "gecko: these have no CPU time")
t.equal(#d.threads[1].samples.data[1], 2, "gecko: columns of another event")

d = pprof.decode((t.render(bytes, "pprof", {})))
t.equal(table.concat(d.types, " "), "samples/count cpu/nanoseconds " ..
  "page-faults-samples/count page-faults/count cycles:u-samples/count cycles:u/count",
  "pprof: types")
for i, name in ipairs { "cpu", "page-faults", "cycles:u" } do
  t.equal(pprof.folded(d, 2 * i - 1, 1), (t.render(bytes, "folded", { event = name })),
	  "pprof: samples of " .. name)
  t.equal(pprof.folded(d, 2 * i, i == 1 and 1000 or 1),
	  (t.render(bytes, "folded", { event = name, weight = "event" })), "pprof: sum of " .. name)
end
-- Returns the default type, and type, unit and length of the period.
local function defaults(options)
  d = pprof.decode((t.render(bytes, "pprof", options)))
  local period = pprof.message(d.message[11][1])
  return ("%s, %s/%s %d"):format(d.str(d.message[14][1]), d.str(period[1][1]),
				 d.str(period[2][1]), d.message[12][1])
end
t.equal(defaults({}), "samples, cpu/nanoseconds 1000000", "pprof: defaults")
t.equal(defaults({ weight = "event" }), "cpu, cpu/nanoseconds 1000000", "pprof: --weight=event")
t.equal(defaults({ event = "page-faults" }), "page-faults-samples, page-faults/count 10",
	"pprof: --event")
t.equal(defaults({ event = "page-faults", weight = "event" }), "page-faults, page-faults/count 10",
	"pprof: --event and --weight=event")

-- -- Profiles of several runs ----------------------------------------------

t.with_file(bytes, function(path)
  -- The same was asked for, another clock was used.
  t.with_file(stream(nil, "ctimer"), function(second)
    local all = assert(reader.read_all({ path, second }))
    local list = events.list(all)
    t.equal(#list, 3, "two runs: events")
    t.equal(list[1].samples, 6, "two runs: samples of the clock")
    t.equal(list[1].total, 5400, "two runs: total")
    t.equal(table.concat(list[1].used, ", "), "task-clock, ctimer", "two runs: clocks")
    t.equal(all.slots:count(), 5, "two runs: distinct samples")
    local status, stdout, stderr = t.parse(("--diff=%s --event=ctimer %s"):format(second, path))
    t.equal(status, 1, "a clock that one of two has: status")
    t.equal(stdout, "", "a clock that one of two has: output")
    t.contains(stderr, "the profile has no event 'ctimer'", "a clock that one of two has")
    status, stdout = t.parse(("--diff=%s --event=page-faults --weight=event %s")
			     :format(second, path))
    t.equal(status, 0, "comparison of an event: status")
    t.equal(stdout, f .. "12 12\n" .. g .. "30 30\n", "comparison of an event")
  end)
  -- Something else was asked for.
  local other = B.new():context():meta("clock", "cache-misses")
  other:event(0, "cache-misses", COUNT, 100):lfunc(1, 1, "@a.lua", "f")
  other:stack(1, { F.lfunc(1, 1) }):sample(1, 0, 1, nil, 101, 0)
  t.with_file(other:finish(), function(second)
    local all = assert(reader.read_all({ path, second }))
    local names = {}
    for i, event in ipairs(events.list(all)) do names[i] = event.name end
    t.equal(table.concat(names, ", "), "cpu, page-faults, cycles:u, cache-misses",
	    "events of both")
    local status, stdout = t.parse(("--event=cache-misses --weight=event %s %s")
				   :format(path, second))
    t.equal(status, 0, "event of the second: status")
    t.equal(stdout, f .. "101\n", "event of the second")
    local _, stderr
    status, _, stderr = t.parse(("--weight=event --diff=%s %s"):format(second, path))
    t.equal(status, 1, "time against occurrences: status")
    t.contains(stderr, "event 'cache-misses' and event 'cpu' have different units",
	       "time against occurrences")
  end)
  local function wrong(arguments, message)
    local status, stdout, stderr = t.parse(arguments .. " " .. path)
    t.equal(status, 1, arguments .. ": status")
    t.equal(stdout, "", arguments .. ": output")
    t.equal(stderr, ("luajit-parse-sysprof: %s: %s\n"):format(path, message), arguments)
  end
  wrong("--event=x", "the profile has no event 'x', its events are: cpu, page-faults, cycles:u")
  wrong("--event=cycles:u --weight=cpu",
	"the event 'cycles:u' counts occurrences, use --weight=event")
  for title, arguments in pairs {
    ["p.bin, cpu"] = "", ["p.bin, page-faults"] = "--event=page-faults", own = "--title=own"
  } do
    t.write_file("p.bin", bytes)
    local _, page = t.parse(("--format=flamegraph %s p.bin"):format(arguments))
    t.contains(page, "<title>" .. title .. "</title>", "title: " .. arguments)
  end
  -- Of a part of the time, the whole is not the measure.
  local _, stdout = t.parse("--format=top --from=0.001 --to=0.003 " .. path)
  t.contains(stdout, "\nevent cpu          2 samples, 0.002 s of CPU time; 1000 samples a second asked; " ..
	     "by task-clock\n", "a part of the time")
end)

-- No CPU time in it, and a long name.
local b = B.new():context():meta("clock", "cache-references:ppp"):lfunc(1, 1, "@a.lua", "f")
b:event(0, "cache-references:ppp", COUNT, 5):stack(1, { F.lfunc(1, 1) }):sample(1, 0, 1, nil, 7)
out = t.render(b:finish(), "top", { event = "cache-references:ppp" })
t.contains(out, "samples                    1, 1 thread\n" ..
  "event cache-references:ppp 1 sample, 7 counted; one in 5 asked, one in 7.0 got\n" ..
  "lost                       0\n", "no CPU time")

-- -- Odd ones --------------------------------------------------------------

-- Names that could do harm, twice the same, and an event that is not described.
b = B.new():context():meta("clock", "<b>;,<b>;,\27[1m,"):event(0, "x\n\255", US, 0)
b:event(1, '"', COUNT, 0):lfunc(1, 1, "@a.lua", "f"):stack(1, { F.lfunc(1, 1) })
for index = 0, 3 do b:sample(1, 0, 1, nil, 5, index) end
bytes = b:finish()
p = assert(reader.parse_string(bytes))
local names = {}
for i, event in ipairs(events.list(p)) do names[i] = event.name end
t.equal(table.concat(names, "|"), "<b>;|<b>; 2|?[1m|event 3", "odd names")
for _, format in ipairs { "folded", "top", "tree", "flamegraph", "svg", "pprof" } do
  for _, name in ipairs(names) do
    out = t.render(bytes, format, { event = name, weight = "event" })
    t.ok(#out > 0, format .. " of an odd name")
    if format == "flamegraph" or format == "svg" then
      t.ok(not out:find("<b>", 1, true), format .. ": no element")
    end
    if format ~= "pprof" then t.ok(not out:find("[\27\255]"), format .. ": clean") end
  end
end
t.equal(#decoded("json", {}).events, 4, "json: odd names")

-- No description at all: the clock of the profile.
b = B.new():context():meta("clock", "wall"):meta("interval_ns", "2000000")
b:sample(0, 0, 1)
t.contains(t.render(B.new():context():meta("clock", "wall"):sample(0, 0, 2):finish(), "top", {}),
  "event wall         2 samples, 0.002 s of CPU time\n", "no rate of real time is known")
b:counters { { G.SPF_COUNTER_WALL_US, 4000 }, { G.SPF_COUNTER_TOTAL, 2000 } }
t.contains(t.render(b:finish(), "top", {}), "event wall         1 sample, 0.001 s of 0.002 s (50.0%) " ..
  "of CPU time; 500 samples a second asked, 250.0 got\n", "no description")
t.contains(t.render(B.new():finish(), "top", { event = nil }), "samples            0,", "empty")
-- Without samples a name that was asked for is there, too.
t.equal((t.render(B.new():context():meta("clock", "cpu"):finish(), "folded", { event = "cpu" })),
	"", "no sample of an event")
_, err = view.new(assert(reader.parse_string(B.new():finish())), { event = "cpu" })
t.equal(err, "the profile has no event 'cpu', its events are: none", "no event in an empty one")

t.finish()
