----------------------------------------------------------------------------
-- Spread of samples: how far chance may have moved the amount of a row of a table.
--
-- Ticks. A clock takes one sample in each period, so its samples are stratified in time (Cochran, "Sampling
-- Techniques", 1977, ch. 5 and 8). The CPU time of a session is known, that of a row is its share of the ticks. The
-- time is divided into strata of neighbouring ticks. If a row has the share p of the weight in a stratum with n ticks
-- of the weights w, its amount has the variance n/(n-1) * sum(w^2 * (tick is of the row - p)^2) there. That is the
-- variance of n independent ticks. Regular ticks have less, because the parts of a stratum differ, and their
-- differences count as chance (collapsed strata, ibid. 5A.12). So phases that are longer than a stratum make the
-- interval narrower, and shorter ones leave it too wide. A row that fills whole strata has no variance inside: each
-- edge between strata adds half of the squared step, by successive differences (Wolter, "Introduction to Variance
-- Estimation", 2007, ch. 8). No interval sees a program in lockstep with the clock.
-- Events of the kernel with a period are ticks of what they count.
--
-- Draws. A block of s bytes is sampled with the probability p, and stands for w = s/p bytes. The sum has the variance
-- sum((1-p) * w^2) = sum(w * (w-s)) (Horvitz and Thompson 1952), that of objects sum((1-p)/p^2), and what rounding
-- them adds. The sampled bytes are certain: only the rest, sum(w-s), can be larger or smaller.
--
-- Waits are measured, and what has no place is counted: they have no spread.
----------------------------------------------------------------------------

local array = require("sysprof.base.array")
local intervals = require("sysprof.model.intervals")
local leafwork = require("sysprof.model.leafwork")
local limits = require("sysprof.base.limits")
local pairmap = require("sysprof.base.pairmap")
local units = require("sysprof.model.units")

local BLOCKS = 64	-- Of time, at most; at least half of them, if the profile lasts that long.
local BLOCK_US = 1000	-- Length of one at first.
local STRATUM = 8	-- Ticks that a stratum has at least.

local NEWTON = 12	-- Steps to the size of a block from its weight.
local ALONE = math.log(0.025)	-- Above, it may be that nothing was missed.
local LARGE = 30	-- Periods that make a block certain.

local CELL = pairmap.kind [[
  double a;		/* Slot. */
  int32_t b;		/* Block of time. */
  int32_t next;		/* Cell of the same slot. */
  double samples, weight, squares;
]]
-- Of bytes, and of the second weight; and the logarithm of the chance that nothing but the samples exists.
local drawn = array.kind("struct { double rest[2], variance[2], alone; }")
local numbers = array.kind("int32_t")

local spread = {}
local methods = {}
local mt = { __index = methods }

-- -- Collecting ------------------------------------------------------------

local function new(profile)
  return setmetatable({ profile = profile, most = profile.room.is_live and limits.LIVE_CELLS or limits.CELLS,
			is_full = false,	-- There was no room: nothing is known.
			width_us = BLOCK_US, cells = pairmap.new(CELL), is_tick = {},
			latest = nil, latest_size = 0,	-- Cells that the slots counted in last.
			draws = nil, draws_size = 0,	-- By slot.
			heads = nil }, mt)	-- First cells of the slots, while nothing is added.
end

local function put(self, slot, block, samples, weight, squares)
  local cells = self.cells
  if slot >= self.latest_size then
    local size = math.max(2 * self.latest_size, slot + 1)
    self.latest, self.latest_size = array.widen(numbers, self.latest, self.latest_size, size), size
  end
  local i = self.latest[slot]
  if i == 0 or cells.list[i].b ~= block then
    i = cells:put(slot, block)	-- May move the list.
    self.latest[slot] = i
  end
  local cell = cells.list[i]
  cell.samples, cell.weight, cell.squares = cell.samples + samples, cell.weight + weight, cell.squares + squares
end

-- Makes the blocks twice as long.
local function widen(self)
  local old = self.cells
  self.cells, self.width_us = pairmap.new(CELL), self.width_us * 2
  self.latest, self.latest_size = nil, 0
  for i = 1, old.count do
    local cell = old.list[i]
    put(self, cell.a, math.floor(cell.b / 2), cell.samples, cell.weight, cell.squares)
  end
end

-- Frees cells, if there are too many.
local function make_room(self)
  if self.cells.count > self.most then widen(self) end
  if self.cells.count > self.most then self.is_full, self.cells = true, pairmap.new(CELL) end
end

local function add(self, slot, now, weight)
  while now >= BLOCKS * self.width_us do widen(self) end
  put(self, slot, math.floor(now / self.width_us), 1, weight, weight * weight)
  if self.cells.count > self.most then make_room(self) end
end

local function is_tick(event)
  local unit = units.of(event.unit)
  return not event.of and (unit.is_cpu or unit == units.COUNT and event.period ~= 1)
end

local function add_draw(self, slot, alone, rest, variance, second_rest, second_variance)
  if slot >= self.draws_size then
    local size = math.max(2 * self.draws_size, slot + 1)
    self.draws, self.draws_size = array.widen(drawn, self.draws, self.draws_size, size), size
  end
  local d = self.draws[slot]
  d.alone = d.alone + alone
  d.rest[0], d.variance[0] = d.rest[0] + rest, d.variance[0] + variance
  d.rest[1], d.variance[1] = d.rest[1] + second_rest, d.variance[1] + second_variance
end

-- Returns the size of a block in periods, from that of what its sample stands for: x / (1 - e^-x) = y.
local function size_of(y)
  if y <= 1 then return 0 elseif y > LARGE then return y end
  local x = y
  for _ = 1, NEWTON do x = y * (1 - math.exp(-x)) end
  return x
end

-- A drawn sample was counted in a slot. size: of the block, nil if it is not known: then the period tells.
function methods:draw(slot, weight, second, size, period)
  size = size or period and period > 1 and size_of(weight / period) * period or weight
  local rest = math.max(weight - size, 0)
  local p = weight > 0 and math.min(size / weight, 1) or 1
  local objects = p > 0 and 1 / p or second or 0
  local part = objects % 1	-- Rounded up so often.
  add_draw(self, slot, p > 0 and math.log(p) or 0, rest, rest * weight, math.max((second or 0) - 1, 0),
	   second and (1 - p) * objects * objects + part * (1 - part) or 0)
end

-- Adds the samples of another profile. slot_of: a slot here by one there, 0 if it is left out.
function methods:merge(other, slot_of)
  self.is_full = self.is_full or other.is_full
  if self.is_full then return end
  while self.width_us < other.width_us do widen(self) end
  while other.width_us < self.width_us do widen(other) end
  for i = 1, other.cells.count do
    local cell = other.cells.list[i]
    local slot = slot_of[tonumber(cell.a)]
    if slot ~= 0 then put(self, slot, cell.b, cell.samples, cell.weight, cell.squares) end
  end
  for slot = 1, other.draws_size - 1 do
    local d, to = other.draws[slot], slot_of[slot]
    if to ~= 0 and (d.rest[0] > 0 or d.variance[1] > 0) then
      add_draw(self, to, d.alone, d.rest[0], d.variance[0], d.rest[1], d.variance[1])
    end
  end
  make_room(self)
  self.heads = nil
end

-- Makes a profile note the spread of its samples by its options, see sysprof.model.profile.
function spread.attach(profile, options)
  if not options.spread then return end
  local add_slot, own = profile.add, new(profile)
  profile.spread = own
  profile.add = function(now, weight, state, lua, host, event)
    local ok, slot = add_slot(now, weight, state, lua, host, event)
    if slot then
      local its = profile.slots:event(slot)
      if own.is_tick[its] == nil then own.is_tick[its] = is_tick(its) end
      if own.is_tick[its] and not own.is_full then add(own, slot, now, weight) end
    end
    return ok, slot
  end
end

-- -- Looking at it ---------------------------------------------------------

-- Links the cells of each slot.
local function link(self)
  local list = self.cells.list
  self.heads = array.zeros(numbers, self.profile.slots:count() + 1)
  for i = 1, self.cells.count do
    local slot = list[i].a
    list[i].next, self.heads[slot] = self.heads[slot], i
  end
end

-- Whether the samples of a slot are ticks: not what is counted without a tick.
local function has_ticks(profile, slot)
  local what, arg = leafwork.of(profile, slot)
  return not (what and leafwork.is_unplaced(what, arg))
end

local function each_cell(self, slot, visit)
  local at = self.spread.heads[slot]
  while at ~= 0 do
    local cell, factor = self.spread.cells.list[at], self.factors[self.profile.slots:event(slot)]
    if self.weight == "samples" then
      visit(cell.b, cell.samples, cell.samples, cell.samples)
    else
      visit(cell.b, cell.samples, cell.weight * factor, cell.squares * factor * factor)
    end
    at = cell.next
  end
end

-- Puts neighbouring blocks together until each stratum has enough ticks.
local function strata_of(blocks)
  local strata, of_block, last = {}, {}, nil
  for b = 0, BLOCKS - 1 do
    local block = blocks[b]
    if block then
      if not last or last.n >= STRATUM then
	last = { n = 0, weight = 0, squares = 0 }
	strata[#strata + 1] = last
      end
      last.n, last.weight, last.squares = last.n + block.n, last.weight + block.weight, last.squares + block.squares
      of_block[b] = #strata
    end
  end
  local before = strata[#strata - 1]
  if before and last.n < STRATUM then
    before.n, before.weight, before.squares = before.n + last.n, before.weight + last.weight,
					      before.squares + last.squares
    for b, s in pairs(of_block) do
      if s == #strata then of_block[b] = s - 1 end
    end
    strata[#strata] = nil
  end
  return strata, of_block
end

local its_methods = {}
local its_mt = { __index = its_methods }

-- Returns the most that a row without samples may have.
local function most_unseen(self, event)
  if self.sum > 0 then return select(2, intervals.share(0, self.n)) * self.sum end
  if self.weight ~= "weight" or units.of(event.unit) ~= units.BYTES then return 0 end
  local period = event.longest
  for _, its in ipairs(event.periods) do period = math.max(period, its) end
  return select(2, intervals.count(0)) * period
end

-- Returns the spread of the amounts of an event, of sysprof.model.events; nil if the profile has not noted it.
-- weight: "samples", "weight", "second". takes(thread): whether a view shows a thread, whose CPU time is known; nil:
-- all.
function spread.of(profile, event, weight, takes)
  local own = profile.spread
  if not own or own.is_full then return nil end
  if not own.heads then link(own) end
  local self = setmetatable({ spread = own, profile = profile, factors = event.members, weight = weight,
			      n = 0, sum = 0, strata = {}, of_block = {},	-- Of all ticks.
			      unseen = 0 }, its_mt)	-- The most that a row without samples may have.
  local blocks, slots = {}, profile.slots
  for slot = 1, weight == "second" and 0 or slots:count() do
    local is_shown = self.factors[slots:event(slot)] and (not takes or takes(slots:thread(slot)))
    if is_shown and has_ticks(profile, slot) then
      each_cell(self, slot, function(b, n, sum, squares)
	local block = blocks[b] or { n = 0, weight = 0, squares = 0 }
	block.n, block.weight, block.squares = block.n + n, block.weight + sum, block.squares + squares
	blocks[b], self.n, self.sum = block, self.n + n, self.sum + sum
      end)
    end
  end
  self.strata, self.of_block = strata_of(blocks)
  self.unseen = most_unseen(self, event)
  return self
end

-- Calls tick(stratum, weight, squares) for what a slot has of the ticks. Returns what its draws say: the rest, its
-- variance, and alone; nil without draws.
function its_methods:visit(slot, tick)
  local own, second = self.spread, self.weight == "second" and 1 or 0
  if second == 0 and has_ticks(self.profile, slot) then
    each_cell(self, slot, function(b, _, sum, squares) tick(self.of_block[b], sum, squares) end)
  end
  if self.weight ~= "samples" and slot < own.draws_size then
    local d = own.draws[slot]
    return d.rest[second], d.variance[second], d.alone
  end
end

-- Returns a row of slots: what its ticks and its draws say.
function its_methods:row(slots)
  local row = { sum = 0, weight = {}, squares = {}, rest = 0, variance = 0, alone = 0 }
  for _, slot in ipairs(slots) do
    local rest, variance, alone = self:visit(slot, function(s, sum, squares)
      row.sum = row.sum + sum
      row.weight[s], row.squares[s] = (row.weight[s] or 0) + sum, (row.squares[s] or 0) + squares
    end)
    if rest then
      row.rest, row.variance, row.alone = row.rest + rest, row.variance + variance, row.alone + alone
    end
  end
  return row
end

-- Returns the variance of the ticks of a row, or of the difference of two. Few ticks of very different weights tell too
-- little of their squares: then those of the whole stratum count.
local function tick_variance(self, a, b)
  local edges, own, whole, before = 0, 0, 0, nil
  for i, s in ipairs(self.strata) do
    if s.weight > 0 then
      local first, second = a.weight[i] or 0, b and b.weight[i] or 0
      local first_squares, second_squares = a.squares[i] or 0, b and b.squares[i] or 0
      local d, few = (first - second) / s.weight, s.n > 1 and s.n / (s.n - 1) or 0
      local inside = first_squares + second_squares - 2 * d * (first_squares - second_squares) + d * d * s.squares
      own = own + few * math.max(inside, 0)
      whole = whole + few * math.max((first + second) / s.weight - d * d, 0) * s.squares
      if before then edges = edges + (d - before) ^ 2 / 2 * s.squares / s.n end
      before = d
    end
  end
  return edges + math.max(own, whole)
end

-- Returns the ends of the interval of the amount of a row.
function its_methods:interval(row, amount)
  local low, high = amount, amount
  if amount == 0 then return 0, self.unseen end
  if self.sum > 0 and row.sum > 0 then
    local p = math.min(row.sum / self.sum, 1)
    local variance, n = tick_variance(self, row), self.n
    if p < 1 and variance > 0 then n = self.sum ^ 2 * p * (1 - p) / variance end
    local least, most = intervals.share(p * n, n)
    low, high = low + (least - p) * self.sum, high + (most - p) * self.sum
  end
  if row.variance > 0 and row.rest > 0 then
    local scale = row.variance / row.rest
    local least, most = intervals.count(row.rest / scale)
    if row.alone > ALONE then least = 0 end
    low, high = low + least * scale - row.rest, high + most * scale - row.rest
  end
  return low, high
end

-- Returns the ends of the interval of the share that a row has of a whole. Of draws, the whole is uncertain, too: the
-- share has the variance of a ratio (Cochran 1977, ch. 2.11), and is never above 1.
function its_methods:share(row, amount, whole, sum)
  if whole.variance == 0 then
    local low, high = self:interval(row, amount)
    return low / sum, high / sum
  end
  local p, others = amount / sum, math.max(whole.variance - row.variance, 0)
  local variance = ((1 - p) ^ 2 * row.variance + p ^ 2 * others) / sum ^ 2
  local n = p < 1 and variance > 0 and p * (1 - p) / variance or sum ^ 2 / whole.variance
  return intervals.share(p * n, n)
end

-- Whether chance alone can make the difference of two rows.
function its_methods:is_same(a, amount, b, other)
  local variance = tick_variance(self, a, b) + a.variance + b.variance
  return variance > 0 and math.abs(amount - other) < intervals.Z * math.sqrt(variance)
end

return spread
