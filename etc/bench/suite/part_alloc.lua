----------------------------------------------------------------------------
-- Part "alloc" of the benchmark suite: what the event alloc costs a program, while it takes
-- no sample, at its default period, and when it samples each allocation.
----------------------------------------------------------------------------

local budget = require("budget")
local measure = require("measure")
local report = require("report")
local stat = require("stat")

-- No block reaches the first period.
local HOOK, DEFAULT, EACH = "ours//alloc/period=1099511627776/", "ours//alloc", "ours//alloc/period=1/"

local SLICES = 9	-- Of a profile, 100 ms each: the handler encodes a batch that is 850 ms old.
local EACH_SHARE = 0.2	-- Of the time.

local alloc = {}

local NOTE = [[
With the event alloc, divided by the time without it (off): CPU time with all threads. Allocations and bytes:
by misc.memprof.count, for each second of CPU time. No sample: the hook counts bytes only. An allocation:
what the hook adds, also when the block is freed. 512 KiB: the default period, in the first second of a
profile. Samples: their own time by their own clock. Each: period 1.]]

local COLUMNS = {
  { key = "program", title = "program" }, { key = "jit", title = "JIT" },
  { key = "allocs", title = "million allocations/s", digits = 2, scale = 1e-6 },
  { key = "bytes", title = "MB/s", digits = 1, scale = 1e-6 },
  { key = "hook", title = "no sample, on / off", digits = 4, from = 1 },
  { key = "block", title = "an allocation, ns", digits = 2, from = 0 },
  { key = "cpu", title = "512 KiB, on / off", digits = 4, from = 1 },
  { key = "rate", title = "samples/s" },
  { key = "handler", title = "samples, %", digits = 3, scale = 100 },
  { key = "each", title = "each, on / off", digits = 2, from = 1 },
  { key = "each_us", title = "each, us", digits = 2, scale = 1e-3 },
  { key = "pairs", title = "pairs" },
}

-- The cost of one allocation, in ns, by each pair of slices; nil if there is none.
local function cost(on, off, allocs)
  if allocs == 0 then return nil end
  return stat.map(on.cpu, function(cpu, i) return (cpu - off.cpu[i]) / allocs end)
end

local function measure_each(suite, job, line)
  job.kinds, job.session_slices = "off," .. EACH, 1	-- Some million samples, even so.
  local result, why = measure.run(suite, job)
  if not result then return why end
  local off, each = result.kinds.off, result.kinds[EACH]
  line.each = stat.summary(stat.ratios(each.cpu, off.cpu))
  line.each_us = cost(each, off, result.counted.allocs)
end

local function measure_program(suite, program, jit, seconds, pool)
  local job = { program = program, jit = jit, count = 1,
		session_slices = suite.quick and 1 or SLICES,
		kinds = ("off,%s,%s"):format(HOOK, DEFAULT), seconds = seconds * (1 - EACH_SHARE) }
  local result, why = measure.run(suite, job)
  if not result then return nil, why end
  local off, hook, on = result.kinds.off, result.kinds[HOOK], result.kinds[DEFAULT]
  local seconds_off, counted = stat.summary(off.cpu).median / 1e9, result.counted
  local ns, hook_ratios, ratios = stat.sum(on.cpu), stat.ratios(hook.cpu, off.cpu), stat.ratios(on.cpu, off.cpu)
  pool.add("hook", hook_ratios)
  pool.add("cpu", ratios)
  local line = { program = program, jit = jit, allocs = counted.allocs / seconds_off,
		 bytes = counted.bytes / seconds_off, hook = stat.summary(hook_ratios),
		 block = cost(hook, off, counted.allocs),
		 cpu = stat.summary(ratios), rate = stat.sum(on.samples) / ns * 1e9,
		 handler = stat.sum(on.handler) / ns, pairs = #on.cpu }
  job.seconds = seconds * EACH_SHARE
  return line, measure_each(suite, job, line)
end

function alloc.run(suite, seconds, add)
  local t = report.table("alloc", "Allocations", NOTE, COLUMNS)
  local pools = { off = stat.pool(), on = stat.pool() }
  local time = budget.new(seconds, #suite.programs * 2)
  for _, program in ipairs(suite.programs) do
    for _, jit in ipairs({ "off", "on" }) do
      local line, why = measure_program(suite, program, jit, time.next(), pools[jit])
      t.rows[#t.rows + 1] = line
      if why then report.miss(t, ("%s, JIT %s"):format(program, jit), why) end
    end
  end
  for _, jit in ipairs({ "off", "on" }) do
    local pool = pools[jit]
    if pool.cpu then
      t.rows[#t.rows + 1] = { program = "all", jit = jit, hook = stat.summary(pool.hook),
			      cpu = stat.summary(pool.cpu), pairs = #pool.cpu }
    end
  end
  add(t)
end

return alloc
