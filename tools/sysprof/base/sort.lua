----------------------------------------------------------------------------
-- Sort of lists whose order others choose.
--
-- table.sort() takes quadratic time on an order that is made for it. This merge sort never takes more than
-- n log n comparisons, and keeps the order of equal items.
----------------------------------------------------------------------------

local function is_less(a, b) return a < b end

-- Merges from[first..middle-1] and from[middle..last-1], which are in order, into the same places of to.
local function merge(from, to, first, middle, last, less)
  local a, b = first, middle
  for i = first, last - 1 do
    if b == last or a < middle and not less(from[b], from[a]) then
      to[i], a = from[a], a + 1
    else
      to[i], b = from[b], b + 1
    end
  end
end

-- Sorts a list in place. less(a, b): whether a comes before b; "<" if missing.
return function(list, less)
  less = less or is_less
  local n, from, to = #list, list, {}
  local width = 1
  while width < n do
    for first = 1, n, 2 * width do
      local middle = math.min(first + width, n + 1)
      merge(from, to, first, middle, math.min(first + 2 * width, n + 1), less)
    end
    from, to, width = to, from, 2 * width
  end
  if from == list then return end
  for i = 1, n do list[i] = from[i] end
end
