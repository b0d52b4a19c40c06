----------------------------------------------------------------------------
-- pprof's format: a gzip-compressed profile.proto.
--
-- A frame is a location: a line of a Lua function, or an address of host code. Functions
-- have the names of the other formats, so the sums are the same. Each stack, thread, state
-- and event gives one sample. It has the values of its event and of the sum that this is a part
-- of, and zeros for the others.
----------------------------------------------------------------------------

local ffi = require("ffi")
local events = require("sysprof.model.events")
local G = require("sysprof.base.grammar")
local gzip = require("sysprof.formats.gzip")
local limits = require("sysprof.base.limits")
local places = require("sysprof.names.places")
local protobuf = require("sysprof.formats.protobuf")
local selfreport = require("sysprof.show.selfreport")
local text = require("sysprof.base.text")
local threads = require("sysprof.names.threads")
local units = require("sysprof.model.units")

local KEPT = 1/8	-- Of the frames that a pass may visit; here all are kept.

local put_number, put_bytes = protobuf.number, protobuf.bytes

local pprof = {}

-- Fields of profile.proto, by message.
local PROFILE = { sample_type = 1, sample = 2, mapping = 3, location = 4,
		  ["function"] = 5, string_table = 6, time_nanos = 9,
		  duration_nanos = 10, period_type = 11, period = 12,
		  comment = 13, default_sample_type = 14 }
local VALUE_TYPE = { type = 1, unit = 2 }
local SAMPLE = { location_id = 1, value = 2, label = 3 }
local LABEL = { key = 1, str = 2 }
local MAPPING = { id = 1, memory_start = 2, memory_limit = 3, filename = 5,
		  build_id = 6, has_functions = 7 }
local LOCATION = { id = 1, mapping_id = 2, address = 3, line = 4 }
local LINE = { function_id = 1, line = 2 }
local FUNCTION = { id = 1, name = 2, system_name = 3, filename = 4, start_line = 5 }

-- -- Parts -----------------------------------------------------------------

-- Returns the number of a string in the string table.
local function string_id(w, s)
  local id = w.string_ids[s]
  if not id then
    id = #w.strings
    w.strings[id + 1], w.string_ids[s] = s, id
  end
  return id
end

-- Adds a message with numbers, { field, number, ... }, to the profile.
local function put_fields(message, list)
  for i = 1, #list, 2 do put_number(message, list[i], list[i + 1]) end
end

local function put_message(w, field, list)
  local m = {}
  put_fields(m, list)
  put_bytes(w.out, field, table.concat(m))
end

local function value_type(w, field, name, unit)
  put_message(w, field, { VALUE_TYPE.type, string_id(w, name),
			  VALUE_TYPE.unit, string_id(w, unit) })
end

-- Name and place identify a function; in the other formats, the name does.
local function function_id(w, entry, place)
  local by_place = w.functions[entry.plain]
  if not by_place then
    by_place = {}
    w.functions[entry.plain] = by_place
  end
  local key = place.chunk and place.chunk .. ":" .. place.first or ""
  local id = by_place[key]
  if not id then
    id = w.function_count + 1
    w.function_count, by_place[key] = id, id
    put_message(w, PROFILE["function"], {
      FUNCTION.id, id,
      FUNCTION.name, string_id(w, entry.text),
      FUNCTION.system_name, string_id(w, entry.plain.mangled or ""),
      FUNCTION.filename, string_id(w, place.file or place.chunk or ""),
      FUNCTION.start_line, place.first or 0,
    })
  end
  return id
end

-- Returns the id of the location of a part of a joined stack.
local function location_id(w, part)
  if type(part) == "number" then part = math.abs(part) end
  local id = w.locations[part]
  if id then return id end
  id = w.location_count + 1
  w.location_count, w.locations[part] = id, id
  local place, line = w.place(part), {}
  put_fields(line, {
    LINE.function_id, function_id(w, w.symbols:name(part), place),
    LINE.line, place.line or place.first or 0,
  })
  local m = {}
  put_fields(m, { LOCATION.id, id, LOCATION.mapping_id, place.module or 0,
		  LOCATION.address, place.addr or 0 })
  put_bytes(m, LOCATION.line, table.concat(line))
  put_bytes(w.out, PROFILE.location, table.concat(m))
  return id
end

-- Modules have the numbers that places gives.
local function put_mappings(w, profile)
  for id, m in ipairs(profile.modules) do
    put_message(w, PROFILE.mapping, {
      MAPPING.id, id,
      MAPPING.memory_start, m.first, MAPPING.memory_limit, m.last,
      MAPPING.filename, string_id(w, text.clean(m.path)),
      MAPPING.build_id, string_id(w, text.hex_bytes(m.buildid)),
      -- Names are complete: pprof need not look for better ones.
      MAPPING.has_functions, 1,
    })
  end
end

local function label(w, key, value)
  local m = {}
  put_fields(m, { LABEL.key, string_id(w, key), LABEL.str, string_id(w, value) })
  return table.concat(m)
end

-- -- Values ----------------------------------------------------------------

-- What other tools call an event.
local KNOWN_NAMES = { live = "inuse" }

-- Each event has a number of samples and a sum. One with second weights has these in place of
-- the number: its samples stand for very different amounts. The names are those that tools
-- know, where they can be: "samples" and "cpu" of the first event, "alloc_objects",
-- "alloc_space", "inuse_objects" and "inuse_space". Returns a list of { event=, first= (place of
-- its first value), samples=, weight= (names), unit=, scale= }, and the number of values.
local function columns(profile)
  local list, has_cpu = {}, false
  for i, e in ipairs(events.list(profile)) do
    local unit = units.of(e.unit)
    list[i] = { event = e, first = 2 * i - 1,
		samples = i == 1 and "samples" or e.name .. "-samples",
		weight = unit.is_cpu and not has_cpu and "cpu" or e.name,
		unit = unit.pprof, scale = unit.pprof_scale }
    if e.second then
      local name = KNOWN_NAMES[e.name] or e.name
      list[i].samples = name .. "_" .. e.second
      list[i].weight = name .. (unit.pprof_suffix or "")
    end
    has_cpu = has_cpu or unit.is_cpu
  end
  -- There have to be some.
  list[1] = list[1] or { samples = "samples", weight = "cpu", unit = "nanoseconds" }
  return list, 2 * #list
end

local function put_types(w, view, list)
  local default = list[1].samples
  for _, column in ipairs(list) do
    value_type(w, PROFILE.sample_type, column.samples, "count")
    value_type(w, PROFILE.sample_type, column.weight, column.unit)
    if column.event and column.event.key == view.event.key then
      default = view.weight == "samples" and not column.event.second and column.samples or
		view.weight == "second" and column.samples or column.weight
    end
  end
  put_number(w.out, PROFILE.default_sample_type, string_id(w, default))
end

-- Returns the key of a label as servers take it: they refuse profiles with others.
local function key_of(key)
  local clean = key:gsub("[^%w_]", "_")
  return clean:find("^[%a_]") and clean or "_" .. clean
end

local function put_samples(w, view, list, count)
  local p, ids, values, columns_of = view.profile, {}, {}, {}
  for _, column in ipairs(list) do
    for e in pairs(column.event and column.event.members or {}) do
      columns_of[e] = columns_of[e] or {}
      table.insert(columns_of[e], column)
    end
  end
  for i = 1, count do values[i] = 0 end
  view:each_joined(function(parts, n, _, slot)
    -- The leaf is the first.
    for i = 1, n do ids[i] = location_id(w, parts[n + 1 - i]) end
    local s, m = p.slots[slot], {}
    for _, column in ipairs(columns_of[s.event]) do
      local at, event = column.first, column.event
      values[at] = event.second and s.second or s.samples
      values[at + 1] = s.weight * event.members[s.event] * column.scale
      if values[at + 1] >= limits.PPROF_VALUE then view.too_large = view.too_large + 1 end
    end
    protobuf.numbers(m, SAMPLE.location_id, ids, n)
    protobuf.numbers(m, SAMPLE.value, values, #values)
    for _, column in ipairs(columns_of[s.event]) do
      values[column.first], values[column.first + 1] = 0, 0
    end
    put_bytes(m, SAMPLE.label, label(w, "thread", threads.text(s.thread)))
    put_bytes(m, SAMPLE.label, label(w, "vmstate", selfreport.state_name(s.state)))
    for _, pair in ipairs(s.labels or {}) do
      put_bytes(m, SAMPLE.label, label(w, key_of(pair[1]), text.clean(pair[2])))
    end
    put_bytes(w.out, PROFILE.sample, table.concat(m))
  end, true, true, KEPT)
end

-- -- Profile ---------------------------------------------------------------

-- Returns the real time of the longest session in microseconds; 0 if it is not known.
local function longest(profile)
  local us = 0
  for _, session in ipairs(profile.sessions) do us = math.max(us, session.counters[G.SPF_COUNTER_WALL_US] or 0) end
  return us
end

local function put_head(w, view)
  local p, event = view.profile, view.event
  local list, count = columns(p)
  put_types(w, view, list)
  if #event.periods == 1 then
    value_type(w, PROFILE.period_type, event.name, units.of(event.unit).pprof)
    put_number(w.out, PROFILE.period, math.floor(event.periods[1]))
  end
  -- More than a double holds.
  local start = selfreport.start_time(p) or 0
  put_number(w.out, PROFILE.time_nanos, ffi.cast("uint64_t", start) * 1000000000ULL)
  put_number(w.out, PROFILE.duration_nanos, math.max(p.end_time, longest(p)) * 1000)
  local comments = {}
  for i, line in ipairs(selfreport.lines(p)) do
    comments[i] = string_id(w, line[1] .. ": " .. line[2])
  end
  protobuf.numbers(w.out, PROFILE.comment, comments, #comments)
  return list, count
end

function pprof.render(view, write)
  local w = {
    out = {},
    strings = { "" }, string_ids = { [""] = 0 },
    functions = {}, function_count = 0,	-- Ids by name and place.
    locations = {}, location_count = 0,	-- Ids by part.
    place = places.new(view.profile), symbols = view.symbols,
  }
  local list, count = put_head(w, view)
  put_mappings(w, view.profile)
  put_samples(w, view, list, count)
  for _, s in ipairs(w.strings) do put_bytes(w.out, PROFILE.string_table, s) end
  write(gzip.compress(table.concat(w.out), "sysprof for LuaJIT"))
end

return pprof
