----------------------------------------------------------------------------
-- Coroutines of programs as a profile of pprof: one sample for each stack, its value is their number.
----------------------------------------------------------------------------

local gzip = require("sysprof.formats.gzip")
local limits = require("sysprof.base.limits")
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

-- Returns a profile of folded stacks, whose last frame is the state in brackets; and what is left out, or nil. comment:
-- a sentence, or nil.
function coroutines.render(folded, comment)
  local out, strings, string_ids, ids = {}, { "" }, { [""] = 0 }, {}
  local left_out, all = nil, 0
  local function string_id(s)
    local id = string_ids[s]
    if not id then
      id = #strings
      strings[id + 1], string_ids[s] = s, id
    end
    return id
  end
  -- A frame is a function and a location of the same number. Returns nil if there are too many.
  local count = 0
  local function frame_id(raw)
    if ids[raw] then return ids[raw] end
    if count >= limits.LIST_NAMES then
      left_out = limits.sentence("LIST_NAMES")
      return nil
    end
    count = count + 1
    ids[raw] = count
    local frame = text.short(raw, limits.NAME)
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
  -- Returns the frames of a stack, or nil if there are too many.
  local function frames_of(stack)
    local frames, n = {}, 0
    for frame in stack:gmatch("[^;]+") do
      n = n + 1
      frames[n] = frame
      if all + n > limits.LIST_FRAMES then
	left_out = limits.sentence("LIST_FRAMES")
	return nil
      end
    end
    all = all + math.max(n, 1)
    return frames
  end
  -- Returns the ids of frames, innermost first; or nil.
  local function ids_of(frames)
    local locations, n = {}, #frames
    for i = n, 1, -1 do
      local id = frame_id(frames[i])
      if not id then return nil end
      locations[n - i + 1] = id
    end
    return locations
  end
  put_bytes(out, PROFILE.sample_type, message { VALUE_TYPE.type, string_id("coroutine"),
					     VALUE_TYPE.unit, string_id("count") })
  for line in folded:gmatch("[^\n]+") do
    local stack, n = line:match("^(.*) (%d+)$")
    local frames, state = not left_out and frames_of(stack or ""), nil
    if not frames then break end
    if frames[1] and frames[#frames]:find("^%[.*%]$") then
      state = text.short(table.remove(frames):sub(2, -2), limits.NAME)
    end
    local locations = ids_of(frames)
    if stack and #n < 10 and locations then
      local sample = {}
      protobuf.numbers(sample, SAMPLE.location_id, locations, #locations)
      protobuf.numbers(sample, SAMPLE.value, { tonumber(n) }, 1)
      if state then
	put_bytes(sample, SAMPLE.label, message { LABEL.key, string_id("state"), LABEL.str, string_id(state) })
      end
      put_bytes(out, PROFILE.sample, table.concat(sample))
    end
  end
  if comment or left_out then
    local missing = comment and left_out and comment .. "; " .. left_out or comment or left_out
    protobuf.numbers(out, PROFILE.comment, { string_id("missing: " .. missing) }, 1)
  end
  put_number(out, PROFILE.time_nanos, os.time() * 1000000000ULL)
  for _, s in ipairs(strings) do put_bytes(out, PROFILE.string_table, s) end
  return gzip.compress(table.concat(out), "sysprof for LuaJIT"), left_out
end

return coroutines
