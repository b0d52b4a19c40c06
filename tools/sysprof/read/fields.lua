----------------------------------------------------------------------------
-- Fields of samples: the second weight, and things that begin and may end.
--
-- An event has the fields that its SPF_EVENT describes. The first SPF_FIELD_COUNT is the
-- second weight of its samples, the first SPF_FIELD_THING the thing that each begins, the first
-- SPF_FIELD_TEXT a label with the field's name; others are passed over. A thing is remembered
-- until it ends, or another sample has its number.
----------------------------------------------------------------------------

local G = require("sysprof.base.grammar")
local bytes = require("sysprof.base.bytes")
local events = require("sysprof.model.events")

local uleb = bytes.uleb
local EXACT_MAX = bytes.EXACT_MAX

local fields = {}

-- Returns the fields of an event. kinds, names: lists from SPF_EVENT. old: the fields of the
-- same event that it had before, or nil.
function fields.new(kinds, names, old)
  local f = { n = #kinds,
	      count = nil, count_name = nil,	-- Place and name of the second weight, or nil;
	      thing = nil, thing_name = nil,	-- the same of things.
	      text = nil, text_name = nil,	-- the same of texts.
	      second = 0, number = 0, text_id = 0,	-- Of the last sample.
	      -- Weights of the things that have not ended, by number.
	      weights = old and old.weights or {}, seconds = old and old.seconds or {} }
  for i = #kinds, 1, -1 do
    if kinds[i] == G.SPF_FIELD_COUNT then f.count, f.count_name = i, names[i] end
    if kinds[i] == G.SPF_FIELD_THING then f.thing, f.thing_name = i, names[i] end
    if kinds[i] == G.SPF_FIELD_TEXT then f.text, f.text_name = i, names[i] end
  end
  return f
end

-- Reads the fields of a sample. Returns the position behind them, or nil if they do not fit
-- before stop.
function fields.read(f, buf, pos, stop)
  for i = 1, f.n do
    local value
    value, pos = uleb(buf, pos)
    if pos > stop then return nil end
    if i == f.count or i == f.thing then
      if not (value < EXACT_MAX) then return nil end
      if i == f.count then f.second = value else f.number = value end
    elseif i == f.text then
      f.text_id = value
    end
  end
  return pos
end

-- A thing ends, if it is known. how: SPF_ENDED_*; what the reader does not know is dropped.
function fields.end_thing(f, event, how, number)
  local weight = f.weights[number]
  if not weight then return end
  local gone = how == G.SPF_ENDED_GONE
  events.end_thing(event, gone, weight, f.seconds[number] or 0)
  f.weights[number], f.seconds[number] = nil, nil
end

local function begin_thing(f, event, weight)
  local number = f.number
  fields.end_thing(f, event, G.SPF_ENDED_DROPPED, number)
  events.begin_thing(event, weight, f.second)
  f.weights[number] = weight
  if f.second > 0 then f.seconds[number] = f.second end
end

-- Counts the fields of a sample, which was counted in a slot. Returns false if a sum is too
-- large.
function fields.keep(f, profile, slot, index, weight)
  if f.thing and f.number > 0 then
    begin_thing(f, events.of_index(profile.session, index), weight)
  end
  return not f.count or profile:add_second(slot, f.second)
end

return fields
