-- Beside busy programs, `cpu` at 100 Hz sees three functions in the shares that the thread's CPU clock tells.
-- The kernel's tick would not: it switches the threads there, so one function of 18 % may have 5 or 27 %.
-- TIMEOUT: 600
-- BASE: none, times that the kernel counts; the VM runs a loop, or none
local ffi = require("ffi")
local neighbours = require("neighbours")
local programs = require("accuracy_programs")
local reader = require("sysprof.read.reader")

ffi.cdef([[
typedef struct { long sec, nsec; } busy_time;
int clock_gettime(int, busy_time *);
]])

local NEIGHBOURS, CPU_SECONDS, ROUNDS = 3, 5, 30000
local CLOCK_THREAD_CPUTIME_ID = 3

local time = ffi.new("busy_time")
local function cpu()
  ffi.C.clock_gettime(CLOCK_THREAD_CPUTIME_ID, time)
  return tonumber(time.sec) + tonumber(time.nsec) * 1e-9
end

local busy = neighbours.start(NEIGHBOURS)

-- Function k stands in line k.
local LINE = "local function f%d(n) local x = 0 for i = 1, n do x = x + i %% 7 end return x end"
local UNITS = { 18, 32, 50 }
local source = {}
for k in ipairs(UNITS) do source[k] = LINE:format(k) end
jit.off()
local f = { assert(loadstring(table.concat(source, "\n") .. " return f1, f2, f3", "=parts"))() }

local path = os.tmpname()
assert(misc.sysprof.start({ mode = "C", path = path, clock = "cpu", hz = 100 }))
local clock = misc.sysprof.report().clock
local truth, from = { 0, 0, 0 }, cpu()
while cpu() - from < CPU_SECONDS do
  for k, units in ipairs(UNITS) do
    local before = cpu()
    f[k](ROUNDS * units)
    truth[k] = truth[k] + cpu() - before
  end
end
assert(misc.sysprof.stop())
neighbours.stop(busy)

local profile = assert(reader.read(path))
os.remove(path)
if not clock:find("task-clock", 1, true) then
  print("skipped: without perf events, cpu keeps to the kernel's tick (" .. clock .. ")")
  os.exit(77)
end

local seen, samples, total, list = { 0, 0, 0 }, 0, 0, {}
for _, slot in profile.slots:each() do
  local def = programs.lua_leaf(profile, slot, "=parts", list)
  local k = def and def.firstline
  if k then seen[k], samples = seen[k] + slot.samples, samples + slot.samples end
end
for i = 1, 3 do total = total + truth[i] end

-- Chi squared with two degrees of freedom: above 24 six times in a million. Random periods make it smaller.
local chi = 0
for k in ipairs(UNITS) do
  local expected = samples * truth[k] / total
  chi = chi + (seen[k] - expected) ^ 2 / expected
  print(("f%d %5.2f %% of the CPU time, %5.2f %% of %d samples"):format(k, 100 * truth[k] / total,
    100 * seen[k] / samples, samples))
end
print(("chi squared %.1f"):format(chi))
assert(samples > 0.8 * CPU_SECONDS * 100, "too few samples")
assert(chi < 24, "the shares are off by more than chance")
