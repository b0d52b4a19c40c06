----------------------------------------------------------------------------
-- Call tree: the stacks of a view merged by callers.
--
-- A node is { entry, self, total, other, other_total, depth, children }; entry is of
-- sysprof.names.symbols. Compiled and interpreted functions are separate nodes. The root
-- stands for the whole profile and has no entry. other is a second value beside self. With a
-- base, it is the node's self there, and stacks of the base alone have nodes too. In a view with
-- states, it is the part of self that is off CPU.
----------------------------------------------------------------------------

local cursor = require("sysprof.show.cursor")

local calltree = {}

local function new_node(entry, depth)
  return { entry = entry, depth = depth, self = 0, total = 0, other = 0, other_total = 0,
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
  local root, room = new_node(nil, 0), view.node_room
  local go = cursor.new(root, function(parent, entry)
    if plain then entry = entry.plain end
    local c = parent.by_entry[entry]
    if not c and room > 0 then
      room, c = room - 1, new_child(parent, entry)
    end
    return c
  end)
  local has_states = view:has_states()
  view:each(function(names, n, v, slot)
    local node = go(names, n)
    if not node then return false end
    node.self = node.self + v
    if has_states and view:is_off(slot) then node.other = node.other + v end
  end)
  if view.base then
    view:each_of_base(function(names, n, v)
      local node = go(names, n)
      if not node then return false end
      node.other = node.other + v
    end)
  end
  local all = {}
  calltree.visit(root, function(node)
    table.sort(node.children, calltree.by_name)
    all[#all + 1] = node
  end)
  -- Callees before their callers.
  for i = #all, 1, -1 do
    local node = all[i]
    local total, other = node.self, node.other
    for _, c in ipairs(node.children) do
      total, other = total + c.total, other + c.other_total
    end
    node.total, node.other_total = total, other
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
