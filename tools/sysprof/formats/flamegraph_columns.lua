----------------------------------------------------------------------------
-- Values of a flame graph's nodes by columns of time, as text for its page.
--
-- A list has the values of a node on CPU, or those off CPU. Its number is twice that of the node, plus one off CPU. The
-- text of a list has the distance of its number from the list before, how many values follow, and for each the distance
-- from the column before, then the value. A number is digits of five bits, the lowest first; all but the last are 32
-- more. A character of DIGITS stands for each.
----------------------------------------------------------------------------

local array = require("sysprof.base.array")

local numbers = array.kind("int32_t")

local DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
local PER_TEXT = 4096	-- Numbers in a text.

local columns = {}

local digits = {}
for i = 1, #DIGITS do digits[i - 1] = DIGITS:sub(i, i) end

-- Returns a function that takes the numbers of the lists, and one that writes those that are left.
local function writer(write)
  local out, n, count, is_first = {}, 0, 0, true
  local function flush()
    if n == 0 then return end
    write((is_first and '"' or ',\n"') .. table.concat(out, "", 1, n) .. '"')
    n, count, is_first = 0, 0, false
  end
  return function(number)
    while number >= 32 do
      n, out[n + 1] = n + 1, digits[number % 32 + 32]
      number = math.floor(number / 32)
    end
    n, out[n + 1], count = n + 1, digits[number], count + 1
    if count >= PER_TEXT then flush() end
  end, flush
end

-- Returns the items of list[0..n-1] by rising key(item), at most most; equal ones in their order.
local function sorted(list, n, most, key)
  local starts, out = array.zeros(numbers, most + 2), array.resize(numbers, nil, n + 1)
  for i = 0, n - 1 do
    local at = key(list[i]) + 1
    starts[at] = starts[at] + 1
  end
  for at = 1, most do starts[at] = starts[at] + starts[at - 1] end
  for i = 0, n - 1 do
    local at = key(list[i])
    out[starts[at]], starts[at] = list[i], starts[at] + 1
  end
  return out
end

-- Writes the cells list[first..last] of one node, in order of their columns. A value is what the rounded sum
-- grows by, so the values of all columns add up to it.
local function write_list(put, list, first, last, column_of, value_of)
  local pairs_of, n, sum, written, before = {}, 0, 0, 0, 0
  for i = first, last do
    sum = sum + value_of(list[i])
    local column = column_of(list[i])
    if i == last or column_of(list[i + 1]) ~= column then
      local value = math.floor(sum + 0.5) - written
      if value > 0 then
	pairs_of[n + 1], pairs_of[n + 2], n = column - before, value, n + 2
	written, before = written + value, column
      end
    end
  end
  put(n / 2)
  for i = 1, n do put(pairs_of[i]) end
end

-- Writes the cells of a view's profile as a list of texts. number_of: by slot the number of its list, 0 if it is not
-- shown. most: the largest one.
function columns.write(view, write, number_of, most)
  local slots, its = view.profile.slots, view.profile.columns
  local cells, members = its.cells, view.event.members
  local list, n, last = array.resize(numbers, nil, cells.count + 1), 0, 0
  for i = 1, cells.count do
    if number_of[cells.list[i].a] ~= 0 then
      list[n], n = i, n + 1
      last = math.max(last, cells.list[i].b)
    end
  end
  local function column_of(i) return cells.list[i].b end
  local function list_of(i) return number_of[cells.list[i].a] end
  local function value_of(i)
    local cell = cells.list[i]
    if view.weight == "samples" then return cell.samples end
    return cell.weight * members[slots:event(cell.a)]
  end
  list = sorted(sorted(list, n, last, column_of), n, most, list_of)
  local put, flush = writer(write)
  local first, before = 0, 0
  for i = 0, n - 1 do
    local number = list_of(list[i])
    if i == n - 1 or list_of(list[i + 1]) ~= number then
      put(number - before)
      write_list(put, list, first, i, column_of, value_of)
      first, before = i + 1, number
    end
  end
  flush()
end

return columns
