----------------------------------------------------------------------------
-- Table of functions by self and total.
--
-- The rows are those of sysprof.formats.rows. The profile's report stands before the table.
----------------------------------------------------------------------------

local G = require("sysprof.base.grammar")
local errors = require("sysprof.show.errors")
local events = require("sysprof.model.events")
local headline = require("sysprof.show.headline")
local memory = require("sysprof.show.memory")
local rows = require("sysprof.formats.rows")
local selfreport = require("sysprof.show.selfreport")
local text = require("sysprof.base.text")
local top_compare = require("sysprof.formats.top_compare")
local top_waits = require("sysprof.formats.top_waits")
local units = require("sysprof.model.units")
local work = require("sysprof.names.work")

local LABEL_WIDTH, BRIEF_WIDTH = 18, 9	-- Of the head, at least.

local SHORT_SHARE = 0.05	-- Of short waits: above, the table tells how to see their lines.
local SHORT_HINT = "\n%s are below the threshold, so they have no stack; a lower one shows lines: -e %s/threshold=%d/\n"
local ERROR, SAME, ERROR_WIDTH = "+-", "~", 8
local ABOUT_LUA = "\nSelf has C code and VM work that the function called; --by=function shows them.\n"

local ABOUT_NO_LUA = "[no Lua function] is C code outside of Lua: the program's own, reading a script.\n"

local top = { needs_spread = true }

-- -- Table -----------------------------------------------------------------

local function percent(part, whole)
  return ("%.1f"):format(100 * part / whole)
end

-- Of a row; nothing for what cannot be compiled.
local function compiled_text(row)
  return row.entry.kind == "lua" and percent(row.compiled, row.total) or ""
end

-- Returns what is shown of what is left, after how many cycles of the collector: few leave little that is old.
local function older_text(view, sum)
  local e, amount, rest = view.event, units.of(view.event.unit).total, ", " .. text.plural(view.shown, "sample")
  local all = e.weight
  if view.weight ~= "weight" then
    amount = function(n) return ("%.0f"):format(n) end
    all = view.weight == "second" and e.second_weight or e.samples
    rest = view.weight == "second" and " " .. text.clean(view.what) or " samples"
  end
  return ("%s of %s %s%s; the collector ran %s"):format(amount(sum), amount(all), text.clean(e.name), rest,
    text.plural(memory.cycles(events.list(view.profile)), "cycle"))
end

-- Writes the head; sum is what the table shows.
local function write_head(view, sum, write)
  local brief = view.options.brief
  local lines = brief and headline.lines(view.profile, view.options.title or "", view.event) or
		selfreport.lines(view.profile)
  local width = brief and BRIEF_WIDTH or LABEL_WIDTH
  for _, line in ipairs(top_waits.lines(view, brief)) do lines[#lines + 1] = line end
  for _, line in ipairs(lines) do width = math.max(width, #line[1]) end
  local function put(label, value)
    write(("%s%s %s\n"):format(label, (" "):rep(width - #label), value))
  end
  for _, line in ipairs(lines) do put(line[1], line[2]) end
  local event = view:one_of_several() and view.event.name .. ": " or ""
  local is_told = brief and headline.is_of_waits(view.event) and view.weight == "weight"
  if view.filter or not is_told and (view.kinds or event ~= "") then
    local value = view.unit == units.SAMPLES and "" or
		  (view.weight == "second" and view:amount_text(sum) or
		   view:value_text(sum) .. (view.unit.symbol and " " .. view.unit.symbol or "")) .. ", "
    put("shown", view.options.older and older_text(view, sum) or event .. value .. text.plural(view.shown, "sample"))
  end
  write("\n")
end

local function render_waits(view, write)
  local list, sum = top_waits.rows(view)
  write_head(view, sum, write)
  local shown = rows.shown(view, list)
  if not (view.options.brief and view:nothing_blocks()) then
    top_waits.write(view, list, sum, shown, write)
    rows.write_rest(view, shown, list, write)
  end
  top_waits.write_foot(view, sum, write)
end

local function render_comparison(view, write)
  local list, sum = top_compare.rows(view)
  if view.options.brief then return top_compare.render(view, list, write) end
  write_head(view, sum, write)
  top_compare.write_shares(view, list, write)
end

-- Returns how to see the lines of short waits, if they are many; or nil.
local function short_hint(view, list, sum)
  local event, name = view.event, work.name(G.SPF_WORK_SHORT)
  if not event.has_waits then return nil end
  for _, row in ipairs(list) do
    if row.entry.text == name and row.self > SHORT_SHARE * sum then
      local ns = top_waits.lower_threshold(view)
      return ns and SHORT_HINT:format(name, event.name, ns)
    end
  end
end

-- Returns the errors of the first rows as texts, and a mark for each row that chance may have put below the one above.
-- Both are "" without errors. Returns also the width of the texts, 0 if all are "".
local function error_texts(list, shown, its)
  local texts, marks, width = {}, {}, 0
  for i = 1, shown do
    texts[i] = its and its:text(list[i]) or ""
    marks[i] = its and i > 1 and list[i].self > 0 and its:is_same(list[i], list[i - 1]) and SAME or ""
    width = math.max(width, #texts[i])
  end
  return texts, marks, width
end

-- -- API -------------------------------------------------------------------

-- Shows at most view.options.limit rows, or all if that is 0. The column for compiled
-- code appears only if samples have compiled code, that for errors only if chance has made some.
function top.render(view, write)
  if view.base then return render_comparison(view, write) end
  if top_waits.shows(view.options) then return render_waits(view, write) end
  local list, sum = rows.hottest(view)
  write_head(view, sum, write)
  if view.options.no_rows or view.options.brief and #list == 0 then return end
  local compiled = false
  for _, row in ipairs(list) do compiled = compiled or row.compiled > 0 end
  local shown, its = rows.shown(view, list), errors.of(view)
  local texts, marks, width = error_texts(list, shown, its)
  if width > 0 then width = math.max(width, ERROR_WIDTH) end
  local function line(mark, self, err, self_share, total, total_share, share, name)
    write(mark .. ("%" .. 12 - #mark .. "s"):format(self))
    if width > 0 then write((" %" .. width .. "s"):format(err)) end
    write((" %7s %12s %7s"):format(self_share, total, total_share))
    if compiled then write((" %9s"):format(share)) end
    write("  " .. name .. "\n")
  end
  line("", view:column("self"), ERROR, "self%", view:column("total"), "total%", "compiled%", rows.name(view))
  for i = 1, shown do
    local row = list[i]
    line(marks[i], view:value_text(row.self), texts[i], percent(row.self, sum),
	 view:value_text(row.total), percent(row.total, sum),
	 compiled_text(row), row.entry.text)
  end
  rows.write_rest(view, shown, list, write)
  local few = its and list[1] and its:few_text(list[1])
  if few then write("\n" .. few .. ".\n") end
  local is_lua = view.options.by == "lua"
  if is_lua and list.has_others and not view.event.is_of_things then write(ABOUT_LUA) end
  for i = 1, is_lua and shown or 0 do
    if list[i].entry == rows.NO_LUA and not list[i].is_vague then write(ABOUT_NO_LUA) end
  end
  local hint = view.options.brief and short_hint(view, list, sum)
  if hint then write(hint) end
end

return top
