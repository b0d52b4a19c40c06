----------------------------------------------------------------------------
-- Benchmark suite: what the profiler costs while it is on, in total and beyond
-- the bare signals of its clock, and for each sample.
----------------------------------------------------------------------------

local budget = require("budget")
local clocks = require("clocks")
local measure = require("measure")
local report = require("report")
local stat = require("stat")

-- Columns with ratios: kind, divided by kind, of which time.
local RATIOS = {
  { "cpu", "ours", "off", "cpu" }, { "wall", "ours", "off", "wall" },
  { "bare", "bare", "off", "cpu" },
  { "added_cpu", "ours", "bare", "cpu" }, { "added_wall", "ours", "bare", "wall" },
}

local on = {}

local function on_table(rate)
  return report.table("on-" .. rate.id, "On, mode C, " .. rate.title, [[
Time with the profiler over that without, and over that with the same clock whose signals do nothing
(bare). Handler: the time in the handler by its own report, as a share of the CPU time. Left out:
ticks, because the sample before took long.]], {
    { key = "program", title = "program" }, { key = "jit", title = "JIT" },
    { key = "rate", title = "samples/s" },
    { key = "cpu", title = "CPU, on / off", digits = 4, from = 1 },
    { key = "wall", title = "wall, on / off", digits = 4, from = 1 },
    { key = "bare", title = "CPU, bare / off", digits = 4, from = 1 },
    { key = "added_cpu", title = "CPU, on / bare", digits = 4, from = 1 },
    { key = "added_wall", title = "wall, on / bare", digits = 4, from = 1 },
    { key = "handler", title = "handler, %", digits = 3, scale = 100 },
    { key = "throttled", title = "left out" }, { key = "rounds", title = "rounds" } })
end

local function cost_table(rate)
  return report.table("sample-" .. rate.id, "One sample, " .. rate.title, [[
Microseconds of CPU time. Handler: by its own report, mean, and p99 with the first samples. Added: (on - bare) /
samples. Difference: of added to handler, with the noise of added in points. Total: (on - off) /
samples, with the signal.]], {
    { key = "program", title = "program" }, { key = "jit", title = "JIT" },
    { key = "samples", title = "samples" },
    { key = "handler", title = "handler", digits = 2 },
    { key = "p99", title = "handler, p99", digits = 1, scale = 1e-3 },
    { key = "added", title = "added", digits = 2, from = 0, scale = 1e-3 },
    { key = "difference", title = "difference, %", digits = 0 },
    { key = "noise", title = "noise, points", digits = 0 },
    { key = "signal", title = "bare signal", digits = 2, from = 0, scale = 1e-3 },
    { key = "total", title = "total", digits = 2, from = 0, scale = 1e-3 } })
end

local function add_rows(result, rate, line, table_on, table_cost, pools)
  local program = line.program .. ", JIT " .. line.jit
  local of = { off = "off", bare = rate.bare, ours = rate.ours }
  local ours, bare = result.kinds[rate.ours], result.kinds[rate.bare]
  local said = measure.reports(result, rate.ours)
  local per_ns = ours.samples / ours.sampled
  line.rate, line.rounds = per_ns * 1e9, #ours.cpu
  line.handler, line.throttled = ours.handler / ours.sampled, said.throttled
  for _, ratio in ipairs(RATIOS) do
    local a, b = result.kinds[of[ratio[2]]], result.kinds[of[ratio[3]]]
    local ratios = stat.ratios(a[ratio[4]], b[ratio[4]])
    line[ratio[1]] = stat.summary(ratios)
    pools[line.jit].add(ratio[1], ratios)
  end
  table_on.rows[#table_on.rows + 1] = line
  if said.lost > 0 then report.remark(table_on, "%s: %d samples were lost", program, said.lost) end
  if ours.samples == 0 then return report.miss(table_cost, program, "no samples") end
  local handler_ns = ours.handler / ours.samples
  local added = measure.cost(result, rate.ours, rate.bare, per_ns)
  local noise, ticks = stat.noise(added), stat.sum(bare.returned)
  table_cost.rows[#table_cost.rows + 1] = {
    program = line.program, jit = line.jit, samples = ours.samples,
    handler = handler_ns / 1e3, p99 = stat.summary(ours.returned), added = added,
    difference = 100 * (added.median / handler_ns - 1),
    noise = noise and noise / handler_ns,
    signal = ticks > 0 and
	     measure.cost(result, rate.bare, "off", ticks / bare.profiled) or nil,
    total = measure.cost(result, rate.ours, "off", per_ns) }
end

-- The row of all programs.
local function add_all(t, jit, pool)
  local line = { program = "all", jit = jit }
  for _, name in ipairs(pool.names) do
    line[name] = stat.summary(pool[name])
    line.rounds = line[name].n
  end
  if line.rounds then t.rows[#t.rows + 1] = line end
end

-- What goes wrong before anything can be measured.
local function nothing(missing)
  local t = report.table("on", "On", "", {})
  for _, m in ipairs(missing) do report.miss(t, m.what, m.why) end
  return t
end

function on.run(suite, seconds, add)
  local rates, missing = clocks.rates()
  if #rates == 0 then return add(nothing(missing)) end
  local tables_on, tables_cost, pools = {}, {}, {}
  for i, rate in ipairs(rates) do
    tables_on[i], tables_cost[i] = on_table(rate), cost_table(rate)
    pools[i] = { off = stat.pool(), on = stat.pool() }
  end
  -- The default rate has slices of its own, longer ones, as ticks are few.
  local groups = { { 1 }, { 2, 3 } }
  local time = budget.new(seconds, #groups * #suite.programs * 2)
  local function measure_group(group, program, jit)
    local kinds = { "off" }
    for _, i in ipairs(group) do
      kinds[#kinds + 1] = rates[i].bare
      kinds[#kinds + 1] = rates[i].ours
    end
    local result, why = measure.run(suite, { program = program, jit = jit,
      kinds = table.concat(kinds, ","), long = group[1] == 1, seconds = time.next() })
    for _, i in ipairs(group) do
      if result then
	add_rows(result, rates[i], { program = program, jit = jit }, tables_on[i],
		 tables_cost[i], pools[i])
      else
	report.miss(tables_on[i], program .. ", JIT " .. jit, why)
      end
    end
  end
  for _, program in ipairs(suite.programs) do
    for _, jit in ipairs({ "off", "on" }) do
      for _, group in ipairs(groups) do measure_group(group, program, jit) end
    end
  end
  local tables = {}
  for i, t in ipairs(tables_on) do
    for _, jit in ipairs({ "off", "on" }) do add_all(t, jit, pools[i][jit]) end
    tables[#tables + 1] = t
  end
  -- At the default rate there are too few samples for the cost of one.
  for i = 2, #rates do tables[#tables + 1] = tables_cost[i] end
  for _, t in ipairs(tables) do
    for _, m in ipairs(missing) do report.miss(t, m.what, m.why) end
  end
  for _, t in ipairs(tables) do add(t) end
end

return on
