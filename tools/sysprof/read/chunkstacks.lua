----------------------------------------------------------------------------
-- Stacks of a chunk, by reference.
--
-- Ref 0 is the empty stack, 1 and 2 are the last two of the chunk, n + 2 is its n-th. A
-- chunk that keeps the stacks of the chunk before counts from the first of those.
-- A stack is the number of its node (sysprof.model.stacks), or NONE.
----------------------------------------------------------------------------

local ffi = require("ffi")

local LAST, BEFORE, FIRST = 1, 2, 3	-- Refs to the last two, to the first.
local NONE = -1

local nodes = ffi.typeof("int32_t[?]")

local chunkstacks = { NONE = NONE }
local methods = {}
local mt = { __index = methods }

function chunkstacks.new()
  return setmetatable({ list = nodes(16), size = 16, used = 0 }, mt):clear()
end

-- Forgets the stacks, in constant time.
function methods:clear()
  self.used = FIRST
  self.list[0], self.list[LAST], self.list[BEFORE] = 0, NONE, NONE
  return self
end

-- How many stacks there are.
function methods:count()
  return self.used - FIRST
end

function methods:get(ref)
  if ref < self.used then return self.list[ref] end
  return NONE
end

-- The same for two refs.
function methods:get2(a, b)
  local list, used = self.list, self.used
  if a < used and b < used then return list[a], list[b] end
  return self:get(a), self:get(b)
end

local function grow(self)
  local old = self.list
  self.list, self.size = nodes(self.size * 2), self.size * 2
  ffi.copy(self.list, old, ffi.sizeof(old))
end

function methods:add(node)
  local used = self.used
  if used == self.size then grow(self) end
  local list = self.list
  list[used], list[BEFORE], list[LAST] = node, list[LAST], node
  self.used = used + 1
end

-- In place of the stacks that a chunk goes on with, if they are not known.
local unknown = { NONE = NONE }

function unknown:get(ref)
  return ref == 0 and 0 or NONE
end

function unknown:get2(a, b)
  return self:get(a), self:get(b)
end

function unknown:add() end

chunkstacks.unknown = unknown

return chunkstacks
