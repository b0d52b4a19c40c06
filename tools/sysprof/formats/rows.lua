----------------------------------------------------------------------------
-- Rows of tables: what each function, line, module, state, thread, type, age or label has of the samples.
--
-- Self counts samples in the row itself. Total counts samples in it or in its callees; a recursive
-- function counts once per sample. Marks such as [coroutine] are rows too, except among modules. A stack that
-- nobody has seen is a row by its reason, also among Lua functions and states of the VM.
----------------------------------------------------------------------------

local G = require("sysprof.base.grammar")
local join = require("sysprof.show.join")
local labels = require("sysprof.model.labels")
local leafwork = require("sysprof.model.leafwork")
local places = require("sysprof.names.places")
local selfreport = require("sysprof.show.selfreport")
local slots = require("sysprof.model.slots")
local sort = require("sysprof.base.sort")
local text = require("sysprof.base.text")
local threads = require("sysprof.names.threads")
local top_waits = require("sysprof.formats.top_waits")
local work = require("sysprof.names.work")

local PROFILER = work.name(G.SPF_WORK_PROFILER)
local NO_LUA = { text = "[no Lua function]", kind = "marker" }	-- Row of stacks without one.

local rows = { NO_LUA = NO_LUA }

-- -- What a row stands for -------------------------------------------------

-- Each returns a function that gives the entry of a part of a joined stack: a
-- table that stands for the row, with text and kind.
local grouping = {}

grouping["function"] = function(view)
  return function(part) return view.symbols:name(part).plain end
end

grouping.line = grouping["function"]

-- C and VM code belongs to the Lua function that has called it.
grouping.lua = function(view)
  return function(part)
    local plain = view.symbols:name(part).plain
    return plain.kind == "lua" and plain or nil
  end
end

grouping.module = function(view)
  local place_of, module_of = places.new(view.profile), {}
  local by_text = {}
  return function(part)
    local entry = view.symbols:name(part)
    local found = module_of[part]
    if not found then
      local name = places.module_name(view.profile, place_of(part), entry)
      found = by_text[name] or { text = name, kind = entry.plain.kind }
      by_text[name], module_of[part] = found, found
    end
    return found
  end
end

-- -- Counting --------------------------------------------------------------

local function new_row(entry)
  return { entry = entry, self = 0, total = 0, compiled = 0,
	   stamp = 0, compiled_stamp = 0, slots = {} }
end

local function add_self(row, v, slot)
  row.self, row.slots[#row.slots + 1] = row.self + v, slot
end

local function row_of(list, entry)
  local row = list[entry]
  if not row then
    row = new_row(entry)
    list[entry], list[#list + 1] = row, row
  end
  return row
end

-- Returns a function that gives the entry of a row with the reason of its samples.
local function reasons_of(view)
  local known = {}
  return function(entry, reason)
    local its = known[entry] or {}
    known[entry] = its
    its[reason] = its[reason] or { text = entry.text .. " " .. view.symbols:name(reason).text, kind = entry.kind }
    return its[reason]
  end
end

local function count_frames(view, by)
  local list, sum, stamp, entry_of = {}, 0, 0, grouping[by](view)
  local with_reason = reasons_of(view)
  view:each_joined(function(parts, n, v, slot)
    stamp, sum = stamp + 1, sum + v
    local reason = n > 1 and parts[n] == view:reason(slot) and parts[n]
    if reason then n = n - 1 end
    local leaf, is_row
    for i = 1, n do
      local part = parts[i]
      local entry = (by ~= "module" or part ~= join.COROUTINE or n == 1) and entry_of(part)
      if entry and reason and i == n and by ~= "module" then entry = with_reason(entry, reason) end
      if entry then
	local row = row_of(list, entry)
	if row.stamp ~= stamp then
	  row.stamp, row.total = stamp, row.total + v
	end
	if type(part) == "number" and part < 0 and row.compiled_stamp ~= stamp then
	  row.compiled_stamp, row.compiled = stamp, row.compiled + v
	end
	leaf = row
      end
      is_row = entry
    end
    list.has_others = list.has_others or leaf and not is_row or false
    if not leaf then
      local innermost = view.symbols:name(parts[n]).plain
      local is_told = view.profile.slots:state(slot) == slots.UNKNOWN or innermost.text == PROFILER
      leaf = row_of(list, is_told and innermost or NO_LUA)
      leaf.total = leaf.total + v
      for i = 1, is_told and 0 or n do leaf.is_vague = leaf.is_vague or join.is_of_lua(parts[i]) end
    end
    add_self(leaf, v, slot)
  end)
  return list, sum
end

-- Texts of rows that stand for whole samples, by slot.
local slot_text = {
  vmstate = function(slot, view, number)
    if slot.state == slots.UNKNOWN then return work.name(leafwork.of(view.profile, number)) end
    return selfreport.state_name(slot.state)
  end,
  thread = function(slot) return threads.text(slot.thread) end,
  age = function(slot) return text.clean(labels.value(slot.labels, labels.AGE) or "[no age]") end,
  type = function(slot) return text.clean(labels.value(slot.labels, "type") or "[no type]") end,
  reason = function(_, view, slot) return view:reason(slot) or "[no reason]" end,
  syscall = function(_, view, slot) return top_waits.wait_of(view, slot).text end,
}

local NO_LABEL = "[no label]"
rows.NO_LABEL = NO_LABEL

function slot_text.label(slot)
  local parts = {}
  for i, pair in ipairs(slot.labels or {}) do parts[i] = pair[1] .. "=" .. pair[2] end
  return parts[1] and text.clean(table.concat(parts, " ")) or NO_LABEL
end

-- Returns the function of slot_text for what a view wants rows of, or nil.
local function text_function(by)
  local key = by:match("^label:(.+)$")
  if not key then return slot_text[by] end
  return function(slot)
    local value = labels.value(slot.labels, key) or labels.value(slot.labels, labels.OTHER)
    return value and text.clean(value) or NO_LABEL
  end
end

local function count_slots(view, text_of)
  local list, sum, entries = {}, 0, {}
  view:each_joined(function(_, _, v, slot)
    local name = text_of(view.profile.slots[slot], view, slot)
    entries[name] = entries[name] or { text = name, kind = "marker" }
    local row = row_of(list, entries[name])
    add_self(row, v, slot)
    row.total, sum = row.total + v, sum + v
  end)
  return list, sum
end

-- Returns the list of rows { entry=, self=, total=, compiled=, slots= }, not in order, and the sum. compiled is the
-- part of total where it was compiled code, slots are those of self. The list has_others if a row has self of other
-- parts. The row of stacks without a Lua function is_vague if Lua frames may be missing there.
function rows.count(view)
  local by = view.options.by or view.options.lines and "line" or "function"
  local text_of = text_function(by)
  if text_of then return count_slots(view, text_of) end
  return count_frames(view, by)
end

local function hotter(a, b)
  if a.self ~= b.self then return a.self > b.self end
  if a.total ~= b.total then return a.total > b.total end
  return a.entry.text < b.entry.text
end

-- Returns the rows as count() does, the hottest first.
function rows.hottest(view)
  local list, sum = rows.count(view)
  sort(list, hotter)
  return list, sum
end

-- Returns what a row of a view is.
function rows.name(view)
  local by = view.options.by or view.options.lines and "line" or "function"
  return by == "lua" and (view.options.lines and "Lua line" or "Lua function") or text.clean(by:gsub("^label:", ""))
end

-- Returns how many rows of a list a view shows.
function rows.shown(view, list)
  local limit = view.options.limit or 0
  return limit > 0 and math.min(limit, #list) or #list
end

-- Says how many rows are left out. Names the option that shows them, unless view.options.fixed_limit is set.
function rows.write_rest(view, shown, list, write)
  if shown < #list then
    local how = view.options.fixed_limit and "" or " (--limit=0 shows all)"
    write(("%12s %d more %ss%s\n"):format("...", #list - shown, rows.name(view), how))
  end
end

return rows
