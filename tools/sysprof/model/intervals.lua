----------------------------------------------------------------------------
-- Intervals that hold a true value in 95 % of the cases, from an estimate and its variance.
--
-- A share is an estimate of a binomial distribution with the effective number of samples n that explains its variance
-- (Korn and Graubard, "Confidence intervals for proportions with small expected number of positive counts", 1998). Its
-- interval is that of Clopper and Pearson (1934), which holds the truth in at least 95 %. Amounts that are drawn have
-- the limit of many samples, a Poisson distribution. With many samples on both sides, Wilson's interval (1927) is as
-- good.
----------------------------------------------------------------------------

local Z = 1.959964		-- Of 95 %, two sides.
local TAIL = 0.025
local MANY = 200		-- Samples with which Wilson's interval serves.
local POISSON = 1e7		-- Samples of a distribution that is as good as Poisson's.
local HALVINGS = 45
local STEPS, PRECISE = 300, 1e-12	-- Of the continued fraction.
local TINY = 1e-300

local intervals = { Z = Z }

-- Coefficients of Lanczos's approximation of the gamma function, g = 7.
local LANCZOS = { 676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059,
		  12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7 }

local log_gamma

-- Returns the logarithm of the gamma function of x > 0.
function log_gamma(x)
  if x < 0.5 then return log_gamma(x + 1) - math.log(x) end
  local sum = 0.99999999999980993
  for i, c in ipairs(LANCZOS) do sum = sum + c / (x - 1 + i) end
  local t = x + 6.5
  return 0.918938533204672742 + (x - 0.5) * math.log(t) - t + math.log(sum)
end

-- The continued fraction of the incomplete beta function, by Lentz's method (DLMF 8.17.22).
local function fraction(x, a, b)
  local function not_zero(v) return math.abs(v) < TINY and TINY or v end
  local c, d = 1, 1 / not_zero(1 - (a + b) * x / (a + 1))
  local value = d
  for m = 1, STEPS do
    local even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
    d, c = 1 / not_zero(1 + even * d), not_zero(1 + even / c)
    value = value * d * c
    local odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
    d, c = 1 / not_zero(1 + odd * d), not_zero(1 + odd / c)
    value = value * d * c
    if math.abs(d * c - 1) < PRECISE then break end
  end
  return value
end

-- Returns the regularized incomplete beta function: the chance of at least a samples of a + b - 1, if each has x.
local function beta(x, a, b)
  if a <= 0 then return 1 elseif b <= 0 then return 0 end
  if x <= 0 then return 0 elseif x >= 1 then return 1 end
  local front = math.exp(log_gamma(a + b) - log_gamma(a) - log_gamma(b) + a * math.log(x) + b * math.log(1 - x))
  if x < (a + 1) / (a + b + 2) then return front * fraction(x, a, b) / a end
  return 1 - front * fraction(1 - x, b, a) / b
end

-- Returns where a function that grows from 0 to 1 has a value.
local function solve(grows, value)
  local low, high = 0, 1
  for _ = 1, HALVINGS do
    local middle = (low + high) / 2
    if grows(middle) < value then low = middle else high = middle end
  end
  return (low + high) / 2
end

local function wilson(k, n)
  local z2 = Z * Z
  local middle, width = (k + z2 / 2) / (n + z2), Z * math.sqrt(k * (n - k) / n + z2 / 4) / (n + z2)
  return math.max(middle - width, 0), math.min(middle + width, 1)
end

-- Returns the interval of the share that k of n samples have; both need not be whole.
function intervals.share(k, n)
  if k >= MANY and n - k >= MANY then return wilson(k, n) end
  local low = k > 0 and solve(function(x) return beta(x, k, n - k + 1) end, TAIL) or 0
  local high = n > k and solve(function(x) return beta(x, k + 1, n - k) end, 1 - TAIL) or 1
  return math.min(low, k / n), math.max(high, k / n)	-- Halvings leave a rest.
end

-- Returns the interval of the mean of a Poisson distribution from a number, which need not be whole.
function intervals.count(k)
  if k >= MANY then
    local z2 = Z * Z
    local width = Z * math.sqrt(k + z2 / 4)
    return k + z2 / 2 - width, k + z2 / 2 + width
  end
  local low, high = intervals.share(k, POISSON)
  return low * POISSON, high * POISSON
end

return intervals
