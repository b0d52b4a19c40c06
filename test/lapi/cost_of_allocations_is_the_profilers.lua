-- TIMEOUT: 300
-- With alloc/period=1/ beside cpu, each allocation takes a sample. That time is [profiler], and no line of the
-- program has it. The program computes and allocates in a proportion that it measures without the profiler.

local t = require("tools_test")
local sysprof = misc.sysprof

jit.off()

local ROUNDS, BLOCKS, STEPS = 50, 26000, 1400000
-- With 250 ticks a second, some 5 are in allocations: three standard errors are 134 %. Sampling also takes cache lines,
-- by which allocations took up to 1.5 times as long. 2.34 * 1.5 is 3.5. With half of the cost, the ratio would be 25.
local MOST = 4

local function allocate()
  local last
  for i = 1, BLOCKS do last = { i } end
  return last
end

local function compute()
  local x = 0
  for i = 1, STEPS do x = x + i % 7 end
  return x
end

-- Returns the CPU time of each function.
local function run()
  local a, c = 0, 0
  for _ = 1, ROUNDS do
    local begin = os.clock()
    allocate()
    local middle = os.clock()
    compute()
    a, c = a + middle - begin, c + os.clock() - middle
    collectgarbage()
    collectgarbage("stop")
  end
  return a, c
end

run()
local a, c = run()
assert(sysprof.start({ mode = "C", clock = "cpu,alloc/period=1/", interval = 1, flush = "vm", path = "both.bin", force = true }))
local profiled = run()
assert(sysprof.stop())
local _, folded = t.parse("--no-host --event=cpu --weight=event both.bin")
local sums = { allocate = 0, compute = 0, profiler = 0 }
for stack, n in folded:gmatch("([^\n]*) (%d+)\n") do
  local name = stack:match(";(%a+) %([^;()]*%)$") or stack:match("%[(profiler)%]$")
  if sums[name] then sums[name] = sums[name] + tonumber(n) / 1e6 end
end
local ratio = (sums.allocate / sums.compute) / (a / c)
print(("%.3f and %.3f s; profiled: %.3f s; shown: %.3f and %.3f s, profiler %.3f s: %.2f times as much")
  :format(a, c, profiled, sums.allocate, sums.compute, sums.profiler, ratio))
t.ok(sums.compute > 0, "the computation")
t.ok(sums.profiler > 0, "the profiler")
t.ok(ratio < MOST, ("allocations have %.2f times their time"):format(ratio))
t.finish()
