----------------------------------------------------------------------------
-- Sysprof reader: frames and stacks, each kept once.
--
-- A frame is its kind, payload and extra number as in the stream; a stack is
-- a node of a tree in which every step from the root adds a frame. Equal
-- frames get equal numbers, equal stacks get equal nodes: memory grows with
-- what is distinct. Node 0 is the empty stack.
----------------------------------------------------------------------------

local G = require("sysprof.grammar")

local stacks = {}
local methods = {}
local mt = { __index = methods }

-- Frames and nodes are numbered below LIMIT, so that a pair of them, or of
-- two nodes and a small number, is an exact Lua number.
local LIMIT = 2^24
local EXTRA_LIMIT = 2^20
local PAYLOAD_LIMIT = 2^33

-- Kinds of frames that a reader makes up itself.
stacks.UNDEFINED = -1	-- A sample refers to a stack that is not defined.
stacks.WIDE = -2	-- A payload that is no exact number.

stacks.LIMIT = LIMIT

function stacks.new()
  local kinds = {}
  for name, kind in pairs(G) do
    if name:match("^SPF_FRAME_") then kinds[kind] = {} end
  end
  kinds[stacks.UNDEFINED], kinds[stacks.WIDE] = {}, {}
  return setmetatable({
    frames = 0, kind = {}, payload = {}, extra = {}, by_kind = kinds,
    nodes = 0, parent = {}, frame_of = {}, child = {},
  }, mt)
end

-- Returns the number of a frame, or nil if its kind is unknown or there are
-- too many frames.
function methods:frame(kind, payload, extra)
  local known = self.by_kind[kind]
  if not known then return nil end
  local key
  if extra < EXTRA_LIMIT and payload < PAYLOAD_LIMIT then
    key = payload * EXTRA_LIMIT + extra
  elseif extra == 0 then
    key = -payload
  else
    key = payload .. ":" .. extra
  end
  local id = known[key]
  if id then return id end
  id = self.frames + 1
  if id >= LIMIT then return nil end
  self.frames, known[key] = id, id
  self.kind[id], self.payload[id], self.extra[id] = kind, payload, extra
  return id
end

-- Returns the node of the stack of node with one frame more, or nil if there
-- are too many.
function methods:push(node, frame)
  local key = node * LIMIT + frame
  local id = self.child[key]
  if id then return id end
  id = self.nodes + 1
  if id >= LIMIT then return nil end
  self.nodes, self.child[key] = id, id
  self.parent[id], self.frame_of[id] = node, frame
  return id
end

-- Writes the frames of a stack into list, root first; returns their number.
function methods:list(node, list)
  local n = 0
  local parent, frame_of = self.parent, self.frame_of
  local up = node
  while up ~= 0 do
    n, up = n + 1, parent[up]
  end
  for i = n, 1, -1 do
    list[i], node = frame_of[node], parent[node]
  end
  return n
end

return stacks
