----------------------------------------------------------------------------
-- Sysprof reader: the stacks of a view merged into a tree, and as a text.
--
-- A node is { entry, self, total, depth, children }: the name of a function
-- (an entry of sysprof.symbols) where its callers are those of the nodes
-- above. A compiled function is another node than the interpreted one. The root
-- stands for the whole profile and has no entry. If the view has a base, base is
-- what the node's self is there; what is only there is a node, too.
----------------------------------------------------------------------------

local tree = {}

local function new_node(entry, depth)
  return { entry = entry, depth = depth, self = 0, total = 0, base = 0,
	   children = {}, by_entry = {} }
end

local function child(node, entry)
  local c = node.by_entry[entry]
  if not c then
    c = new_node(entry, node.depth + 1)
    node.by_entry[entry] = c
    node.children[#node.children + 1] = c
  end
  return c
end

local function by_name(a, b)
  if a.entry.text ~= b.entry.text then return a.entry.text < b.entry.text end
  return a.entry.kind > b.entry.kind
end

-- Returns the root. Children are in the order of their names, those that are
-- not compiled first. plain: what is compiled is no node of its own.
function tree.build(view, plain)
  local root = new_node(nil, 0)
  view:each(function(names, n, v)
    local node = root
    node.total = node.total + v
    for i = 1, n do
      node = child(node, plain and names[i].plain or names[i])
      node.total = node.total + v
    end
    node.self = node.self + v
  end)
  if view.base then
    view:each_of_base(function(names, n, v)
      local node = root
      for i = 1, n do node = child(node, names[i]) end
      node.base = node.base + v
    end)
  end
  tree.visit(root, function(node) table.sort(node.children, by_name) end)
  return root
end

-- Calls f(node) for each node, parents first, siblings in their order. Stacks
-- can be deeper than Lua can recurse.
function tree.visit(root, f)
  local todo, n = { root }, 1
  while n > 0 do
    local node = todo[n]
    todo[n] = nil
    n = n - 1
    f(node)
    for i = #node.children, 1, -1 do
      n = n + 1
      todo[n] = node.children[i]
    end
  end
end

-- -- Format ----------------------------------------------------------------

local NARROW = 0.005	-- Share of the whole below which nodes are left out.
local DEPTH_MAX = 60	-- Deeper levels are not indented further.

-- Writes the tree, the hottest of siblings first. What is too small to be a row
-- of its own is summed up, so the totals of children and self are complete.
function tree.render(view, write)
  local root = tree.build(view, true)
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
	return by_name(b, a)
      end)
      if small.n > 0 then
	small.small = ("(%d more, each below %.1f%%)"):format(small.n, 100 * NARROW)
	todo[#todo + 1] = small
      end
      for _, c in ipairs(kids) do todo[#todo + 1] = c end
    end
  end
end

return tree
