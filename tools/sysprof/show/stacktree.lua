----------------------------------------------------------------------------
-- Tree of stacks with the numbers of a format, and samples in order of time.
--
-- A node is the stack of its callers and a frame with the format's number. Node 0 is the
-- empty stack. The tree holds only what the view shows.
----------------------------------------------------------------------------

local G = require("sysprof.base.grammar")
local array = require("sysprof.base.array")
local cursor = require("sysprof.show.cursor")
local pairmap = require("sysprof.base.pairmap")
local threads = require("sysprof.names.threads")

local stacktree = {}
local methods = {}
local mt = { __index = methods }

local NODE = pairmap.kind [[
  int32_t a, b;		/* Its parent and the number of its frame. */
  int32_t depth;
]]
local numbers = array.kind("int32_t")

-- frame_of(part) returns the number of the frame of a part of a joined stack,
-- from 1 on and below 2^31. all: of the samples of all events.
function stacktree.new(view, frame_of, all)
  local nodes = pairmap.new(NODE)
  local of_slot = array.zeros(numbers, view.profile.slots:count() + 1)	-- 0: left out.
  local room = view.node_room
  local go = cursor.new(0, function(parent, part, depth)
    local id, new = nodes:put(parent, frame_of(part))
    if new then
      if nodes.count > room then return nil end
      nodes.list[id].depth = depth
    end
    return id
  end)
  view:each_joined(function(parts, n, _, slot)
    local node = go(parts, n)
    if not node then return false end
    of_slot[slot] = node
  end, true, all)
  return setmetatable({ view = view, nodes = nodes, of_slot = of_slot }, mt)
end

-- Returns the node of a slot of the profile, or nil if it was left out.
function methods:node(slot)
  local node = self.of_slot[slot]
  return node ~= 0 and node or nil
end

function methods:count() return self.nodes.count end
function methods:parent(node) return self.nodes.list[node].a end
function methods:frame(node) return self.nodes.list[node].b end
function methods:depth(node) return self.nodes.list[node].depth end

-- Writes the numbers of the frames of a stack into out, root first; returns
-- how many there are.
function methods:list(node, out)
  local list = self.nodes.list
  local n = list[node].depth
  for i = n, 1, -1 do out[i], node = list[node].b, list[node].a end
  return n
end

-- Returns the threads with samples, by first sample; the first thread of the process comes
-- first.
function methods:threads()
  local list, seen = {}, {}
  for _, _, _, slot in self:samples() do
    local thread = self.view.profile.slots:thread(slot)
    if not seen[thread] then seen[thread], list[#list + 1] = true, { thread = thread } end
  end
  threads.main_first(self.view.profile, list)
  for i, item in ipairs(list) do list[i] = item.thread end
  return list
end

-- Returns a function that gives time, weight, node, slot and second weight of the next
-- sample, nil at the end. The profile needs a timeline. Samples of streams without times
-- have the distance 1, in the order of the stream.
function methods:samples()
  local next_sample = self.view.profile.timeline:in_order()
  local has_times = self.view.profile.version >= G.SPF_VERSION_OLDEST
  local number = -1
  return function()
    local time, weight, slot, second = next_sample()
    number = number + 1
    while time and not self:node(slot) do
      time, weight, slot, second = next_sample()
      number = number + 1
    end
    if not time then return nil end
    return has_times and time or number, weight, self:node(slot), slot, second
  end
end

return stacktree
