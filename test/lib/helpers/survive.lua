----------------------------------------------------------------------------
-- Survival test: runs a piece of work under the profiler, JIT off and on, at 1 ms and at
-- 100 us. It must survive, and give the same result as without a profile. The profile
-- must be complete and agree with the counters.
----------------------------------------------------------------------------

local coverage = require("coverage")

local SECONDS = 0.7		-- CPU time for each of the four runs.
local BROKEN_MAX = 0.01		-- Share of samples without a complete Lua stack.

local survive = {}
local failures = 0

local function fail(format, ...)
  failures = failures + 1
  print("FAIL: " .. format:format(...))
end

local function repeat_work(work, expected)
  local till = os.clock() + SECONDS
  local same = true
  repeat
    same = work() == expected and same
  until os.clock() >= till
  return same
end

-- Number of samples with an incomplete Lua stack, except for an allowed reason.
local function broken(c, allowed)
  local n = c.samples - c.lua
  for reason in pairs(allowed) do n = n - (c.lua_faults[reason] or 0) end
  return n
end

-- Number of such samples among n that chance allows, if their true share is BROKEN_MAX:
-- the mean of this Poisson distribution, five standard deviations, and three.
local function broken_max(n)
  local mean = BROKEN_MAX * n
  return mean + 5 * math.sqrt(mean) + 3
end

local function run(name, work, allowed, mode, interval)
  jit[mode]()
  local what = ("%s, JIT %s, %g ms"):format(name, mode, interval)
  local path = ("%s.%s.%g.bin"):format(name, mode, interval)
  local expected = work()
  assert(misc.sysprof.start({ mode = "C", clock = "wall-signal", interval = interval,
			      path = path }))
  local same = repeat_work(work, expected)
  local ok, err = misc.sysprof.stop()
  local report = misc.sysprof.report()
  if not ok then fail("%s: stop: %s", what, err) end
  if not same then fail("%s: another result while profiled", what) end
  local p = coverage.read(path)
  local c = coverage.of(p)
  print(coverage.row(mode .. " " .. interval, c))
  local why = coverage.inconsistency(p, report)
  if why then fail("%s: %s", what, why) end
  if c.samples < 50 then fail("%s: only %d samples", what, c.samples) end
  if broken(c, allowed) > broken_max(c.samples) then
    fail("%s: too few complete Lua stacks, for example", what)
    coverage.dump(p, 5)
  end
end

-- work() returns the same each time. allowed: set of reasons, in the reader's words, for
-- which Lua stacks may be incomplete.
function survive.run(name, work, allowed)
  io.stdout:setvbuf("line")
  print(coverage.HEADER)
  for _, mode in ipairs({ "off", "on" }) do
    for _, interval in ipairs({ 1, 0.1 }) do
      run(name, work, allowed or {}, mode, interval)
    end
  end
  os.exit(failures == 0 and 0 or 1)
end

return survive
