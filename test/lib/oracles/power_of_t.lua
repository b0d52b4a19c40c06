----------------------------------------------------------------------------
-- Student's t by numerical integration: probabilities, and the power of a two-sided test.
--
-- T = (Z + shift) / S, where Z is normal, and S^2 * freedom has the chi-squared distribution. The integral is over S.
----------------------------------------------------------------------------

local STEPS = 4000

local power = {}

-- Returns the natural logarithm of the gamma function of n / 2.
local function log_gamma_of_half(n)
  local sum, x = n % 2 == 0 and 0 or 0.5 * math.log(math.pi), n % 2 == 0 and 1 or 0.5
  while x < n / 2 do sum, x = sum + math.log(x), x + 1 end
  return sum
end

-- Returns the probability that a normal variable is below x: a Taylor series, or an asymptotic one.
local function normal(x)
  if x < 0 then return 1 - normal(-x) end
  local density = math.exp(-x * x / 2) / math.sqrt(2 * math.pi)
  if x > 6 then return 1 - density / x * (1 - 1 / x^2 + 3 / x^4) end
  local term, sum, k = x, x, 1
  while term > 1e-17 do
    k = k + 2
    term = term * x * x / k
    sum = sum + term
  end
  return 0.5 + density * sum
end

-- Returns the probability that |T| is at least t.
function power.above(t, freedom, shift)
  local log_factor = math.log(2) + freedom / 2 * math.log(freedom / 2) - log_gamma_of_half(freedom)
  local most = 1 + 12 / math.sqrt(freedom)
  local sum, width = 0, most / STEPS
  for i = 0, STEPS - 1 do
    local s = (i + 0.5) * width
    local density = math.exp(log_factor + (freedom - 1) * math.log(s) - freedom * s * s / 2)
    sum = sum + density * (normal(shift - t * s) + normal(-shift - t * s))
  end
  return sum * width
end

-- The same without a shift.
function power.probability(t, freedom) return power.above(t, freedom, 0) end

-- Returns the t that |T| exceeds with a probability.
function power.quantile(probability, freedom)
  local low, high = 0, 1
  while power.probability(high, freedom) > probability do low, high = high, 2 * high end
  for _ = 1, 40 do
    local middle = (low + high) / 2
    if power.probability(middle, freedom) > probability then low = middle else high = middle end
  end
  return high
end

-- Returns the probability that a test finds a value. shift: the value in standard errors; level: of false findings.
function power.of(shift, freedom, level)
  return power.above(power.quantile(level or 0.05, freedom), freedom, shift)
end

return power
