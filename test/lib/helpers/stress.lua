----------------------------------------------------------------------------
-- Stress test: profiles the real workloads at 10 kHz and judges the profiles.
--
-- SYSPROF_STRESS_SECONDS is the CPU time for each workload. Prints a table. The
-- program's status is 0 if all held.
----------------------------------------------------------------------------

local coverage = require("coverage")
local workloads = require("workloads")
local shell_status = require("shell_status")

local INTERVAL_MS = 0.1
local BROKEN_MAX = 0.001	-- Share of the samples with an incomplete stack.
local SECONDS = tonumber(os.getenv("SYSPROF_STRESS_SECONDS") or "1")

local parser = ("'%s/bin/luajit-parse-sysprof'"):format(os.getenv("SYSPROF_BUILD"))
local failures = 0

-- Number of incomplete samples among n that chance allows, if their true share is
-- BROKEN_MAX: the mean of this Poisson distribution, five standard deviations, and three.
local function broken_max(n)
  local mean = BROKEN_MAX * n
  return mean + 5 * math.sqrt(mean) + 3
end

local function fail(format, ...)
  failures = failures + 1
  print("FAIL: " .. format:format(...))
end

local function profile(w, path)
  local expected = w.run(1)
  assert(misc.sysprof.start({ mode = "C", clock = "wall-signal",
			      interval = INTERVAL_MS, path = path }))
  local runs, same = workloads.repeat_for(w, SECONDS, expected)
  local ok, err = misc.sysprof.stop()
  if not ok then fail("%s: stop: %s", w.name, err) end
  if not same then fail("%s: another result while profiled", w.name) end
  return runs, misc.sysprof.report()
end

local function judge(w, path, report)
  local p = coverage.read(path)
  local c = coverage.of(p)
  print(coverage.row(w.name, c))
  local why = coverage.inconsistency(p, report)
  if why then fail("%s: %s", w.name, why) end
  -- A loaded machine takes fewer samples, but this many at least.
  if c.samples < SECONDS * 100 then fail("%s: only %d samples", w.name, c.samples) end
  if c.samples - math.min(c.lua, c.host) > broken_max(c.samples) then
    fail("%s: too few complete stacks, for example", w.name)
    coverage.dump(p, 5)
  end
  if shell_status(("%s '%s' >/dev/null"):format(parser, path)) ~= 0 then
    fail("%s: the reader's status", w.name)
  end
end

return function(name)
  print(("%s, %g s each, JIT %s"):format(jit.version, SECONDS, name))
  print(coverage.HEADER)
  io.stdout:setvbuf("line")
  for _, w in ipairs(workloads.list) do
    local path = w.name .. ".bin"
    local _, report = profile(w, path)
    judge(w, path, report)
    if failures == 0 then os.remove(path) end
  end
  os.exit(failures == 0 and 0 or 1)
end
