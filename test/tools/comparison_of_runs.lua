-- Statistics of runs: Student's distribution against its integral, intervals and verdicts of made runs, marks of
-- functions, and the power that theory predicts.
-- BASE: none, it reads no profile of this LuaJIT

local t = require("tools_test")
local comparison = require("sysprof.model.comparison")
local power = require("power_of_t")

local SETS, PAIRS = 2000, 7
local FALSE_MOST = 0.08		-- 0.05 is meant: 6 standard deviations of SETS sets.

local seed = 20261129
local function random()
  seed = seed * 16807 % 2147483647
  return seed / 2147483647
end

local function normal()
  return math.sqrt(-2 * math.log(random())) * math.cos(2 * math.pi * random())
end

local function near(got, expected, most, what)
  t.ok(math.abs(got - expected) <= most, ("%s: expected %.6g, got %.6g"):format(what, expected, got))
end

-- -- Student's t -------------------------------------------------------------

-- Printed in any table of t: two-sided, 95 % and 99 %.
for freedom, expected in pairs { [1] = { 12.706, 63.657 }, [2] = { 4.303, 9.925 }, [5] = { 2.571, 4.032 },
				 [6] = { 2.447, 3.707 }, [9] = { 2.262, 3.250 }, [30] = { 2.042, 2.750 } } do
  near(comparison.quantile(0.95, freedom), expected[1], 6e-4, "quantile 95 % of " .. freedom)
  near(comparison.quantile(0.99, freedom), expected[2], 6e-4, "quantile 99 % of " .. freedom)
end
for freedom = 1, 40 do
  for _, at in ipairs { 0, 0.3, 1, 2.5, 6, 20 } do
    near(comparison.probability(at, freedom), power.probability(at, freedom), 1e-5,
	 ("probability of %g, %d"):format(at, freedom))
    near(comparison.probability(-at, freedom), comparison.probability(at, freedom), 0, "both sides")
  end
end

-- -- Exact cases -------------------------------------------------------------

local total = comparison.total({ 10, 20, 30 }, { 9, 18, 27 })
near(total.change, -0.1, 1e-12, "one factor for all pairs")
near(total.high - total.low, 0, 1e-12, "a factor of the pair adds nothing to the interval")
t.equal(comparison.verdict(total), "faster", "always less")
t.equal(comparison.verdict(comparison.total({ 1, 2 }, { 1.5, 3 })), "slower", "always more")
local verdict, within = comparison.verdict(comparison.total({ 1, 1, 1 }, { 1, 1, 1 }))
t.equal(verdict, "equal", "the same")
t.equal(within, 0, "the same, within")
local unknown, more = comparison.verdict(comparison.total({ 1, 1.1, 0.9 }, { 1.1, 0.9, 1.02 }))
t.equal(unknown, "unknown", "more noise than change")
t.ok(more >= 1, "more pairs are named")
t.equal(select(2, comparison.verdict(comparison.total({ 1, 3 }, { 3, 1.0001 }), 0.001)), nil, "too many pairs")
t.equal(comparison.total({ 1, 9 }, { 9, 0.1 }).low, -1, "no time is less than nothing")
-- By hand: differences 1, 2, 3 have the mean 2 and the deviation 1.
local one = comparison.one({ 1, 1, 1 }, { 2, 3, 4 }, 0.001)
near(one.difference, 2, 1e-12, "difference")
near(one.high, 2 + 4.30265 / math.sqrt(3), 1e-4, "upper bound")
near(one.p, 0.0742, 1e-4, "probability")
-- Equal counts are no proof.
near(comparison.one({ 1, 1 }, { 2, 2 }, 1).p, comparison.probability(math.sqrt(6), 1), 1e-12, "the bound of ticks")
t.equal(comparison.one({ 1, 1 }, { 1, 1 }, 1).p, 1, "no difference")

local function marks(list)
  local all = {}
  for i, p in ipairs(list) do all[i] = { p = p } end
  local n, out = comparison.mark(all), {}
  for i, its in ipairs(all) do out[i] = its.marked and "x" or "." end
  return n .. table.concat(out)
end
t.equal(marks {}, "0", "no function")
t.equal(marks { 0.06 }, "0.", "one of them")
t.equal(marks { 0.03, 0.5, 0.01, 0.9 }, "1..x.", "below the first bound")
t.equal(marks { 0.04, 0.03, 0.02, 0.05 }, "4xxxx", "all, by the last bound")

-- -- Sets of runs ------------------------------------------------------------

-- Runs of two programs. Pairs share a factor, each run has noise of its own.
local function sets(change, noise, shared)
  local before, after = {}, {}
  for i = 1, PAIRS do
    local machine = 1 + shared * normal()
    before[i] = machine * (1 + noise * normal())
    after[i] = machine * (1 + change) * (1 + noise * normal())
  end
  return before, after
end

-- Returns the part of sets with each verdict, and of intervals that hold the true change.
local function verdicts(change, noise, shared)
  local counts, held = { faster = 0, slower = 0, equal = 0, unknown = 0 }, 0
  for _ = 1, SETS do
    local its = comparison.total(sets(change, noise, shared))
    local what = comparison.verdict(its)
    counts[what] = counts[what] + 1 / SETS
    if its.low <= change and its.high >= change then held = held + 1 / SETS end
  end
  return counts, held
end

for _, noise in ipairs { 0.002, 0.02, 0.1 } do
  for _, shared in ipairs { 0, 0.1 } do
    local counts, held = verdicts(0, noise, shared)
    local changed = counts.faster + counts.slower
    print(("A/A, noise %g, shared %g: changed %.3f, equal %.3f, interval holds %.3f")
	  :format(noise, shared, changed, counts.equal, held))
    t.ok(changed <= FALSE_MOST, ("A/A, noise %g: %.3f changed"):format(noise, changed))
    t.ok(held >= 0.94 - 0.005, ("A/A, noise %g: %.3f held"):format(noise, held))
    if noise == 0.002 then t.ok(counts.equal > 0.9, "equal programs with little noise are equal") end
  end
end
for _, case in ipairs { { 0.01, 0.005 }, { 0.02, 0.01 }, { -0.01, 0.01 }, { -0.02, 0.02 }, { 0.1, 0.1 } } do
  local change, noise = unpack(case)
  local deviation = noise * math.sqrt(1 + (1 + change)^2)
  local predicted = power.of(math.abs(change) * math.sqrt(PAIRS) / deviation * (1 - change / 2), PAIRS - 1)
  local counts, held = verdicts(change, noise, 0.05)
  local got = change < 0 and counts.faster or counts.slower
  print(("A/B %+g, noise %g: found %.3f, predicted %.3f, interval holds %.3f")
	:format(change, noise, got, predicted, held))
  near(got, predicted, 0.04, ("power of %+g with noise %g"):format(change, noise))
  t.ok(held >= 0.94 - 0.005, ("A/B %+g: %.3f held"):format(change, held))
end

-- The forecast of pairs: with so many, POWER of the sets are decided.
do
  local change, noise = 0.02, 0.03
  local deviation = noise * math.sqrt(2)
  local _, forecast = comparison.verdict({ pairs = 2, change = change, low = -1, high = 1, deviation = deviation }, 0)
  local pairs_then = forecast + 2
  local expected = power.of(change * math.sqrt(pairs_then) / deviation, pairs_then - 1)
  print(("forecast: %d pairs, power %.3f"):format(pairs_then, expected))
  near(expected, 0.8, 0.03, "power with the forecast's pairs")
end

-- -- Functions ---------------------------------------------------------------

-- Counts of samples with a mean, as whole ticks of 1 ms.
local function count(n)
  local most, product, k = math.exp(-n), 1, -1
  repeat product, k = product * random(), k + 1 until product <= most
  return k
end

-- Returns the part of sets with a mark, and of those where the function that changed has one. means: of the functions.
local function marked_sets(means, change)
  local any, found = 0, 0
  local number = SETS / 10
  for _ = 1, number do
    local list = {}
    for f, its in ipairs(means) do
      local before, after = {}, {}
      for i = 1, PAIRS do before[i], after[i] = count(its), count(f == 1 and its * (1 + change) or its) end
      list[f] = comparison.one(before, after, 1)
    end
    if comparison.mark(list) > 0 then any = any + 1 / number end
    if list[1].marked then found = found + 1 / number end
  end
  return any, found
end

local few, many = {}, {}
for i = 1, 200 do few[i], many[i] = 1 + i % 5, 5 + i % 20 end
for name, means in pairs { few = few, many = many } do
  local any = marked_sets(means, 0)
  print(("A/A, 200 functions with %s samples: %.3f of the sets have a mark"):format(name, any))
  t.ok(any <= FALSE_MOST + 0.03, ("A/A functions, %s samples: %.3f marked"):format(name, any))	-- 200 sets only.
end
many[1] = 100
local _, found = marked_sets(many, 0.6)
print(("A/B, one of 200 functions 60 %% slower: found %.3f"):format(found))
t.ok(found >= 0.8, ("a function that changed: found %.3f"):format(found))

t.finish()
