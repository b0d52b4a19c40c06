----------------------------------------------------------------------------
-- Statistics of the benchmark suite: medians, quartiles and 95 % intervals.
----------------------------------------------------------------------------

local stat = {}

-- Fewer values have no 95 % interval.
local ENOUGH = 6

-- Value at a rank from 0 to 1 of a sorted list, interpolated.
local function quantile(sorted, q)
  local at = 1 + q * (#sorted - 1)
  local low = math.floor(at)
  local high = math.min(low + 1, #sorted)
  return sorted[low] + (at - low) * (sorted[high] - sorted[low])
end

-- Returns { n=, median=, q1=, q3=, low=, high= }, nil for an empty list. low and high
-- bound the 95 % interval of the median. Their ranks are 1.96 standard deviations of a
-- binomial distribution from the middle.
function stat.summary(values)
  local n = #values
  if n == 0 then return nil end
  local sorted = {}
  for i, v in ipairs(values) do sorted[i] = v end
  table.sort(sorted)
  local low = math.max(1, math.floor(n / 2 - 0.98 * math.sqrt(n)))
  return { n = n, median = quantile(sorted, 0.5), q1 = quantile(sorted, 0.25),
	   q3 = quantile(sorted, 0.75), low = sorted[low], high = sorted[n + 1 - low] }
end

-- The summary of f(value) for each value.
function stat.map(values, f)
  local list = {}
  for i, v in ipairs(values) do list[i] = f(v, i) end
  return stat.summary(list)
end

-- The ratios of two lists of paired measurements.
function stat.ratios(a, b)
  local list = {}
  for i, v in ipairs(a) do list[i] = v / b[i] end
  return list
end

-- Is its difference from a value within the noise?
function stat.is_noise(summary, from)
  return summary.n < ENOUGH or summary.low <= from and from <= summary.high
end

-- Half of the width of the interval, in percent; nil for too few values.
function stat.noise(summary)
  if summary.n < ENOUGH then return nil end
  return 100 * (summary.high - summary.low) / 2
end

function stat.sum(values)
  local sum = 0
  for _, v in ipairs(values) do sum = sum + v end
  return sum
end

-- Collects values under names, in the order in which the names come first.
function stat.pool()
  local pool = { names = {} }
  function pool.add(name, values)
    if not pool[name] then
      pool.names[#pool.names + 1] = name
      pool[name] = {}
    end
    for _, v in ipairs(values) do table.insert(pool[name], v) end
  end
  return pool
end

return stat
