----------------------------------------------------------------------------
-- Sysprof reader: call tree, the stacks of a view merged by their callers.
--
-- A node is { entry, self, total, depth, children }: the name of a function
-- (an entry of sysprof.names.symbols) where its callers are those of the nodes
-- above. A compiled function is another node than the interpreted one. The root
-- stands for the whole profile and has no entry. If the view has a base, base is
-- what the node's self is there; what is only there is a node, too.
----------------------------------------------------------------------------

local calltree = {}

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

function calltree.by_name(a, b)
  if a.entry.text ~= b.entry.text then return a.entry.text < b.entry.text end
  return a.entry.kind > b.entry.kind
end

-- Returns the root. Children are in the order of their names, those that are
-- not compiled first. plain: what is compiled is no node of its own.
function calltree.build(view, plain)
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
  calltree.visit(root, function(node) table.sort(node.children, calltree.by_name) end)
  return root
end

-- Calls f(node) for each node, parents first, siblings in their order. Stacks
-- can be deeper than Lua can recurse.
function calltree.visit(root, f)
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

return calltree
