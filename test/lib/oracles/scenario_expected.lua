----------------------------------------------------------------------------
-- Expected stacks of a scenario: parser of its source, and of its stacks as text.
--
-- scenario.lua describes the text of stacks.
----------------------------------------------------------------------------

local expected = {}

-- -- The scenario's source ----------------------------------------------------

-- Returns names of functions by line, and for each tag a set of lines.
function expected.read_source(path)
  local names, tags, number = {}, {}, 0
  for line in io.lines(path) do
    number = number + 1
    local code = line:gsub("%-%-.*", "")
    local name = code:match("function%s+([%w_.:]+)%s*%(") or
		 code:match("([%w_]+)%s*=%s*function%s*%(")
    if name then
      assert(not code:match("function.*function"), "two functions in a line")
      names[number] = name:match("[%w_]+$")
    end
    for tag in (line:match("%-%-( @.*)") or ""):gmatch(" @([%w_]+)") do
      tags[tag] = tags[tag] or {}
      tags[tag][number] = true
    end
  end
  return names, tags
end

-- -- Stacks ------------------------------------------------------------------

-- Splits a stack's text into items { name, tag, min, max }.
local function parse_stack(text)
  local items = {}
  for word in text:gmatch("%S+") do
    local min, max = 1, 1
    local body, from, to = word:match("^(.*){(%d+),?(%d*)}$")
    if body then
      word, min, max = body, tonumber(from), tonumber(to) or tonumber(from)
    elseif word:match("[?]$") then
      word, min = word:sub(1, -2), 0
    end
    local name, tag = word:match("^(.+)@([%w_]+)$")
    items[#items + 1] = { name = name or word, tag = tag, min = min, max = max }
  end
  return items
end

-- The same stack on each of the two sides of a sample.
function expected.stack_sides(text)
  local lua, joined = {}, {}
  for _, item in ipairs(parse_stack(text)) do
    local kind, name = item.name:match("^([cC]):(.+)$")
    if kind ~= "c" then lua[#lua + 1] = item end
    if item.name ~= "[C]" then
      joined[#joined + 1] = { name = name or item.name, tag = item.tag,
			      min = item.min, max = item.max }
    end
  end
  return { text = text, lua = lua, joined = joined }
end

local function frame_fits(item, frame, tags)
  if item.name ~= frame.name then return false end
  if not item.tag or frame.line == 0 then return true end
  local lines = tags[item.tag]
  if not lines then return frame.line == tonumber(item.tag) end
  return lines[frame.line]
end

-- Do the items from i on fit the frames from k on? n: number of frames that item i has
-- taken.
local function fits(items, frames, tags, i, k, n)
  local item = items[i]
  if not item then return k > #frames end
  if n < item.max and frames[k] and frame_fits(item, frames[k], tags) and
     fits(items, frames, tags, i, k + 1, n + 1) then
    return true
  end
  return n >= item.min and fits(items, frames, tags, i + 1, k, 0)
end

-- Are the frames those of one side of an expected stack?
function expected.fits(items, frames, tags)
  return fits(items, frames, tags, 1, 1, 0)
end

return expected
