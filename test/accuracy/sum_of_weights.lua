-- The weights of a profile add up to the CPU time of its thread. No time counts twice.
-- Only the time since the last sample is missing: an interval and, on the clock cpu, the
-- kernel's tick.
-- SERIAL: the samples of a loaded machine are late

local ffi = require("ffi")
local reader = require("sysprof.read.reader")

ffi.cdef([[
  typedef struct { int sec, sec_high, nsec, nsec_high; } half_timespec;
  int clock_gettime(int id, half_timespec *ts);
]])
local CLOCK_THREAD_CPUTIME_ID = 3

local SAMPLES = 80
local INTERVAL_MS = 1
local TICK_MS = 10		-- The longest that Linux is configured to.
local ATTEMPTS = 5		-- A virtual machine may stand still at the end.

local function cpu_us()
  local ts = ffi.new("half_timespec")
  ffi.C.clock_gettime(CLOCK_THREAD_CPUTIME_ID, ts)
  return ts.sec * 1e6 + ts.nsec / 1e3
end

-- Lua, C and allocation, so that samples cost different times.
local function work(deadline)
  repeat
    local list = {}
    for i = 1, 2000 do list[i] = tostring(i % 7) end
    table.sort(list, function(a, b) return a < b end)
  until cpu_us() > deadline
end

-- Returns the CPU time that the weights lack and the whole, in microseconds.
local function measure(clock)
  local path = clock .. ".bin"
  local before = cpu_us()
  assert(misc.sysprof.start({ mode = "C", clock = clock, path = path,
			      interval = INTERVAL_MS }))
  local started = cpu_us()
  repeat
    work(cpu_us() + 1e4)
  until misc.sysprof.report().samples >= SAMPLES
  local ended = cpu_us()
  assert(misc.sysprof.stop())
  local after = cpu_us()
  local p = assert(reader.read(path))
  assert(p.complete, p:problem_text())
  local _, weights = p:totals()
  -- Both ends are cut to microseconds.
  assert(weights <= after - before + 1, "more weight than CPU time")
  return ended - started - weights, ended - started
end

for _, clock in ipairs({ "wall-signal", "cpu" }) do
  local bound = 1e3 * (INTERVAL_MS + TICK_MS)
  local good = false
  for _ = 1, ATTEMPTS do
    local missing, whole = measure(clock)
    print(("%-4s %8.0f us of CPU time, weights lack %6.0f"):format(clock, whole, missing))
    if missing <= bound then
      good = true
      break
    end
  end
  assert(good, "weights lack more than an interval and a tick")
end
