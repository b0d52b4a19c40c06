----------------------------------------------------------------------------
-- Naive text formats: what folded, tree, top and annotated source show.
--
-- Each check renders a case (naive_profile.lua) and compares it with loops over all samples.
----------------------------------------------------------------------------

local annotate = require("sysprof.formats.annotate")
local naive = require("naive_profile")
local naive_waits = require("naive_waits")
local t = require("tools_test")
local view = require("sysprof.show.view")

local same, same_text, rows_of = naive.same, naive.same_text, naive.rows_of
local sum_of, unit_of, value_text = naive.sum_of, naive.unit_of, naive.value_text
local amount_text, column, thread_text = naive.amount_text, naive.column, naive.thread_text
local render, both_rows, plain = naive.render, naive.both_rows, naive.plain
local folded, stack_text, paths = naive.folded, naive.stack_text, naive.paths
local sorted_keys, percent = naive.sorted_keys, naive.percent

local checks = {}

-- -- folded ----------------------------------------------------------------

-- Sums of rows by folded stack.
local function folded_sums(rows)
  local sums = {}
  for _, row in ipairs(rows) do
    local stack = stack_text(row.parts, folded, ";")
    if row.value > 0 then sums[stack] = (sums[stack] or 0) + row.value end
  end
  return sums
end

local function check_folded_comparison(case, got)
  local rows, base_rows, scale = both_rows(case)
  local sums, base, stacks = folded_sums(rows), folded_sums(base_rows), {}
  local values, expected = {}, {}
  for stack, before, after in got:gmatch("([^\n]*) (%d+) (%d+)\n") do
    stacks[#stacks + 1] = stack
    -- A half may be rounded both ways.
    local exact_base = (base[stack] or 0) * scale
    values[stack] = math.abs(before - exact_base) < 0.5001 and after or before .. " " .. after
  end
  local keys = sorted_keys(sums, base)
  for _, stack in ipairs(keys) do expected[stack] = ("%.0f"):format(sums[stack] or 0) end
  same(stacks, keys, case.what .. ", folded: stacks in order")
  same(values, expected, case.what .. ", folded: values")
end

function checks.folded(case)
  local got = render(case, "folded")
  if case.base then return check_folded_comparison(case, got) end
  local sums, out = folded_sums(rows_of(case.naive, case.options)), {}
  for i, stack in ipairs(sorted_keys(sums)) do
    out[i] = ("%s %.0f\n"):format(stack, sums[stack])
  end
  same_text(got, table.concat(out), case.what .. ", folded")
end

-- -- tree ------------------------------------------------------------------

-- Returns what is called by a path directly: large ones, the hottest first, and a sum of those
-- that are below the smallest share.
local function callees(all, key, whole)
  local list, small = {}, { total = 0, self = 0, n = 0 }
  for _, node in pairs(all[key] or {}) do
    if node.total / whole < 0.005 then
      small = { total = small.total + node.total, self = small.self + node.self, n = small.n + 1 }
    else
      list[#list + 1] = node
    end
  end
  table.sort(list, function(a, b)
    if a.total ~= b.total then return a.total > b.total end
    return a.part.text < b.part.text
  end)
  return list, small
end

local function tree_text(rows, unit)
  local out = { ("%12s %7s %12s %7s  %s\n"):format(column(unit, "total"), "total%",
    column(unit, "self"), "self%", "function") }
  local whole, by_caller = sum_of(rows), {}
  for _, node in pairs(paths(rows, plain)) do
    by_caller[node.up] = by_caller[node.up] or {}
    table.insert(by_caller[node.up], node)
  end
  local function row(node, depth, name)
    out[#out + 1] = ("%12s %7.1f %12s %7.1f  %s%s\n"):format(value_text(unit, node.total),
      100 * node.total / whole, value_text(unit, node.self), 100 * node.self / whole,
      (" "):rep(2 * math.min(depth, 60)), name)
  end
  local function add(node, depth)
    row(node, depth, node.part.text)
    local list, small = callees(by_caller, node.key, whole)
    for _, callee in ipairs(list) do add(callee, depth + 1) end
    if small.n > 0 then
      row(small, depth + 1, ("(%d more, each below 0.5%%)"):format(small.n))
    end
  end
  if whole > 0 then
    add({ key = "", part = { text = "all" }, total = whole, self = 0 }, 0)
  end
  return table.concat(out)
end

function checks.tree(case)
  local rows = rows_of(case.naive, case.options)
  same_text(render(case, "tree"), tree_text(rows, (unit_of(case.naive, case.options))),
	    case.what .. ", tree")
end

-- -- top -------------------------------------------------------------------

-- Returns the text of the row that a part counts for, nil for none.
local function row_text(case, row, part)
  local by = case.options.by
  if by == "vmstate" then	-- The reason, if nobody has seen the stack.
    return row.sample.state == "UNKNOWN" and row.parts[#row.parts].text or row.sample.state
  end
  if by == "thread" then return thread_text(case.naive, row.sample) end
  if by == "syscall" then return naive_waits.text(case.naive, row.sample) end
  if by == "module" then
    return (part.text ~= "[coroutine]" or #row.parts == 1) and part.row or nil
  end
  return part.text
end

local function count_top(case, rows)
  local list, by_text = {}, {}
  for _, row in ipairs(rows) do
    local seen, seen_compiled, leaf = {}, {}, nil
    local by = case.options.by
    local of_samples = by == "vmstate" or by == "thread" or by == "syscall"
    for _, part in ipairs(row.value > 0 and row.parts or {}) do
      local text = row_text(case, row, part)
      if text then
	local r = by_text[text] or { text = text, self = 0, total = 0, compiled = 0,
				     is_lua = not of_samples and part.kind == "lua" }
	if not by_text[text] then by_text[text], list[#list + 1] = r, r end
	if not seen[text] then r.total = r.total + row.value end
	if part.compiled and not of_samples and not seen_compiled[text] then
	  r.compiled, seen_compiled[text] = r.compiled + row.value, true
	end
	seen[text], leaf = true, r
      end
    end
    if leaf then leaf.self = leaf.self + row.value end
  end
  return list, by_text
end

local function top_text(list, sum, unit, by)
  local has_compiled = false
  for _, r in ipairs(list) do has_compiled = has_compiled or r.compiled > 0 end
  table.sort(list, function(a, b)
    if a.self ~= b.self then return a.self > b.self end
    if a.total ~= b.total then return a.total > b.total end
    return a.text < b.text
  end)
  local out = {}
  local function line(self, self_share, total, total_share, compiled, text)
    out[#out + 1] = ("%12s %7s %12s %7s%s  %s\n"):format(self, self_share, total, total_share,
      has_compiled and (" %9s"):format(compiled) or "", text)
  end
  line(column(unit, "self"), "self%", column(unit, "total"), "total%", "compiled%", by)
  for _, r in ipairs(list) do
    line(value_text(unit, r.self), percent(r.self, sum), value_text(unit, r.total),
	 percent(r.total, sum), r.is_lua and percent(r.compiled, r.total) or "", r.text)
  end
  return table.concat(out)
end

-- What is left of things is compared as amounts.
local function check_top_amounts(case, got)
  local rows, base_rows = both_rows(case)
  local unit = unit_of(case.naive, case.options)
  local _, now_of = count_top(case, rows)
  local _, before_of = count_top(case, base_rows)
  local shown, expected = {}, {}
  local function change(v)
    local none = value_text(unit, math.abs(v)) == value_text(unit, 0)
    return (none and "" or v > 0 and "+" or "-") .. value_text(unit, math.abs(v))
  end
  for _, text in ipairs(sorted_keys(now_of, before_of)) do
    local a, b = now_of[text] or { self = 0, total = 0 }, before_of[text] or { self = 0, total = 0 }
    expected[text] = ("%11s %11s %11s %11s"):format(value_text(unit, a.self), change(a.self - b.self),
						    value_text(unit, a.total), change(a.total - b.total))
  end
  for line in got:match("\n\n[^\n]*\n(.*)"):gmatch("[^\n]+") do shown[line:sub(50)] = line:sub(1, 47) end
  same(shown, expected, case.what .. ", top: amounts")
end

-- Shares in percent and their changes, within what one digit can show.
local function check_top_comparison(case, got)
  local rows, base_rows = both_rows(case)
  local _, now = count_top(case, rows)
  local _, before = count_top(case, base_rows)
  local sum, base_sum, shown, expected, last = sum_of(rows), sum_of(base_rows), {}, {}, math.huge
  local function share(list, text, field, whole)
    return list[text] and whole > 0 and 100 * list[text][field] / whole or 0
  end
  local row = "\n +([%d.]+) +([-+%d.]+) +([%d.]+) +([-+%d.]+)  ([^\n]+)"
  for self, self_change, total, total_change, text in got:match("\n\n.*"):gmatch(row) do
    local s, tot = share(now, text, "self", sum), share(now, text, "total", sum)
    local fits = math.abs(self - s) < 0.0501 and math.abs(total - tot) < 0.0501 and
      math.abs(self_change - s + share(before, text, "self", base_sum)) < 0.0501 and
      math.abs(total_change - tot + share(before, text, "total", base_sum)) < 0.0501
    shown[text] = fits or table.concat({ self, self_change, total, total_change }, " ")
    t.ok(math.abs(self_change) <= last + 1e-9, case.what .. ", top: the largest change first")
    last = math.abs(self_change)
  end
  for _, text in ipairs(sorted_keys(now, before)) do expected[text] = true end
  same(shown, expected, case.what .. ", top: shares")
end

-- Returns what the report tells of a period. It knows the period of an event if there is one only.
local function period_text(event, period)
  if event.unit == "us" then return ("; %.6g samples a second asked"):format(1e9 / period) end
  return ("; one in %s%s asked"):format(value_text(event.unit, period), event.unit == "ns" and " ms" or "")
end

-- Returns what the report tells of a sum.
local function sum_text(profile, event)
  local n, sum, total = 0, { on = 0, waiting = 0, runnable = 0, lost = 0 }, naive.total_of(event)
  for _, s in ipairs(profile.samples) do
    if naive.counts_for(s, event) then
      local state = not naive.is_off(s) and "on" or s.runnable and "runnable" or
		    s.is_lost and "lost" or "waiting"
      n, sum[state] = n + 1, sum[state] + naive.weight_in(s, event)
    end
  end
  local all = sum.on + sum.waiting + sum.runnable + sum.lost
  local of_total = total and total > 0 and
    (" of %.3f s (%.1f%%)"):format(total / 1e9, 100 * all / total) or ""
  return ("%d %s, %.3f s%s of real time: %.3f s on CPU, %.3f s waiting, %.3f s runnable%s"):format(n,
    n == 1 and "sample" or "samples", all / 1e9, of_total, sum.on / 1e9, sum.waiting / 1e9, sum.runnable / 1e9,
    sum.lost > 0 and (", %.3f s lost"):format(sum.lost / 1e9) or "")
end

local function check_report(case, report)
  for _, event in ipairs(case.naive.events) do
    local line
    for label, rest in report:gmatch("event ([^\n]-)  *(%d+ samples?, [^\n]*)") do
      if label == event.name then line = rest end
    end
    local periods = naive.periods_of(event)
    local expected = #periods == 1 and period_text(event, periods[1]) or ""
    local got = line and (line:match("; [^;,]* asked") or line:match("; one in [^;,]*$")) or ""
    if not event.left_of and not got:find(" asked$") then got = "" end
    t.equal(line and got, expected, ("%s, top: period of %s"):format(case.what, event.name))
    if event.parts and not case.naive.no_leaves then
      t.equal(line, sum_text(case.naive, event), ("%s, top: %s"):format(case.what, event.name))
    end
  end
end

function checks.top(case)
  local got, o = render(case, "top"), case.options
  if case.base and naive.event_of(case.naive, case.options).left_of then
    return check_top_amounts(case, got)
  elseif case.base then
    return check_top_comparison(case, got)
  end
  check_report(case, got:match("^.-\n\n"))
  local rows, unit = rows_of(case.naive, o), unit_of(case.naive, o)
  if naive_waits.is_table(case) then
    naive_waits.check_table(case, got, naive)
  else
    same_text(got:match("\n\n(.*)"), top_text(count_top(case, rows), sum_of(rows), unit,
      o.by or o.lines and "line" or "function"), case.what .. ", top by " .. (o.by or "function"))
  end
  local shown = got:match("\nshown [^\n]- (%d+) samples?\n")
  if shown and unit == "samples" then
    t.equal(tonumber(shown), #rows, case.what .. ", top: samples shown")
  end
end

-- -- Annotated source ------------------------------------------------------

-- Returns self and total by line and of the whole file, and the sum. Line 0 is not known.
local function count_lines(case, path, options)
  local lines, file = {}, { self = 0, total = 0 }
  local rows = rows_of(case.naive, options)
  for _, row in ipairs(rows) do
    local seen = {}
    for i, part in ipairs(row.value > 0 and row.parts or {}) do
      if part.file == path then
	local number, is_leaf = part.line or 0, i == #row.parts
	local line = lines[number] or { self = 0, total = 0 }
	lines[number] = line
	for key, counted in pairs { [number] = line, file = file } do
	  if not seen[key] then counted.total = counted.total + row.value end
	  if is_leaf then counted.self = counted.self + row.value end
	  seen[key] = true
	end
      end
    end
  end
  return lines, file, sum_of(rows)
end

-- Returns what stands beside: { name, unit, lines, total } of each other event and of each second
-- weight with samples in the file.
local function beside(case, path)
  local list, events = {}, case.naive.events
  local function add(event, weight)
    local o = { event = event, weight = weight }
    for key, value in pairs(case.options) do o[key] = value end
    if naive_waits.wants(o) and not naive_waits.has(naive.event_of(case.naive, o)) then return end
    local lines, file = count_lines(case, path, o)
    local unit, name = unit_of(case.naive, o)
    if file.total > 0 then
      list[#list + 1] = { name = name, unit = unit, lines = lines, total = file.total }
    end
  end
  local o = case.options
  if o.event or o.weight then return list end
  local chosen = naive.event_of(case.naive, case.options)
  for _, event in ipairs(events) do
    if event ~= chosen and not o.blocking then add(event.name) end
    if event.second and (event == chosen or not o.blocking) then add(event.name, event.second) end
  end
  return list
end

-- source: a list of the lines of the file, without tabs.
local function annotated_text(case, path, source)
  local lines, file, sum = count_lines(case, path, case.options)
  local others = beside(case, path)
  local unit, event = unit_of(case.naive, case.options)
  local function share(v) return v > 0 and percent(v, sum) or "" end
  local function value(v) return v > 0 and value_text(unit, v) or "" end
  local function of_all(v)
    return ("%s of %s, %s%%"):format(value_text(unit, v), amount_text(unit, event, sum),
				     sum > 0 and percent(v, sum) or "0.0")
  end
  local out = { ("file               %s\ncounted as         %s\nself               %s\n" ..
		 "total              %s\n"):format(path, path, of_all(file.self), of_all(file.total)) }
  local function row(self, self_share, total, total_share, more, number, text)
    local line = ("%12s %7s %12s %7s"):format(self, self_share, total, total_share)
    for _, s in ipairs(more) do line = ("%s %12s"):format(line, s) end
    out[#out + 1] = ("%s %7s  %s"):format(line, number, text):gsub(" +$", "") .. "\n"
  end
  local heads, numbers = {}, { lines }
  for i, other in ipairs(others) do
    out[#out + 1] = ("%-18s %s\n"):format("total " .. other.name,
      amount_text(other.unit, other.name, other.total))
    heads[i], numbers[i + 1] = column(other.unit, other.name), other.lines
  end
  out[#out + 1] = "\n"
  row(column(unit, "self"), "self%", column(unit, "total"), "total%", heads, "line", "text")
  local function line(number, text, shown_as)
    local l, more = lines[number] or { self = 0, total = 0 }, {}
    for i, other in ipairs(others) do
      local its = other.lines[number]
      more[i] = its and its.total > 0 and value_text(other.unit, its.total) or ""
    end
    row(value(l.self), share(l.self), value(l.total), share(l.total), more, shown_as or number, text)
  end
  for number, text in ipairs(source) do line(number, text) end
  local known = sorted_keys(unpack(numbers))
  for _, number in ipairs(known) do
    if number > #source then line(number, "[not in this file]") end
  end
  if known[1] == 0 then line(0, "[line not known]", "?") end
  return (file.total > 0 or #others > 0) and table.concat(out) or nil
end

-- Compares the annotated source of the file of a path, which must be there.
function checks.annotated(case, path, source)
  local v, out = assert(view.new(case.reader, case.options)), {}
  local listing = annotate.new(v, path)
  if listing then listing:render(function(s) out[#out + 1] = s end) end
  same_text(listing and table.concat(out) or "no samples\n",
	    annotated_text(case, path, source) or "no samples\n", case.what .. ", annotate")
end

return checks
