----------------------------------------------------------------------------
-- Slow-downs by rate and clock: see etc/bench/rates.
----------------------------------------------------------------------------

local ffi = require("ffi")
ffi.cdef [[
int clock_gettime(int, void *);
int busy_begin(int n, double loops);
void busy_end(int n);
]]

local FOLDER, PAIRS = arg[1], tonumber(arg[2])
local RATES = { 1000, 5000, 10000, 20000, 50000, 100000 }
local CLOCKS = { "cpu", "wall-signal", "task-clock" }
local MONOTONIC, PROCESS_CPU = 1, 2
local DEPTH, THREADS, LOOPS = 100, 4, 2e8
local GOAL = 3

local busy = ffi.load(FOLDER .. "/rates.so")

local function seconds(clock)
  local ts = ffi.new("int64_t[2]")
  ffi.C.clock_gettime(clock, ts)
  return tonumber(ts[0]) + tonumber(ts[1]) / 1e9
end

-- Compiled and interpreted code, builtins, and collections.
local function mixed(n)
  local t, s = {}, 0
  for i = 1, n do
    t[i] = ("%d"):format(i * 7 % 1001)
    s = s + #t[i]
  end
  table.sort(t, function(a, b) return a < b end)
  return s + #table.concat(t):gsub("1", "one")
end

local function deep(depth, n)
  if depth > 0 then
    local s = deep(depth - 1, n)
    return s + 1
  end
  local s = 0
  for i = 1, n do s = s + math.floor(i / 3) end
  return s
end

local cases = {
  plain = function() for _ = 1, 12 do mixed(15000) end end,
  deep = function() deep(DEPTH, 6e6) end,
  threads = function()
    assert(busy.busy_begin(THREADS, LOOPS) == 0)
    for _ = 1, 6 do mixed(15000) end
    busy.busy_end(THREADS)
  end,
}
jit.off(deep, true)

local function measure(f)
  local real, cpu = seconds(MONOTONIC), seconds(PROCESS_CPU)
  f()
  return seconds(MONOTONIC) - real, seconds(PROCESS_CPU) - cpu
end

local function median(list)
  table.sort(list)
  local n = #list
  return n % 2 == 1 and list[(n + 1) / 2] or (list[n / 2] + list[n / 2 + 1]) / 2
end

-- Returns the two ratios and the last report; nil and a message if the clock is
-- unavailable.
local function row(name, f, clock, hz)
  local real, cpu, report = {}, {}, nil
  for i = 1, PAIRS do
    local off_real, off_cpu = measure(f)
    local ok, err = misc.sysprof.start { mode = "C", path = FOLDER .. "/rates.bin",
      clock = clock, hz = hz, threads = name == "threads" and "all" or "own", flush = "thread" }
    if not ok then return nil, err end
    local on_real, on_cpu = measure(f)
    misc.sysprof.stop()
    report = misc.sysprof.report()
    real[i], cpu[i] = on_real / off_real, on_cpu / off_cpu
  end
  return median(real), median(cpu), report
end

local wanted = { unpack(arg, 3) }
if #wanted == 0 then wanted = { "plain", "deep", "threads" } end
local most = 0
print(("%-8s %-10s %7s %6s %6s %8s %8s %8s"):format("case", "clock", "hz", "real", "cpu",
      "real hz", "handler", "signal"))
for _, name in ipairs(wanted) do
  local f = assert(cases[name], "no case " .. name)
  f()
  for _, clock in ipairs(CLOCKS) do
    for _, hz in ipairs(RATES) do
      local real, cpu, report = row(name, f, clock, hz)
      if not real then
	print(("%-8s %-10s %s"):format(name, clock, cpu))
	break
      end
      most = math.max(most, cpu)
      print(("%-8s %-10s %7d %6.2f %6.2f %8.0f %6.1fus %6.1fus"):format(name, clock, hz,
	    real, cpu, report.hz, report.handler.mean_us, report.handler.signal_us))
      io.stdout:flush()
    end
  end
end
print(("largest slow-down of CPU time: %.2f"):format(most))
os.exit(most <= GOAL)
