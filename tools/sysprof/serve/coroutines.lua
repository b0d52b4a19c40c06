----------------------------------------------------------------------------
-- Coroutines of programs as a profile of pprof: one sample for each stack, its value is their number.
----------------------------------------------------------------------------

local gzip = require("sysprof.formats.gzip")
local protobuf = require("sysprof.formats.protobuf")
local text = require("sysprof.base.text")

local put_number, put_bytes = protobuf.number, protobuf.bytes

-- Fields of profile.proto, by message.
local PROFILE = { sample_type = 1, sample = 2, location = 4, ["function"] = 5, string_table = 6, time_nanos = 9,
		  comment = 13 }
local VALUE_TYPE = { type = 1, unit = 2 }
local SAMPLE = { location_id = 1, value = 2, label = 3 }
local LABEL = { key = 1, str = 2 }
local LOCATION = { id = 1, line = 4 }
local LINE = { function_id = 1, line = 2 }
local FUNCTION = { id = 1, name = 2, filename = 4, start_line = 5 }

local coroutines = {}

-- Returns a message of numbers: { field, number, ... }.
local function message(list)
  local m = {}
  for i = 1, #list, 2 do put_number(m, list[i], list[i + 1]) end
  return table.concat(m)
end

-- Writes a profile of folded stacks, whose last frame is the state in brackets. comment: a sentence, or nil.
function coroutines.render(folded, comment, write)
  local out, strings, string_ids, ids = {}, { "" }, { [""] = 0 }, {}
  local function string_id(s)
    local id = string_ids[s]
    if not id then
      id = #strings
      strings[id + 1], string_ids[s] = s, id
    end
    return id
  end
  -- A frame is a function and a location of the same number.
  local count = 0
  local function frame_id(frame)
    if ids[frame] then return ids[frame] end
    count = count + 1
    ids[frame] = count
    local before, first = frame:match("^(.*):(%d+)%)$")
    local _, at = (before or ""):find(" (", 1, true)
    local file = at and at < #before and before:sub(at + 1) or nil
    first = file and first
    first = #(first or "") < 10 and tonumber(first) or 0
    put_bytes(out, PROFILE["function"], message { FUNCTION.id, count, FUNCTION.name, string_id(frame),
						  FUNCTION.filename, string_id(file or ""), FUNCTION.start_line, first })
    local location = { message { LOCATION.id, count } }
    put_bytes(location, LOCATION.line, message { LINE.function_id, count, LINE.line, first })
    put_bytes(out, PROFILE.location, table.concat(location))
    return count
  end
  put_bytes(out, PROFILE.sample_type, message { VALUE_TYPE.type, string_id("coroutine"),
					     VALUE_TYPE.unit, string_id("count") })
  for line in folded:gmatch("[^\n]+") do
    local stack, n = line:match("^(.*) (%d+)$")
    local frames, state = {}, nil
    for frame in (stack or ""):gmatch("[^;]+") do frames[#frames + 1] = text.clean(frame) end
    if frames[1] and frames[#frames]:find("^%[.*%]$") then state = table.remove(frames):sub(2, -2) end
    if stack and #n < 10 then
      local sample, locations = {}, {}
      for i = #frames, 1, -1 do locations[#locations + 1] = frame_id(frames[i]) end
      protobuf.numbers(sample, SAMPLE.location_id, locations, #locations)
      protobuf.numbers(sample, SAMPLE.value, { tonumber(n) }, 1)
      if state then
	put_bytes(sample, SAMPLE.label, message { LABEL.key, string_id("state"), LABEL.str, string_id(state) })
      end
      put_bytes(out, PROFILE.sample, table.concat(sample))
    end
  end
  put_number(out, PROFILE.time_nanos, os.time() * 1000000000ULL)
  if comment then put_number(out, PROFILE.comment, string_id(comment)) end
  for _, s in ipairs(strings) do put_bytes(out, PROFILE.string_table, s) end
  write(gzip.compress(table.concat(out), "sysprof for LuaJIT"))
end

return coroutines
