----------------------------------------------------------------------------
-- Call tree: the stacks of a view merged by callers.
--
-- A node is { entry, self, total, base, depth, children }; entry is of
-- sysprof.names.symbols. Compiled and interpreted functions are separate nodes. The root
-- stands for the whole profile and has no entry. With a base, base is the node's self
-- there, and stacks of the base alone have nodes too.
----------------------------------------------------------------------------

local calltree = {}

local function new_node(entry, depth)
  return { entry = entry, depth = depth, self = 0, total = 0, base = 0,
	   children = {}, by_entry = {} }
end

local function new_child(node, entry)
  local c = new_node(entry, node.depth + 1)
  node.by_entry[entry] = c
  node.children[#node.children + 1] = c
  return c
end

function calltree.by_name(a, b)
  if a.entry.text ~= b.entry.text then return a.entry.text < b.entry.text end
  return a.entry.kind > b.entry.kind
end

-- Returns the root. Children are in the order of their names, those that are
-- not compiled first. plain: compiled and interpreted code share a node.
function calltree.build(view, plain)
  local root, path, room = new_node(nil, 0), {}, view.node_room
  -- Returns the node of a stack, or nil without room. Most frames are the same as in the
  -- stack before, which the path holds as nodes.
  local function node_of(names, n)
    local node, same = root, true
    for i = 1, n do
      local entry, c = plain and names[i].plain or names[i], path[i]
      same = same and c ~= nil and c.entry == entry
      if not same then
	c = node.by_entry[entry]
	if not c then
	  if room == 0 then return nil end
	  room, c = room - 1, new_child(node, entry)
	end
	path[i] = c
      end
      node = c
    end
    return node
  end
  view:each(function(names, n, v)
    local node = node_of(names, n)
    if not node then
      path = {}
      return false
    end
    node.self = node.self + v
  end)
  if view.base then
    view:each_of_base(function(names, n, v)
      local node = node_of(names, n)
      if not node then return false end
      node.base = node.base + v
    end)
  end
  local all = {}
  calltree.visit(root, function(node)
    table.sort(node.children, calltree.by_name)
    all[#all + 1] = node
  end)
  -- Those that were called before those that call them.
  for i = #all, 1, -1 do
    local node, total = all[i], all[i].self
    for _, c in ipairs(node.children) do total = total + c.total end
    node.total = total
  end
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
