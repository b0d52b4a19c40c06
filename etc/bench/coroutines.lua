-- The table of etc/bench/coroutines. Its argument: the pairs of each row.

local ffi = require("ffi")

local PAIRS = tonumber(arg[1])
local SWITCHES = 2000000	-- Of a measurement.
local COUNTS = { 1, 100, 100000 }

ffi.cdef [[
  typedef struct { long sec, nsec; } coroutines_timespec;
  int clock_gettime(int, coroutines_timespec *);
]]
local ts = ffi.new("coroutines_timespec")
local THREAD_CPU = 3

local function cpu_ns()
  ffi.C.clock_gettime(THREAD_CPU, ts)
  return tonumber(ts.sec) * 1e9 + tonumber(ts.nsec)
end

local function body()
  local yield = coroutine.yield
  while true do yield() end
end

local function make(count)
  local list = {}
  for i = 1, count do
    list[i] = coroutine.wrap(body)
    list[i]()
  end
  return list
end

-- Returns nanoseconds of a switch.
local function measure(list, with)
  local count, waits = #list, 0
  if with then assert(misc.sysprof.start { mode = "C", clock = "coroutine-wait", path = "coroutines.bin" }) end
  for i = 1, count do list[i]() end
  local before = cpu_ns()
  for _ = 1, SWITCHES / count do
    for i = 1, count do list[i]() end
  end
  local ns = (cpu_ns() - before) / SWITCHES
  if with then
    waits = misc.sysprof.report().samples
    assert(misc.sysprof.stop())
  end
  return ns, waits
end

local function median(list)
  table.sort(list)
  return (list[math.ceil(#list / 2)] + list[math.floor(#list / 2) + 1]) / 2
end

print(("%10s  %12s  %12s  %6s  %8s"):format("coroutines", "without ns", "with ns", "ratio", "samples"))
collectgarbage("stop")
for _, count in ipairs(COUNTS) do
  local list, without, with, ratios, samples = make(count), {}, {}, {}, {}
  measure(list, false)
  for i = 1, PAIRS do
    local a, b, n
    if i % 2 == 1 then
      a = measure(list, false)
      b, n = measure(list, true)
    else
      b, n = measure(list, true)
      a = measure(list, false)
    end
    without[i], with[i], ratios[i], samples[i] = a, b, b / a, n
  end
  print(("%10d  %12.1f  %12.1f  %6.3f  %8.0f"):format(count, median(without), median(with), median(ratios),
    median(samples)))
end
