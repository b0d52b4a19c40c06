----------------------------------------------------------------------------
-- Sysprof reader: the times of samples, in FFI arrays that grow.
--
-- The only part of a profile whose size grows with the number of samples.
----------------------------------------------------------------------------

local ffi = require("ffi")

local places = ffi.typeof("struct { double time; double weight; int32_t slot; }[?]")
local SIZE = ffi.sizeof(places, 1)

local timeline = {}
local methods = {}
local mt = { __index = methods }

function timeline.new()
  return setmetatable({ count = 0, size = 1024, places = places(1024) }, mt)
end

local function grow(self)
  local old = self.places
  self.size = self.size * 2
  self.places = places(self.size)
  ffi.copy(self.places, old, self.count * SIZE)
end

function methods:add(time, weight, slot)
  if self.count == self.size then grow(self) end
  local place = self.places[self.count]
  place.time, place.weight, place.slot = time, weight, slot
  self.count = self.count + 1
end

-- Calls visit(time, weight, slot) for each sample.
function methods:each(visit)
  for i = 0, self.count - 1 do
    local place = self.places[i]
    visit(place.time, place.weight, place.slot)
  end
end

return timeline
