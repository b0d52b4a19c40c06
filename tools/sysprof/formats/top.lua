----------------------------------------------------------------------------
-- Table of functions by self and total.
--
-- Self counts samples in the function itself. Total counts samples in it or in its
-- callees; a recursive function counts once per sample. Marks such as [coroutine] are
-- rows too, except among modules. Rows can also be lines, modules, VM states, threads, types or
-- ages.
-- The profile's report stands before the table. Two profiles are compared by shares, or by amounts
-- (sysprof.show.view).
----------------------------------------------------------------------------

local labels = require("sysprof.model.labels")
local headline = require("sysprof.show.headline")
local join = require("sysprof.show.join")
local places = require("sysprof.names.places")
local selfreport = require("sysprof.show.selfreport")
local threads = require("sysprof.names.threads")
local top_waits = require("sysprof.formats.top_waits")
local text = require("sysprof.base.text")
local units = require("sysprof.model.units")

local LABEL_WIDTH, BRIEF_WIDTH = 18, 9	-- Of the head, at least.

local NO_LUA = { text = "[no Lua function]", kind = "marker" }	-- Row of stacks without one.

local ABOUT_LUA = "\nSelf has C code and VM work that the function called; --by=function shows them.\n"

local top = {}

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
	   stamp = 0, compiled_stamp = 0 }
end

local function row_of(rows, entry)
  local row = rows[entry]
  if not row then
    row = new_row(entry)
    rows[entry], rows[#rows + 1] = row, row
  end
  return row
end

-- Both return rows { entry=, self=, total=, compiled= } and the sum. compiled
-- is the part of total where it was compiled code.

local function count_frames(view, by)
  local rows, sum, stamp, entry_of = {}, 0, 0, grouping[by](view)
  view:each_joined(function(parts, n, v)
    stamp, sum = stamp + 1, sum + v
    local leaf
    for i = 1, n do
      local part = parts[i]
      local entry = (by ~= "module" or part ~= join.COROUTINE or n == 1) and entry_of(part)
      if entry then
	local row = row_of(rows, entry)
	if row.stamp ~= stamp then
	  row.stamp, row.total = stamp, row.total + v
	end
	if type(part) == "number" and part < 0 and row.compiled_stamp ~= stamp then
	  row.compiled_stamp, row.compiled = stamp, row.compiled + v
	end
	leaf = row
      end
    end
    if not leaf then
      leaf = row_of(rows, NO_LUA)
      leaf.total = leaf.total + v
    end
    leaf.self = leaf.self + v
  end)
  return rows, sum
end

-- Texts of rows that stand for whole samples, by slot.
local slot_text = {
  vmstate = function(slot) return selfreport.state_name(slot.state) end,
  thread = function(slot) return threads.text(slot.thread) end,
  age = function(slot) return text.clean(labels.value(slot.labels, labels.AGE) or "[no age]") end,
  type = function(slot) return text.clean(labels.value(slot.labels, "type") or "[no type]") end,
  syscall = function(_, view, slot) return top_waits.wait_of(view, slot).text end,
}

local function count_slots(view, text_of)
  local rows, sum, entries = {}, 0, {}
  view:each_joined(function(_, _, v, slot)
    local name = text_of(view.profile.slots[slot], view, slot)
    entries[name] = entries[name] or { text = name, kind = "marker" }
    local row = row_of(rows, entries[name])
    row.self, row.total, sum = row.self + v, row.total + v, sum + v
  end)
  return rows, sum
end

-- Returns the list of rows, not in order, and the sum.
function top.count(view)
  local by = view.options.by or view.options.lines and "line" or "function"
  if slot_text[by] then return count_slots(view, slot_text[by]) end
  return count_frames(view, by)
end

-- -- Table -----------------------------------------------------------------

local function hotter(a, b)
  if a.self ~= b.self then return a.self > b.self end
  if a.total ~= b.total then return a.total > b.total end
  return a.entry.text < b.entry.text
end

local function percent(part, whole)
  return ("%.1f"):format(100 * part / whole)
end

-- Of a row; nothing for what cannot be compiled.
local function compiled_text(row)
  return row.entry.kind == "lua" and percent(row.compiled, row.total) or ""
end

-- Writes the head; sum is what the table shows.
local function write_head(view, sum, write)
  local brief = view.options.brief
  local lines = brief and headline.lines(view.profile, view.options.title or "") or selfreport.lines(view.profile)
  local width = brief and BRIEF_WIDTH or LABEL_WIDTH
  for _, line in ipairs(top_waits.lines(view)) do lines[#lines + 1] = line end
  for _, line in ipairs(lines) do width = math.max(width, #line[1]) end
  local function put(label, value)
    write(("%s%s %s\n"):format(label, (" "):rep(width - #label), value))
  end
  for _, line in ipairs(lines) do put(line[1], line[2]) end
  local event = view:one_of_several() and view.event.name .. ": " or ""
  if view.filter or view.kinds or event ~= "" then
    local symbol = view.unit.symbol or view.weight == "second" and view.what
    local value = view.unit == units.SAMPLES and "" or
		  view:value_text(sum) .. (symbol and " " .. symbol or "") .. ", "
    put("shown", ("%s%s%.0f sample%s"):format(event, value, view.shown,
					      view.shown == 1 and "" or "s"))
  end
  write("\n")
end

-- -- Comparison ------------------------------------------------------------

-- Returns rows { text=, self=, total=, self_change=, total_change= }: shares in
-- percent, or amounts, and how they have changed since the base. The largest changes first.
local function compare(view)
  local list, by_text, amounts = {}, {}, view:compares_amounts()
  local function share(v, sum) return amounts and v or sum > 0 and 100 * v / sum or 0 end
  local function each(rows, sum, sign)
    for _, row in ipairs(rows) do
      local name = row.entry.text
      local r = by_text[name]
      if not r then
	r = { text = name, self = 0, total = 0, self_change = 0, total_change = 0 }
	by_text[name], list[#list + 1] = r, r
      end
      local self, total = share(row.self, sum), share(row.total, sum)
      if sign > 0 then r.self, r.total = r.self + self, r.total + total end
      r.self_change = r.self_change + sign * self
      r.total_change = r.total_change + sign * total
    end
  end
  local rows, sum = top.count(view)
  each(rows, sum, 1)
  local base_rows, base_sum = top.count(view.base)
  each(base_rows, base_sum, -1)
  table.sort(list, function(a, b)
    local x, y = math.abs(a.self_change), math.abs(b.self_change)
    if x ~= y then return x > y end
    x, y = math.abs(a.total_change), math.abs(b.total_change)
    if x ~= y then return x > y end
    return a.text < b.text
  end)
  return list, sum
end

local function row_name(view)
  local by = view.options.by or view.options.lines and "line" or "function"
  return by == "lua" and "Lua function" or by
end

local function rows_to_show(view, rows)
  local limit = view.options.limit or 0
  return limit > 0 and math.min(limit, #rows) or #rows
end

local function write_rest(view, shown, rows, write)
  if shown < #rows then
    write(("%12s %d more %ss (--limit=0 shows all)\n")
	  :format("...", #rows - shown, row_name(view)))
  end
end

local function render_comparison(view, write)
  local rows, sum = compare(view)
  write_head(view, sum, write)
  local amounts, form = view:compares_amounts(), "%8s %8s %8s %8s  %s\n"
  local function value(v) return amounts and view:value_text(v) or ("%.1f"):format(v) end
  local none = value(0)
  local function change(v)
    local s = value(math.abs(v))
    return (s == none and "" or v > 0 and "+" or "-") .. s
  end
  if amounts then form = form:gsub("8", "11") end
  local function head(name) return amounts and view:column(name) or name .. "%" end
  write(form:format(head("self"), "change", head("total"), "change", row_name(view)))
  local shown = rows_to_show(view, rows)
  for i = 1, shown do
    local r = rows[i]
    write(form:format(value(r.self), change(r.self_change), value(r.total),
		      change(r.total_change), r.text))
  end
  write_rest(view, shown, rows, write)
end

local function render_waits(view, write)
  local rows, sum = top_waits.rows(view)
  write_head(view, sum, write)
  local shown = rows_to_show(view, rows)
  top_waits.write(view, rows, sum, shown, write)
  write_rest(view, shown, rows, write)
end

-- -- API -------------------------------------------------------------------

-- Shows at most view.options.limit rows, or all if that is 0. The column for compiled
-- code appears only if samples have compiled code.
function top.render(view, write)
  if view.base then return render_comparison(view, write) end
  if top_waits.shows(view.options) then return render_waits(view, write) end
  local rows, sum = top.count(view)
  table.sort(rows, hotter)
  write_head(view, sum, write)
  if view.options.no_rows then return end
  local compiled = false
  for _, row in ipairs(rows) do compiled = compiled or row.compiled > 0 end
  local function line(self, self_share, total, total_share, share, name)
    write(("%12s %7s %12s %7s"):format(self, self_share, total, total_share))
    if compiled then write((" %9s"):format(share)) end
    write("  " .. name .. "\n")
  end
  line(view:column("self"), "self%", view:column("total"), "total%", "compiled%",
       row_name(view))
  local shown = rows_to_show(view, rows)
  for i = 1, shown do
    local row = rows[i]
    line(view:value_text(row.self), percent(row.self, sum),
	 view:value_text(row.total), percent(row.total, sum),
	 compiled_text(row), row.entry.text)
  end
  write_rest(view, shown, rows, write)
  if view.options.by == "lua" then write(ABOUT_LUA) end
end

return top
