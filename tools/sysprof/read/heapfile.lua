----------------------------------------------------------------------------
-- Heap snapshots: a file becomes a graph of objects.
--
-- 10 million objects must fit into memory. So an object takes 24 bytes and an edge 4, outside of the collector. The
-- names of edges are not kept: heapfile.edges() reads those of an object again.
--
-- A snapshot has these fields:
--   objects       number of objects; object 0 is the root of all roots
--   tag, size, address   arrays by object; addresses are in eighths
--   first, to     strong edges: those of object i are to[first[i]] to to[first[i + 1] - 1]; for weak keys see
--                 sysprof.model.ephemerons
--   edges         number of them
--   roots         list of { kind=, index=, object= }
--   parts         bytes by HPP_*
--   total         bytes that the VM counted
--   pid, time, no_strings, is_damaged, is_cut
--   unknown       edges to objects that are not in the file
----------------------------------------------------------------------------

local array = require("sysprof.base.array")
local bit = require("bit")
local ephemerons = require("sysprof.model.ephemerons")
local ffi = require("ffi")
local heapgrammar = require("sysprof.base.heapgrammar")
local limits = require("sysprof.base.limits")
local regular = require("sysprof.base.regular")
local sort = require("sysprof.base.sort")

local G = heapgrammar
local BLOCK = 2^20
local FIRST_ROOM = 2^12		-- Objects.
local PROBES = 64		-- Steps of a search by address, for each object and edge.
local LIGHTUD_BYTES = 2^52

local BYTES, NUMBERS, DOUBLES = array.kind("uint8_t"), array.kind("uint32_t"), array.kind("double")

local double_of = ffi.new("union { uint8_t byte[8]; double value; uint64_t bits; }")

local heapfile = {}

-- Labels of edges: what an edge is, by the numbers a and b that come with it.
heapfile.LABELS = {
  METATABLE = 1, ENVIRONMENT = 2, PROTOTYPE = 3, CONSTANT = 4, CHUNK = 5, TRACE = 6, VALUE = 7,
  INDEX = 8,		-- a: index of the array part.
  FIELD = 9,		-- a: HPK_*; b: the key's number, or the address of an object as a key.
  KEY = 10,		-- The key itself.
  UPVALUE = 11,		-- a: index from 0.
  SLOT = 12,		-- a: index; b: its name, or "".
  FRAME = 13, REFERENCE = 14,
  OF_KEY = 15,		-- What a table has for the object as its weak key. heapfile.edges() does not tell these.
}
local L = heapfile.LABELS

local WITH_KEY = "with key"	-- An edge that is strong while the table keeps the key.

-- -- Reading bytes ---------------------------------------------------------

local function damaged(what) error({ problem = what }, 0) end

-- Returns an object that reads bytes of an array.
local function new_cursor(bytes, size)
  local self, pos, own = {}, 0, 0

  local function byte()
    if pos >= size then damaged("it ends in the middle of a record") end
    local b = bytes[pos]
    pos = pos + 1
    return b
  end

  local function uleb()
    local b = byte()
    if b < 128 then return b end
    local v, scale = b - 128, 128
    repeat
      b = byte()
      v = v + (b < 128 and b or b - 128) * scale
      scale = scale * 128
      if scale > 2^70 then damaged("a number is too large") end
    until b < 128
    return v
  end

  local function signed()
    local v = uleb()
    return v % 2 == 0 and v / 2 or -(v + 1) / 2
  end

  local function ref()
    local v = uleb()
    if v == 0 then return 0 end
    v = v - 1
    return own + (v % 2 == 0 and v / 2 or -(v + 1) / 2)
  end

  local function skip(n)
    if n > size - pos then damaged("a text is longer than the file") end
    pos = pos + n
  end

  local function text()
    local n = uleb()
    local from = pos
    skip(n)
    return n == 0 and "" or ffi.string(bytes + from, n)
  end

  function self.pos() return pos end
  function self.seek(at, address) pos, own = at, address end
  function self.own(address) own = address end

  local function number()
    if size - pos < 8 then damaged("it ends in the middle of a number") end
    ffi.copy(double_of.byte, bytes + pos, 8)
    pos = pos + 8
    return double_of.value
  end

  local function refs(emit, label)
    for i = 0, uleb() - 1 do
      local target = ref()
      if target ~= 0 then emit(target, true, label, i) end
    end
  end

  local function one(emit, label)
    local target = ref()
    if target ~= 0 then emit(target, true, label) end
  end

  local bodies = {}	-- By tag: reads what follows the size, and calls emit for each edge.

  bodies[G.HPF_STR] = function()
    byte()
    uleb()
    skip(uleb())
  end

  bodies[G.HPF_UPVAL] = function(emit)
    byte()
    one(emit, L.VALUE)
  end

  bodies[G.HPF_THREAD] = function(emit)
    byte()
    uleb()
    one(emit, L.ENVIRONMENT)
    for _ = 1, uleb() do
      ref()
      uleb()
      uleb()
    end
    local index, gap = -1, uleb()
    while gap ~= 0 do
      index = index + gap
      local target = ref()
      local n = uleb()
      local from = pos
      skip(n)
      if target ~= 0 then emit(target, true, L.SLOT, index, from, n) end
      gap = uleb()
    end
  end

  bodies[G.HPF_PROTO] = function(emit)
    one(emit, L.CHUNK)
    uleb()
    uleb()
    byte()
    one(emit, L.TRACE)
    for _ = 1, uleb() do skip(uleb()) end
    refs(emit, L.CONSTANT)
  end

  bodies[G.HPF_FUNC] = function(emit)
    local ffid = uleb()
    one(emit, L.ENVIRONMENT)
    if ffid == 0 then one(emit, L.PROTOTYPE) else uleb() end
    refs(emit, L.UPVALUE)
  end

  bodies[G.HPF_TRACE] = function(emit)
    uleb()
    one(emit, L.PROTOTYPE)
    refs(emit, L.CONSTANT)
  end

  bodies[G.HPF_CDATA] = function() uleb() end

  bodies[G.HPF_UDATA] = function(emit)
    uleb()
    one(emit, L.METATABLE)
    one(emit, L.ENVIRONMENT)
    refs(emit, L.REFERENCE)
  end

  bodies[G.HPF_TAB] = function(emit)
    local flags = byte()
    local strong_key, strong_value = flags % 2 == 0, flags < 2
    one(emit, L.METATABLE)
    local index, gap = -1, uleb()
    while gap ~= 0 do
      index = index + gap
      local target = ref()
      if target ~= 0 then emit(target, strong_value, L.INDEX, index) end
      gap = uleb()
    end
    local kind = byte()
    while kind ~= G.HPK_END do
      local key = 0
      if kind == G.HPK_OBJ then
	key = ref()
	if key ~= 0 then emit(key, strong_key, L.KEY) end
      elseif kind == G.HPK_INT then
	key = signed()
      elseif kind == G.HPK_NUM then
	key = number()
      elseif kind == G.HPK_LIGHTUD then
	key = uleb()
	if key >= LIGHTUD_BYTES then damaged("a key is too large") end
      elseif kind > G.HPK_OBJ then
	damaged("a table has a key of an unknown kind")
      end
      local target = ref()
      if target ~= 0 then
	emit(target, flags == G.HPO_WEAKKEY and kind == G.HPK_OBJ and WITH_KEY or strong_value, L.FIELD, kind, key)
      end
      kind = byte()
    end
    uleb()
  end

  self.byte, self.uleb, self.signed, self.ref, self.skip, self.text, self.bodies =
    byte, uleb, signed, ref, skip, text, bodies
  return self
end

-- -- The file --------------------------------------------------------------

-- Returns the bytes of a file and their number, or nil and the reason.
local function load_file(path)
  local file, why, is_other = regular.open(path)
  if not file then return nil, is_other and "a snapshot is a regular file" or why end
  local size = file.size
  if size > limits.HEAP_BYTES then
    file:close()
    return nil, limits.sentence("HEAP_BYTES")
  end
  local bytes, n = array.resize(BYTES, nil, size + 8), 0
  while n < size do
    local s = file:read(n, math.min(BLOCK, size - n))
    if #s == 0 then break end
    ffi.copy(bytes + n, s, #s)
    n = n + #s
  end
  file:close()
  if n < size then return nil, "its end cannot be read" end
  return bytes, size
end

-- Checks head and sum. Returns nil, or what is wrong.
local function check(bytes, size)
  if size < #G.MAGIC + 1 or ffi.string(bytes, #G.MAGIC) ~= G.MAGIC then return "it is no heap snapshot" end
  local version = bytes[#G.MAGIC]
  if version ~= G.HPF_VERSION then
    return ("it has version %d of the format; this reader knows version %d"):format(version, G.HPF_VERSION)
  end
  if size % 8 ~= 0 or size < 24 then return "it is cut" end
  local words, sum = ffi.cast("const uint64_t *", bytes), G.HPF_SUM
  local last = size / 8 - 1
  for i = 0, last - 1 do sum = bit.bxor(sum, words[i]) * G.HPF_PRIME end
  if sum ~= words[last] then return "it is cut or damaged: its checksum is wrong" end
end

-- -- Objects ---------------------------------------------------------------

-- Reads all records. Sets all fields of the snapshot except those of edges. Returns the number of edges.
local function read_records(snap, cursor)
  local room, n, edges = FIRST_ROOM, 0, 0
  local tag, size, address, offset
  local function resize(to)
    room = to
    tag, size = array.resize(BYTES, tag, room + 1), array.resize(DOUBLES, size, room + 1)
    address, offset = array.resize(DOUBLES, address, room + 1), array.resize(NUMBERS, offset, room + 1)
  end
  local function count() edges = edges + 1 end
  resize(room)
  tag[0], size[0], address[0], offset[0] = 0, 0, 0, 0
  local last, bodies, has_wrong_size = 0, cursor.bodies, false
  while true do
    local kind = cursor.byte()
    local body = bodies[kind]
    if body then
      last = last + cursor.signed()
      if last <= 0 or last >= 2^44 then damaged("an address is out of range") end
      n = n + 1
      if n > limits.HEAP_OBJECTS then damaged(limits.sentence("HEAP_OBJECTS")) end
      if n > room then resize(room * 2) end
      tag[n], address[n] = kind, last
      local bytes = cursor.uleb()
      if bytes >= 2^48 then bytes, has_wrong_size = 0, true end
      size[n], offset[n] = bytes, cursor.pos()
      cursor.own(last)
      body(count)
    elseif kind == G.HPF_ROOT then
      local root_kind, index = cursor.byte(), cursor.uleb()
      cursor.own(0)
      if #snap.roots == limits.HEAP_ROOTS then damaged(limits.sentence("HEAP_ROOTS")) end
      snap.roots[#snap.roots + 1] = { kind = root_kind, index = index, address = cursor.ref() }
    elseif kind == G.HPF_PART then
      local part, bytes = cursor.byte(), cursor.uleb()
      snap.parts[part] = (snap.parts[part] or 0) + bytes
    elseif kind == G.HPF_END then
      break
    else
      damaged(("it has an unknown record, %d"):format(kind))
    end
  end
  if cursor.uleb() ~= n then damaged("objects are missing") end
  snap.total = cursor.uleb()
  local state = cursor.byte()
  snap.is_damaged, snap.is_cut = state % 2 == 1 or has_wrong_size, state >= 2
  snap.objects, snap.tag, snap.size, snap.address, snap.offset = n, tag, size, address, offset
  return edges
end

-- Returns find(address): the object with this address, or 0. An address that stands twice belongs to the first object;
-- the other one gets the tag 0 and no edges.
local function new_index(snap, most)
  local slots, n, address, part = 1024, snap.objects, snap.address, 2^21
  while slots < 2 * n do slots, part = slots * 2, part / 2 end
  local slot = array.resize(NUMBERS, nil, slots)
  ffi.fill(slot, slots * NUMBERS.size)
  -- A multiplicative hash whose products are exact; another one in each run, so that no file can aim at it.
  local place_of_array = tonumber(ffi.cast("uintptr_t", slot))
  local low = math.floor(place_of_array / 4096) % 2^29 * 2 + 2^30 + 1
  local high = low * 48271 % 2^29 * 2 + 2^30 + 1
  local left = most * PROBES
  local function place(addr)
    local h = addr % 2^22 * low + math.floor(addr / 2^22) * high
    local i = math.floor(h / part) % slots
    while slot[i] ~= 0 and address[slot[i]] ~= addr do
      i = i + 1
      if i == slots then i = 0 end
      left = left - 1
      if left < 0 then damaged("its addresses take too long to search") end
    end
    return i
  end
  for i = 1, n do
    local at = place(address[i])
    if slot[at] == 0 then
      slot[at] = i
    else
      snap.tag[i], snap.size[i], snap.is_damaged = 0, 0, true
    end
  end
  return function(addr) return slot[place(addr)] end
end

-- Orders of roots: which one gives an object its path, if several are equally near.
local ROOT_ORDER = { [G.HPR_GLOBALS] = 1, [G.HPR_MAIN] = 2, [G.HPR_REGISTRY] = 3 }

-- Finds the objects of the roots, and sorts them.
local function sort_roots(snap, find)
  local list = {}
  for i, root in ipairs(snap.roots) do
    root.object, root.at = find(root.address), i
    if root.object ~= 0 then list[#list + 1] = root end
  end
  sort(list, function(a, b)
    local x, y = ROOT_ORDER[a.kind] or 9, ROOT_ORDER[b.kind] or 9
    if x ~= y then return x < y end
    return a.at < b.at
  end)
  snap.roots = list
end

-- Calls each(object) for all strings that the VM keeps.
local function each_fixed(snap, cursor, each)
  for i = 1, snap.objects do
    if snap.tag[i] == G.HPF_STR then
      cursor.seek(snap.offset[i], 0)
      if cursor.byte() % 2 == 1 then each(i) end
    end
  end
end

-- Fills in all edges.
local function read_edges(snap, cursor, find, edges)
  local most = edges
  sort_roots(snap, find)
  each_fixed(snap, cursor, function() most = most + 1 end)
  most = most + #snap.roots
  local first, to, n = array.resize(NUMBERS, nil, snap.objects + 2), array.resize(NUMBERS, nil, most + 1), 0
  local tag, offset, address, bodies = snap.tag, snap.offset, snap.address, cursor.bodies
  snap.unknown = 0
  first[0] = 0
  for _, root in ipairs(snap.roots) do to[n], n = root.object, n + 1 end
  each_fixed(snap, cursor, function(i) to[n], n = i, n + 1 end)
  local weak = { count = 0 }	-- Entries of tables with weak keys.
  local object, weak_room = 0, 0
  local function add_entry(key, value)
    if weak.count == weak_room then
      weak_room = math.max(FIRST_ROOM, weak_room * 2)
      for _, name in ipairs { "holder", "key", "value" } do
	weak[name] = array.resize(NUMBERS, weak[name], weak_room + 1)
      end
    end
    weak.count = weak.count + 1
    weak.holder[weak.count], weak.key[weak.count], weak.value[weak.count] = object, key, value
  end
  local function emit(target, is_strong, _, _, key)
    local i = find(target)
    local of_key = is_strong == WITH_KEY and find(key) or 0
    if i == 0 then
      snap.unknown = snap.unknown + 1
    elseif of_key ~= 0 and tag[of_key] ~= G.HPF_STR then
      add_entry(of_key, i)
    elseif is_strong or tag[i] == G.HPF_STR then	-- The collector never takes strings out of weak tables.
      to[n] = i
      n = n + 1
    end
  end
  for i = 1, snap.objects do
    first[i] = n
    if tag[i] ~= 0 then
      object = i
      cursor.seek(offset[i], address[i])
      bodies[tag[i]](emit)
    end
  end
  first[snap.objects + 1] = n
  ephemerons.add(snap.objects + 1, first, to, weak)
  snap.first, snap.to, snap.edges = first, to, first[snap.objects + 1]
end

local function read(bytes, size)
  local wrong = check(bytes, size)
  if wrong then damaged(wrong) end
  local cursor = new_cursor(bytes, size - 8)
  local snap = { roots = {}, parts = {} }
  cursor.seek(#G.MAGIC + 1, 0)
  snap.no_strings = cursor.byte() % 2 == 1
  snap.pid, snap.time = cursor.uleb(), cursor.uleb()
  local edges = read_records(snap, cursor)
  local find = new_index(snap, snap.objects * 2 + edges * 2 + 1024)
  read_edges(snap, cursor, find, edges)
  snap.bytes, snap.cursor, snap.find = bytes, cursor, find
  return snap
end

-- Returns the snapshot in a file, or nil and what is wrong.
function heapfile.read(path)
  local bytes, size = load_file(path)
  if not bytes then return nil, size end
  local ok, snap = pcall(read, bytes, size)
  if ok then return snap end
  if type(snap) == "table" and snap.problem then return nil, snap.problem end
  error(snap, 0)
end

-- -- Single objects --------------------------------------------------------

local function at_body(snap, i)
  snap.cursor.seek(snap.offset[i], snap.address[i])
  return snap.cursor
end

-- Calls emit(object, is_strong, label, a, b) for each edge of an object; is_strong is false where the collector
-- does not follow it. wanted: a set of addresses in eighths, to see edges to these only.
function heapfile.edges(snap, i, emit, wanted)
  local body = at_body(snap, i).bodies[snap.tag[i]]
  if not body then return end
  local tag = snap.tag
  body(function(target, is_strong, label, a, b, n)
    if wanted and not wanted[target] then return end
    local j = snap.find(target)
    if label == L.SLOT then b = n > 0 and ffi.string(snap.bytes + b, n) or "" end
    if j ~= 0 then emit(j, is_strong or tag[j] == G.HPF_STR, label, a, b) end
  end)
end

-- Returns the text of a string, and its length. The text may be shorter.
function heapfile.string(snap, i)
  local c = at_body(snap, i)
  c.byte()
  local length = c.uleb()
  return c.text(), length
end

-- Returns the first bytes of a string's text.
function heapfile.beginning(snap, i, most)
  local c = at_body(snap, i)
  c.byte()
  c.uleb()
  local n = c.uleb()
  return ffi.string(snap.bytes + c.pos(), math.min(n, most))
end

-- Returns the prototype of a function, or 0.
function heapfile.proto_of(snap, i)
  local c = at_body(snap, i)
  if c.uleb() ~= 0 then return 0 end
  c.ref()
  return snap.find(c.ref())
end

-- Returns { env=, ffid=, proto=, code= } of a function; proto is an object, or 0.
function heapfile.func(snap, i)
  local c = at_body(snap, i)
  local ffid, env = c.uleb(), c.ref()
  if ffid == 0 then return { ffid = 0, env = snap.find(env), proto = snap.find(c.ref()) } end
  return { ffid = ffid, env = snap.find(env), code = c.uleb() }
end

-- Returns { chunk=, first_line=, last_line=, upvalues= } of a prototype; chunk is its text, or nil.
function heapfile.proto(snap, i)
  local c = at_body(snap, i)
  local chunk, first, lines = snap.find(c.ref()), c.uleb(), c.uleb()
  c.byte()
  c.ref()
  local names = {}
  for at = 1, c.uleb() do names[at] = c.text() end
  local is_text = chunk ~= 0 and snap.tag[chunk] == G.HPF_STR and not snap.no_strings
  return { chunk = is_text and heapfile.string(snap, chunk) or nil, first_line = first, last_line = first + lines,
	   upvalues = names }
end

-- Returns { is_main=, is_running=, status=, frames= } of a coroutine; a frame, from the top on, is
-- { func=, line=, base= }.
function heapfile.thread(snap, i)
  local c = at_body(snap, i)
  local flags, status = c.byte(), c.uleb()
  c.ref()
  local frames = {}
  for at = 1, c.uleb() do frames[at] = { func = snap.find(c.ref()), line = c.uleb(), base = c.uleb() } end
  return { is_main = flags % 2 == 1, is_running = flags >= 2, status = status, frames = frames }
end

-- Returns { is_weak=, used= } of a table: used counts the slots with a value.
function heapfile.table(snap, i)
  local c = at_body(snap, i)
  local flags = c.byte()
  c.seek(snap.offset[i], snap.address[i])
  c.bodies[G.HPF_TAB](function() end)
  local last = c.pos()
  -- The number of slots is the last one of the record.
  local from = last - 1
  while from > snap.offset[i] and snap.bytes[from - 1] >= 128 do from = from - 1 end
  c.seek(from, 0)
  return { is_weak = flags ~= 0, used = c.uleb() }
end

return heapfile
