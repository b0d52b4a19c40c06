----------------------------------------------------------------------------
-- Folded stacks, "frame;frame;frame count", root first.
--
-- Lines are sorted by bytes, one for each stack. A comparison has "base count" in place
-- of the count; flame graph programs read that.
--
-- Memory holds the stacks as a tree of names, 24 bytes a node and 8 to 16 in its index. Each
-- line is made when it is written: all lines together can be far longer than the profile.
----------------------------------------------------------------------------

local cursor = require("sysprof.show.cursor")
local pairmap = require("sysprof.base.pairmap")
local sort = require("sysprof.base.sort")
local text = require("sysprof.base.text")
local units = require("sysprof.model.units")

local folded = {}

local GARBAGE_BYTES = 2^25	-- Bytes of lines that are written between two collections.

-- -- Tree ------------------------------------------------------------------

-- A node is a number, 0 the root. Names that look the same are the same.
local NODE = pairmap.kind [[
  int32_t a, b;		/* Its parent and the number of its name. */
  int32_t first, next;	/* Its last child; the sibling before it. 0: none. */
  double value;		/* Of the stack that ends here, 0 if none does. */
]]

local function name_of(tree, entry)
  local id = tree.of_entry[entry]
  if id then return id end
  local name = text.folded(entry.text)
  id = tree.number[name]
  if not id then
    id = #tree.names + 1
    tree.number[name], tree.names[id] = id, name
  end
  tree.of_entry[entry] = id
  return id
end

-- Returns the node of a name below a node, or nil without room.
local function child_of(tree, parent, entry)
  local nodes = tree.nodes
  local id, new = nodes:put(parent, name_of(tree, entry))
  if new then
    if nodes.count > tree.room then return nil end
    local list = nodes.list
    list[id].next, list[parent].first = list[parent].first, id
  end
  return id
end

local function new_tree(view)
  local tree = { nodes = pairmap.new(NODE), room = view.node_room,
		 number = {}, names = {}, of_entry = {},	-- Names: number, text.
		 base = {} }		-- Value in the base by node where a stack ends.
  tree.go = cursor.new(0, function(parent, entry) return child_of(tree, parent, entry) end)
  return tree
end

-- Both add v to the value of a stack of names. They return false without room.

local function add(tree, names, n, v)
  local node = tree.go(names, n)
  if not node then return false end
  local record = tree.nodes.list[node]
  record.value = record.value + v
end

local function add_base(tree, names, n, v)
  local node = tree.go(names, n)
  if not node then return false end
  tree.base[node] = (tree.base[node] or 0) + v
end

-- -- Lines -----------------------------------------------------------------

-- Returns the lines that follow a node, in their order: a list of { key, node }. The key is
-- "a" for the line of the child "a" itself, and "a;" for the lines of its callees.
local function followers(tree, node)
  local nodes, list = tree.nodes.list, {}
  local id = nodes[node].first
  while id ~= 0 do
    local name = tree.names[nodes[id].b]
    if nodes[id].value > 0 or tree.base[id] then list[#list + 1] = { name, id } end
    if nodes[id].first ~= 0 then list[#list + 1] = { name .. ";", id, true } end
    id = nodes[id].next
  end
  sort(list, function(a, b) return a[1] < b[1] end)
  return list
end

-- Calls line(callers, name, node) for each line. It returns false to end.
local function each_line(tree, line)
  local prefix, open, at = {}, { followers(tree, 0) }, { 0 }
  local depth, callers = 1, nil
  while depth > 0 do
    at[depth] = at[depth] + 1
    local item = open[depth][at[depth]]
    if not item then
      open[depth], callers = nil, nil
      depth = depth - 1
    elseif item[3] then
      prefix[depth], callers = item[1], nil
      depth = depth + 1
      open[depth], at[depth] = followers(tree, item[2]), 0
    else
      callers = callers or table.concat(prefix, "", 1, depth - 1)
      if line(callers, item[1], item[2]) == false then return end
    end
  end
end

-- write(s) takes the parts of the output.
function folded.render(view, write)
  local tree = new_tree(view)
  view:each(function(names, n, v) return add(tree, names, n, v) end)
  if view.base then
    view:each_of_base(function(names, n, v) return add_base(tree, names, n, v) end)
  end
  local list = tree.nodes.list
  local room, garbage, left_out = view.text_room, 0, 0
  each_line(tree, function(callers, name, node)
    local before = view.base and (" %.0f"):format(tree.base[node] or 0) or ""
    local rest = ("%s%s %.0f\n"):format(name, before, list[node].value)
    room, garbage = room - #callers - #rest, garbage + #callers
    if room < 0 then return false end
    list[node].value = 0	-- Written.
    write(callers)
    write(rest)
    -- The collector of LuaJIT does not keep up with long strings.
    if garbage > GARBAGE_BYTES then
      collectgarbage()
      garbage = 0
    end
  end)
  if room < 0 then
    -- Of other units than samples, it is the number of lines.
    for id = 0, tree.nodes.count do
      local v = list[id].value
      if v > 0 then left_out = left_out + (view.unit == units.SAMPLES and v or 1) end
    end
    view:leave_out(left_out)
  end
end

return folded
