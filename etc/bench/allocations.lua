-- The table of etc/bench/allocations. Its argument: the part of the blocks, in percent.

local sizes = require("alloc_sizes")
local truth = require("alloc_truth")

local SMALL = 1024
local part = tonumber(arg[1]) / 100

local function blocks_of(size) return math.ceil(part * (size <= SMALL and 1000000 or 100000)) end

print(("period %d bytes, JIT %s"):format(sizes.PERIOD, jit.status() and "on" or "off"))
print(("%9s %9s %10s %8s %9s %7s"):format("bytes", "blocks", "estimate", "error", "std error", "z"))
local rows, worst = sizes.measure(blocks_of)
for _, row in ipairs(rows) do
  print(("%9d %9d %10d %+7.2f%% %8.2f%% %+7.2f"):format(row.size, row.blocks, row.estimate,
    100 * (row.estimate / row.blocks - 1), 100 * row.err / row.blocks, row.z))
end
print(("the worst size is off by %.2f standard errors"):format(worst))
os.exit(worst < truth.Z and 0 or 1)
