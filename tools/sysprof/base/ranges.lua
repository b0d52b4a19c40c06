----------------------------------------------------------------------------
-- Ranges of numbers with a value each, in order, so that a search takes logarithmic time.
--
-- Ranges never overlap: a new one takes the place of others. A range is { first =, last =, value = }, and ends before
-- last.
----------------------------------------------------------------------------

local ranges = {}
local methods = {}
local mt = { __index = methods }

function ranges.new()
  return setmetatable({ list = {} }, mt)
end

-- Returns the number of the first range that ends behind a number.
local function first_behind(list, number)
  local low, high = 1, #list + 1
  while low < high do
    local middle = math.floor((low + high) / 2)
    if list[middle].last <= number then low = middle + 1 else high = middle end
  end
  return low
end

-- Returns the range that a number lies in, or nil.
function methods:find(number)
  local its = self.list[first_behind(self.list, number)]
  return its and its.first <= number and its or nil
end

-- Returns the first range that has numbers from first to before last, or nil.
function methods:overlapped(first, last)
  local its = self.list[first_behind(self.list, first)]
  return its and its.first < last and its or nil
end

-- Puts new ranges in place of n others from a number on.
local function replace(list, at, n, new)
  local more = #new - n
  for _ = 1, more do table.insert(list, at, false) end
  for _ = 1, -more do table.remove(list, at) end
  for i, its in ipairs(new) do list[at + i - 1] = its end
end

-- Removes all ranges that overlap. Returns whether there were any.
function methods:remove(first, last)
  local list = self.list
  local at, n = first_behind(list, first), 0
  while list[at + n] and list[at + n].first < last do n = n + 1 end
  replace(list, at, n, {})
  return n > 0
end

-- Adds a range. Others keep what it does not cover.
function methods:put(first, last, value)
  local list, new = self.list, {}
  local at, n = first_behind(list, first), 0
  local its = list[at]
  if its and its.first < first then new[1] = { first = its.first, last = first, value = its.value } end
  new[#new + 1] = { first = first, last = last, value = value }
  while its and its.first < last do
    n = n + 1
    if its.last > last then new[#new + 1] = { first = last, last = its.last, value = its.value } end
    its = list[at + n]
  end
  replace(list, at, n, new)
end

return ranges
