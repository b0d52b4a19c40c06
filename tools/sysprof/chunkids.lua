----------------------------------------------------------------------------
-- Sysprof reader: numbers by id, valid within one chunk.
--
-- clear() takes no time, however many ids there were. Ids of a stream are small
-- and dense, so they are places of an array; those of a damaged one that are
-- not go into a table.
----------------------------------------------------------------------------

local ffi = require("ffi")

local FIRST, DENSE = 1024, 2^20		-- Size of the array: at first, at most.

local places = ffi.typeof("struct { int32_t chunk, number; }[?]")
local SIZE = ffi.sizeof(places, 1)

local chunkids = {}
local methods = {}
local mt = { __index = methods }

function chunkids.new()
  return setmetatable({
    list = places(FIRST), size = FIRST,
    chunk = 0,		-- Places that hold another number are empty.
    far = {},
  }, mt)
end

function methods:clear()
  self.chunk = self.chunk + 1
  self.far = {}
end

function methods:get(id)
  if id < self.size then
    local place = self.list[id]
    if place.chunk == self.chunk then return place.number end
    return nil
  end
  return self.far[id]
end

-- The same for two ids.
function methods:get2(a, b)
  local size, chunk = self.size, self.chunk
  if a < size and b < size then
    local pa, pb = self.list[a], self.list[b]
    return pa.chunk == chunk and pa.number or nil,
	   pb.chunk == chunk and pb.number or nil
  end
  return self:get(a), self:get(b)
end

local function grow(self, id)
  local old, used = self.list, self.size
  repeat self.size = self.size * 2 until id < self.size
  self.list = places(self.size)
  ffi.copy(self.list, old, used * SIZE)
  for far, number in pairs(self.far) do
    if far < self.size then
      self.list[far].chunk, self.list[far].number = self.chunk, number
    end
  end
end

-- id is a whole number below 2^53, number one below 2^31.
function methods:put(id, number)
  -- Only ids that are not far from dense make the array larger.
  if id >= self.size and id < DENSE and id < self.size * 8 then grow(self, id) end
  if id < self.size then
    local place = self.list[id]
    place.chunk, place.number = self.chunk, number
  else
    self.far[id] = number
  end
end

return chunkids
