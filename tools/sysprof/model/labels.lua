----------------------------------------------------------------------------
-- Sets of labels, each once.
--
-- Samples have labels, pairs of a key and a value: what the program did for whom. A set is a
-- list of pairs { key, value } in the order of the keys. Equal sets of a profile are the same
-- table. Keys and values are any bytes.
----------------------------------------------------------------------------

local sort = require("sysprof.base.sort")

local labels = {}
local methods = {}
local mt = { __index = methods }

-- room: of sysprof.model.room.
function labels.new(room)
  return setmetatable({ by_text = {}, room = room }, mt)
end

-- Returns a list of pairs in the order of the keys, each once: of equal keys the last one counts.
local function in_order(list)
  local is_ordered = true
  for i = 2, #list do is_ordered = is_ordered and list[i - 1][1] < list[i][1] end
  if is_ordered then return list end
  local value_of, set = {}, {}
  for _, pair in ipairs(list) do
    if not value_of[pair[1]] then set[#set + 1] = { pair[1] } end
    value_of[pair[1]] = pair[2]
  end
  sort(set, function(a, b) return a[1] < b[1] end)
  for _, pair in ipairs(set) do pair[2] = value_of[pair[1]] end
  return set
end

-- Returns the set of a list of pairs, or nil if it is empty; and whether there is room for it. Takes the list.
function methods:set(list)
  if #list == 0 then return nil, true end
  local set, parts, n = in_order(list), {}, 0
  for _, pair in ipairs(set) do
    local key, value = pair[1], pair[2]
    parts[n + 1], parts[n + 2], parts[n + 3], parts[n + 4] = #key, " ", #value, " "
    parts[n + 5], parts[n + 6], n = key, value, n + 6
  end
  local text = table.concat(parts)
  if not self.by_text[text] then
    if not (self.room:take("LABEL_SETS") and self.room:take("DEFINITIONS", #text)) then return nil, false end
    self.by_text[text] = set
  end
  return self.by_text[text], true
end

-- Returns a set with one more label. The set may be nil.
function methods:with(set, key, value)
  local list = {}
  for i, pair in ipairs(set or {}) do list[i] = pair end
  list[#list + 1] = { key, value }
  return self:set(list)
end

-- -- Age --------------------------------------------------------------------

-- Key of the age of what is left: cycles of the garbage collector that it has lived through.
labels.AGE = "age"

-- Returns an age as a text: ages of one class have the same.
function labels.age_text(cycles)
  if cycles < 2 then return cycles == 1 and "1 cycle" or "0 cycles" end
  local first = 2
  while first * 2 <= cycles do first = first * 2 end
  return ("%.0f-%.0f cycles"):format(first, first * 2 - 1)
end

-- Returns the least age of a class by its text.
function labels.least_age(age_text)
  return tonumber(age_text:match("^%d+"))
end

-- Returns a list of { text, count } by increasing age, from counts by text.
function labels.age_counts(counts)
  local list = {}
  for text, n in pairs(counts) do list[#list + 1] = { text, n } end
  sort(list, function(a, b) return labels.least_age(a[1]) < labels.least_age(b[1]) end)
  return list
end

-- Key and value of samples whose labels found all sets of their VM in use.
labels.OTHER = "[other]"

-- -- Values -----------------------------------------------------------------

-- Returns the value of a key in a set, or nil. A set may be nil.
function labels.value(set, key)
  for _, pair in ipairs(set or {}) do
    if pair[1] == key then return pair[2] end
  end
end

return labels
