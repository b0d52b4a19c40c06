----------------------------------------------------------------------------
-- Blocks of known sizes, from 16 bytes to 1 MiB, and what a profile of the event alloc estimates
-- for each size. Go's heap profile has the same sampling: a block of s bytes counts with
-- p = 1 - exp(-s/period).
--
-- Each size has a line of its own. Its blocks are C data, whose header takes 16 bytes.
----------------------------------------------------------------------------

local truth = require("alloc_truth")

local sizes = { PERIOD = 524288 }

local HEADER = 16
local CHUNK = "alloc_sizes_lines"

-- Returns a function(n) for each size, in lines of their own, and the sizes.
local function compile()
  local code, list = { "local ffi, keep = require('ffi'), nil" }, {}
  for e = 4, 20 do
    local size = 2^e
    list[#list + 1] = size
    code[1] = ("%s local new%d = ffi.typeof('char[%d]')"):format(code[1], size, size - HEADER)
    code[#code + 1] = ("local function f%d(n) for _ = 1, n do keep = new%d() end end"):format(size, size)
  end
  code[#code + 1] = "return { f" .. table.concat(list, ", f") .. " }"
  return assert(loadstring(table.concat(code, "\n"), "=" .. CHUNK))(), list
end

-- Profiles blocks of each size at the default period. blocks_of(size) returns how many. Returns
-- a list of { size=, blocks=, estimate=, err=, z= }: err is the standard error of the estimate by
-- construction, z the error in standard errors. Also returns the largest z, without its sign.
function sizes.measure(blocks_of)
  local functions, list = compile()
  -- A period that is asked for does not adapt.
  local path = "alloc_sizes.bin"
  assert(misc.sysprof.start { mode = "C", clock = ("alloc/period=%d/"):format(sizes.PERIOD), path = path,
			      force = true })
  local rows = {}
  for i, size in ipairs(list) do
    local blocks = blocks_of(size)
    functions[i](blocks)
    local _, _, _, var = truth.moments(blocks, size, sizes.PERIOD)
    rows[i] = { size = size, blocks = blocks, err = math.sqrt(var) }
  end
  assert(misc.sysprof.stop())
  -- The compiler allocates on these lines, too.
  local sums = truth.sums(path, "objects", function(stack, type)
    return type == "cdata" and tonumber(stack:match(".*" .. CHUNK .. ":(%d+)"))
  end)
  local worst = 0
  for i, row in ipairs(rows) do
    row.estimate = sums[i + 1] or 0
    row.z = (row.estimate - row.blocks) / row.err
    worst = math.max(worst, math.abs(row.z))
  end
  return rows, worst
end

return sizes
