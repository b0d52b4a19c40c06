----------------------------------------------------------------------------
-- Values of a flame graph's nodes by columns of time, as text for its page.
--
-- A list has the values of a node on CPU, or those off CPU. Its number is twice that of the node, plus one off CPU. The
-- text of a list has the distance of its number from the list before, how many values follow, and for each the distance
-- from the column before, then the value. A number is digits of five bits, the lowest first; all but the last are 32
-- more. A character of DIGITS stands for each.
----------------------------------------------------------------------------

local array = require("sysprof.base.array")
local countsort = require("sysprof.base.countsort")
local limits = require("sysprof.base.limits")

local numbers = array.kind("int32_t")

local DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
local PER_TEXT = 4096	-- Numbers in a text.

local columns = {}

local digits = {}
for i = 1, #DIGITS do digits[i - 1] = DIGITS:sub(i, i) end

-- Returns a function that takes the numbers of the lists, and one that writes those that are left.
function columns.writer(write)
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

-- Returns how many values lists in order of their numbers and columns have, if a column is so many of the profile.
local function count(list, n, list_of, column_of, many)
  local values, number, column = 0, -1, -1
  for i = 0, n - 1 do
    local its, at = list_of(list[i]), math.floor(column_of(list[i]) / many)
    if its ~= number or at ~= column then values, number, column = values + 1, its, at end
  end
  return values
end

-- Writes the cells of a view's profile as a list of texts. number_of: by slot the number of its list, 0 if it is not
-- shown. most: the largest one. begin(many) is called first: a column is so many of the profile.
function columns.write(view, write, number_of, most, begin)
  local slots, its = view.profile.slots, view.profile.columns
  local cells, members = its.list, view.event.members
  local list, n, many = array.resize(numbers, nil, its.n + 1), 0, 1
  for i = 0, its.n - 1 do
    if number_of[cells[i].slot] ~= 0 then list[n], n = i, n + 1 end
  end
  local function its_column(i) return cells[i].column end
  local function list_of(i) return number_of[cells[i].slot] end
  local function value_of(i)
    local cell = cells[i]
    return cell.weight * members[slots:event(cell.slot)]
  end
  list = countsort(countsort(list, n, its.last, its_column), n, most, list_of)
  while count(list, n, list_of, its_column, many) > limits.COLUMN_VALUES and many <= its.last do many = many * 2 end
  local function column_of(i) return math.floor(cells[i].column / many) end
  begin(many)
  local put, flush = columns.writer(write)
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
