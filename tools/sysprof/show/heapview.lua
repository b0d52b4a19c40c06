----------------------------------------------------------------------------
-- What a heap snapshot shows: sums by type, and who holds most.
--
-- The retained size of an object adds up all that would become garbage with it.
----------------------------------------------------------------------------

local array = require("sysprof.base.array")
local dominators = require("sysprof.model.dominators")
local heapfile = require("sysprof.read.heapfile")
local heapgrammar = require("sysprof.base.heapgrammar")
local heapnames = require("sysprof.show.heapnames")
local limits = require("sysprof.base.limits")
local sort = require("sysprof.base.sort")
local text = require("sysprof.base.text")

local G = heapgrammar
local PREFIX = 16		-- Bytes of a string's beginning.

local NUMBERS, DOUBLES = array.kind("uint32_t"), array.kind("double")

local PARTS = {
  [G.HPP_STATE] = "state of the VM", [G.HPP_STRINGS] = "table of strings", [G.HPP_BUFFER] = "buffer for strings",
  [G.HPP_JIT] = "buffers of the compiler", [G.HPP_CTYPES] = "types of the FFI", [G.HPP_LIGHTUD] = "light userdata",
  [G.HPP_MCODE] = "machine code",
}

local heapview = {}

-- Returns up to n items from 1 to count with the largest value(item), the largest first. Items without a value are
-- left out.
local function largest(count, n, value)
  local list, values, floor = {}, {}, 0
  for i = 1, count do
    local v = value(i)
    if v and v > floor then
      local at = #list < n and #list + 1 or n
      while at > 1 and values[at - 1] < v do
	list[at], values[at] = list[at - 1], values[at - 1]
	at = at - 1
      end
      list[at], values[at] = i, v
      if #list == n then floor = values[n] end
    end
  end
  return list
end

-- Returns the rows of a table of sums with the most bytes.
local function rows_of(sums, n)
  local list = {}
  for _, row in pairs(sums) do list[#list + 1] = row end
  sort(list, function(a, b)
    if a.bytes ~= b.bytes then return a.bytes > b.bytes end
    return a.name < b.name
  end)
  for i = #list, n + 1, -1 do list[i] = nil end
  return list
end

local function add(sums, name, bytes, count)
  local row = sums[name]
  if not row then
    row = { name = name, objects = 0, bytes = 0 }
    sums[name] = row
  end
  row.objects, row.bytes = row.objects + (count or 1), row.bytes + bytes
end

-- -- Parts of the view -----------------------------------------------------

local function add_types(view, snap, dom)
  local types = {}
  local live, garbage = { objects = 0, bytes = 0 }, { objects = 0, bytes = 0 }
  for tag, name in pairs(heapnames.TYPES) do
    types[tag] = { name = name, objects = 0, bytes = 0, garbage_objects = 0, garbage_bytes = 0 }
  end
  for i = 1, snap.objects do
    local row, bytes = types[snap.tag[i]], snap.size[i]
    if row and dom.number[i] ~= 0 then
      row.objects, row.bytes = row.objects + 1, row.bytes + bytes
      live.objects, live.bytes = live.objects + 1, live.bytes + bytes
    elseif row then
      row.garbage_objects, row.garbage_bytes = row.garbage_objects + 1, row.garbage_bytes + bytes
      garbage.objects, garbage.bytes = garbage.objects + 1, garbage.bytes + bytes
    end
  end
  for tag, row in pairs(types) do
    if row.objects + row.garbage_objects == 0 then types[tag] = nil end
  end
  view.types, view.live, view.garbage = rows_of(types, math.huge), live, garbage
end

local function add_parts(view, snap)
  view.parts, view.parts_bytes = {}, 0
  for kind, bytes in pairs(snap.parts) do
    view.parts[#view.parts + 1] = { name = PARTS[kind] or "others", bytes = bytes }
    if kind ~= G.HPP_MCODE then view.parts_bytes = view.parts_bytes + bytes end
  end
  sort(view.parts, function(a, b) return a.bytes > b.bytes or a.bytes == b.bytes and a.name < b.name end)
end

-- Returns a row of a single object.
local function row_of(snap, dom, names, i)
  return { address = heapnames.address(snap, i), what = heapnames.what(snap, i), bytes = snap.size[i],
	   retained = dom.retained[i], path = names.path(i) or "garbage",
	   used = snap.tag[i] == G.HPF_TAB and heapfile.table(snap, i).used or nil }
end

-- Types that hold others, and that a program names.
local HOLDERS = { [G.HPF_TAB] = true, [G.HPF_FUNC] = true, [G.HPF_THREAD] = true, [G.HPF_UDATA] = true }

local function add_objects(view, snap, dom, names, n)
  local function rows(value)
    local list = largest(snap.objects, n, value)
    names.expect(list)
    for k, i in ipairs(list) do list[k] = row_of(snap, dom, names, i) end
    return list
  end
  local tag, size, number, retained = snap.tag, snap.size, dom.number, dom.retained
  view.retained = rows(function(i) return HOLDERS[tag[i]] and number[i] ~= 0 and retained[i] or nil end)
  view.tables = rows(function(i) return tag[i] == G.HPF_TAB and number[i] ~= 0 and size[i] or nil end)
  view.strings = rows(function(i) return tag[i] == G.HPF_STR and number[i] ~= 0 and size[i] or nil end)
end

-- Strings by how they begin. Digits are alike: "session:17" is "session:#".
local function add_prefixes(view, snap, dom, n)
  local by_start, starts = {}, 0
  for i = 1, snap.no_strings and 0 or snap.objects do
    if snap.tag[i] == G.HPF_STR and dom.number[i] ~= 0 then
      local start = heapfile.beginning(snap, i, PREFIX)
      if not by_start[start] then
	if starts < limits.HEAP_PREFIXES then starts = starts + 1 else start = false end
      end
      add(by_start, start, snap.size[i])
    end
  end
  local sums = {}
  for start, row in pairs(by_start) do
    local name = start and text.short(start:gsub("%d+", "#"), PREFIX * 4) or "[others]"
    add(sums, name, row.bytes, row.objects)
  end
  view.prefixes = rows_of(sums, n)
end

local function add_closures(view, snap, dom, n)
  local count, bytes = array.zeros(NUMBERS, snap.objects + 1), array.zeros(DOUBLES, snap.objects + 1)
  for i = 1, snap.objects do
    if snap.tag[i] == G.HPF_FUNC and dom.number[i] ~= 0 then
      local proto = heapfile.proto_of(snap, i)
      count[proto], bytes[proto] = count[proto] + 1, bytes[proto] + snap.size[i]
    end
  end
  view.closures = {}
  for k, proto in ipairs(largest(snap.objects, n, function(i) return count[i] > 1 and bytes[i] or nil end)) do
    view.closures[k] = { name = heapnames.place(snap, proto), objects = count[proto], bytes = bytes[proto] }
  end
  array.free(count)
  array.free(bytes)
end

-- Returns where a coroutine stands.
local function stand(snap, i)
  local thread = heapfile.thread(snap, i)
  local place
  for _, frame in ipairs(thread.frames) do
    local fn = frame.line > 0 and frame.func ~= 0 and snap.tag[frame.func] == G.HPF_FUNC and
	       heapfile.func(snap, frame.func)
    if fn and fn.ffid == 0 then
      place = ("%s:%.0f"):format(select(3, heapnames.place(snap, fn.proto)) or "?", frame.line)
      break
    end
  end
  local state = thread.is_main and "main thread" or thread.is_running and "runs" or thread.status == 1 and "waits" or
		thread.status > 1 and "failed" or place and "has resumed another one" or "not begun, or ended"
  return place and ("%s at %s"):format(state, place) or state
end

local function add_coroutines(view, snap, dom, n)
  local sums = {}
  for i = 1, snap.objects do
    if snap.tag[i] == G.HPF_THREAD and dom.number[i] ~= 0 then add(sums, stand(snap, i), dom.retained[i]) end
  end
  view.coroutines = rows_of(sums, n)
end

-- -- The view --------------------------------------------------------------

-- Returns the view of a snapshot, with up to n rows in a list.
function heapview.of(snap, n)
  local dom = dominators.of(snap.objects + 1, snap.first, snap.to, snap.size)
  local names = heapnames.new(snap)
  local view = { pid = snap.pid, time = snap.time, total = snap.total, unknown = snap.unknown,
		 is_damaged = snap.is_damaged, is_cut = snap.is_cut, no_strings = snap.no_strings }
  add_types(view, snap, dom)
  add_parts(view, snap)
  add_objects(view, snap, dom, names, n)
  add_prefixes(view, snap, dom, n)
  add_closures(view, snap, dom, n)
  add_coroutines(view, snap, dom, n)
  return view
end

-- Returns the path to the object at an address: { pid=, object=, steps= }. A step is { address=, what=, bytes=,
-- retained=, path= }, the root first; garbage has none. nil: there is no such object.
function heapview.path(snap, address)
  local i = snap.find(address / 8)
  if i == 0 then return nil end
  local dom, names, steps = dominators.of(snap.objects + 1, snap.first, snap.to, snap.size), heapnames.new(snap), {}
  names.path(i, function(at, path)
    steps[#steps + 1] = { address = heapnames.address(snap, at), what = heapnames.what(snap, at), bytes = snap.size[at],
			  retained = dom.retained[at], path = path }
  end)
  return { pid = snap.pid, steps = steps,
	   object = { address = heapnames.address(snap, i), what = heapnames.what(snap, i), bytes = snap.size[i] } }
end

return heapview
