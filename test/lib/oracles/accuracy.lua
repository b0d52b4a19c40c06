----------------------------------------------------------------------------
-- Accuracy of a profile: compares the shares of a program's parts with the truth.
--
-- A clock measures the truth in the same run, because a machine may not do equal
-- work in equal time. Measurements and profiles take turns. The result also shows
-- the truth by construction.
--
-- The bound. Let t be the true share of a part and n the samples on all parts.
-- The parts run in a random order, or in a loop much shorter than the interval.
-- So samples fall on the part like draws of probability t, and the variance of
-- its share is t*(1-t)/n. (Samples hit parts that take as long as the interval
-- more evenly; then it is less.) The measured truth is the mean of b batches.
-- Its variance u*u is the variance of the batches, divided by b. The two are
-- independent, so z = (share - t) / sqrt(t*(1-t)/n + u*u). A bias shows as |z| > 3,
-- which chance reaches in one of 370 shares.
----------------------------------------------------------------------------

local ffi = require("ffi")
local G = require("sysprof.base.grammar")
local programs = require("accuracy_programs")
local reader = require("sysprof.read.reader")
local shell_status = require("shell_status")

local accuracy = {}

-- The kernel's struct timespec in halves: int64_t would allocate.
ffi.cdef([[
  typedef struct { int sec, sec_high, nsec, nsec_high; } accuracy_timespec;
  int clock_gettime(int id, accuracy_timespec *ts);
]])
local CLOCK_MONOTONIC, CLOCK_THREAD_CPUTIME_ID = 1, 3

-- The clock cpu ticks at most at the rate of the kernel's tick.
local INTERVAL_MS = { ["wall-signal"] = 0.5, cpu = 4 }
local BATCHES = 12
local BATCHES_MIN = 3		-- If there is no time for more.
local BATCHES_MAX = 4 * BATCHES	-- If too few samples are on the parts.
local CLOCK_SECONDS = 0.06	-- Clock time of a batch.
local CLOCK_ROUNDS_MIN = 15
local ORDER = 200		-- Parts run in a row.

-- -- Clock ---------------------------------------------------------------------

local ts = ffi.new("accuracy_timespec")

local function clock_us(id)
  ffi.C.clock_gettime(id, ts)
  return ts.sec * 1e6 + ts.nsec / 1e3
end

local function time_of(f, x)
  local t = clock_us(CLOCK_MONOTONIC)
  f(x)
  return clock_us(CLOCK_MONOTONIC) - t
end

local function median(list)
  table.sort(list)
  local n = #list
  return (list[math.floor((n + 1) / 2)] + list[math.floor(n / 2) + 1]) / 2
end

local function shuffle(list)
  for i = #list, 2, -1 do
    local k = math.random(i)
    list[i], list[k] = list[k], list[i]
  end
end

-- The size with which a step of a program takes the wanted time.
local function find_size(program)
  local size = 1
  repeat
    size = size * 2
    local t = { }
    for i = 1, 7 do
      t[i] = time_of(function() program.run({ 1 }, 1, size) end)
    end
    local us = median(t)
  until us > program.step_us / 2 or size > 1e8
  return size
end

-- Shares of the parts by the clock. Takes the median of the times, since some
-- include an interrupt or another process.
local function clock_shares(program, size)
  local times, order = {}, {}
  for k in ipairs(program.timed) do
    times[k], order[k] = {}, k
  end
  local till, rounds = clock_us(CLOCK_MONOTONIC) + CLOCK_SECONDS * 1e6, 0
  repeat
    shuffle(order)
    for _, k in ipairs(order) do
      local empty = time_of(program.timed[k], 0)
      table.insert(times[k], time_of(program.timed[k], size) - empty)
    end
    rounds = rounds + 1
  until rounds >= CLOCK_ROUNDS_MIN and clock_us(CLOCK_MONOTONIC) > till
  for k, list in ipairs(times) do times[k] = median(list) end
  local shares, sum = {}, 0
  for k, cost in ipairs(program.costs(times)) do
    shares[k], sum = cost, sum + cost
  end
  for k in ipairs(shares) do shares[k] = shares[k] / sum end
  return shares
end

-- -- Profile -------------------------------------------------------------------

-- Adds the samples of a profile to their parts.
local function count(program, path, result)
  local p = assert(reader.read(path))
  assert(p.complete, p:problem_text())
  local list = {}
  for _, slot in p.slots:each() do
    local k, n = program.part_of(p, slot, list), slot.samples
    if k then
      result.counts[k] = result.counts[k] + n
      result.samples = result.samples + n
    else
      result.elsewhere = result.elsewhere + n
    end
    if slot.state == program.state then result.in_state = result.in_state + n end
  end
  local _, weight = p:totals()
  return weight
end

-- Profiles about n samples.
local function profile_batch(program, size, order, n, clock, result)
  local path = program.name .. ".bin"
  assert(misc.sysprof.start({ mode = "C", clock = clock,
			      interval = INTERVAL_MS[clock], path = path }))
  local cpu_us = clock_us(CLOCK_THREAD_CPUTIME_ID)
  repeat
    shuffle(order)
    program.run(order, #order, size)
  until misc.sysprof.report().samples >= n
  cpu_us = clock_us(CLOCK_THREAD_CPUTIME_ID) - cpu_us
  assert(misc.sysprof.stop())
  local missing_us = cpu_us - count(program, path, result)
  result.missing_us = math.max(result.missing_us, math.abs(missing_us))
end

-- Share of samples that may be lost, or lie in the loop that calls the parts.
local ELSEWHERE_MAX = 0.05
local OTHER_STATE_MAX = 0.1

local function judge_program(program, result)
  local all = result.samples + result.elsewhere
  local elsewhere = result.elsewhere / all
  if elsewhere > program.pad + ELSEWHERE_MAX then
    return ("%.1f %% of the samples are on no part, expected %.1f %%"):format(
      100 * elsewhere, 100 * program.pad)
  end
  if result.in_state < (1 - OTHER_STATE_MAX) * all then
    return ("only %.1f %% of the samples are in the expected state"):format(
      100 * result.in_state / all)
  end
  return program.check and program.check()
end

-- Runs a program until its parts have n samples of a clock ("wall-signal"), or for
-- these seconds. Returns a table:
--   [k]         for each part: name; share by construction (built), by the clock
--               (truth) and by the profile (share); u, standard error of truth; z
--   samples     samples on the parts
--   elsewhere   other samples
--   in_state    samples in the program's state
--   missing_us  largest difference, among the profiles, between CPU time and the
--               sum of the weights. CPU time counts from shortly after the start
--               to shortly before the stop
--   wrong       nil, or why the program did not run as intended
function accuracy.measure(name, n, clock, seconds)
  local program = programs[name]()
  local parts = program.parts
  program.name = name
  jit[program.state == G.SPF_VMST_LFUNC and "off" or "on"]()
  math.randomseed(os.time())
  local deadline = clock_us(CLOCK_MONOTONIC) + (seconds or math.huge) * 1e6
  local size, order = find_size(program), {}
  for i = 1, ORDER do order[i] = (i - 1) % #parts + 1 end
  local result = { counts = {}, samples = 0, elsewhere = 0, in_state = 0,
		   missing_us = 0 }
  local sum, square, batches, built = {}, {}, 0, 0
  for k, part in ipairs(parts) do
    result.counts[k], sum[k], square[k] = 0, 0, 0
    built = built + part.units
  end
  repeat
    for k, share in ipairs(clock_shares(program, size)) do
      sum[k], square[k] = sum[k] + share, square[k] + share * share
    end
    batches = batches + 1
    profile_batch(program, size, order, n / BATCHES, clock or "wall-signal", result)
    local late = clock_us(CLOCK_MONOTONIC) > deadline
  until batches >= BATCHES and result.samples >= n or batches >= BATCHES_MAX or
	late and batches >= BATCHES_MIN
  for k, part in ipairs(parts) do
    local truth = sum[k] / batches
    local share = result.counts[k] / math.max(result.samples, 1)
    local u2 = math.max(square[k] / batches - truth * truth, 0) / (batches - 1)
    local chance2 = truth * (1 - truth) / math.max(result.samples, 1)
    result[k] = {
      name = part.name, built = part.units / built, truth = truth,
      u = math.sqrt(u2), share = share, z = (share - truth) / math.sqrt(chance2 + u2),
    }
  end
  result.wrong = judge_program(program, result)
  return result
end

function accuracy.print(result)
  print(("%-12s %8s %8s %6s %9s %8s %6s"):format("", "built", "clock", "+-",
    "profiled", "samples", "z"))
  for k, r in ipairs(result) do
    print(("%-12s %6.2f %% %6.2f %% %6.2f %7.2f %% %8d %6.2f"):format(r.name,
      100 * r.built, 100 * r.truth, 100 * r.u, 100 * r.share,
      result.counts[k], r.z))
  end
end

-- The test of a program. A bias of a few points must fail it, chance must not.
-- Z_MAX standard errors of TEST_SAMPLES samples are 2.5 points of the largest
-- share of ten parts. Chance exceeds them in one of 2150 shares. So one of the ten
-- shares of a measurement is outside in less than one of 215 (Bonferroni). In each
-- of three measurements that happens once in 10 million. The retry leaves room for
-- a disturbed measurement. A share that is wrong by ERROR_MAX has its own message.
-- A machine too slow for so many samples in SECONDS makes the bound wider; that
-- does not fail the test.
local TEST_SAMPLES = 3000
local Z_MAX = 3.5
local ERROR_MAX = 0.1
local ATTEMPTS = 3
local SECONDS = 15	-- Of a measurement, on a loaded machine.

-- Makes one measurement. Returns nil if it is good, else why not.
local function attempt(name)
  local result = accuracy.measure(name, TEST_SAMPLES, "wall-signal", SECONDS)
  local z, bias = 0, 0
  for _, r in ipairs(result) do
    z, bias = math.max(z, math.abs(r.z)), math.max(bias, math.abs(r.share - r.truth))
  end
  accuracy.print(result)
  if result.wrong then return result.wrong end
  if bias >= ERROR_MAX then return "a share is wrong by more than chance" end
  if z > Z_MAX then return "a share is outside of the bound" end
end

-- Each measurement has its own process: compiled code, and code that the compiler
-- has given up, does not affect the next.
function accuracy.test(name)
  local n = os.getenv("SYSPROF_ACCURACY_ATTEMPT")
  if n then
    local why = attempt(name)
    if why then print(why) end
    os.exit(why and 1 or 0)
  end
  for i = 1, ATTEMPTS do
    if shell_status(("SYSPROF_ACCURACY_ATTEMPT=%d '%s' '%s'"):format(i,
		   os.getenv("LUAJIT"), arg[0])) == 0 then
      return
    end
  end
  error("none of the measurements is good", 0)
end

return accuracy
