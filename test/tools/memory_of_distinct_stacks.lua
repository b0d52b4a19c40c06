-- Memory of a profile of many distinct stacks, and of its call tree: so many bytes for each stack and
-- each node, counted in the collector and in the C library's allocator, not by the pages of the process.
-- BASE: none, it reads no profile of this LuaJIT

local ffi = require("ffi")
local t = require("tools_test")
local calltree = require("sysprof.show.calltree")
local reader = require("sysprof.read.reader")
local view = require("sysprof.show.view")
local stream_builder = require("stream_builder")

ffi.cdef [[
struct mallinfo2 { size_t arena, ordblks, smblks, hblks, hblkhd, usmblks, fsmblks, uordblks,
		   fordblks, keepcost; };
struct mallinfo2 mallinfo2(void);
]]
if not pcall(function() return ffi.C.mallinfo2 end) then
  print("skipped: this C library does not count what it gave (mallinfo2)")
  os.exit(77)
end

local function bytes()
  collectgarbage()
  collectgarbage()	-- Finalizers have run.
  local info = ffi.C.mallinfo2()
  return collectgarbage("count") * 1024 + tonumber(info.uordblks + info.hblkhd)
end

-- Each sample has a Lua stack of its own on one host stack: FRAMES nodes for a sample,
-- because the first frame differs.
local STACKS, FRAMES = 20000, 8
local F = stream_builder.F
local HOST = STACKS + 1		-- Ids of the builder.
local b = stream_builder.new()
for i = 1, STACKS do
  if i % 1000 == 1 then
    if i > 1 then b:flush() end
    b:context():stack(HOST, { F.host(0x1000), F.vm })
  end
  local frames = { F.cbound, F.lfunc(i, 1) }
  for k = 3, FRAMES + 1 do frames[k] = F.lfunc(k, k) end
  b:stack(i, frames):sample(i, HOST)
end
local stream = b:finish()

local before = bytes()
local p = assert(reader.parse_string(stream))
local each = (bytes() - before) / STACKS
t.equal(p:totals(), STACKS, "samples")
t.equal(p.slots:count(), STACKS, "distinct samples")
t.equal(p.stacks.nodes.count, STACKS * FRAMES + 3, "nodes")

-- A node takes 28 bytes and 16 in its index, a slot 32 and 16, and arrays may be twice as
-- large as what they hold. Each Lua function here is a frame, too.
local FRAME = 2 * (16 + 16) + 3 * 16
local most = FRAMES * 2 * (28 + 16) + 2 * (32 + 16) + FRAME
t.ok(each <= most, ("%.0f bytes for each stack, at most %.0f"):format(each, most))

-- A node of the call tree takes 48 bytes and 16 in its index, and arrays may be twice as large. Each name
-- has a number, and there is a name for each stack. The names themselves are the view's.
local v = view.new(p)
calltree.build(v)
before = bytes()
local calls = calltree.build(v)
each = (bytes() - before) / calls.count
t.ok(calls.count >= STACKS * (FRAMES - 1), "nodes of the call tree")
most = 2 * (48 + 16) + 2 * 2 * (8 + 40) / (FRAMES - 1)
t.ok(each <= most, ("%.0f bytes for each node, at most %.0f"):format(each, most))

t.finish()
