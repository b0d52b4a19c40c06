----------------------------------------------------------------------------
-- Part "on" of the benchmark suite: the profiler's cost while it is on. The cost is
-- measured in total, beyond the bare signals of the clock, and for each sample.
----------------------------------------------------------------------------

local budget = require("budget")
local clocks = require("clocks")
local measure = require("measure")
local report = require("report")
local stat = require("stat")

-- The sessions of a round: rate, pairs of slices in the session, slices without profiler
-- beside it. At the default rate the total counts most, so that rate has more sessions.
-- The other rate needs pairs with bare signals. Part "1kHz" measures the one between.
local BLOCKS = { { 1, 1, 1 }, { 1, 1, 1 }, { 1, 1, 1 }, { 2, 4, 1 }, { 1, 1, 1 } }
local QUICK_BLOCKS = { { 1, 1, 1 }, { 2, 3, 1 } }

-- The addresses of a process's memory may make a program a percent faster or slower with a
-- session. So each program runs in several processes.
local PROCESSES, QUICK_PROCESSES = 3, 1

-- Columns with ratios: { column, kind, divided by kind, list }.
local RATIOS = {
  { "cpu", "on", "off", "cpu" }, { "wall", "on", "off", "wall" },
  { "cycles", "on", "off", "cycles" }, { "bare", "bare", "off", "cpu" },
  { "added_cpu", "on", "bare", "cpu" }, { "added_wall", "on", "bare", "wall" },
  { "added_cycles", "on", "bare", "cycles" },
}

local on = {}

local function on_table(rate)
  return report.table("on-" .. rate.id, "On, mode C, " .. rate.title, [[
Time with the profiler, divided by the time without it (off), or by the time of the same session when its
signals do nothing (bare): CPU time, real time, cycles of the processor. Handler: time in the handler by
its own report, as a share of the CPU time. Left out: ticks after a sample that took long.]], {
    { key = "program", title = "program" }, { key = "jit", title = "JIT" },
    { key = "rate", title = "samples/s" },
    { key = "cpu", title = "CPU, on / off", digits = 4, from = 1 },
    { key = "wall", title = "wall, on / off", digits = 4, from = 1 },
    { key = "cycles", title = "cycles, on / off", digits = 4, from = 1 },
    { key = "bare", title = "CPU, bare / off", digits = 4, from = 1 },
    { key = "added_cpu", title = "CPU, on / bare", digits = 4, from = 1 },
    { key = "added_wall", title = "wall, on / bare", digits = 4, from = 1 },
    { key = "added_cycles", title = "cycles, on / bare", digits = 4, from = 1 },
    { key = "handler", title = "handler, %", digits = 3, scale = 100 },
    { key = "throttled", title = "left out" }, { key = "pairs", title = "pairs" } })
end

local function cost_table(rate)
  return report.table("sample-" .. rate.id, "One sample, " .. rate.title, [[
Microseconds of CPU time. Handler: by its own report. First: in the first slice of a session, where nearly
all functions and stacks are new. p99: includes the first samples. Added: (on - bare) / samples, by the
clock of CPU time and by the processor's cycles. Added / handler: by cycles if the machine counts them, in
brackets the 95 % interval. Total: (on - off) / samples, with the signal.]], {
    { key = "program", title = "program" }, { key = "jit", title = "JIT" },
    { key = "samples", title = "samples" },
    { key = "handler", title = "handler", digits = 2 },
    { key = "first", title = "handler, first", digits = 2 },
    { key = "p99", title = "handler, p99", digits = 1, scale = 1e-3 },
    { key = "added", title = "added, CPU", digits = 2, from = 0, scale = 1e-3 },
    { key = "added_cycles", title = "added, cycles", digits = 2, from = 0, scale = 1e-3 },
    { key = "agreement", title = "added / handler", digits = 2 },
    { key = "signal", title = "bare signal", digits = 2, from = 0, scale = 1e-3 },
    { key = "total", title = "total", digits = 2, from = 0, scale = 1e-3 } })
end

-- -- Slices ------------------------------------------------------------------

-- The means of the slices of each session.
local function by_session(list, sessions)
  local n = #list / sessions
  local means = {}
  for i = 1, n > 0 and sessions or 0 do
    local sum = 0
    for k = 1, n do sum = sum + list[(i - 1) * n + k] end
    means[i] = sum / n
  end
  return means
end

-- Two lists of the same slices or sessions. of: "on", "bare" and "off" as measured.
local function paired(of, a, b, key)
  local x, y = of[a][key], of[b][key]
  if b ~= "off" then return x, y end
  local sessions = #of.on.numbers
  return by_session(x, sessions), by_session(y, sessions)
end

-- The cost of one sample, from the difference of a and b in each slice or session.
local function cost_of_one(of, a, b, key, scale)
  local x, y = paired(of, a, b, key)
  local counts = b == "off" and by_session(of[a].samples, #of.on.numbers) or of[a].samples
  local costs = {}
  for i, v in ipairs(x) do
    if counts[i] > 0 then costs[#costs + 1] = (v - y[i]) * scale / counts[i] end
  end
  return stat.summary(costs)
end

-- Nanoseconds of a sample in the handler: the median of the slices, or of each n-th slice.
local function handler_of(slices, n)
  local means = {}
  for i = 1, #slices.samples, n or 1 do
    local samples = slices.samples[i]
    if samples > 0 then means[#means + 1] = slices.handler[i] / samples end
  end
  local of_all = stat.summary(means)
  return of_all and of_all.median
end

-- Nanoseconds of a cycle in these slices, nil if the machine does not count cycles.
local function ns_per_cycle(of)
  local ns, cycles = 0, 0
  for _, kind in pairs(of) do
    if #kind.cycles < #kind.cpu then return nil end
    ns, cycles = ns + stat.sum(kind.cpu), cycles + stat.sum(kind.cycles)
  end
  return cycles > 0 and ns / cycles or nil
end

-- Shows the 95 % interval in place of the quartiles: it shows whether two figures agree.
local function ratio_to(summary, value)
  if not summary or value == 0 then return nil end
  local low, high = summary.low / value, summary.high / value
  return { n = summary.n, median = summary.median / value, low = low, high = high,
	   q1 = low, q3 = high }
end

-- -- Rows --------------------------------------------------------------------

local function add_cost(of, line, t)
  local samples = stat.sum(of.on.samples)
  if samples == 0 then
    return report.miss(t, line.program .. ", JIT " .. line.jit, "no samples")
  end
  local handler_ns, cycle_ns = handler_of(of.on), ns_per_cycle(of)
  local first_ns = handler_of(of.on, #of.on.samples / #of.on.numbers)
  local added = cost_of_one(of, "on", "bare", "cpu", 1)
  local by_cycles = cycle_ns and cost_of_one(of, "on", "bare", "cycles", cycle_ns)
  t.rows[#t.rows + 1] = {
    program = line.program, jit = line.jit, samples = samples, handler = handler_ns / 1e3,
    first = first_ns and first_ns / 1e3,
    p99 = stat.summary(of.on.returned), added = added, added_cycles = by_cycles,
    agreement = ratio_to(by_cycles or added, handler_ns),
    signal = cost_of_one(of, "bare", "off", "cpu", 1),
    total = cost_of_one(of, "on", "off", "cpu", 1) }
end

local function add_rows(result, rate, line, table_on, table_cost, pools)
  local of = { off = result.kinds["off " .. rate.ours], on = result.kinds[rate.ours],
	       bare = result.kinds["bare " .. rate.ours] }
  local said = result.said[rate.ours]
  local ns = stat.sum(of.on.cpu)
  line.rate, line.pairs = stat.sum(of.on.samples) / ns * 1e9, #of.on.cpu
  line.handler, line.throttled = stat.sum(of.on.handler) / ns, said.throttled
  for _, ratio in ipairs(RATIOS) do
    local ratios = stat.ratios(paired(of, ratio[2], ratio[3], ratio[4]))
    line[ratio[1]] = stat.summary(ratios)
    pools[line.jit].add(ratio[1], ratios)
  end
  table_on.rows[#table_on.rows + 1] = line
  if said.lost > 0 then
    report.remark(table_on, "%s, JIT %s: %d samples were lost", line.program, line.jit, said.lost)
  end
  add_cost(of, line, table_cost)
end

-- The row of all programs.
local function add_all(t, jit, pool)
  local line = { program = "all", jit = jit }
  for _, name in ipairs(pool.names) do line[name] = stat.summary(pool[name]) end
  line.pairs = line.added_cpu and line.added_cpu.n
  if line.pairs then t.rows[#t.rows + 1] = line end
end

-- -- Part --------------------------------------------------------------------

-- An empty table with the reasons, if no clock is available.
local function nothing(missing)
  local t = report.table("on", "On", "", {})
  for _, m in ipairs(missing) do report.miss(t, m.what, m.why) end
  return t
end

local function blocks_of(suite, rates)
  local list = {}
  for i, block in ipairs(suite.quick and QUICK_BLOCKS or BLOCKS) do
    list[i] = ("%s:%d:%d"):format(rates[block[1]].ours, block[2], block[3])
  end
  return table.concat(list, ",")
end

local function append(list, more)
  for _, v in ipairs(more) do list[#list + 1] = v end
end

-- Joins the results of measure.run from several processes. said holds the sums of
-- measure.reports, by kind.
local function measure_program(suite, rates, program, jit, seconds)
  local all = { kinds = {}, said = {} }
  local n = suite.quick and QUICK_PROCESSES or PROCESSES
  for _ = 1, n do
    local result, why = measure.run(suite, { program = program, jit = jit,
      blocks = blocks_of(suite, rates), slice_ms = suite.slice_ms / 2, seconds = seconds / n })
    if not result then return nil, why end
    for _, rate in ipairs(rates) do
      local said = all.said[rate.ours] or { samples = 0, lost = 0, throttled = 0 }
      for key, value in pairs(measure.reports(result, rate.ours)) do said[key] = said[key] + value end
      all.said[rate.ours] = said
    end
    for name, kind in pairs(result.kinds) do
      local known = all.kinds[name]
      for key, list in pairs(known and kind or {}) do
	if type(list) == "table" then append(known[key], list) end
      end
      all.kinds[name] = known or kind
    end
  end
  return all
end

function on.run(suite, seconds, add)
  local rates, missing = clocks.rates()
  if #rates == 0 then return add(nothing(missing)) end
  table.remove(rates, 2)
  local tables_on, tables_cost, pools = {}, {}, {}
  for i, rate in ipairs(rates) do
    tables_on[i], tables_cost[i] = on_table(rate), cost_table(rate)
    pools[i] = { off = stat.pool(), on = stat.pool() }
  end
  local time = budget.new(seconds, #suite.programs * 2)
  for _, program in ipairs(suite.programs) do
    for _, jit in ipairs({ "off", "on" }) do
      local result, why = measure_program(suite, rates, program, jit, time.next())
      for i, rate in ipairs(rates) do
	if result then
	  add_rows(result, rate, { program = program, jit = jit }, tables_on[i],
		   tables_cost[i], pools[i])
	else
	  report.miss(tables_on[i], program .. ", JIT " .. jit, why)
	  report.miss(tables_cost[i], program .. ", JIT " .. jit, why)
	end
      end
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
    if t.rows[1] and not t.rows[1].added_cycles then
      report.miss(t, "cycles", "this machine does not let us count them")
    end
    add(t)
  end
end

return on
