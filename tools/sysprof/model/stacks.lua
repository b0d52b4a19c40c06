----------------------------------------------------------------------------
-- Frames and stacks, each kept once.
--
-- A frame is its kind, payload and extra (second) number in the stream. In an
-- SPF_FRAME_WORK the two numbers are exchanged: only a payload can be large. A stack is a
-- node of a tree; each step from the root adds a frame. Equal frames have equal numbers,
-- equal stacks equal nodes. Node 0 is the empty stack. An SPF_FRAME_REPEAT is one node, and
-- list() writes what it stands for. A node takes 28 bytes; the index that finds it by parent
-- and frame takes 8 to 16.
----------------------------------------------------------------------------

local bit = require("bit")
local G = require("sysprof.base.grammar")
local limits = require("sysprof.base.limits")
local pairmap = require("sysprof.base.pairmap")

local band, bxor, tobit = bit.band, bit.bxor, bit.tobit

local stacks = {}
local methods = {}
local mt = { __index = methods }

-- Frames and nodes are numbered below LIMIT.
local LIMIT = 2^24
local CACHE = 4096	-- Frames remembered by hash.
local KINDS = 32	-- Above any kind of frame; a power of two.

-- Kinds of frames that a reader makes up itself.
stacks.UNDEFINED = 16	-- A sample refers to a stack that is not defined.
stacks.WIDE = 17	-- A number is larger than any that makes sense.

-- Numbers from here on are wide.
local WIDE_MIN, WIDE_EXTRA_MIN = limits.FRAME_NUMBER, limits.FRAME_EXTRA

stacks.LIMIT = LIMIT

-- Numbers of closures in a stream are believed below this. Others are none.
stacks.CLOSURES = limits.CLOSURES

-- Most frames of a REPEAT that is believed.
local REPEATED_MAX = limits.STACK_FRAMES

local HOST, LFUNC, REPEAT = G.SPF_FRAME_HOST, G.SPF_FRAME_LFUNC, G.SPF_FRAME_REPEAT

local known_kind = { [stacks.UNDEFINED] = true, [stacks.WIDE] = true }
for name, kind in pairs(G) do
  if name:match("^SPF_FRAME_") then known_kind[kind] = true end
end
-- A stack has frames, no differences to them. A closure is a CFUNC with the number as extra.
known_kind[G.SPF_FRAME_NEAR], known_kind[G.SPF_FRAME_LSAME] = nil, nil
known_kind[G.SPF_FRAME_CLOSURE] = nil

-- A node of the tree.
local NODE = pairmap.kind [[
  int32_t a, b;		/* Its parent and its frame. */
  int32_t depth;	/* Number of nodes. */
  int32_t frames;	/* Number of frames. */
  int32_t jump;		/* A node further up, for outermost(). */
  int32_t host, lua;	/* Its leafmost host frame and Lua function, or 0. */
]]

-- The last frame looked up, by hash. It may belong to other stacks; then its number means
-- another frame here, or no frame.
local recent = {}
for i = 0, CACHE - 1 do recent[i] = 0 end

-- room: of sysprof.model.room.
function stacks.new(room)
  return setmetatable({
    room = room, frame_limit = LIMIT, node_limit = LIMIT,	-- The first ones that there was no room for.
    frames = pairmap.new(),
    kind = { [0] = -1 }, payload = { [0] = -1 }, extra = { [0] = -1 },
    nodes = pairmap.new(NODE),
  }, mt)
end

-- Returns the number of a frame, or nil if its kind is unknown or there are
-- too many frames.
function methods:frame(kind, payload, extra)
  if payload >= WIDE_MIN or extra >= WIDE_EXTRA_MIN then
    kind, payload, extra = stacks.WIDE, 0, 0
  end
  local at = band(bxor(tobit(payload), extra), CACHE - 1)
  local id = recent[at]
  if self.payload[id] == payload and self.kind[id] == kind and
     self.extra[id] == extra then
    return id
  end
  if not known_kind[kind] then return nil end
  local new
  id, new = self.frames:put(payload, extra * KINDS + kind)
  if new and not self.room:take("STACKS") then self.frame_limit = math.min(self.frame_limit, id) end
  if id >= self.frame_limit then return nil end
  if new then
    self.kind[id], self.payload[id], self.extra[id] = kind, payload, extra
  end
  recent[at] = id
  return id
end

-- Returns how many frames a REPEAT stands for on a node, or nil if it does not fit.
local function repeated(self, node, frame)
  local times, group, list = self.payload[frame], self.extra[frame], self.nodes.list
  local n = times * group
  if group < 1 or group > G.SPF_REPEAT_FRAMES or group > list[node].depth or
     not (n >= 2 and n <= REPEATED_MAX) then
    return nil
  end
  for _ = 1, group do
    if self.kind[list[node].b] == REPEAT then return nil end
    node = list[node].a
  end
  return n
end

-- Returns the node of the stack of node with one frame more. Returns nil if there are too
-- many nodes, or if a REPEAT does not fit.
function methods:push(node, frame)
  local kind, more = self.kind[frame], 1
  if kind == REPEAT then more = repeated(self, node, frame) end
  if not more then return nil end
  local nodes = self.nodes
  local id, new = nodes:put(node, frame)
  if new and not self.room:take("STACKS") then self.node_limit = math.min(self.node_limit, id) end
  if id >= self.node_limit then return nil end
  if new then
    local list = nodes.list
    local n, parent = list[id], list[node]
    local depth, up = parent.depth, parent.jump
    local far = list[up].jump
    n.depth, n.frames = depth + 1, parent.frames + more
    n.host = kind == HOST and frame or parent.host
    n.lua = kind == LFUNC and frame or parent.lua
    -- Two jumps of the same length make one of twice that and one.
    n.jump = depth - list[up].depth == list[up].depth - list[far].depth and far or node
  end
  return id
end

-- Returns the number of nodes, besides node 0.
function methods:count()
  return self.nodes.count
end

-- Returns the leafmost host frame of a stack, or nil.
function methods:leafmost_host(node)
  local frame = self.nodes.list[node].host
  return frame ~= 0 and frame or nil
end

-- Returns the leafmost Lua function of a stack, or nil.
function methods:leafmost_lua(node)
  local frame = self.nodes.list[node].lua
  return frame ~= 0 and frame or nil
end

-- Returns the stack without its leaf.
function methods:parent(node)
  return self.nodes.list[node].a
end

-- Returns the leafmost frame of a stack.
function methods:leaf(node)
  return self.nodes.list[node].b
end

-- Returns the number of frames of a stack.
function methods:length(node)
  return self.nodes.list[node].frames
end

-- Returns the number of its nodes, where a REPEAT is one.
function methods:depth(node)
  return self.nodes.list[node].depth
end

-- Returns the node of the n outermost nodes of a stack that has as many. The
-- number of steps grows with the logarithm of the depth.
function methods:outermost(node, n)
  local list = self.nodes.list
  while list[node].depth > n do
    local up = list[node].jump
    node = list[up].depth >= n and up or list[node].a
  end
  return node
end

-- Writes the frames of n nodes up to out[last]. Returns the node above them.
local function list_nodes(self, node, n, out, last)
  local list = self.nodes.list
  for i = last, last - n + 1, -1 do
    out[i], node = list[node].b, list[node].a
  end
  return node
end

-- Writes the frames of a stack into out, root first; returns their number.
function methods:list(node, out)
  local list = self.nodes.list
  local all = list[node].frames
  local i = all
  while i > list[node].depth do	-- A REPEAT is here or above.
    local up = list[node].a
    local n = i - list[up].frames
    if n == 1 then
      out[i] = list[node].b
    else
      local group = self.extra[list[node].b]
      list_nodes(self, up, group, out, i)
      for at = i - group, i - n + 1, -1 do out[at] = out[at + group] end
    end
    i, node = i - n, up
  end
  list_nodes(self, node, i, out, i)
  return all
end

return stacks
