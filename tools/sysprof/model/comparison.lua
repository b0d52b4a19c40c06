----------------------------------------------------------------------------
-- Statistics of two programs that ran in turn: is one faster, and which functions changed?
--
-- The unit is a run. Samples of one run share its machine, memory layout and random seeds: their number says nothing
-- about the next run. A and B run in pairs, and the two runs of a pair share the state of the machine.
--
-- Total. r = sum(b) / sum(a) is the ratio of the mean times. Its residuals e[i] = b[i] - r * a[i] add up to 0. With the
-- true ratio R, r - R = mean(b - R * a) / mean(a). So to first order its standard error is sd(e) / (sqrt(n) * mean(a)),
-- where sd() divides by n - 1. What slows both runs of a pair by one factor leaves its residual near 0.
--
-- Function. d[i] = b[i] - a[i] is its difference in pair i; a function that a run lacks has 0 there. The mean has the
-- standard error sd(d) / sqrt(n). A function is known in ticks of the clock: a stay of x ticks counts as one of the two
-- whole numbers around x, with a variance of 1/6 on average over x. So a difference has at least 2 * tick^2 / 6.
-- Without this bound, equal counts in all runs would be a proof.
--
-- Both, divided by their standard errors, have Student's t distribution with n - 1 degrees of freedom if the times of
-- runs are normally distributed. Heavier tails make false findings rarer. The probability of t is exact: Abramowitz
-- and Stegun, Handbook of Mathematical Functions, 26.7.3 and 26.7.4.
--
-- Marks. Of m functions, the k with the least probabilities p are marked, for the largest k with p[k] <= k / m * RATE:
-- the procedure of Benjamini and Hochberg (1995). On average, at most the part RATE of the marks is false.
----------------------------------------------------------------------------

local sort = require("sysprof.base.sort")

local LEVEL, POWER = 0.95, 0.8
local RATE = 0.05		-- Of false marks among all marks.
local EQUAL = 0.02		-- A smaller change does not matter, unless a caller knows better.
local MOST_PAIRS = 10000	-- That a forecast names.
local TICK_VARIANCE = 2 / 6	-- Of a difference, in ticks.

local comparison = { LEVEL = LEVEL, RATE = RATE, EQUAL = EQUAL, MOST_PAIRS = MOST_PAIRS }

-- -- Student's t distribution ------------------------------------------------

-- Returns the probability that |T| is at least t, for a whole number of degrees of freedom.
function comparison.probability(t, freedom)
  local angle = math.atan(math.abs(t) / math.sqrt(freedom))
  local sine, cosine = math.sin(angle), math.cos(angle)
  local is_odd = freedom % 2 == 1
  local term, sum = is_odd and cosine or 1, 0
  for i = is_odd and 3 or 2, freedom, 2 do	-- The term of the power i - 2 of the cosine.
    sum, term = sum + term, term * cosine * cosine * (i - 1) / i
  end
  local inside = is_odd and 2 / math.pi * (angle + sine * sum) or sine * sum
  return math.max(1 - inside, 0)
end

local quantiles = {}	-- By level and degrees of freedom.

-- Returns the t that |T| stays below with the probability of a level.
function comparison.quantile(level, freedom)
  quantiles[level] = quantiles[level] or {}
  local found = quantiles[level][freedom]
  if found then return found end
  local low, high = 0, 1
  while comparison.probability(high, freedom) > 1 - level do low, high = high, 2 * high end
  for _ = 1, 60 do
    local middle = (low + high) / 2
    if comparison.probability(middle, freedom) > 1 - level then low = middle else high = middle end
  end
  quantiles[level][freedom] = high
  return high
end

-- -- Sums --------------------------------------------------------------------

local function mean(list)
  local sum = 0
  for _, v in ipairs(list) do sum = sum + v end
  return sum / #list
end

local function variance(list)
  local middle, sum = mean(list), 0
  for _, v in ipairs(list) do sum = sum + (v - middle)^2 end
  return sum / (#list - 1)
end

-- Returns the bounds of an interval, and the probability of 0 outside of it.
local function interval(middle, deviation, n)
  local half = comparison.quantile(LEVEL, n - 1) * deviation / math.sqrt(n)
  local p = deviation > 0 and comparison.probability(middle * math.sqrt(n) / deviation, n - 1) or middle == 0 and 1 or 0
  return middle - half, middle + half, p
end

-- -- API ---------------------------------------------------------------------

-- Compares times of runs: lists with a number for each pair, at least two. Returns
--   pairs, before, after      their number, the mean times
--   change, low, high         relative to before, and its interval: -0.1 is 10 % less
--   deviation                 of the change of a single pair
function comparison.total(before, after)
  local n, a, b = #before, mean(before), mean(after)
  local residuals, ratio = {}, b / a
  for i = 1, n do residuals[i] = after[i] - ratio * before[i] end
  local deviation = math.sqrt(variance(residuals)) / a
  local low, high = interval(ratio - 1, deviation, n)
  low = math.max(low, -1)	-- No time is less than nothing.
  return { pairs = n, before = a, after = b, change = ratio - 1, low = low, high = high, deviation = deviation }
end

-- Compares a function. tick: the time between two samples. Returns before, after, difference, low and high in the unit
-- of the lists, and the probability p of such a difference by chance.
function comparison.one(before, after, tick)
  local n, differences = #before, {}
  for i = 1, n do differences[i] = after[i] - before[i] end
  local deviation = math.sqrt(math.max(variance(differences), TICK_VARIANCE * tick^2))
  local difference = mean(differences)
  local low, high, p = interval(difference, deviation, n)
  return { before = mean(before), after = mean(after), difference = difference, low = low, high = high, p = p }
end

-- Returns the mean of times of runs, at least two, with its interval low and high. tick: as of one(), 0 if the times
-- are measured. A single time has half the variance of a difference.
function comparison.mean(times, tick)
  local middle = mean(times)
  local deviation = math.sqrt(math.max(variance(times), TICK_VARIANCE / 2 * tick^2))
  local low, high = interval(middle, deviation, #times)
  return { runs = #times, mean = middle, low = math.max(low, 0), high = high }
end

-- Sets marked of those in a list that changed, by their p. Returns how many there are.
function comparison.mark(list)
  local order, marked = {}, 0
  for i, one in ipairs(list) do order[i] = one end
  sort(order, function(x, y) return x.p < y.p end)
  for k, one in ipairs(order) do
    if one.p <= k / #order * RATE then marked = k end
  end
  for k, one in ipairs(order) do one.marked = k <= marked end
  return marked
end

-- Returns how many pairs find a change, or an equality, in POWER of the cases; nil if there are more than MOST_PAIRS.
-- distance: from the middle of the interval to what it must exclude.
local function pairs_for(distance, deviation)
  local function is_enough(n)
    local t = comparison.quantile(LEVEL, n - 1) + comparison.quantile(2 * POWER - 1, n - 1)
    return t * deviation <= distance * math.sqrt(n)
  end
  local low, high = 1, 2
  while not is_enough(high) do
    low, high = high, 2 * high
    if low > MOST_PAIRS then return nil end
  end
  while high - low > 1 do
    local middle = math.floor((low + high) / 2)
    if is_enough(middle) then high = middle else low = middle end
  end
  return high
end

-- Returns a verdict on a total: "faster" or "slower" if the interval lies on one side of 0; "equal" and the largest
-- change of the interval if that is at most equal; "unknown" and how many more pairs would decide, nil for too many.
-- equal: the change that does not matter, EQUAL if missing.
function comparison.verdict(total, equal)
  equal = equal or EQUAL
  if total.high < 0 then return "faster" end
  if total.low > 0 then return "slower" end
  local most, change = math.max(-total.low, total.high), math.abs(total.change)
  if most <= equal then return "equal", most end
  local needed = pairs_for(math.max(change, equal - change), total.deviation)
  return "unknown", needed and math.max(needed - total.pairs, 1)
end

return comparison
