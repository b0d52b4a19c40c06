----------------------------------------------------------------------------
-- Call tree as indented text, the hottest of siblings first.
----------------------------------------------------------------------------

local calltree = require("sysprof.show.calltree")

local tree = {}

local NARROW = 0.005	-- Share of the whole below which nodes are left out.
local DEPTH_MAX = 60	-- Deeper levels are not indented further.

-- Writes the tree, the hottest of siblings first. A row sums up
-- the nodes below the smallest share, so the totals of children and self are complete.
function tree.render(view, write)
  local root = calltree.build(view, true)
  local whole = root.total
  write(("%12s %7s %12s %7s  %s\n"):format(view:column("total"), "total%",
    view:column("self"), "self%", "function"))
  if whole == 0 then return end
  local function row(total, self, depth, name)
    write(("%12s %7.1f %12s %7.1f  %s%s\n"):format(view:value_text(total),
      100 * total / whole, view:value_text(self), 100 * self / whole,
      (" "):rep(2 * math.min(depth, DEPTH_MAX)), name))
  end
  local todo = { root }
  while #todo > 0 do
    local node = table.remove(todo)
    if node.small then
      row(node.total, node.self, node.depth, node.small)
    else
      row(node.total, node.self, node.depth, node.entry and node.entry.text or "all")
      local kids, small = {}, { depth = node.depth + 1, total = 0, self = 0, n = 0 }
      for _, c in ipairs(node.children) do
	if c.total >= NARROW * whole then
	  kids[#kids + 1] = c
	else
	  small.total, small.self, small.n = small.total + c.total, small.self + c.self,
					     small.n + 1
	end
      end
      table.sort(kids, function(a, b)
	if a.total ~= b.total then return a.total < b.total end
	return calltree.by_name(b, a)
      end)
      if small.n > 0 then
	small.small = ("(%d more, each below %g%%)"):format(small.n, 100 * NARROW)
	todo[#todo + 1] = small
      end
      for _, c in ipairs(kids) do todo[#todo + 1] = c end
    end
  end
end

return tree
