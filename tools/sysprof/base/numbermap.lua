----------------------------------------------------------------------------
-- Tables by numbers that others choose, such as addresses and ids.
--
-- A table of Lua takes quadratic time for numbers that were made to fall into one of its chains. These ones find
-- numbers by sysprof.base.pairmap, whose places nobody can foresee. map[number] reads and writes, nil removes.
----------------------------------------------------------------------------

local pairmap = require("sysprof.base.pairmap")

local SPARE = 1024	-- Removed numbers that stay at least.

local numbermap = {}
local methods = {}

-- Returns a whole number of up to 64 bits as a pair for sysprof.base.pairmap.
local function split(number)
  local low = number % 2^50
  return low, (number - low) / 2^50
end

-- Gives the room of removed numbers back.
local function rebuild(self)
  local index, keys, values = pairmap.new(), {}, {}
  for i = 1, self.index.count do
    if self.values[i] ~= nil then
      local n = index:put(split(self.keys[i]))
      keys[n], values[n] = self.keys[i], self.values[i]
    end
  end
  self.index, self.keys, self.values = index, keys, values
end

local mt = {}

function mt.__index(self, key)
  if type(key) ~= "number" then return methods[key] end
  local i = self.index and self.index:find(split(key))
  if i then return self.values[i] end
end

function mt.__newindex(self, key, value)
  local index, values = self.index, self.values
  if value == nil then
    local i = index and index:find(split(key))
    if i and values[i] ~= nil then values[i], self.live = nil, self.live - 1 end
    return
  end
  if not index then
    index = pairmap.new()
    self.index = index
  end
  local i = index:put(split(key))
  if values[i] == nil then self.live = self.live + 1 end
  self.keys[i], values[i] = key, value
  if index.count > 2 * self.live + SPARE then rebuild(self) end
end

function numbermap.new()
  return setmetatable({ index = false,	-- Made for the first number.
			keys = {}, values = {}, live = 0 }, mt)
end

-- Returns an iterator over numbers and values, in the order in which the numbers came.
function methods:each()
  local keys, values, last, i = self.keys, self.values, self.index and self.index.count or 0, 0
  return function()
    repeat i = i + 1 until i > last or values[i] ~= nil
    if i <= last then return keys[i], values[i] end
  end
end

return numbermap
