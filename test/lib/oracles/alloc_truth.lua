----------------------------------------------------------------------------
-- Truth of allocation profiles: parts of a program with known allocations, and the bound of
-- their estimates.
--
-- The bound. A block of s bytes is sampled with p = 1 - exp(-s/period), and then counts as s/p
-- bytes and 1/p blocks. So the estimate of n such blocks has the mean n*s bytes and the
-- variance n*s*s*(1-p)/p, and n blocks with the variance n*(1-p)/p. Rounding to whole numbers
-- adds at most 1/4 to the square of each sample's weight: n*p/4. Blocks are independent, so
-- variances add up. With the sums T and V of all parts, the share t of a part with the
-- variance v has, to first order, the variance ((1-t)^2*v + t^2*(V-v)) / T^2. A test of many
-- shares allows Z standard errors, which chance exceeds once in 1.7 million shares.
----------------------------------------------------------------------------

local labels = require("sysprof.model.labels")
local reader = require("sysprof.read.reader")
local view = require("sysprof.show.view")

local alloc_truth = { Z = 5 }

-- Returns the means and variances of the estimates of n blocks of a size: bytes, blocks.
function alloc_truth.moments(n, size, period)
  local p = 1 - math.exp(-size / period)
  local v = n * (1 - p) / p
  return n * size, v * size * size + n * p / 4, n, v + n * p / 4
end

-- Returns the sums of a profile by a key, which key_of gives for a folded stack and the type of
-- the allocation. weight: "bytes" or "objects". event: "alloc" if missing.
function alloc_truth.sums(path, weight, key_of, event)
  local p = assert(reader.read(path))
  assert(p.complete, p:problem_text())
  local v = assert(view.new(p, { no_host = true, lines = true, weight = weight, event = event or "alloc" }))
  local sums = {}
  v:each_joined(function(parts, n, count, slot)
    local names = {}
    for i = 1, n do names[i] = v.symbols:name(parts[i]).text end
    local key = key_of(table.concat(names, ";"), labels.value(p.slots[slot].labels, "type"))
    if key then sums[key] = (sums[key] or 0) + count end
  end)
  return sums
end

-- Returns how many standard errors each share is off. parts: { mean=, var= } by key.
function alloc_truth.errors(parts, sums)
  local T, V, S, z = 0, 0, 0, {}
  for key, part in pairs(parts) do T, V, S = T + part.mean, V + part.var, S + (sums[key] or 0) end
  for key, part in pairs(parts) do
    local t = part.mean / T
    local err = math.sqrt((1 - t)^2 * part.var + t^2 * (V - part.var)) / T
    z[key] = ((sums[key] or 0) / S - t) / err
  end
  -- The sum itself, too.
  z.sum = (S - T) / math.sqrt(V)
  return z
end

return alloc_truth
