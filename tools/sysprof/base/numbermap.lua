----------------------------------------------------------------------------
-- Tables by numbers that others choose, such as addresses and ids.
--
-- A table of Lua takes quadratic time for numbers that were made to fall into one of its chains. These ones find
-- large numbers by sysprof.base.pairmap, whose places nobody can foresee. map[number] reads and writes, nil removes.
----------------------------------------------------------------------------

local pairmap = require("sysprof.base.pairmap")

local SPARE = 1024	-- Removed numbers that stay at least.
-- Whole numbers below this are found by a table of Lua, which is faster. A table with n places has some SMALL / n of
-- them for each place. So n numbers take some SMALL / 2 steps at most, whoever chooses them.
local SMALL = 2^24

local numbermap = {}
local methods = {}

-- Returns a whole number of up to 64 bits as a pair for sysprof.base.pairmap.
local function split(number)
  local low = number % 2^50
  return low, (number - low) / 2^50
end

-- Numbers have indexes in the order in which they came. Returns that of a number, or nil.
local function index_of(self, key)
  if key >= 0 and key < SMALL then return self.small[key] end
  local large = self.large
  local n = large and large:find(split(key))
  return n and self.of_large[n]
end

-- Returns the index of a number, which is new or not.
local function index_put(self, key)
  local i = index_of(self, key)
  if i then return i end
  i = self.count + 1
  self.count, self.keys[i] = i, key
  if key >= 0 and key < SMALL then
    self.small[key] = i
  else
    self.large = self.large or pairmap.new()
    self.of_large[self.large:put(split(key))] = i
  end
  return i
end

local function clear(self)
  self.small, self.large, self.of_large = {}, false, {}	-- large: made for the first number.
  self.keys, self.values, self.count = {}, {}, 0
end

-- Gives the room of removed numbers back.
local function rebuild(self)
  local keys, values = self.keys, self.values
  local count = self.count
  clear(self)
  for i = 1, count do
    if values[i] ~= nil then self.values[index_put(self, keys[i])] = values[i] end
  end
end

local mt = {}

function mt.__index(self, key)
  if type(key) ~= "number" then return methods[key] end
  local i = index_of(self, key)
  if i then return self.values[i] end
end

function mt.__newindex(self, key, value)
  if value == nil then
    local i = index_of(self, key)
    if i and self.values[i] ~= nil then self.values[i], self.live = nil, self.live - 1 end
    return
  end
  local i = index_put(self, key)
  if self.values[i] == nil then self.live = self.live + 1 end
  self.values[i] = value
  if i > 2 * self.live + SPARE then rebuild(self) end
end

function numbermap.new()
  local self = { live = 0 }
  clear(self)
  return setmetatable(self, mt)
end

-- Returns an iterator over numbers and values, in the order in which the numbers came.
function methods:each()
  local keys, values, last, i = self.keys, self.values, self.count, 0
  return function()
    repeat i = i + 1 until i > last or values[i] ~= nil
    if i <= last then return keys[i], values[i] end
  end
end

return numbermap
