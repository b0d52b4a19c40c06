-- Blocks of each size from 16 bytes to 1 MiB at the default period: their estimated number is right.
-- 256 MiB of a size have about 512 samples of small blocks, so the normal distribution holds.
-- TIMEOUT: 600

local sizes = require("alloc_sizes")
local truth = require("alloc_truth")

local rows, worst = sizes.measure(function(size) return 2^28 / size end)
for _, row in ipairs(rows) do
  print(("%9d bytes: %9d of %9d blocks, off by %+.2f standard errors"):format(row.size, row.estimate, row.blocks,
    row.z))
end
assert(worst < truth.Z, ("a size is off by %.1f standard errors"):format(worst))
