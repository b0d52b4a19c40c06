----------------------------------------------------------------------------
-- Things that samples begin, and what is left of them at the end of a session.
--
-- A thing, such as a block of memory, is remembered until it ends, or another sample has its
-- number. What is left becomes an event of its own (events.left_of), with the stacks, states and
-- labels of the samples, and one label more: the age.
--
-- The writer keeps a thing of n bytes with the probability p = 1 - e^(-n/period). The period is
-- that of its sample, or that of all things (events.left_period) if this is longer. So it stands
-- for what its sample does, or for n/p bytes and 1/p objects. Weights are whole numbers: each
-- takes over the rest of the one before it, so that sums are exact. A thing without a size
-- weighs what its sample does.
----------------------------------------------------------------------------

local G = require("sysprof.base.grammar")
local events = require("sysprof.model.events")
local labels = require("sysprof.model.labels")
local limits = require("sysprof.base.limits")
local numbermap = require("sysprof.base.numbermap")
local sort = require("sysprof.base.sort")

local WEIGHT_MAX = limits.WEIGHT
local SMALL = 1e-5	-- Below, 1 - e^(-x) loses digits.

local things = {}

-- Returns the things of an event, none so far.
function things.new()
  return { room = nil,	-- Of the profile.
	   by_number = numbermap.new() }	-- { slot =, time =, size =, weight =, second =, cycle = }
end

local function forget(all, number)
  all.by_number[number] = nil
  all.room:give_back("THINGS")
end

-- A thing has ended, if it is known. how: SPF_ENDED_*; what the reader does not know is dropped.
function things.ended(all, event, how, number, age)
  if not all.by_number[number] then return end
  events.end_thing(event, how == G.SPF_ENDED_GONE, age)
  forget(all, number)
end

-- The last sample of a profile has begun a thing. sample: { number =, size =, second =, cycle = },
-- where it has these. Returns whether there is room for it.
function things.begin(all, event, profile, slot, weight, sample)
  local number = sample.number
  things.ended(all, event, G.SPF_ENDED_DROPPED, number)
  all.room = profile.room
  if not all.room:take("THINGS") then return false end
  events.begin_thing(event)
  all.by_number[number] = { slot = slot, time = profile.last_time, cycle = sample.cycle, size = sample.size,
			    weight = weight, second = sample.second }
  return true
end

-- -- What is left ----------------------------------------------------------

-- Returns 1 - e^(-x).
local function chance(x)
  return x < SMALL and x - x * x / 2 or 1 - math.exp(-x)
end

-- Returns bytes and objects that a thing stands for, and the variances of both; not whole.
local function weights_of(thing, period)
  local size, weight, second = thing.size, thing.weight, thing.second or 0
  if not size then return weight, second, 0, 0 end
  if size == 0 then return 0, 0, 0, 0 end
  local p = period > 1 and chance(size / period) or 1
  -- Weights of samples are rounded up or down.
  if weight > size / p + 1 then return weight, second, weight * (weight - size), second ^ 2 * (1 - size / weight) end
  return size / p, 1 / p, (size / p) ^ 2 * (1 - p), (1 - p) / p ^ 2
end

-- Returns a function that makes numbers whole.
local function rounder()
  local rest = 0
  return function(v)
    local whole = math.floor(v + rest + 0.5)
    rest = v + rest - whole
    return whole
  end
end

local function sorted_numbers(all)
  local list = {}
  for number in all.by_number:each() do list[#list + 1] = number end
  sort(list)
  return list
end

-- The session ends: counts what is left in a profile.
function things.finish(all, event, profile)
  local left = events.left_of(event)
  local slots, sum, second_sum = profile.slots, 0, 0
  local period, cycles = events.left_period(event), events.cycles(event)
  local whole, whole_second = rounder(), rounder()
  for _, number in ipairs(sorted_numbers(all)) do
    local thing = all.by_number[number]
    local weight, second, variance, second_variance = weights_of(thing, period)
    weight, second = whole(weight), whole_second(second)
    sum, second_sum = sum + weight, second_sum + second
    if not (sum < WEIGHT_MAX and second_sum < WEIGHT_MAX) then break end
    local from, cycle = thing.slot, thing.cycle
    local set = slots:labels(from)
    if cycle then
      set = profile.label_sets:with(set, labels.AGE, labels.age_text(math.max(cycles - cycle, 0)))
    end
    local slot = profile:add_slot(slots:thread(from), left, set, slots:state(from), slots:lua(from),
				  slots:host(from), 1, weight, second)
    if not slot then break end
    events.add_left(left, variance, second_variance)
    if profile.spread then profile.spread:draw(slot, weight, thing.second and second, thing.size) end
    if profile.timeline then
      profile.timeline:add(thing.time, weight, slot)
      if second > 0 then profile.timeline:set_second(second) end
    end
    forget(all, number)
  end
end

return things
