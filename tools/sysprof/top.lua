----------------------------------------------------------------------------
-- Sysprof reader: a table of functions, by self and total.
--
-- Self is what was sampled in the function itself, total what was sampled in
-- it or in what it called; a recursive function counts once in each sample.
-- Where a coroutine was resumed is no function, so [coroutine] does not count.
-- Before the table stands the profile's report about itself.
----------------------------------------------------------------------------

local join = require("sysprof.join")
local selfreport = require("sysprof.selfreport")

local top = {}

local function new_row(entry)
  return { entry = entry, self = 0, total = 0, compiled = 0,
	   stamp = 0, compiled_stamp = 0 }
end

-- Returns the rows { entry=, self=, total=, compiled= }, hottest first, and the
-- sum. compiled is the part of total where it was compiled code.
local function count(view)
  local by_entry, rows, sum, stamp = {}, {}, 0, 0
  local mark = view.symbols:name(join.COROUTINE)
  view:each(function(names, n, v)
    stamp, sum = stamp + 1, sum + v
    local leaf
    for i = 1, n do
      local e = names[i]
      if e ~= mark or n == 1 then
	local row = by_entry[e.plain]
	if not row then
	  row = new_row(e.plain)
	  by_entry[e.plain] = row
	  rows[#rows + 1] = row
	end
	if row.stamp ~= stamp then
	  row.stamp, row.total = stamp, row.total + v
	end
	if e ~= e.plain and row.compiled_stamp ~= stamp then
	  row.compiled_stamp, row.compiled = stamp, row.compiled + v
	end
	leaf = row
      end
    end
    if leaf then leaf.self = leaf.self + v end
  end)
  table.sort(rows, function(a, b)
    if a.self ~= b.self then return a.self > b.self end
    if a.total ~= b.total then return a.total > b.total end
    return a.entry.text < b.entry.text
  end)
  return rows, sum
end

local function percent(part, whole)
  return ("%.1f"):format(100 * part / whole)
end

-- Of a row; nothing for what cannot be compiled.
local function compiled_text(row)
  return row.entry.kind == "lua" and percent(row.compiled, row.total) or ""
end

-- Shows at most view.options.limit rows, all of them if that is 0. There is a
-- column for compiled code only if some was sampled.
function top.render(view, write)
  for _, line in ipairs(selfreport.lines(view.profile)) do
    write(("%-18s %s\n"):format(line[1], line[2]))
  end
  local rows, sum = count(view)
  local compiled = false
  for _, row in ipairs(rows) do compiled = compiled or row.compiled > 0 end
  local function line(self, self_share, total, total_share, share, name)
    write(("%12s %7s %12s %7s"):format(self, self_share, total, total_share))
    if compiled then write((" %9s"):format(share)) end
    write("  " .. name .. "\n")
  end
  local unit = view.unit == "us" and " ms" or ""
  write("\n")
  line("self" .. unit, "self%", "total" .. unit, "total%", "compiled%",
       view.options.lines and "line" or "function")
  local limit = view.options.limit or 0
  local shown = limit > 0 and math.min(limit, #rows) or #rows
  for i = 1, shown do
    local row = rows[i]
    line(view:value_text(row.self), percent(row.self, sum),
	 view:value_text(row.total), percent(row.total, sum),
	 compiled_text(row), row.entry.text)
  end
  if shown < #rows then
    write(("%12s %d more %s (--limit=0 shows all)\n")
	  :format("...", #rows - shown, view.options.lines and "lines" or "functions"))
  end
end

return top
