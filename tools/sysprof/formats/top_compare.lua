----------------------------------------------------------------------------
-- Comparison of two profiles as a table: is it faster, and what changed?
--
-- render() shows times before and after, what is gone and what is new, and absolute changes first.
-- write_shares() shows shares and their changes in points; or amounts, of what is left of things.
----------------------------------------------------------------------------

local G = require("sysprof.base.grammar")
local errors = require("sysprof.show.errors")
local events = require("sysprof.model.events")
local headline = require("sysprof.show.headline")
local memory = require("sysprof.show.memory")
local rows = require("sysprof.formats.rows")
local selfreport = require("sysprof.show.selfreport")
local sort = require("sysprof.base.sort")
local symbols = require("sysprof.names.symbols")
local text = require("sysprof.base.text")
local units = require("sysprof.model.units")

local NAMED = 5		-- Functions that are named as gone, and as new.
local SMALL = 0.005	-- Part of the larger profile that a gone or new function has at least.

local COMPILED_ERRORS, COMPILED_LEAST = 3, 0.05	-- Standard errors, and points, by which shares of compiled code differ.
local SAME, ERROR_WIDTH = "~", 8
local ABOUT_SAME = "~: the samples do not tell it from no change.\n"
local ABOUT_RUNS = "+-: of the samples; runs differ by themselves, too: 'luajit-sysprof compare' measures that.\n"

local top_compare = {}

-- Returns rows { text=, self=, total=, slots=, and the same with base_ } in the unit of the view, not in order, and the
-- sums.
function top_compare.rows(view)
  local list, by_text = {}, {}
  local function each(counted, self, total, slots)
    for _, row in ipairs(counted) do
      local name = row.entry.text
      local r = by_text[name]
      if not r then
	r = { text = name, self = 0, total = 0, base_self = 0, base_total = 0, slots = {}, base_slots = {} }
	by_text[name], list[#list + 1] = r, r
      end
      r[self], r[total] = r[self] + row.self, r[total] + row.total
      for _, slot in ipairs(row.slots) do r[slots][#r[slots] + 1] = slot end
    end
  end
  local counted, sum = rows.count(view)
  each(counted, "self", "total", "slots")
  local base_counted, base_sum = rows.count(view.base)
  each(base_counted, "base_self", "base_total", "base_slots")
  list.sum, list.base_sum = sum, base_sum
  return list, sum
end

-- Sorts rows with the fields self_change and total_change: the largest changes first.
local function sort_by_change(list)
  sort(list, function(a, b)
    local x, y = math.abs(a.self_change), math.abs(b.self_change)
    if x ~= y then return x > y end
    x, y = math.abs(a.total_change), math.abs(b.total_change)
    if x ~= y then return x > y end
    return a.text < b.text
  end)
end

-- -- Shares ----------------------------------------------------------------

local function signed(value, v)
  local s = value(math.abs(v))
  return (s == value(0) and "" or v > 0 and "+" or "-") .. s
end

function top_compare.write_shares(view, list, write)
  local amounts, form = view:compares_amounts(), "%8s %8s %8s %8s  %s\n"
  local function share(v, sum) return amounts and v or sum > 0 and 100 * v / sum or 0 end
  for _, r in ipairs(list) do
    r.self, r.total = share(r.self, list.sum), share(r.total, list.sum)
    r.self_change = r.self - share(r.base_self, list.base_sum)
    r.total_change = r.total - share(r.base_total, list.base_sum)
  end
  sort_by_change(list)
  local function value(v) return amounts and view:value_text(v) or ("%.1f"):format(v) end
  if amounts then form = form:gsub("8", "11") end
  local function head(name) return amounts and view:column(name) or name .. "%" end
  write(form:format(head("self"), "change", head("total"), "change", rows.name(view)))
  local shown = rows.shown(view, list)
  for i = 1, shown do
    local r = list[i]
    write(form:format(value(r.self), signed(value, r.self_change), value(r.total),
		      signed(value, r.total_change), r.text))
  end
  rows.write_rest(view, shown, list, write)
end

-- -- Before and after ------------------------------------------------------

-- "2.000 s before, 1.500 s after: 25% less"
local function change_text(before, after, value)
  local s = ("%s before, %s after"):format(value(before), value(after))
  if before <= 0 then return s end
  local percent = 100 * (after - before) / before
  if math.abs(percent) < 0.05 then return s .. ": the same" end
  return ("%s: %.1f%% %s"):format(s, math.abs(percent), percent < 0 and "less" or "more")
end

-- Without samples, what is left is unknown: no change is known, either.
local function sampled_text(view, list)
  local function value(v) return view:amount_text(v) end
  if not view.event.of or list.base_sum > 0 and list.sum > 0 then
    return change_text(list.base_sum, list.sum, value)
  end
  local function known(v) return v > 0 and value(v) or "no samples" end
  return ("%s before, %s after"):format(known(list.base_sum), known(list.sum))
end

-- Returns the event that has what is left of another one's things, itself if it is such an event; or nil.
local function left_of(v)
  if v.event.of then return v.event end
  for _, e in ipairs(events.list(v.profile)) do
    if e.of == v.event.name then return e end
  end
end

-- Whether two profiles are dumps of one, which tracks the same blocks.
local function have_one_start(a, b)
  local start = selfreport.start_time(a)
  return start ~= nil and start == selfreport.start_time(b) and a.meta.pid == b.meta.pid
end

-- Returns the change of what the VMs hold, which is exact, and how much of that the profiles did not track; both nil if
-- they are not known.
local function held_texts(view)
  local before, after, value = left_of(view.base), left_of(view), units.of(view.event.unit).total
  if not (before and after and before.total and after.total and view.base.profile.whole and view.profile.whole) then
    return nil
  end
  local are_dumps = have_one_start(view.base.profile, view.profile)
  local old, new = not are_dumps and memory.rest(before), not are_dumps and memory.rest(after)
  return change_text(before.total, after.total, value), (old or new) and
	 ("%s before, %s after: from before the starts; each profile tracks its own blocks alone, so only 'held' tells " ..
	  "growth"):format(value(old or 0), value(new or 0))
end

-- Names the largest rows of a list by a field; nil without one.
local function rows_text(view, found, has)
  sort(found, function(a, b)
    if a[has] ~= b[has] then return a[has] > b[has] end
    return a.text < b.text
  end)
  local parts = {}
  for i = 1, math.min(#found, NAMED) do
    parts[i] = ("%s %s"):format(found[i].text, view:amount_text(found[i][has]))
  end
  if #found > NAMED then parts[#parts + 1] = ("%d more"):format(#found - NAMED) end
  return #parts > 0 and table.concat(parts, ", ") or nil
end

-- Returns the name of a row without its current line, if there is one.
local function without_line(view, name)
  return view.options.lines and name:gsub(":[%d?]+%)", ")") or name
end

-- Returns the set of the names of all Lua functions that a profile knows, with or without samples.
local function known_names(view)
  local names = {}
  for fid in view.profile.lfuncs:each() do names[without_line(view, view.symbols:lua_function(fid).text)] = true end
  return names
end

-- Names the largest rows that only one profile has samples of. Returns those that the other one lacks, and those that
-- it knows; nil if there are none.
local function only_texts(view, list, has, lacks, other)
  local found, known, names = {}, {}, known_names(other)
  for _, r in ipairs(list) do
    if r[lacks] == 0 and r[has] > SMALL * math.max(list.sum, list.base_sum) then
      local into = names[without_line(view, r.text)] and known or found
      into[#into + 1] = r
    end
  end
  return rows_text(view, found, has), rows_text(view, known, has)
end

-- Says which functions of the two are the same in spite of an edit, or nil.
local function matched_text(view)
  local same, parts = view.same, {}
  if not same then return view.not_same end
  for _, what in ipairs { "changed", "moved" } do
    if same[what] > 0 then parts[#parts + 1] = ("%d %s"):format(same[what], what) end
  end
  if same.renamed > 0 then parts[#parts + 1] = ("%d under other names"):format(same.renamed) end
  if same.shifted > 0 then parts[#parts + 1] = ("%d at other lines"):format(same.shifted) end
  if #same.files == 1 then
    local old, new = unpack(same.files[1])
    parts[#parts + 1] = ("%s is now %s"):format(symbols.chunk_name(old), symbols.chunk_name(new))
  elseif #same.files > 1 then
    parts[#parts + 1] = ("%d files at other paths"):format(#same.files)
  end
  if view.options.lines and same.shifted + same.changed > 0 then
    parts[#parts + 1] = same.by_text > 0 and ("lines by the texts of %s"):format(text.plural(same.by_text, "file")) or
			"lines by their distance from functions"
  end
  if #parts == 0 then return nil end
  return ("%d functions: %s%s"):format(same.pairs, table.concat(parts, ", "),
    same.hashless > 0 and ("; %d by name and order only"):format(same.hashless) or "")
end

-- Returns the share of samples in compiled code, and their number.
local function compiled_share(profile)
  local samples, states = profile:totals(), profile:states()
  return samples > 0 and (states[G.SPF_VMST_TRACE] or 0) / samples or 0, samples
end

-- Says that the compiler did more or less: other than by chance, by the difference of two proportions. Or nil.
local function compiled_text(view)
  local before, n = compiled_share(view.base.profile)
  local after, m = compiled_share(view.profile)
  if not units.of(view.event.unit).is_cpu or n == 0 or m == 0 then return nil end
  local both = (before * n + after * m) / (n + m)
  local deviation = math.sqrt(both * (1 - both) * (1 / n + 1 / m))
  if math.abs(after - before) <= math.max(COMPILED_ERRORS * deviation, COMPILED_LEAST) then return nil end
  return ("%.0f%% of the samples before, %.0f%% after: the compiler may choose so by chance")
	 :format(100 * before, 100 * after)
end

local function write_head(view, list, write)
  local profile, base = view.profile, view.base.profile
  local function put(label, value)
    if value then write(("%-9s %s\n"):format(label, value)) end
  end
  local function seconds(s) return ("%.3f s"):format(s) end
  local function both(label, before, after)
    put(label, before and after and change_text(before, after, seconds))
  end
  local function put_all(lines)
    for _, line in ipairs(lines) do put(line[1], line[2]) end
  end
  put_all(headline.short(base, view.options.base_title or "", "base"))
  put_all(headline.short(profile, view.options.title or "", "profile"))
  if profile.whole then both("real time", headline.real_time(base), headline.real_time(profile)) end
  both("CPU time", selfreport.cpu_time(base), selfreport.cpu_time(profile))
  put("compiled", compiled_text(view))
  local name, base_name = text.clean(view.event.name), text.clean(view.base.event.name)
  put("event", name == base_name and name or ("%s before, %s after"):format(base_name, name))
  local held, rest = held_texts(view)
  put("held", held)
  if rest then
    local lines = {}
    headline.wrap(lines, "the rest", rest)
    put_all(lines)
  end
  put("sampled", sampled_text(view, list))
  if view.event.of then
    put_all(headline.event(base, view.base.event, "before"))
    put_all(headline.event(profile, view.event, "after"))
  end
  put("matched", matched_text(view))
  local gone, unseen = only_texts(view, list, "base_total", "total", view)
  local new, unseen_before = only_texts(view, list, "total", "base_total", view.base)
  put("gone", gone)
  put("unseen", unseen and unseen .. ": no samples after")
  put("new", new)
  put("unseen", unseen_before and unseen_before .. ": no samples before")
  write("\n")
end

-- Returns the errors of the changes of the first rows as texts, a mark for each that chance alone can make, and the
-- width of the texts, 0 without errors.
local function change_errors(view, list, shown, signed_value)
  local its, base = errors.of(view), errors.of(view.base)
  local texts, marks, width = {}, {}, 0
  for i = 1, shown do
    local r, is_chance = list[i], false
    texts[i] = ""
    if its and base then
      texts[i], is_chance = its:change(r, base, { self = r.base_self, slots = r.base_slots }, signed_value)
    end
    marks[i] = is_chance and SAME or ""
    width = math.max(width, #texts[i])
  end
  return texts, marks, width > 0 and math.max(width, ERROR_WIDTH) or 0
end

function top_compare.render(view, list, write)
  local function value(v) return view:value_text(v) end
  write_head(view, list, write)
  local some, zero = {}, value(0)	-- Rows that are not 0 in each column.
  for _, r in ipairs(list) do
    r.self_change, r.total_change = r.self - r.base_self, r.total - r.base_total
    if value(r.self) ~= zero or value(r.base_self) ~= zero then some[#some + 1] = r end
  end
  if #some == 0 then return end
  sort_by_change(some)
  local function share(v, sum) return sum > 0 and ("%.1f"):format(100 * v / sum) or "0.0" end
  local shown = rows.shown(view, some)
  local texts, marks, width = change_errors(view, some, shown, function(v) return signed(value, v) end)
  local form = " %11s %11s %8s %8s  %s\n"
  local function line(mark, change, err, ...)
    write(mark .. ("%" .. 11 - #mark .. "s"):format(change) ..
	  (width > 0 and (" %" .. width .. "s"):format(err) or "") .. form:format(...))
  end
  line("", "change", "+-", view:column("before"), "after", "before%", "after%", text.clean(rows.name(view)))
  for i = 1, shown do
    local r = some[i]
    line(marks[i], signed(value, r.self_change), texts[i], value(r.base_self), value(r.self),
	 share(r.base_self, list.base_sum), share(r.self, list.sum), r.text)
  end
  rows.write_rest(view, shown, some, write)
  local has_same, has_runs = #table.concat(marks) > 0, width > 0 and not view.event.of
  if has_same or has_runs then write("\n") end
  if has_same then write(ABOUT_SAME) end
  if has_runs then write(ABOUT_RUNS) end
end

return top_compare
