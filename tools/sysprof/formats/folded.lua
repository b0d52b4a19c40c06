----------------------------------------------------------------------------
-- Folded stacks, "frame;frame;frame count", root first.
--
-- Lines are sorted by bytes, one for each stack. A comparison has "base count" in place
-- of the count; flame graph programs read that.
--
-- Memory holds the stacks as a tree of names, and each line is made when it is written:
-- all lines together can be far longer than the profile.
----------------------------------------------------------------------------

local pairmap = require("sysprof.base.pairmap")
local text = require("sysprof.base.text")

local folded = {}

local GARBAGE_MAX = 2^25	-- Bytes of lines that are written between two collections.

-- -- Tree ------------------------------------------------------------------

-- A node is a number, 0 the root. Names that look the same are the same.
local function new_tree(view)
  return { nodes = pairmap.new(), room = view.node_room,
	   path = {}, last = {},	-- Nodes and entries of the stack before.
	   number = {}, names = {}, of_entry = {},	-- Names: number, text.
	   name = {}, first = {}, next = {},	-- By node: its name, children, siblings.
	   value = {}, base = {} }		-- By node: of the stack that ends there.
end

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

-- Adds v to the value of a stack of names in a table. Returns false without room.
local function add(tree, to, names, n, v)
  -- Most frames are the same as in the stack before.
  local node, same, path, last = 0, true, tree.path, tree.last
  for i = 1, n do
    local entry = names[i]
    same = same and last[i] == entry
    if not same then
      local name = name_of(tree, entry)
      local id, new = tree.nodes:put(node, name)
      if new then
	tree.name[id] = name
	tree.next[id], tree.first[node] = tree.first[node], id
      end
      path[i], last[i] = id, entry
    end
    node = path[i]
  end
  if tree.nodes.count > tree.room then return false end
  to[node] = (to[node] or 0) + v
end

-- -- Lines -----------------------------------------------------------------

-- Returns the lines that follow a node, in their order: a list of { key, node }. The key is
-- "a" for the line of the child "a" itself, and "a;" for the lines of its callees.
local function followers(tree, node)
  local list, id = {}, tree.first[node]
  while id do
    local name = tree.names[tree.name[id]]
    if tree.value[id] or tree.base[id] then list[#list + 1] = { name, id } end
    if tree.first[id] then list[#list + 1] = { name .. ";", id, true } end
    id = tree.next[id]
  end
  table.sort(list, function(a, b) return a[1] < b[1] end)
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
  view:each(function(names, n, v) return add(tree, tree.value, names, n, v) end)
  if view.base then
    view:each_of_base(function(names, n, v) return add(tree, tree.base, names, n, v) end)
  end
  local room, garbage, left_out = view.text_room, 0, 0
  each_line(tree, function(callers, name, node)
    local before = view.base and (" %.0f"):format(tree.base[node] or 0) or ""
    local rest = ("%s%s %.0f\n"):format(name, before, tree.value[node] or 0)
    room, garbage = room - #callers - #rest, garbage + #callers
    if room < 0 then return false end
    tree.value[node] = nil
    write(callers)
    write(rest)
    -- The collector of LuaJIT does not keep up with long strings.
    if garbage > GARBAGE_MAX then
      collectgarbage()
      garbage = 0
    end
  end)
  if room < 0 then
    -- Of other units than samples, it is the number of lines.
    for _, v in pairs(tree.value) do
      left_out = left_out + (view.unit == "samples" and v or 1)
    end
    view:leave_out(left_out)
  end
end

return folded
