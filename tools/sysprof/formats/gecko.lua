----------------------------------------------------------------------------
-- Gecko profile format, for the Firefox Profiler.
--
-- Version 24, which the profiler upgrades; times are in milliseconds. Each thread has its
-- samples in order of time with their CPU time, so the timeline shows load; waits have none. Lua frames
-- count as script code: the profiler's filter "JavaScript" shows Lua alone.
----------------------------------------------------------------------------

local limits = require("sysprof.base.limits")
local places = require("sysprof.names.places")
local selfreport = require("sysprof.show.selfreport")
local stacktree = require("sysprof.show.stacktree")
local text = require("sysprof.base.text")
local threads = require("sysprof.names.threads")
local units = require("sysprof.model.units")

local gecko = { needs_timeline = true }	-- Shows samples one by one.

local VERSION = 24
local FILE_MAX = limits.NAME_PART

-- Categories: name, colour of the profiler. "Other" is required.
local CATEGORIES = {
  { "Other", "grey" }, { "Lua, interpreted", "green" }, { "Lua, compiled", "blue" },
  { "Lua builtin", "lightblue" }, { "C", "orange" }, { "VM", "red" },
  { "No symbol", "purple" }, { "Waiting", "transparent" },
}
local CATEGORY_OF = { marker = 0, lua = 1, compiled = 2, builtin = 3, c = 4, vm = 5,
		      unknown = 6, waiting = 7 }
local IMPLEMENTATION = { lua = "interpreter", compiled = "jit" }

local PASS = 4	-- Frames of a view that a sample counts for, where a pass looks at it.

-- -- Strings and frames ----------------------------------------------------

-- Returns a function that numbers texts from 0, and their list.
local function interner()
  local number, list = {}, {}
  return function(s)
    local id = number[s]
    if not id then
      id = #list
      number[s], list[id + 1] = id, text.json(s)
    end
    return id
  end, list
end

-- Does a name end in " (source:line)"?
local function has_place(name)
  local before = name:match("^(.*):%d+%)$")
  return before ~= nil and before:find(" (", 1, true) ~= nil
end

-- The profiler finds out what a frame is by its text: "name (source:line)" is
-- a function of a script, "name (in file)" one of a loaded file.
local function location(profile, entry, place)
  local name = entry.text
  local module = place.module and profile.modules[place.module]
  local file = module and text.short(text.file_name(module.path) or "", FILE_MAX)
  if place.first then
    if has_place(name) then return name end
    local source = places.module_name(profile, place, entry)
    return ("%s (%s:%.0f)"):format(name, source, place.first)
  elseif file and file ~= "" and not file:find(")", 1, true) then
    return ("%s (in %s)"):format(name, file)
  end
  -- Any other name must not look like one of these.
  return (name:find("[%d)]$") or name:find("%d%]$")) and name .. " " or name
end

-- Returns a function that numbers frames from 1, and their rows.
local function framer(view, string_id)
  local place_of, by_part, rows = places.new(view.profile), {}, {}
  return function(part)
    local id = by_part[part]
    if id then return id end
    local e, place = view.symbols:name(part), place_of(part)
    id = #rows + 1
    by_part[part] = id
    local implementation = IMPLEMENTATION[e.kind]
    rows[id] = ("[%d,%s,0,%s,null,%s,null,%d,0]"):format(
      string_id(location(view.profile, e, place)),
      (implementation or e.kind == "builtin") and "true" or "false",
      implementation and string_id(implementation) or "null",
      place.line and ("%.0f"):format(place.line) or "null", CATEGORY_OF[e.kind])
    return id
  end, rows
end

-- -- Threads ---------------------------------------------------------------

local function write_table(write, name, schema, rows)
  write(('"%s":{"schema":{%s},"data":[\n'):format(name, schema))
  for i, row in ipairs(rows) do write(i > 1 and ",\n" .. row or row) end
  write("\n]}")
end

local function stack_rows(tree)
  local rows = {}
  for node = 1, tree:count() do
    local up = tree:parent(node)
    rows[node] = ("[%s,%d]"):format(up > 0 and ("%d"):format(up - 1) or "null",
				    tree:frame(node) - 1)
  end
  return rows
end

-- Whether samples of an event, or of a part of a sum, measure CPU time.
local function has_cpu(event)
  for e in pairs(event.members) do
    if units.of(e.unit).is_cpu then return true end
  end
  return false
end

-- Rows of samples are written as they come: there can be many. Only CPU time has
-- a column. Returns how many there are.
local function write_samples(write, tree, thread)
  local slots, comma, n = tree.view.profile.slots, "", 0
  local is_cpu = has_cpu(tree.view.event)
  write(('"samples":{"schema":{"stack":0,"time":1,%s},"data":[\n'):format(
    is_cpu and '"threadCPUDelta":2,"responsiveness":3' or '"responsiveness":2'))
  for time, weight, node, slot in tree:samples() do
    if slots:thread(slot) == thread then
      write((is_cpu and "%s[%d,%.3f,%.0f]" or "%s[%d,%.3f]")
	    :format(comma, node - 1, time / 1e3, units.of(slots:event(slot).unit).is_cpu and weight or 0))
      comma, n = ",\n", n + 1
    end
  end
  write("\n]}")
  return n
end

-- The profiler knows processes by numbers.
local function pid_of(profile, thread)
  local pid = threads.pid(profile, thread):match("^%d%d?%d?%d?%d?%d?%d?%d?%d?$") or "0"
  return tostring(tonumber(pid))
end

local function write_thread(write, tree, thread, shared)
  write(('{"name":%s,"processType":"default","processName":%s,' ..
	 '"pid":%s,"tid":%.0f,"registerTime":0,"unregisterTime":null,\n')
	:format(text.json(threads.title(thread)), shared.process,
		pid_of(tree.view.profile, thread), thread.tid))
  write('"markers":{"schema":{"name":0,"startTime":1,"endTime":2,"phase":3,' ..
	'"category":4,"data":5},"data":[]},\n')
  local n = write_samples(write, tree, thread)
  write(",\n")
  write_table(write, "frameTable", '"location":0,"relevantForJS":1,"innerWindowID":2,' ..
	      '"implementation":3,"optimizations":4,"line":5,"column":6,"category":7,' ..
	      '"subcategory":8', shared.frames)
  write(",\n")
  write_table(write, "stackTable", '"prefix":0,"frame":1', shared.stacks)
  write(',\n"stringTable":[' .. shared.strings .. "]}")
  return n
end

-- Writes the threads for which there is room: each has the tables of all, and takes a pass over all samples.
local function write_threads(write, tree, shared)
  local view, all, written = tree.view, 0, 0
  for _ in tree:samples() do all = all + 1 end
  local steps, room = view.frame_room / PASS, view.text_room
  for i, thread in ipairs(tree:threads()) do
    if i > 1 and (steps < all or room < shared.bytes) then break end
    steps, room = steps - all, room - shared.bytes
    write(i > 1 and ",\n" or "\n")
    written = written + write_thread(write, tree, thread, shared)
  end
  view:leave_out(all - written)
end

-- -- Profile ---------------------------------------------------------------

local function write_meta(write, view, title)
  local p, event, categories = view.profile, view.event, {}
  local unit = units.of(event.unit)
  for i, c in ipairs(CATEGORIES) do
    categories[i] = ('{"name":"%s","color":"%s","subcategories":["Other"]}')
		    :format(c[1], c[2])
  end
  write(('"meta":{"version":%d,"interval":%.6f,"startTime":%.0f,"shutdownTime":null,' ..
	 '"processType":0,"product":%s,"stackwalk":1,"debug":0,"gcpoison":0,' ..
	 '"asyncstack":0,"presymbolicated":true,\n')
	:format(VERSION, (unit.is_time and event.periods[1] or 1e6) / 1e6,
		(selfreport.start_time(p) or 0) * 1e3, title))
  write(('"sampleUnits":{"time":"ms","eventDelay":"ms"%s},\n')
	:format(has_cpu(event) and ',"threadCPUDelta":"\194\181s"' or ""))
  write(('"categories":[%s],\n"markerSchema":[]},\n')
	:format(table.concat(categories, ",")))
end

function gecko.render(view, write)
  local title = text.json(text.clean(view.options.title or "sysprof"))
  local string_id, strings = interner()
  local frame_of, frames = framer(view, string_id)
  local tree = stacktree.new(view, frame_of)
  local shared = { process = title, strings = table.concat(strings, ",\n"), frames = frames,
		   stacks = stack_rows(tree) }
  shared.bytes = #shared.strings
  for _, rows in ipairs { shared.frames, shared.stacks } do
    for _, row in ipairs(rows) do shared.bytes = shared.bytes + #row end
  end
  write("{")
  write_meta(write, view, title)
  write('"libs":[],"pausedRanges":[],"processes":[],\n"threads":[')
  write_threads(write, tree, shared)
  write("\n]}\n")
end

return gecko
