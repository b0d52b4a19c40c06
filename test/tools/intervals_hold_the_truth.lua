-- Intervals of 95 % hold the truth: 20,000 made-up sessions, whose truth is known.
-- BASE: none, it reads no profile of this LuaJIT
--
-- Each interval of a kind holds the truth in at least 94 %, and those of independent draws in at most 98 %, too: wider ones say
-- too little. Ticks that keep to their interval err less than independent ones, so theirs may be wider. The
-- numbers are drawn from a fixed seed, so the shares are the same in each run.

local G = require("sysprof.base.grammar")
local B = require("stream_builder")
local events = require("sysprof.model.events")
local intervals = require("sysprof.model.intervals")
local json = require("json_decode")
local json_format = require("sysprof.formats.json")
local profile = require("sysprof.model.profile")
local reader = require("sysprof.read.reader")
local spread = require("sysprof.model.spread")
local t = require("tools_test")
local view = require("sysprof.show.view")

local SESSIONS = 2500		-- Of each of the eight kinds.
local LEAST, MOST = 94, 98
local TICK = 10000		-- Microseconds.
local PERIOD = 524288		-- Bytes.

math.randomseed(57)
local random, floor = math.random, math.floor

local function exponential(mean) return -math.log(1 - random()) * mean end

-- Returns a profile with an event, and a function that adds a sample of a part.
local function new_profile(unit, second)
  local p = profile.new { spread = true }
  p:set_meta("clock", unit == G.SPF_UNIT_BYTES and "alloc" or "cpu")
  p:set_event(0, "made", unit, unit == G.SPF_UNIT_BYTES and PERIOD or TICK * 1000, second)
  p:set_thread(1)
  local nodes = {}
  return p, function(now, weight, part)
    nodes[part] = nodes[part] or p.stacks:push(0, p.stacks:frame(G.SPF_FRAME_LFUNC, part, part))
    local _, slot = p.add(now, weight, G.SPF_VMST_LFUNC, nodes[part], 0, 0)
    return slot
  end
end

-- Counts of a kind: intervals, those that hold the truth, halves of them in amounts.
local function tally() return { n = 0, held = 0, width = 0 } end

-- Compares the intervals of the parts with their truth: amounts by part.
local function judge(p, weight, truth, counts)
  local its, slots = spread.of(p, events.choose(p), weight), p.slots
  for slot = 1, slots:count() do
    local part = p.stacks.payload[p.stacks:leaf(slots:lua(slot))]
    local amount = slots[weight](slots, slot)
    local low, high = its:interval(its:row({ slot }), amount)
    assert(low <= amount and amount <= high, "the amount lies in its interval")
    counts.n = counts.n + 1
    if low <= truth[part] and truth[part] <= high then counts.held = counts.held + 1 end
    counts.width = counts.width + (high - low) / 2 / amount
  end
end

-- Compares the intervals of the shares of the parts with their truth. Only one of two is independent.
local function judge_share(p, truth, counts)
  local its, slots, all, sum = spread.of(p, events.choose(p), "weight"), p.slots, {}, 0
  for slot = 1, slots:count() do all[slot], sum = slot, sum + slots:weight(slot) end
  local part, amount = p.stacks.payload[p.stacks:leaf(slots:lua(1))], slots:weight(1)
  local low, high = its:share(its:row({ 1 }), amount, its:row(all), sum)
  assert(0 <= low and low <= amount / sum and amount / sum <= high and high <= 1, "the share lies in its interval")
  local share = truth[part] / (truth[1] + truth[2])
  counts.n, counts.width = counts.n + 1, counts.width + (high - low) / 2 / (amount / sum)
  if low <= share and share <= high then counts.held = counts.held + 1 end
end

-- -- Ticks -------------------------------------------------------------------

-- Ticks at one time of a random phase each: what_runs(us) returns the part. truth: microseconds by part.
local function tick(duration, counts, what_runs, truth)
  local p, add = new_profile(G.SPF_UNIT_US)
  for now = random() * TICK, duration, TICK do add(now, TICK, what_runs(now)) end
  local n = p.slots:count() > 0 and p:totals() or 0
  for part, us in pairs(truth) do truth[part] = us / duration * n * TICK end
  judge(p, "weight", truth, counts)
end

local kinds = {}

-- Each tick finds a part by chance.
function kinds.mixture(counts)
  local n = random(10, 400)
  tick(n * TICK, counts, function()
    local r = random()
    return r < 0.5 and 1 or r < 0.8 and 2 or r < 0.95 and 3 or 4
  end, { 0.5 * n * TICK, 0.3 * n * TICK, 0.15 * n * TICK, 0.05 * n * TICK })
end

-- One part runs once.
function kinds.burst(counts)
  local duration = random(20, 400) * TICK
  local length = random() * duration / 2
  local from = random() * (duration - length)
  tick(duration, counts, function(now) return now >= from and now < from + length and 1 or 2 end,
       { length, duration - length })
end

-- Two parts take turns of some 12 and 8 ms.
function kinds.alternation(counts)
  local duration = random(50, 300) * TICK
  local turns, now, truth = {}, 0, { 0, 0 }
  while now < duration do
    local part = #turns % 2 + 1
    local length = math.min((part == 1 and 12000 or 8000) * (0.7 + 0.6 * random()), duration - now)
    now, truth[part] = now + length, truth[part] + length
    turns[#turns + 1] = now
  end
  local at = 1
  tick(duration, counts, function(when)
    while turns[at] < when do at = at + 1 end
    return (at - 1) % 2 + 1
  end, truth)
end

-- Phases of seconds. The parts have other shares in each phase.
function kinds.phases(counts)
  local n, shares = random(50, 400), {}
  local phase, truth = n * TICK / 8, { 0, 0 }
  for i = 0, 8 do
    shares[i] = random() ^ 2
    if i < 8 then truth[1], truth[2] = truth[1] + shares[i] * phase, truth[2] + (1 - shares[i]) * phase end
  end
  tick(n * TICK, counts, function(now) return random() < shares[floor(now / phase)] and 1 or 2 end, truth)
end

-- Parts with three samples in the mean.
function kinds.rare(counts)
  local n = random(100, 1000)
  tick(n * TICK, counts, function()
    local r = random() * n
    return r < 3 and 1 or r < 6 and 2 or 3
  end, { 3 * TICK, 3 * TICK, (n - 6) * TICK })
end

-- Some ticks are late and stand for more. A late one is as likely in each part.
function kinds.late(counts)
  local p, add = new_profile(G.SPF_UNIT_US)
  local now, n = 0, random(50, 300)
  for _ = 1, n do
    local weight = random(4) == 1 and random(2, 6) * TICK or TICK
    now = now + weight
    add(now, weight, random() < 0.3 and 1 or 2)
  end
  judge(p, "weight", { 0.3 * now, 0.7 * now }, counts)
end

-- -- Draws -------------------------------------------------------------------

local function rounded(v) return floor(v) + (random() < v % 1 and 1 or 0) end

-- Two parts allocate blocks of up to so many bytes, as lj_allocdraw.c draws them.
local function allocate(counts, second_counts, shares, largest)
  local p, add = new_profile(G.SPF_UNIT_BYTES, "objects")
  local bytes, objects = { 0, 0 }, { 0, 0 }
  local left = exponential(PERIOD)
  for part = 1, 2 do
    local size_of = math.exp(random() * math.log(largest / 16)) * 16
    local enough = PERIOD * random(2, 60)
    while bytes[part] < enough do
      local size = math.max(16, floor(size_of * (0.5 + random())))
      if size < PERIOD / 100 then	-- Many at once: as far as the next sample.
	local n = math.max(math.min(floor(left / size), math.ceil((enough - bytes[part]) / size)), 0)
	bytes[part], objects[part], left = bytes[part] + n * size, objects[part] + n, left - n * size
      end
      bytes[part], objects[part], left = bytes[part] + size, objects[part] + 1, left - size
      if left < 0 then
	local chance = 1 - math.exp(-size / PERIOD)
	local weight, second = rounded(size / chance), rounded(1 / chance)
	local slot = add(0, weight, part)
	p:add_second(slot, second)
	p.spread:draw(slot, weight, second, size, PERIOD)
	left = exponential(PERIOD)
      end
    end
  end
  judge(p, "weight", bytes, counts)
  judge(p, "second", objects, second_counts)
  if p.slots:count() > 0 then judge_share(p, bytes, shares) end
end

function kinds.small_blocks(counts, second, shares) allocate(counts, second, shares, 4096) end

function kinds.large_blocks(counts, second, shares) allocate(counts, second, shares, 4 * PERIOD) end

-- -- All of them ---------------------------------------------------------------

local function check(name, counts, most)
  local percent = 100 * counts.held / counts.n
  print(("%-22s %6d intervals, %.1f %% hold the truth, half as wide as %.0f %% of the amount"):format(name, counts.n,
    percent, 100 * counts.width / counts.n))
  t.ok(percent >= LEAST, ("%s: %.2f %% of the intervals hold the truth"):format(name, percent))
  t.ok(percent <= (most or 100), ("%s: %.2f %% of the intervals hold the truth, too many"):format(name, percent))
end

local names = {}
for name in pairs(kinds) do names[#names + 1] = name end
table.sort(names)
for _, name in ipairs(names) do
  local counts, second, shares = tally(), tally(), tally()
  for _ = 1, SESSIONS do kinds[name](counts, second, shares) end
  check(name, counts, second.n > 0 and MOST)
  if second.n > 0 then check(name .. ", objects", second, MOST) end
  if shares.n > 0 then check(name .. ", share", shares) end
end

-- -- Ends of intervals ----------------------------------------------------------

-- Clopper and Pearson's of 3 and 0 of 20, 20 of 20; Wilson's of 500 of 1000.
local function ends(k, n) return ("%.4f %.4f"):format(intervals.share(k, n)) end
t.equal(ends(3, 20), "0.0321 0.3789", "3 of 20")
t.equal(ends(0, 20), "0.0000 0.1684", "0 of 20")
t.equal(ends(20, 20), "0.8316 1.0000", "20 of 20")
t.equal(ends(500, 1000), "0.4691 0.5309", "500 of 1000")
for k = 1, 400, 7 do
  local low, high = intervals.count(k)
  t.ok(low < k and k < high, "the interval of " .. k)
end

for _ = 1, 300 do
  local n = 10 ^ (random() * 16 - 3)
  local k = n * random() ^ random(1, 9)
  local low, high = intervals.share(k, n)
  t.ok(low >= 0 and low <= k / n * (1 + 1e-9) and k / n <= high * (1 + 1e-9) and high <= 1,
       ("%.17g of %.17g: %g to %g"):format(k, n, low, high))
end

-- Measured waits are exact.
local p, add = new_profile(G.SPF_UNIT_NS)
add(1000000, 500000, 1)
add(2000000, 700000, 2)
local its = spread.of(p, events.choose(p), "weight")
local low, high = its:interval(its:row({ 1 }), 500000)
t.equal(low, 500000, "a wait: low")
t.equal(high, 500000, "a wait: high")
t.ok(not its:is_same(its:row({ 1 }), 500000, its:row({ 2 }), 700000), "two waits differ")

-- -- By definition -----------------------------------------------------------

-- Returns ticks by stratum: neighbouring blocks of time with at least eight.
local function strata_of(ticks)
  local width, list = 1000, {}
  while ticks[#ticks].time >= 64 * width do width = 2 * width end
  local block
  for _, tick in ipairs(ticks) do
    if not block or floor(tick.time / width) ~= block and #list[#list] >= 8 then list[#list + 1] = {} end
    block = floor(tick.time / width)
    table.insert(list[#list], tick)
  end
  if #list > 1 and #list[#list] < 8 then
    for _, tick in ipairs(table.remove(list)) do table.insert(list[#list], tick) end
  end
  return list
end

-- Returns the variance of the weight of a part: by its own squares or those of all, and of the edges of strata.
local function variance_of(ticks, part)
  local own, whole, edges, before = 0, 0, 0, nil
  for _, stratum in ipairs(strata_of(ticks)) do
    local n, sum, all, squares = #stratum, 0, 0, 0
    for _, tick in ipairs(stratum) do
      all, squares = all + tick.weight, squares + tick.weight ^ 2
      if tick.part == part then sum = sum + tick.weight end
    end
    local p = sum / all
    for _, tick in ipairs(stratum) do
      own = own + n / (n - 1) * (tick.weight * ((tick.part == part and 1 or 0) - p)) ^ 2
    end
    whole = whole + n / (n - 1) * p * (1 - p) * squares
    if before then edges = edges + (p - before) ^ 2 / 2 * squares / n end
    before = p
  end
  return math.max(own, whole) + edges
end

for turn = 1, 50 do
  local made, put = new_profile(G.SPF_UNIT_US)
  local ticks, now, sums, all = {}, 0, { 0, 0, 0 }, 0
  for i = 1, random(20, 400) do
    local tick = { weight = random(5000, 20000), part = random() < i / 400 and 1 or random(3) }
    now = now + tick.weight
    tick.time, ticks[i] = now, tick
    put(now, tick.weight, tick.part)
    sums[tick.part], all = sums[tick.part] + tick.weight, all + tick.weight
  end
  local errors = spread.of(made, events.choose(made), "weight")
  for slot = 1, made.slots:count() do
    local part = made.stacks.payload[made.stacks:leaf(made.slots:lua(slot))]
    local share = sums[part] / all
    local n = all ^ 2 * share * (1 - share) / variance_of(ticks, part)
    local least, most = intervals.share(share * n, n)
    local from, to = errors:interval(errors:row({ slot }), sums[part])
    t.ok(math.abs(from - least * all) < 1e-6 * all and math.abs(to - most * all) < 1e-6 * all,
	 ("turn %d, part %d: %g to %g, expected %g to %g"):format(turn, part, from, to, least * all, most * all))
  end
end

-- JSON has the ends, and only if they are known.
local b = B.new():context(7, 0):lfunc(1, 0, "@x.lua"):stack(1, { B.F.lfunc(1, 5) }):stack(2, { B.F.lfunc(1, 5), B.F.ffunc(1) })
b:ffunc(1, "f")
for i = 1, 40 do b:sample(i % 4 == 0 and 2 or 1, 0, 1, G.SPF_VMST_LFUNC) end
local stream = b:finish()
t.equal(json.decode((t.render(stream, "json"))).functions, nil, "json without errors")
local out = {}
json_format.render(view.new(reader.parse_string(stream, { timeline = true, spread = true })),
		   function(text) out[#out + 1] = text end)
local functions = json.decode(table.concat(out)).functions
t.equal(#functions, 2, "json: functions")
t.equal(functions[2].name, "f", "json: a name")
t.ok(functions[2].low > 2 and functions[2].low < 6 and functions[2].self == 10 and functions[2].high > 15 and
     functions[2].high < 20, "json: the interval")

t.finish()
