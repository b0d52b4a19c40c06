-- Each format writes weights in the unit of their event: CPU time, occurrences, bytes, real
-- time.
-- BASE: none, it reads no profile of this LuaJIT

local t = require("tools_test")
local B = require("stream_builder")
local G = require("sysprof.base.grammar")
local json = require("json_decode")
local pprof = require("pprof_decode")
local units = require("sysprof.model.units")
local F = B.F

-- -- Texts of values -------------------------------------------------------

local bytes = units.of(G.SPF_UNIT_BYTES)
for value, text in pairs {
  [0] = "0 B", [17] = "17 B", [1023] = "1023 B", [1023.4] = "1023 B", [1023.5] = "1 KiB",
  [1024] = "1 KiB", [524288] = "512 KiB", [1572864] = "1.5 MiB", [1048570] = "1 MiB",
  [1023 * 1024 + 900] = "1023.9 KiB", [2^30] = "1 GiB", [1.3 * 2^40] = "1.3 TiB",
  [2^53] = "8 PiB", [2^63] = "8192 PiB",
} do
  t.equal(bytes.text(value), text, "bytes")
end
t.equal(units.of(99), units.of(G.SPF_UNIT_COUNT), "an unknown unit")
for name, number in pairs(G) do
  if name:find("^SPF_UNIT_") then
    t.equal("SPF_UNIT_" .. units.of(number).name:upper(), name, "name of a unit")
  end
end

-- -- All formats -----------------------------------------------------------

-- Two samples of f and one of g, of one event.
local function stream(name, unit, period, small, large)
  local b = B.new():context(7, 0):meta("clock", name):meta("pid", "7")
  b:event(0, name, unit, period):lfunc(1, 1, "@a.lua", "f"):lfunc(2, 2, "@a.lua", "g")
  b:stack(1, { F.lfunc(1, 1) }):stack(2, { F.lfunc(2, 2) })
  b:sample(1, 0, 2, nil, small):sample(2, 0, 1, nil, large)
  return b:counters({ { G.SPF_COUNTER_TOTAL, 2 * (2 * small + large) } }):finish()
end

-- By unit: the stream's arguments, then what the formats show with --weight=event.
local CASES = {
  { args = { "cpu", G.SPF_UNIT_US, 1000000, 500, 3000 },
    event = "3 samples, 0.004 s of 0.008 s (50.0%) of CPU time; 1000 samples a second asked, 375.0 got",
    shown = "4.000 ms, 3 samples", column = " ms", texts = { "1.000", "3.000", "4.000" },
    amount = "3.000 ms", pprof = "cpu/nanoseconds", scale = 1000, period = "cpu/nanoseconds 1000000",
    speedscope = "microseconds", json = "us", script = "3.000 ms", script_large = "3.000 s" },
  { args = { "page-faults", G.SPF_UNIT_COUNT, 10, 500, 3000 },
    event = "3 samples, 4000 of 8000 (50.0%) counted; one in 10 asked, one in 2666.7 got",
    shown = "4000, 3 samples", column = "", texts = { "1000", "3000", "4000" },
    amount = "3000 page-faults", pprof = "page-faults/count", scale = 1,
    period = "page-faults/count 10", speedscope = "none", json = "count",
    script = "3,000 page-faults", script_large = "3,000,000 page-faults",
    wrong = "the event 'page-faults' counts occurrences, use --weight=event" },
  { args = { "alloc", G.SPF_UNIT_BYTES, 524288, 98304, 1572864 },
    event = "3 samples, 1.7 MiB of 3.4 MiB (50.0%) estimated; one in 512 KiB asked, one in 1.1 MiB got",
    shown = "1.7 MiB, 3 samples", column = "", texts = { "192 KiB", "1.5 MiB", "1.7 MiB" },
    amount = "1.5 MiB", pprof = "alloc/bytes", scale = 1, period = "alloc/bytes 524288",
    speedscope = "bytes", json = "bytes", script = "1.5 MiB", script_large = "1.5 GiB",
    large = 1610612736, wrong = "the event 'alloc' counts bytes, use --weight=event" },
  { args = { "lock-wait", G.SPF_UNIT_NS, 2000000, 500000, 3000000 },
    event = "3 samples, 0.004 s of 0.008 s (50.0%) of real time; one in 2.000 ms asked, one in 2.667 ms got",
    shown = "4.000 ms, 3 samples", column = " ms", texts = { "1.000", "3.000", "4.000" },
    amount = "3.000 ms", pprof = "lock-wait/nanoseconds", scale = 1,
    period = "lock-wait/nanoseconds 2000000", speedscope = "nanoseconds", json = "ns",
    script = "3.000 ms", script_large = "3.000 s",
    wrong = "the event 'lock-wait' measures real time, use --weight=event" },
}

local function render(s, format, options, base)
  return (assert(t.render(s, format, options, base)))
end

local BY_EVENT = { weight = "event", limit = 0 }

local function check_text(case, s, name)
  local _, _, _, small, large = unpack(case.args)
  local f, g, both = unpack(case.texts)
  t.equal(render(s, "folded", BY_EVENT), ("f (a.lua:1) %.0f\ng (a.lua:2) %.0f\n")
	  :format(2 * small, large), name .. ": folded")
  t.equal(render(s, "folded", BY_EVENT, s), ("f (a.lua:1) %.0f %.0f\ng (a.lua:2) %.0f %.0f\n")
	  :format(2 * small, 2 * small, large, large), name .. ": folded, compared")
  local self, total = "self" .. case.column, "total" .. case.column
  local function row(value, text)
    return ("\n%12s [^\n]*%s[^\n]*  %s\n"):format(value, value, text)
  end
  local top = render(s, "top", { weight = "event", event = name })
  t.contains(top, ("\nevent %-12s %s\n"):format(name, case.event), name .. ": report")
  t.contains(top, ("\nshown              %s: %s\n"):format(name, case.shown), name .. ": top, shown")
  t.contains(top, ("\n%12s   self%% %12s  total%%  function\n"):format(self, total), name .. ": top, head")
  local tree = render(s, "tree", BY_EVENT)
  t.contains(tree, ("%12s  total%% %12s   self%%  function\n"):format(total, self), name .. ": tree, head")
  t.ok(tree:find(("\n%12s   100.0 "):format(both)), name .. ": tree, all")
  for text, value in pairs { ["f %(a.lua:1%)"] = f, ["g %(a.lua:2%)"] = g } do
    t.ok(top:find(row(value, text)), name .. ": top, " .. text)
    t.ok(tree:find(row(value, " *" .. text)), name .. ": tree, " .. text)
  end
  t.write_file("a.lua", "one\ntwo\n")
  t.with_file(s, function(path)
    local status, out = t.parse(("--weight=event --annotate=a.lua %s"):format(path))
    out = t.without_errors(out)
    t.equal(status, 0, name .. ": annotate, status")
    t.contains(out, ("\n%12s   self%% %12s  total%%    line  text\n"):format(self, total),
	       name .. ": annotate, head")
    t.ok(out:find(row(g, "two")), name .. ": annotate")
    local err
    status, _, err = t.parse("--weight=cpu " .. path)
    t.equal(status, case.wrong and 1 or 0, name .. ": CPU time, status")
    if case.wrong then t.contains(err, case.wrong, name .. ": CPU time") end
  end)
end

local function check_exchange(case, s, name)
  local _, unit, period, small, large = unpack(case.args)
  local d = pprof.decode(render(s, "pprof", BY_EVENT))
  t.equal(table.concat(d.types, " "), "samples/count " .. case.pprof, name .. ": pprof, types")
  t.equal(pprof.folded(d, 2, case.scale), render(s, "folded", BY_EVENT), name .. ": pprof, values")
  local kind = pprof.message(d.message[11][1])
  t.equal(("%s/%s %d"):format(d.str(kind[1][1]), d.str(kind[2][1]), d.message[12][1]), case.period,
	  name .. ": pprof, period")
  d = json.decode(render(s, "speedscope", BY_EVENT))
  t.equal(d.profiles[1].unit, case.speedscope, name .. ": speedscope, unit")
  t.equal(d.profiles[1].endValue, 2 * small + large, name .. ": speedscope, sum")
  t.equal(json.decode(render(s, "speedscope", { weight = "samples" })).profiles[1].unit, "none", name .. ": speedscope, samples")
  d = json.decode(render(s, "json", {}))
  t.equal(("%s %s %.0f %.0f"):format(d.events[1].name, d.events[1].unit, d.events[1].weight,
				     d.events[1].period),
	  ("%s %s %.0f %.0f"):format(name, case.json, 2 * small + large, period), name .. ": json")
  t.equal(d.samples[3].weight, large, name .. ": json, a sample")
  d = json.decode(render(s, "gecko", {}))
  local is_cpu = unit == G.SPF_UNIT_US
  t.equal(d.threads[1].samples.data[3][3], is_cpu and large or nil, name .. ": gecko, CPU time")
  t.equal(d.meta.sampleUnits.threadCPUDelta, is_cpu and "\194\181s" or nil, name .. ": gecko, unit")
  local is_time = is_cpu or unit == G.SPF_UNIT_NS
  t.equal(d.meta.interval, is_time and period / 1e6 or 1, name .. ": gecko, interval")
end

local has_node = t.shell("node --version") == 0

-- Runs the page's function that writes a value.
local function check_pictures(case, s, name)
  t.contains(render(s, "svg", BY_EVENT), ("<title>g (a.lua:2) (%s, "):format(case.amount), name .. ": svg")
  local page = render(s, "flamegraph", BY_EVENT)
  t.ok(not page:find("{{", 1, true), name .. ": flamegraph, all places are filled")
  local data = page:match('id="data">\n(.-)\n</script>')
  t.contains(data, ('{"unit":"%s","event":"%s"'):format(case.json, name), name .. ": flamegraph, unit")
  local in_script = page:match("\n(function valueText%(v%) {\n.-\n}\n)")
  if not has_node then return end
  t.write_file("value.js", ("const data = %s;\n%sfor (const v of [%.0f, %.0f]) console.log(valueText(v));\n")
	       :format(data, in_script, case.args[5], case.large or 1000 * case.args[5]))
  local status, out, err = t.shell("node value.js")
  t.equal(status, 0, "node: " .. err)
  t.equal(out, ("%s\n%s\n"):format(case.script, case.script_large), name .. ": flamegraph, values")
end

for _, case in ipairs(CASES) do
  local name, s = case.args[1], stream(unpack(case.args))
  check_text(case, s, name)
  check_exchange(case, s, name)
  check_pictures(case, s, name)
end

-- -- Several profiles ------------------------------------------------------

-- Bytes add up with bytes, and compare with nothing else.
local alloc, faults = stream(unpack(CASES[3].args)), stream(unpack(CASES[2].args))
t.with_file(alloc, function(path)
  t.with_file(faults, function(other)
    local status, out = t.parse(("--weight=event %s %s"):format(path, path))
    t.equal(status, 0, "two profiles: status")
    t.equal(out, "f (a.lua:1) 393216\ng (a.lua:2) 3145728\n", "two profiles")
    local _, err
    status, _, err = t.parse(("--weight=event --diff=%s %s"):format(other, path))
    t.equal(status, 1, "bytes against occurrences: status")
    t.contains(err, "event 'page-faults' and event 'alloc' have different units; the profiles have no event in common",
	       "bytes against occurrences")
  end)
end)

t.finish()
