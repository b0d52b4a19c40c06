----------------------------------------------------------------------------
-- Fields of samples: the second weight.
--
-- An event has the fields that its SPF_EVENT describes. The first SPF_FIELD_COUNT is the
-- second weight of its samples; others are passed over.
----------------------------------------------------------------------------

local G = require("sysprof.base.grammar")
local bytes = require("sysprof.base.bytes")

local uleb = bytes.uleb
local EXACT_MAX = bytes.EXACT_MAX

local fields = {}

-- The fields of one event: { n, count, second }. kinds, names: lists from SPF_EVENT. count:
-- place of the second weight, or nil. second: its value in the last sample.
function fields.new(kinds, names)
  local f = { n = #kinds, count = nil, name = nil, second = 0 }
  for i = #kinds, 1, -1 do
    if kinds[i] == G.SPF_FIELD_COUNT then f.count, f.name = i, names[i] end
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
    if i == f.count then
      if not (value < EXACT_MAX) then return nil end
      f.second = value
    end
  end
  return pos
end

-- Counts the fields of a sample in its slot. Returns false if a sum is too large.
function fields.keep(f, profile, slot)
  return not f.count or profile:add_second(slot, f.second)
end

return fields
