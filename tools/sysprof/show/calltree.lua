----------------------------------------------------------------------------
-- Call tree: the stacks of a view merged by callers.
--
-- A node is a number; 0 is the root, which stands for the whole profile. tree.list[node] has self
-- and total, other and other_total: a second value beside them. With a base, it is the node's
-- value there, and stacks of the base alone have nodes too. In a view with states, it is the
-- part that is off CPU. Compiled and interpreted functions are separate nodes. A node takes 48
-- bytes, and the index that finds it 8 to 16.
----------------------------------------------------------------------------

local array = require("sysprof.base.array")
local cursor = require("sysprof.show.cursor")
local pairmap = require("sysprof.base.pairmap")
local G = require("sysprof.base.grammar")
local sort = require("sysprof.base.sort")
local work = require("sysprof.names.work")

local calltree = {}
local methods = {}
local mt = { __index = methods }

local NODE = pairmap.kind [[
  int32_t a, b;		/* Its parent and the number of its entry. */
  int32_t first, next;	/* Its first child, and what stands after it below its parent, or 0. */
  double self, total, other, other_total;
]]

local READY = work.name(G.SPF_WORK_READY)

local numbers, ids = array.kind("double"), array.kind("int32_t")

local function by_name(a, b)
  if a.text ~= b.text then return a.text < b.text end
  return a.kind > b.kind
end

-- Numbers the entries of names. Returns the list, and a function that returns the number of one.
local function numbered()
  local list, known = {}, {}
  return list, function(entry)
    local number = known[entry]
    if not number then
      number = #list + 1
      list[number], known[entry] = entry, number
    end
    return number
  end
end

-- Links the children of all nodes by their names, those that are not compiled first. Nodes of a
-- name are chained; then they are put before their siblings, the last name first.
local function link(list, count, entries)
  local order, rank, heads = {}, {}, {}
  for i = 1, #entries do order[i], heads[i] = i, 0 end
  sort(order, function(a, b) return by_name(entries[a], entries[b]) end)
  for at, i in ipairs(order) do rank[i] = at end
  for id = 1, count do
    local node = list[id]
    local at = rank[node.b]
    node.next, heads[at] = heads[at], id
  end
  for at = #order, 1, -1 do
    local id = heads[at]
    while id ~= 0 do
      local node = list[id]
      local parent, after = list[node.a], node.next
      node.next, parent.first, id = parent.first, id, after
    end
  end
end

-- A node has a larger number than its parent.
local function add_up(list, count)
  for id = count, 0, -1 do
    local node = list[id]
    node.total, node.other_total = node.total + node.self, node.other_total + node.other
    if id > 0 then
      local parent = list[node.a]
      parent.total = parent.total + node.total
      parent.other_total = parent.other_total + node.other_total
    end
  end
end

-- plain: compiled and interpreted code share a node. found(slot, node), or nil, is called for each slot, and found_base
-- for each slot of the base.
function calltree.build(view, plain, found, found_base)
  local nodes, room = pairmap.new(NODE), view.node_room
  local entries, number = numbered()
  local go = cursor.new(0, function(parent, entry)
    local id = nodes:put(parent, number(plain and entry.plain or entry))
    return id <= room and id or nil
  end)
  local has_states = view:has_states()
  view:each(function(names, n, v, slot)
    local id = go(names, n)
    if not id then return false end
    local node = nodes.list[id]
    node.self = node.self + v
    if found then found(slot, id) end
    if has_states and view:is_off(slot) then node.other = node.other + v end
  end)
  if view.base then
    view:each_of_base(function(names, n, v, slot)
      local id = go(names, n)
      if not id then return false end
      if found_base then found_base(slot, id) end
      local node = nodes.list[id]
      node.other = node.other + v
    end)
  end
  local count = math.min(nodes.count, room)
  link(nodes.list, count, entries)
  add_up(nodes.list, count)
  return setmetatable({ list = nodes.list, count = count, entries = entries }, mt)
end

-- Returns the same tree in which compiled and interpreted code of a function share a node, and an array with the part
-- of each node that is compiled code of this very frame.
function methods:merged()
  local nodes, from, to = pairmap.new(NODE), self.list, array.zeros(ids, self.count + 1)
  local entries, number = numbered()
  local compiled = array.zeros(numbers, self.count + 1)
  for id = 0, self.count do	-- Parents have smaller numbers.
    local node, entry = from[id], id > 0 and self:entry(id)
    local at = entry and nodes:put(to[node.a], number(entry.plain)) or 0
    local into = nodes.list[at]
    to[id], into.self, into.other = at, into.self + node.self, into.other + node.other
    if entry and entry ~= entry.plain then compiled[at] = compiled[at] + node.total end
  end
  link(nodes.list, nodes.count, entries)
  add_up(nodes.list, nodes.count)
  return setmetatable({ list = nodes.list, count = nodes.count, entries = entries }, mt), compiled
end

-- Returns the entry (sysprof.names.symbols) of a node, nil for the root.
function methods:entry(node)
  return self.entries[self.list[node].b]
end

-- Returns an iterator over the children of a node, in the order of their names.
function methods:children(node)
  local list = self.list
  return function(_, child)
    local after = child and list[child].next or list[node].first
    return after ~= 0 and after or nil
  end
end

-- In a comparison: returns an array with the part of the base, for each node, that is in stacks of the
-- base alone.
function methods:gone()
  local list, gone = self.list, array.zeros(numbers, self.count + 1)
  for id = self.count, 1, -1 do
    local node = list[id]
    if node.self == 0 then gone[id] = gone[id] + node.other end
    gone[node.a] = gone[node.a] + gone[id]
  end
  return gone
end

-- In a view with states: returns an array with the part of each node off CPU in which the thread could have run.
function methods:ready()
  local list, ready = self.list, array.zeros(numbers, self.count + 1)
  for id = self.count, 1, -1 do
    local node = list[id]
    if self:entry(id).text == READY then ready[id] = ready[id] + node.other end
    ready[node.a] = ready[node.a] + ready[id]
  end
  return ready
end

-- Calls f(node, depth) for each node, parents first, siblings in their order.
function methods:visit(f)
  local list, node, depth = self.list, 0, 0
  repeat
    f(node, depth)
    local after = list[node].first
    if after ~= 0 then
      node, depth = after, depth + 1
    else
      while node ~= 0 and list[node].next == 0 do node, depth = list[node].a, depth - 1 end
      node = node ~= 0 and list[node].next or 0
    end
  until node == 0
end

return calltree
