----------------------------------------------------------------------------
-- Hash map that numbers pairs of whole numbers, from 1.
--
-- The numbers follow the order of insertion. Open addressing in FFI arrays is several
-- times faster than a Lua table with combined keys, and needs half the memory.
----------------------------------------------------------------------------

local ffi = require("ffi")
local bit = require("bit")
local band, bxor, rshift, tobit = bit.band, bit.bxor, bit.rshift, bit.tobit

-- One place: a pair and its number, 0 if free. Four lie in a cache line.
local places = ffi.typeof("struct { double a; int32_t b, id; }[?]")

local FIRST = 16	-- Places at first; a power of two.

local pairmap = {}
local methods = {}
local mt = { __index = methods }

function pairmap.new()
  return setmetatable({ count = 0, size = FIRST, places = places(FIRST) }, mt)
end

-- The multipliers keep products below 2^52, where bit.tobit is exact.
local function hash(a, b)
  local h = tobit(tobit(a) * 648053)
  h = tobit(bxor(h, rshift(h, 15)) + tobit(b) * 548543)
  h = tobit(bxor(h, rshift(h, 13)) * 719393)
  return bxor(h, rshift(h, 16))
end

-- Returns where a pair is, or where it would be put.
local function find(list, size, a, b)
  local at = band(hash(a, b), size - 1)
  while list[at].id ~= 0 and (list[at].a ~= a or list[at].b ~= b) do
    at = band(at + 1, size - 1)
  end
  return at
end

local function grow(self)
  local old, list, size = self.places, places(self.size * 2), self.size * 2
  for i = 0, self.size - 1 do
    if old[i].id ~= 0 then
      list[find(list, size, old[i].a, old[i].b)] = old[i]
    end
  end
  self.places, self.size = list, size
end

-- Returns the number of a pair, and true if it is new. Both are whole, a is
-- below 2^51 and b below 2^31.
function methods:put(a, b)
  local list = self.places
  local at = band(hash(a, b), self.size - 1)
  -- Mostly it is in the first place, and code without a loop compiles best.
  if list[at].a == a and list[at].b == b and list[at].id ~= 0 then
    return list[at].id, false
  end
  at = find(list, self.size, a, b)
  local id = list[at].id
  if id ~= 0 then return id, false end
  id = self.count + 1
  self.count = id
  list[at].a, list[at].b, list[at].id = a, b, id
  if id * 2 > self.size then grow(self) end
  return id, true
end

return pairmap
