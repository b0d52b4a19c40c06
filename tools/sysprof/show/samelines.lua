----------------------------------------------------------------------------
-- Equal lines of two texts: those of a source before and after an edit.
--
-- Lines that stand once in each text, in the longest order of both, are pairs. What is between two of them, and equal
-- from their side on, is too (Cohen's patience diff). The line of what is left stands as far below the last pair.
----------------------------------------------------------------------------

local samelines = {}

-- Returns by text the only line where it stands; false: there are several.
local function single_lines(lines)
  local at = {}
  for i, s in ipairs(lines) do at[s] = at[s] == nil and i end
  return at
end

-- Returns the lines of a whose partners in b rise, as many as possible. partner: by line of a.
local function longest_rise(partner, n)
  local ends, before, length = {}, {}, 0
  for i = 1, n do
    local to = partner[i]
    if to then
      local low, high = 0, length
      while low < high do
	local middle = math.ceil((low + high) / 2)
	if partner[ends[middle]] < to then low = middle else high = middle - 1 end
      end
      before[i], ends[low + 1] = ends[low], i
      length = math.max(length, low + 1)
    end
  end
  local list, i = {}, ends[length]
  for k = length, 1, -1 do list[k], i = i, before[i] end
  return list
end

-- Returns a function that gives the line in b for a line in a; lists of texts.
function samelines.match(a, b)
  local in_a, in_b, partner, to = single_lines(a), single_lines(b), {}, {}
  for s, i in pairs(in_a) do
    if i and in_b[s] then partner[i] = in_b[s] end
  end
  local fixed = longest_rise(partner, #a)
  fixed[#fixed + 1] = #a + 1
  local i, k = 0, 0	-- The last pair.
  for _, next_i in ipairs(fixed) do
    local next_k = partner[next_i] or #b + 1
    local first, of_b = i + 1, k + 1
    while first < next_i and of_b < next_k and a[first] == b[of_b] do
      to[first], first, of_b = of_b, first + 1, of_b + 1
    end
    local last, last_of_b = next_i - 1, next_k - 1
    while last >= first and last_of_b >= of_b and a[last] == b[last_of_b] do
      to[last], last, last_of_b = last_of_b, last - 1, last_of_b - 1
    end
    to[next_i] = next_k
    i, k = next_i, next_k
  end
  local shift = 0
  for line = 1, #a do
    shift = to[line] and to[line] - line or shift
    to[line] = math.min(line + shift, math.max(#b, 1))
  end
  return function(line) return to[line] or line + shift end
end

return samelines
