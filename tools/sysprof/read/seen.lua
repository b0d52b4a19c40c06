----------------------------------------------------------------------------
-- Cache of decoded byte strings.
--
-- Streams repeat themselves. The cache keeps bytes with their decoded values, so the next
-- occurrence costs a comparison. When the cache is full, it forgets everything.
--
-- seen.prefixes() finds the string that begins at a position, in a crit-bit tree. No
-- string may begin another one. Records mark their own end, so no record does.
--
-- seen.strings() finds a string of known length under a whole number.
----------------------------------------------------------------------------

local ffi = require("ffi")
local bit = require("bit")
local bytes = require("sysprof.base.bytes")
local limits = require("sysprof.base.limits")

local band, bxor, rshift = bit.band, bit.bxor, bit.rshift
local same, hash = bytes.same, bytes.hash

local KEEP_MAX, LENGTH_MAX, DEPTH_MAX = limits.SEEN, limits.SEEN_STRING, limits.SEEN_DEPTH
local FIRST = 64

local byte_array = ffi.typeof("uint8_t[?]")
local int_array = ffi.typeof("int32_t[?]")

local seen = { LENGTH_MAX = LENGTH_MAX }

-- -- Kept bytes ------------------------------------------------------------

-- Returns an array of at least n elements, each of size bytes, that begins with
-- the used ones of old.
local function widen(ctype, size, old, used, have, n)
  if n <= have then return old, have end
  repeat have = have * 2 until n <= have
  local list = ctype(have)
  ffi.copy(list, old, used * size)
  return list, have
end

-- Returns where the kept copy of len bytes begins.
local function keep(self, buf, pos, len)
  local at = self.used
  self.kept, self.kept_size =
    widen(byte_array, 1, self.kept, at, self.kept_size, at + len)
  ffi.copy(self.kept + at, buf + pos, len)
  self.used = at + len
  return at
end

-- -- Prefixes --------------------------------------------------------------

local prefixes = {}
local prefixes_mt = { __index = prefixes }

-- A node of the tree is four numbers: a place in the string, the shift of the bit in the
-- byte there, and the next items for 0 and 1. An item is a node, or -1 - a string. A string
-- is three numbers: its place in memory, its length, its number.
local NODE, ITEM = 4, 3

function seen.prefixes()
  return setmetatable({}, prefixes_mt):clear()
end

function prefixes:clear()
  self.kept, self.kept_size, self.used = byte_array(FIRST), FIRST, 0
  self.tree, self.tree_size, self.tree_used = int_array(FIRST), FIRST, 0
  self.items, self.items_size, self.items_used = int_array(FIRST), FIRST, 0
  self.root = nil
  self.longest = 1	-- Bytes that must be readable to look for a string.
  self.deepest = 0	-- Nodes of the tree that a search has passed, at most.
  return self
end

-- Returns the string that shares the bits of the tree with what begins at pos.
local function nearest(self, buf, pos)
  local tree, n, depth = self.tree, self.root, 0
  while n >= 0 do
    depth = depth + 1
    n = tree[n + 2 + band(rshift(buf[pos + tree[n]], tree[n + 1]), 1)]
  end
  self.deepest = depth > self.deepest and depth or self.deepest
  return -1 - n
end

-- Returns the number of the string that begins at pos and the position behind
-- it, or nil. At least longest bytes must follow pos.
function prefixes:find(buf, pos)
  if not self.root then return nil end
  local item, items = nearest(self, buf, pos), self.items
  local len = items[item + 1]
  if not same(buf, pos, self.kept, items[item], len) then return nil end
  return items[item + 2], pos + len
end

local function add_item(self, buf, pos, len, number)
  local item = self.items_used
  self.items, self.items_size =
    widen(int_array, 4, self.items, item, self.items_size, item + ITEM)
  self.items[item] = keep(self, buf, pos, len)
  self.items[item + 1], self.items[item + 2] = len, number
  self.items_used = item + ITEM
  if len > self.longest then self.longest = len end
  return -1 - item
end

-- Puts a node that tests the bit (at, shift) above what the tree has there for
-- the string at pos.
local function add_node(self, buf, pos, at, shift, leaf)
  local node = self.tree_used
  self.tree, self.tree_size =
    widen(int_array, 4, self.tree, node, self.tree_size, node + NODE)
  local tree = self.tree
  local n, from = self.root, nil
  while n >= 0 and (tree[n] < at or (tree[n] == at and tree[n + 1] > shift)) do
    from = n + 2 + band(rshift(buf[pos + tree[n]], tree[n + 1]), 1)
    n = tree[from]
  end
  local one = band(rshift(buf[pos + at], shift), 1)
  tree[node], tree[node + 1] = at, shift
  tree[node + 2 + one], tree[node + 3 - one] = leaf, n
  self.tree_used = node + NODE
  if from then tree[from] = node else self.root = node end
end

-- Keeps len bytes at pos, which find() does not find. At least longest bytes
-- must follow pos.
function prefixes:put(buf, pos, len, number)
  if len > LENGTH_MAX then return end
  if self.used + len > KEEP_MAX or self.deepest > DEPTH_MAX then self:clear() end
  if not self.root then
    self.root = add_item(self, buf, pos, len, number)
    return
  end
  local near = nearest(self, buf, pos)
  local from, at = self.items[near], 0
  local stop = math.min(len, self.items[near + 1])
  while at < stop and buf[pos + at] == self.kept[from + at] do at = at + 1 end
  if at == stop then return end		-- One begins with the other.
  local diff, shift = bxor(buf[pos + at], self.kept[from + at]), 7
  while band(rshift(diff, shift), 1) == 0 do shift = shift - 1 end
  local leaf = add_item(self, buf, pos, len, number)
  add_node(self, buf, pos, at, shift, leaf)
end

-- -- Strings under a number ------------------------------------------------

local strings = {}
local strings_mt = { __index = strings }

-- Four numbers stand before a string: its key, its hash, its length and its number. So one
-- access to memory finds all. A place is the index of the first number, in units of four
-- bytes, plus 1; 0 is free.
local KEY, HASH, LENGTH, NUMBER, HEAD = 0, 1, 2, 3, 4
local PROBES = 16	-- Places that are looked at.

local words = ffi.typeof("int32_t *")

function seen.strings()
  return setmetatable({}, strings_mt):clear()
end

function strings:clear()
  self.kept, self.kept_size, self.used = byte_array(FIRST), FIRST, 0
  self.words = ffi.cast(words, self.kept)
  self.places, self.size, self.count = int_array(FIRST), FIRST, 0
  return self
end

-- Does a string equal the one at a place?
local function is_at(self, place, key, h, buf, pos, len)
  local w, at = self.words, place - 1
  return w[at + HASH] == h and w[at + KEY] == key and w[at + LENGTH] == len and
	 same(buf, pos, self.kept, (at + HEAD) * 4, len)
end

-- Returns the number of len bytes (at least one) under key, a whole number below 2^31; or
-- nil and the argument for put(). Numbers are above 0.
function strings:find(key, buf, pos, len)
  local h = hash(key, buf, pos, len)
  local list, mask = self.places, self.size - 1
  local place = list[band(h, mask)]
  if place == 0 then return nil, h end
  -- Mostly it is in the first place, and code without a loop compiles best.
  if is_at(self, place, key, h, buf, pos, len) then
    return self.words[place - 1 + NUMBER]
  end
  for at = h + 1, h + PROBES - 1 do
    place = list[band(at, mask)]
    if place == 0 then break end
    if is_at(self, place, key, h, buf, pos, len) then
      return self.words[place - 1 + NUMBER]
    end
  end
  return nil, h
end

-- Returns a free place for the hash h, or nil.
local function free_place(list, mask, h)
  for at = h, h + PROBES - 1 do
    if list[band(at, mask)] == 0 then return band(at, mask) end
  end
end

local function strings_grow(self)
  local old, size = self.places, self.size
  self.size = size * 2
  self.places = int_array(self.size)
  for i = 0, size - 1 do
    local place = old[i]
    if place ~= 0 then
      local at = free_place(self.places, self.size - 1, self.words[place - 1 + HASH])
      if at then self.places[at] = place end
    end
  end
end

-- Keeps len bytes under key, which find() did not find and gave h for.
function strings:put(key, buf, pos, len, h, number)
  if len > LENGTH_MAX then return end
  if self.used + len > KEEP_MAX then self:clear() end
  local place = free_place(self.places, self.size - 1, h)
  if not place then return end
  local at = math.ceil(self.used / 4)
  self.kept, self.kept_size =
    widen(byte_array, 1, self.kept, self.used, self.kept_size, (at + HEAD) * 4 + len)
  local w = ffi.cast(words, self.kept)
  w[at + KEY], w[at + HASH], w[at + LENGTH], w[at + NUMBER] = key, h, len, number
  ffi.copy(self.kept + (at + HEAD) * 4, buf + pos, len)
  self.words, self.used = w, (at + HEAD) * 4 + len
  self.places[place] = at + 1
  self.count = self.count + 1
  if self.count * 2 > self.size then strings_grow(self) end
end

return seen
