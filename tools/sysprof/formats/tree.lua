----------------------------------------------------------------------------
-- Call tree as indented text, the hottest of siblings first.
----------------------------------------------------------------------------

local calltree = require("sysprof.show.calltree")
local sort = require("sysprof.base.sort")

local tree = {}

local NARROW = 0.005	-- Share of the whole below which nodes are left out.
local DEEPEST = 60	-- Deeper levels are not indented further.

-- Returns the children of a node as rows, the coldest first: the row that sums up the nodes below the
-- smallest share, then the others.
local function rows_below(calls, node, depth)
  local rows, whole = {}, calls.list[0].total
  local total, self, n = 0, 0, 0
  for child in calls:children(node) do
    local c = calls.list[child]
    if c.total >= NARROW * whole then
      rows[#rows + 1] = { node = child, depth = depth, total = c.total, self = c.self,
			  name = calls:entry(child).text }
    else
      total, self, n = total + c.total, self + c.self, n + 1
    end
  end
  sort(rows, function(a, b)
    if a.total ~= b.total then return a.total < b.total end
    return a.name > b.name
  end)
  if n > 0 then
    table.insert(rows, 1, { depth = depth, total = total, self = self,
			    name = ("(%d more, each below %g%%)"):format(n, 100 * NARROW) })
  end
  return rows
end

function tree.render(view, write)
  local calls = calltree.build(view, true)
  local root = calls.list[0]
  local whole = root.total
  write(("%12s %7s %12s %7s  %s\n"):format(view:column("total"), "total%",
    view:column("self"), "self%", "function"))
  if whole == 0 then return end
  local todo = { { node = 0, depth = 0, total = whole, self = root.self, name = "all" } }
  while #todo > 0 do
    local row = table.remove(todo)
    write(("%12s %7.1f %12s %7.1f  %s%s\n"):format(view:value_text(row.total),
      100 * row.total / whole, view:value_text(row.self), 100 * row.self / whole,
      (" "):rep(2 * math.min(row.depth, DEEPEST)), row.name))
    for _, below in ipairs(row.node and rows_below(calls, row.node, row.depth + 1) or {}) do
      todo[#todo + 1] = below
    end
  end
end

return tree
