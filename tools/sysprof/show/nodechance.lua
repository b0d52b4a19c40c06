----------------------------------------------------------------------------
-- Nodes of a comparison's call tree whose change may be chance.
--
-- A node has the samples of all slots at it and below, so each depth of the tree costs as much as all slots. Of trees
-- that are too deep and wide, the nodes that are asked for first count.
----------------------------------------------------------------------------

local array = require("sysprof.base.array")
local countsort = require("sysprof.base.countsort")
local errors = require("sysprof.show.errors")
local limits = require("sysprof.base.limits")

local numbers = array.kind("int32_t")

local nodechance = {}

-- Returns slots(node): a list of the slots at a node and below, and their number. node_of: by slot of a profile, 0 if
-- it is not shown; first, last: places of the nodes of each subtree, from 0 on.
local function slots_below(profile, node_of, first, last, count)
  local all, starts = {}, array.zeros(numbers, count + 2)
  for slot = 1, profile.slots:count() do
    if node_of[slot] ~= 0 then all[#all + 1] = slot end
  end
  local function place(i) return first[node_of[all[i + 1]]] end
  local order = countsort(nil, #all, count, place)
  for i = 0, #all - 1 do
    local at = place(i) + 1
    starts[at] = starts[at] + 1
  end
  for at = 1, count + 1 do starts[at] = starts[at] + starts[at - 1] end
  return function(node)
    local from, to = starts[first[node]], starts[last[node] + 1]
    local list = {}
    for i = from, to - 1 do list[#list + 1] = all[order[i] + 1] end
    return list, to - from
  end
end

-- Returns a function that tells whether chance alone can make the change of a node; nil if nothing tells that, or if
-- the tree compares shares. node_of, base_node_of: nodes by slot.
function nodechance.new(view, calls, node_of, base_node_of)
  local its, base = errors.of(view), errors.of(view.base)
  if not its or not base or view.base_scale ~= 1 then return nil end
  local first, last = array.zeros(numbers, calls.count + 1), array.zeros(numbers, calls.count + 1)
  local n = 0
  calls:visit(function(node)
    first[node], last[node], n = n, n, n + 1
  end)
  for node = calls.count, 1, -1 do	-- Parents have smaller numbers.
    local parent = calls.list[node].a
    last[parent] = math.max(last[parent], last[node])
  end
  local slots = slots_below(view.profile, node_of, first, last, calls.count)
  local base_slots = slots_below(view.base.profile, base_node_of, first, last, calls.count)
  local left, known = limits.CHANCE_STACKS, {}
  return function(node)
    if known[node] ~= nil or left <= 0 then return known[node] or false end
    local sums = calls.list[node]
    local list, count = slots(node)
    local base_list, base_count = base_slots(node)
    left = left - count - base_count
    local _, is_chance = its:change({ self = sums.total, slots = list }, base,
				    { self = sums.other_total, slots = base_list }, tostring)
    known[node] = is_chance
    return is_chance
  end
end

return nodechance
