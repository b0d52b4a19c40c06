----------------------------------------------------------------------------
-- Spelling suggestions: the word of a list that a user probably meant.
----------------------------------------------------------------------------

local suggest = {}

local WORD_BYTES = 40	-- Bytes of a word that gets a suggestion.
local SHORT_MIN = 2	-- Letters of a word that can be short for another one.

-- Returns how many letters must be inserted, removed, replaced, or exchanged with their neighbour,
-- to make b from a.
local function distance(a, b)
  local before, last = {}, {}
  for j = 0, #b do last[j] = j end
  for i = 1, #a do
    local row = { [0] = i }
    for j = 1, #b do
      local differs = a:byte(i) ~= b:byte(j)
      row[j] = math.min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (differs and 1 or 0))
      if differs and i > 1 and j > 1 and a:byte(i) == b:byte(j - 1) and a:byte(i - 1) == b:byte(j) then
	row[j] = math.min(row[j], before[j - 2] + 1)
      end
    end
    before, last = last, row
  end
  return last[#b]
end

-- Whether one word is short for another one: it begins with the same letter, and the other one has all its
-- letters in their order.
local function is_short_for(short, long)
  if #short < SHORT_MIN or #short >= #long or short:byte() ~= long:byte() then return false end
  local at = 1
  for i = 1, #short do
    at = long:find(short:sub(i, i), at, true)
    if not at then return false end
    at = at + 1
  end
  return true
end

-- Returns the word of a list that is nearest to a word, the first of equally near ones; nil if none is near.
-- A word of n letters may have n / 3 wrong ones. Else one of both must be short for the other. Upper case
-- is lower case.
function suggest.nearest(word, list)
  word = word:lower()
  if #word > WORD_BYTES then return nil end
  local nearest, wrong, short
  for _, name in ipairs(list) do
    local lower = name:lower()
    local most = math.max(#word, #lower) / 3
    local n = #lower <= WORD_BYTES and math.abs(#word - #lower) <= most and distance(word, lower)
    if n and n <= most and (not wrong or n < wrong) then nearest, wrong = name, n end
    if not short and (is_short_for(word, lower) or is_short_for(lower, word)) then short = name end
  end
  return nearest or short
end

return suggest
