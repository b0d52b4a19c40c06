----------------------------------------------------------------------------
-- Sentences of several sessions in one text: those that differ in their figures only stand once, with ranges.
--
-- Each thread has a session, and meets the same limit with other figures.
----------------------------------------------------------------------------

local limits = require("sysprof.base.limits")
local metanumber = require("sysprof.model.metanumber")

local WORD = "[%w_.=/-]+"	-- A figure is a whole word: hz=100 and r01c2 are names.
local BETWEEN = ". "

local sentences = {}
local methods = {}
local mt = { __index = methods }

-- Returns what is alike in sentences that differ in their figures, and the figures.
local function parts(sentence)
  local figures = {}
  local alike = sentence:gsub(WORD, function(word)
    if not metanumber(word) then return nil end
    figures[#figures + 1] = word
    return "\0"
  end)
  return #figures .. alike, figures
end

-- Returns the first of the sentences that are alike, with ranges.
local function with_ranges(one)
  local i = 0
  return (one.text:gsub(WORD, function(word)
    if not metanumber(word) then return nil end
    i = i + 1
    return one.least[i] ~= one.most[i] and one.least[i] .. " to " .. one.most[i] or word
  end))
end

-- Widens the ranges of a sentence.
local function widen(one, figures)
  for i, word in ipairs(figures) do
    local n = metanumber(word)
    if n < metanumber(one.least[i]) then one.least[i] = word end
    if n > metanumber(one.most[i]) then one.most[i] = word end
  end
end

local function add_one(self, sentence)
  local alike, figures = parts(sentence)
  local one = self.by_alike[alike]
  if one then
    widen(one, figures)
  elseif self.bytes < limits.META_LIST then
    one = { text = sentence, least = figures, most = { unpack(figures) } }
    self.list[#self.list + 1], self.by_alike[alike], self.bytes = one, one, self.bytes + #sentence
  end
end

-- Adds the sentences of a session. Returns the text of all sessions.
function methods:add(text)
  local from = 1
  repeat
    local at = text:find(BETWEEN, from, true)
    add_one(self, text:sub(from, (at or 0) - 1))
    from = at and at + #BETWEEN
  until not at
  local shown = {}
  for i, one in ipairs(self.list) do shown[i] = with_ranges(one) end
  return table.concat(shown, BETWEEN)
end

-- Returns an object for the sentences of a first session.
function sentences.new(text)
  local self = setmetatable({ list = {}, by_alike = {}, bytes = 0 }, mt)
  self:add(text)
  return self
end

return sentences
