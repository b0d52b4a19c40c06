----------------------------------------------------------------------------
-- Numbered records that are found by a pair of whole numbers.
--
-- The numbers count from 1 in the order of insertion. The records lie in one array, so a
-- record takes its own size. A hash index finds them: open addressing, four bytes a place,
-- at most half of the places used. A search compares with the pair in the record.
----------------------------------------------------------------------------

local ffi = require("ffi")
local bit = require("bit")
local array = require("sysprof.base.array")
local bytes = require("sysprof.base.bytes")
local band, bxor, rshift, tobit = bit.band, bit.bxor, bit.rshift, bit.tobit
local floor = math.floor

local FIRST = 16	-- Places at first; a power of two.

local numbers = array.kind("int32_t")

local pairmap = {}
local methods = {}
local mt = { __index = methods }

-- Returns the kind of records with these fields of C: the pair a and b come first, and the
-- others are 0 in a new record. b is an int32_t.
function pairmap.kind(fields)
  return array.kind("struct { " .. fields .. " }")
end

local PAIR = pairmap.kind("double a; int32_t b;")

-- kind: of the records; a pair alone if missing. list[number] is a record, list[0] is free
-- for the caller.
function pairmap.new(kind)
  kind = kind or PAIR
  return setmetatable({ count = 0, kind = kind,
			list = array.zeros(kind, FIRST / 2 + 1), room = FIRST / 2,
			index = array.zeros(numbers, FIRST), places = FIRST }, mt)
end

-- Who chooses the pairs must not choose their places.
local SEEDS = bytes.random_numbers(3)
local SEED_A, SEED_HIGH, SEED_B = SEEDS[1], SEEDS[2], SEEDS[3]

-- Of all bits of a and b. The multipliers keep products below 2^52, where bit.tobit is exact.
local function hash(a, b)
  local h = tobit(bxor(tobit(a), SEED_A) * 648053)
  h = tobit(bxor(h, rshift(h, 15), floor(a / 2^32), SEED_HIGH) * 548543)
  h = tobit(bxor(h, rshift(h, 13), b, SEED_B) * 719393)
  h = tobit(bxor(h, rshift(h, 16)) * 648053)
  return bxor(h, rshift(h, 15))
end

-- Returns the free place that ends the search for a pair.
local function free_place(index, places, a, b)
  local at = band(hash(a, b), places - 1)
  while index[at] ~= 0 do at = band(at + 1, places - 1) end
  return at
end

local function grow(self)
  local list, places = self.list, self.places * 2
  local index = array.zeros(numbers, places)
  for id = 1, self.count do
    index[free_place(index, places, list[id].a, list[id].b)] = id
  end
  array.free(self.index)
  self.index, self.places, self.room = index, places, places / 2
  self.list = array.resize(self.kind, list, self.room + 1)
end

-- Adds a record, whose free place is at.
local function add(self, at, a, b)
  if self.count == self.room then
    grow(self)
    at = free_place(self.index, self.places, a, b)
  end
  local id = self.count + 1
  self.index[at], self.count = id, id
  ffi.fill(self.list + id, self.kind.size)
  local record = self.list[id]
  record.a, record.b = a, b
  return id
end

-- Returns the number of the record of a pair, or nil.
function methods:find(a, b)
  local index, list, mask = self.index, self.list, self.places - 1
  local at = band(hash(a, b), mask)
  local id = index[at]
  while id ~= 0 do
    if list[id].b == b and list[id].a == a then return id end
    at = band(at + 1, mask)
    id = index[at]
  end
end

-- Returns the number of the record of a pair, and true if it is new. a is below 2^51, or what
-- its field holds; b is below 2^31.
function methods:put(a, b)
  local index, list, mask = self.index, self.list, self.places - 1
  local at = band(hash(a, b), mask)
  local id = index[at]
  -- Mostly it is in the first place, and code without a loop compiles best.
  if id ~= 0 and list[id].b == b and list[id].a == a then return id, false end
  while id ~= 0 do
    if list[id].b == b and list[id].a == a then return id, false end
    at = band(at + 1, mask)
    id = index[at]
  end
  return add(self, at, a, b), true
end

return pairmap
