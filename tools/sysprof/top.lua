----------------------------------------------------------------------------
-- Sysprof reader: a table of functions, by self and total.
--
-- Self is what was sampled in the function itself, total what was sampled in
-- it or in what it called; a recursive function counts once in each sample.
-- Before the table stands the profile's report about itself.
----------------------------------------------------------------------------

local selfreport = require("sysprof.selfreport")

local top = {}

-- Returns the rows { entry=, self=, total= }, hottest first, and the sum.
local function count(view)
  local by_entry, rows, sum, stamp = {}, {}, 0, 0
  view:each(function(names, n, v)
    stamp, sum = stamp + 1, sum + v
    for i = 1, n do
      local row = by_entry[names[i]]
      if not row then
	row = { entry = names[i], self = 0, total = 0, stamp = 0 }
	by_entry[names[i]] = row
	rows[#rows + 1] = row
      end
      if row.stamp ~= stamp then
	row.stamp, row.total = stamp, row.total + v
      end
      if i == n then row.self = row.self + v end
    end
  end)
  table.sort(rows, function(a, b)
    if a.self ~= b.self then return a.self > b.self end
    if a.total ~= b.total then return a.total > b.total end
    return a.entry.text < b.entry.text
  end)
  return rows, sum
end

-- The unit of the view is samples or microseconds; the latter are shown as
-- milliseconds.
local function value_text(view, v)
  return view.unit == "us" and ("%.3f"):format(v / 1e3) or ("%.0f"):format(v)
end

-- Shows at most view.options.limit rows, all of them if that is 0.
function top.render(view, write)
  for _, line in ipairs(selfreport.lines(view.profile)) do
    write(("%-18s %s\n"):format(line[1], line[2]))
  end
  local rows, sum = count(view)
  local unit = view.unit == "us" and " ms" or ""
  local format = "%12s %7s %12s %7s  %s\n"
  write("\n" .. format:format("self" .. unit, "self%", "total" .. unit,
			      "total%", "function"))
  local limit = view.options.limit or 0
  local shown = limit > 0 and math.min(limit, #rows) or #rows
  for i = 1, shown do
    local row = rows[i]
    write(format:format(
      value_text(view, row.self), ("%.1f"):format(100 * row.self / sum),
      value_text(view, row.total), ("%.1f"):format(100 * row.total / sum),
      row.entry.text))
  end
  if shown < #rows then
    write(("%12s %d more functions (--limit=0 shows all)\n")
	  :format("...", #rows - shown))
  end
end

return top
