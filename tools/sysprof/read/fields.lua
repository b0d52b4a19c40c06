----------------------------------------------------------------------------
-- Fields of samples: the second weight, a text, and the thing that a sample begins.
--
-- An event has the fields that its SPF_EVENT describes. The first SPF_FIELD_COUNT is the
-- second weight of its samples, the first SPF_FIELD_THING the thing that each begins, with the
-- first SPF_FIELD_SIZE and SPF_FIELD_CYCLE (sysprof.read.things), the first SPF_FIELD_TEXT a
-- label with the field's name; others are passed over.
----------------------------------------------------------------------------

local G = require("sysprof.base.grammar")
local events = require("sysprof.model.events")
local limits = require("sysprof.base.limits")
local numbers = require("sysprof.read.numbers")
local things = require("sysprof.read.things")
local units = require("sysprof.model.units")

local id = numbers.id

-- Where the value of a field goes.
local NUMBERS = { [G.SPF_FIELD_COUNT] = "second", [G.SPF_FIELD_THING] = "number",
		  [G.SPF_FIELD_SIZE] = "size", [G.SPF_FIELD_CYCLE] = "cycle" }
local NAMES = { [G.SPF_FIELD_COUNT] = "count_name", [G.SPF_FIELD_THING] = "thing_name",
		[G.SPF_FIELD_TEXT] = "text_name" }

local fields = {}

-- Returns the fields of an event. kinds, names: lists from SPF_EVENT. old: the fields of the
-- same event that it had before, or nil.
function fields.new(kinds, names, old)
  local f = { n = #kinds,
	      keys = {},	-- Where the numbers go, by place; false: nowhere.
	      text = nil,	-- Place of the text, or nil.
	      count_name = nil, thing_name = nil, text_name = nil,	-- Of the fields, or nil.
	      -- Of the last sample.
	      second = nil, number = nil, size = nil, cycle = nil, text_id = 0,
	      things = old and old.things or things.new() }
  local seen = {}
  for i, kind in ipairs(kinds) do
    local is_first = not seen[kind]
    seen[kind] = true
    f.keys[i] = is_first and NUMBERS[kind] or false
    if is_first and kind == G.SPF_FIELD_TEXT then f.text = i end
    if is_first and NAMES[kind] then f[NAMES[kind]] = names[i] end
  end
  return f
end

-- Reads the fields of a sample. Returns the position behind them, or nil if they do not fit
-- before stop.
function fields.read(f, buf, pos, stop)
  for i = 1, f.n do
    local value
    value, pos = id(buf, pos, stop)
    if not value then return nil end
    local key = f.keys[i]
    if key then
      f[key] = value
    elseif i == f.text then
      f.text_id = value
    end
  end
  return pos
end

-- Counts the fields of a sample, which was counted in a slot. Returns false if there are too many things; false and a
-- sentence if a sum is too large.
function fields.keep(f, profile, slot, index, weight)
  local event = events.of_index(profile.session, index)
  if f.number and f.number > 0 and not things.begin(f.things, event, profile, slot, weight, f) then return false end
  if profile.spread and units.of(event.unit) == units.BYTES then
    profile.spread:draw(slot, weight, f.second, f.size, event.period)
  end
  if f.second and not profile:add_second(slot, f.second) then return false, limits.sentence("WEIGHT") end
  return true
end

return fields
