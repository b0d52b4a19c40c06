----------------------------------------------------------------------------
-- Sysprof reader: the samples of a profile one by one, in the order of time.
--
-- Only for formats that show single samples, and for a part of the time: else
-- a profile keeps counts only. A sample is its time, weight and slot (what the
-- profile counts it under), 16 bytes.
----------------------------------------------------------------------------

local ffi = require("ffi")

local sample_array = ffi.typeof("struct { double time; float weight; int32_t slot; }[?]")

-- A weight up to here is exact; no sample stands for 16 seconds of CPU time.
local WEIGHT_MAX = 2^24

local timeline = {}
local methods = {}
local mt = { __index = methods }

function timeline.new()
  return setmetatable({ n = 0, cap = 1024, list = sample_array(1024),
			heavy = {},	-- Larger weights by sample.
			order = nil, order_of = nil }, mt)	-- Of so many.
end

local function timeline_grow(self)
  local old = self.list
  self.cap = self.cap * 2
  self.list = sample_array(self.cap)
  ffi.copy(self.list, old, ffi.sizeof(old))
end

function methods:add(time, weight, slot)
  local i = self.n
  if i == self.cap then timeline_grow(self) end
  local s = self.list[i]
  s.time, s.weight, s.slot = time, weight, slot
  if weight > WEIGHT_MAX then self.heavy[i] = weight end
  self.n = i + 1
end

-- Returns the list of the samples by time, false if it is their own order.
local function timeline_order(self)
  local list, n, order = self.list, self.n, false
  for i = 1, n - 1 do
    if list[i].time < list[i - 1].time then
      order = {}
      break
    end
  end
  if order then
    for i = 1, n do order[i] = i - 1 end
    table.sort(order, function(a, b)
      if list[a].time ~= list[b].time then return list[a].time < list[b].time end
      return a < b
    end)
  end
  return order
end

-- Returns a function that gives time, weight and slot of the next sample, nil
-- at the end. Samples of several threads can be out of order in a stream.
function methods:in_order()
  local list, n, heavy = self.list, self.n, self.heavy
  if self.order_of ~= n then self.order, self.order_of = timeline_order(self), n end
  local order = self.order
  local at = 0
  return function()
    if at == n then return nil end
    at = at + 1
    local i = order and order[at] or at - 1
    local s = list[i]
    return s.time, heavy[i] or s.weight, s.slot
  end
end

-- Makes a profile keep what its options ask for, see sysprof.profile.
function timeline.attach(profile, options)
  if not (options.timeline or options.from or options.to) then return end
  local add = profile.add
  local from, to = options.from or 0, options.to or math.huge
  local line = options.timeline and timeline.new()
  profile.timeline = line or nil
  profile.whole = not (options.from or options.to)
  profile.add = function(now, weight, state, lua, host, event)
    if now < from or now >= to then return true end
    local ok, slot = add(now, weight, state, lua, host, event)
    if line then line:add(now, weight, slot) end
    return ok
  end
end

return timeline
