----------------------------------------------------------------------------
-- Timeline: single samples in order of time.
--
-- Formats that show single samples, and parts of the time, need it; otherwise a profile
-- keeps only counts. A sample is time, weight and slot (what the profile counts it
-- under), 16 bytes. In a profile with second weights, each sample has one, 8 bytes.
----------------------------------------------------------------------------

local array = require("sysprof.base.array")
local events = require("sysprof.model.events")
local leafwork = require("sysprof.model.leafwork")
local threadstates = require("sysprof.model.threadstates")
local units = require("sysprof.model.units")

local singles = array.kind("struct { double time; float weight; int32_t slot; }")
local numbers = array.kind("int32_t")
local doubles = array.kind("double")

local FIRST = 1024	-- Samples that there is room for at first.

-- A weight up to here is exact; few samples stand for more.
local EXACT_WEIGHT = 2^24

local timeline = {}
local methods = {}
local mt = { __index = methods }

function timeline.new()
  return setmetatable({ n = 0, cap = 0, list = nil,
			heavy = {},	-- Larger weights by sample.
			seconds = nil, seconds_size = 0,	-- Second weights.
			order = nil, order_of = nil }, mt)	-- Of so many.
end

local function timeline_grow(self)
  self.cap = math.max(FIRST, self.cap * 2)
  self.list = array.resize(singles, self.list, self.cap)
end

function methods:add(time, weight, slot)
  local i = self.n
  if i == self.cap then timeline_grow(self) end
  local s = self.list[i]
  s.time, s.weight, s.slot = time, weight, slot
  if weight > EXACT_WEIGHT then self.heavy[i] = weight end
  self.n = i + 1
end

-- The second weight of the sample that was added last.
function methods:set_second(value)
  if self.n > self.seconds_size then
    self.seconds = array.widen(doubles, self.seconds, self.seconds_size, self.cap)
    self.seconds_size = self.cap
  end
  self.seconds[self.n - 1] = value
end

-- Merges the samples from[first..middle-1] and from[middle..last-1], which are in
-- order, into the same places of another list.
local function merge_runs(list, from, to, first, middle, last)
  local a, b = first, middle
  for i = first, last - 1 do
    if b == last or (a < middle and list[from[a]].time <= list[from[b]].time) then
      to[i], a = from[a], a + 1
    else
      to[i], b = from[b], b + 1
    end
  end
end

-- Returns the numbers of the samples by time, false if it is their own order. They
-- are runs, of threads, that are in order.
local function timeline_order(self)
  local list, n, runs = self.list, self.n, {}
  for i = 0, n - 1 do
    if i == 0 or list[i].time < list[i - 1].time then runs[#runs + 1] = i end
  end
  if #runs < 2 then return false end
  local from = array.resize(numbers, nil, n)
  local to = array.resize(numbers, nil, n)
  for i = 0, n - 1 do from[i] = i end
  while #runs > 1 do
    local longer = {}
    for k = 1, #runs, 2 do
      local last = runs[k + 2] or n
      merge_runs(list, from, to, runs[k], runs[k + 1] or last, last)
      longer[#longer + 1] = runs[k]
    end
    from, to, runs = to, from, longer
  end
  return from
end

-- Returns a function that gives time, weight, slot and second weight of the next sample,
-- nil at the end. Samples of several threads can be out of order in a stream.
function methods:in_order()
  local list, n, heavy = self.list, self.n, self.heavy
  local seconds, seconds_size = self.seconds, self.seconds_size
  if self.order_of ~= n then self.order, self.order_of = timeline_order(self), n end
  local order = self.order
  local at = 0
  return function()
    if at == n then return nil end
    at = at + 1
    local i = order and order[at - 1] or at - 1
    local s = list[i]
    return s.time, heavy[i] or s.weight, s.slot, i < seconds_size and seconds[i] or 0
  end
end

-- Returns a function that returns the time and the weight that a sample has in [from, to), nil if none; and whether it
-- is of a wait that the beginning may cut. A wait counts for its part in there, another sample where it stands.
local function clipper(profile, from, to)
  local function ns(us) return math.floor(us * 1000 + 0.5) end
  local from_ns, to_ns = from > 0 and ns(from) or -math.huge, ns(to)
  return function(now, weight, lua, event)
    if weight > 0 and threadstates.is_span(profile, lua, events.of_index(profile.session, event).unit) then
      local end_ns = now * 1000
      local first, last = math.max(end_ns - weight, from_ns), math.min(end_ns, to_ns)
      if first >= last then return nil end
      return last < end_ns and last / 1000 or now, last - first, first == from_ns
    elseif now >= from and now < to then
      return now, weight
    end
  end
end

-- Notes that an event has samples that stand late, whatever part of the time they lie in.
local function note_late(profile, lua, event)
  if not leafwork.is_sum(profile.stacks, lua) then return end
  local e, what, arg = events.of_index(profile.session, event), leafwork.of_stack(profile.stacks, lua)
  if not units.of(e.unit).by_others then return end
  profile.late[e] = profile.late[e] or {}
  profile.late[e][what] = arg
end

-- Makes a profile count a part of the time only, by its options. A wait counts once in each part that it lies in: a
-- long one has several samples, and only the first counts it.
local function attach_range(profile, options)
  if not (options.from or options.to) then return end
  local add = profile.add
  local from, to = options.from or 0, options.to or math.huge
  local clip = clipper(profile, from, to)
  local add_second, is_cut = profile.add_second, false
  profile.whole, profile.from, profile.to = false, from, to
  profile.add = function(now, weight, state, lua, host, event)
    local its_end, its_weight
    note_late(profile, lua, event)
    its_end, its_weight, is_cut = clip(now, weight, lua, event)
    if its_end ~= now then profile.last_passed = now end
    if not its_end then return true end
    return add(its_end, its_weight, state, lua, host, event)
  end
  profile.add_second = function(self, slot, value)
    return add_second(self, slot, is_cut and math.max(value, 1) or value)
  end
end

-- Makes a profile keep its samples by its options, see sysprof.model.profile.
function timeline.attach(profile, options)
  local add, line = profile.add, options.timeline and timeline.new()
  if line then
    profile.timeline = line
    profile.add = function(now, weight, state, lua, host, event)
      if not profile.room:take("SINGLES") then return false end
      local ok, slot = add(now, weight, state, lua, host, event)
      if slot then line:add(now, weight, slot) end
      return ok, slot
    end
  end
  attach_range(profile, options)
end

return timeline
