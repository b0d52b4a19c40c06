----------------------------------------------------------------------------
-- Samples of a profile, counted by lane, state of the VM, Lua stack and host stack.
--
-- A lane stands for a thread, an event and a set of labels. A slot takes 32 bytes: what it counts, packed into
-- the two numbers of its key, and its counts. The index that finds it takes 8 to 16 bytes. In a
-- profile with second weights, each slot has one, 8 bytes.
-- slots[i] makes a table of slot i, for users of the Lua API.
----------------------------------------------------------------------------

local bit = require("bit")
local array = require("sysprof.base.array")
local pairmap = require("sysprof.base.pairmap")
local stacks = require("sysprof.model.stacks")

local band, rshift = bit.band, bit.rshift
local floor = math.floor

local STATES = 16	-- Above any state of the VM; a power of two.
local STATE_BITS = 4
local NODES = stacks.LIMIT

local SLOT = pairmap.kind [[
  double a;		/* lane * NODES + node of the Lua stack. */
  int32_t b;		/* Node of the host stack * STATES + state. */
  double samples, weight;
]]

local numbers = array.kind("double")

local slots = { UNKNOWN = STATES - 1 }	-- State of a sample whose stack nobody has seen.
local methods = {}

-- Returns a slot as a table.
local function record(self, i)
  if type(i) ~= "number" or i < 1 or i > self:count() then return nil end
  local lane = self.lanes[self:lane(i)]
  return { tid = lane.thread.tid, thread = lane.thread, event = lane.event, labels = lane.labels,
	   state = self:state(i), lua = self:lua(i), host = self:host(i),
	   samples = self:samples(i), weight = self:weight(i), second = self:second(i) }
end

local mt = { __index = function(self, key)
  return methods[key] or record(self, key)
end }

-- room: of sysprof.model.room.
function slots.new(room)
  return setmetatable({ map = pairmap.new(SLOT), room = room,
			limit = math.huge,	-- Number of the first slot that there was no room for.
			seconds = nil, seconds_size = 0,	-- Second weights.
			lanes = {} }, mt)	-- { thread =, event =, labels = }
end

-- Returns the number of a new lane, or nil without room.
function methods:new_lane(thread, event, labels)
  local n = #self.lanes
  if not self.room:take("LANES") then return nil end
  self.lanes[n + 1] = { thread = thread, event = event, labels = labels }
  return n + 1
end

-- Counts samples with a sum of weights. Returns their slot and its weight, or nil without room.
function methods:add(lane, state, lua, host, samples, weight)
  local map = self.map
  local i, is_new = map:put(lane * NODES + lua, host * STATES + state)
  if is_new and not self.room:take("SAMPLES") then self.limit = math.min(self.limit, i) end
  if i >= self.limit then return nil end
  local s = map.list[i]
  local sum = s.weight + weight
  s.samples, s.weight = s.samples + samples, sum
  return i, sum
end

-- Counts more samples in a slot.
function methods:raise(i, samples, weight)
  local s = self.map.list[i]
  s.samples, s.weight = s.samples + samples, s.weight + weight
end

-- Adds to the second weight of a slot. Returns the sum.
function methods:add_second(i, value)
  if i >= self.seconds_size then
    local size = self.map.room + 1
    self.seconds = array.widen(numbers, self.seconds, self.seconds_size, size)
    self.seconds_size = size
  end
  local sum = self.seconds[i] + value
  self.seconds[i] = sum
  return sum
end

function methods:count() return math.min(self.map.count, self.limit - 1) end
function methods:samples(i) return self.map.list[i].samples end
function methods:weight(i) return self.map.list[i].weight end
function methods:second(i) return i < self.seconds_size and self.seconds[i] or 0 end
function methods:state(i) return band(self.map.list[i].b, STATES - 1) end
function methods:host(i) return rshift(self.map.list[i].b, STATE_BITS) end
function methods:lua(i) return self.map.list[i].a % NODES end
function methods:lane(i) return floor(self.map.list[i].a / NODES) end
function methods:thread(i) return self.lanes[self:lane(i)].thread end
function methods:event(i) return self.lanes[self:lane(i)].event end
function methods:labels(i) return self.lanes[self:lane(i)].labels end

-- Returns an iterator over the numbers of the slots and their tables.
function methods:each()
  return function(list, i)
    local slot = list[i + 1]
    if slot then return i + 1, slot end
  end, self, 0
end

return slots
