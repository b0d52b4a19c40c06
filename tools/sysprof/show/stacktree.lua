----------------------------------------------------------------------------
-- Tree of stacks with the numbers of a format, and samples in order of time.
--
-- A node is the stack of its callers and a frame with the format's number. Node 0 is the
-- empty stack. The tree holds only what the view shows.
----------------------------------------------------------------------------

local G = require("sysprof.base.grammar")
local pairmap = require("sysprof.base.pairmap")
local threads = require("sysprof.names.threads")

local stacktree = {}
local methods = {}
local mt = { __index = methods }

-- frame_of(part) returns the number of the frame of a part of a joined stack,
-- from 1 on and below 2^31. all: of the samples of all events.
function stacktree.new(view, frame_of, all)
  local nodes, parent, frame, of_slot = pairmap.new(), {}, {}, {}
  local depth = {}
  local room, path, last = view.node_room, {}, {}
  view:each_joined(function(parts, n, _, slot)
    -- Most frames are the same as in the stack before, which the path holds as nodes.
    local node, same = 0, true
    for i = 1, n do
      local part = parts[i]
      same = same and last[i] == part
      if not same then
	local f = frame_of(part)
	local id, new = nodes:put(node, f)
	if new then parent[id], frame[id], depth[id] = node, f, i end
	path[i], last[i] = id, part
      end
      node = path[i]
    end
    if nodes.count > room then return false end
    of_slot[slot] = node
  end, true, all)
  return setmetatable({ view = view, parent = parent, frame = frame, depth = depth,
			of_slot = of_slot }, mt)
end

-- Writes the numbers of the frames of a stack into list, root first; returns
-- how many there are.
function methods:list(node, list)
  local n, up = 0, node
  while up ~= 0 do n, up = n + 1, self.parent[up] end
  for i = n, 1, -1 do list[i], node = self.frame[node], self.parent[node] end
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

-- Returns a function that gives time, weight, node and slot of the next sample,
-- nil at the end. The profile needs a timeline. Samples of streams without times
-- have the distance 1, in the order of the stream.
function methods:samples()
  local next_sample, of_slot = self.view.profile.timeline:in_order(), self.of_slot
  local has_times = self.view.profile.version >= G.SPF_VERSION_OLDEST
  local number = -1
  return function()
    local time, weight, slot = next_sample()
    number = number + 1
    while time and not of_slot[slot] do
      time, weight, slot = next_sample()
      number = number + 1
    end
    if not time then return nil end
    return has_times and time or number, weight, of_slot[slot], slot
  end
end

return stacktree
