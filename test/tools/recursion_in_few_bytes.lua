-- A run of equal frames is one frame of the stream. The reader shows all of its frames, and
-- refuses a run that does not fit.
-- BASE: none, it reads no profile of this LuaJIT

local t = require("tools_test")
local B = require("stream_builder")
local reader = require("sysprof.read.reader")
local F = B.F

-- Renders one sample with these stacks.
local function render(lua, host, keep)
  local b = B.new():context():lfunc(1, 1, "@x", "f"):lfunc(2, 2, "@x", "g")
  b:stack(1, lua):stack(2, host or {})
  if keep then b:stack(1, keep.frames, keep.n, 1) end
  return t.render(b:sample(1, 2):finish())
end

local f, g = "f (x:1)", "g (x:2)"

t.equal(render { F.lfunc(1, 1), F.again(3, 1), F.lfunc(2, 2) },
	f .. (";" .. f):rep(3) .. ";" .. g .. " 1\n", "one frame")
t.equal(render { F.lfunc(2, 2), F.lfunc(1, 1), F.lfunc(2, 2), F.again(2, 2), F.lfunc(1, 1) },
	g .. (";" .. f .. ";" .. g):rep(3) .. ";" .. f .. " 1\n", "two frames in turns")

-- Frames after a run are relative to the last ones of the run.
t.equal(render { F.lfunc(1, 5), F.again(2, 1), F.lsame(2), F.again(2, 1), F.lsame(-2) },
	f .. (";" .. f):rep(6) .. " 1\n", "lines after a run")
t.equal(render({}, { F.host(0x10), F.near(0x10), F.again(2, 2), F.near(1) }),
	"0x10;0x20;0x10;0x20;0x10;0x20;0x21 1\n", "addresses after a run")

-- Each boundary of a run takes its own Lua frames.
t.equal(render({ F.cbound, F.lfunc(1, 1), F.again(2, 2) }, { F.host(0x7), F.vm, F.again(2, 2) }),
	"0x7;" .. f .. ";0x7;" .. f .. ";0x7;" .. f .. " 1\n", "both sides")

-- A run is one frame of those that another stack keeps.
t.equal(render({ F.lfunc(1, 1), F.again(3, 1), F.lfunc(2, 2) }, nil,
	       { n = 2, frames = { F.lfunc(2, 2), F.lfunc(1, 1) } }),
	f .. (";" .. f):rep(3) .. ";" .. g .. ";" .. f .. " 1\n", "kept with the run")

-- 6,000 frames of a recursion, and thousands of such stacks.
local b = B.new():context():lfunc(1, 1, "@x", "f")
for n = 1, 5000 do b:stack(n, { F.lfunc(1, 1), F.again(1000 + n, 1) }):sample(n, 0) end
local bytes = b:finish()
t.ok(#bytes < 5000 * 30, "bytes")
collectgarbage()
local before = collectgarbage("count")
local p = reader.parse_string(bytes)
t.equal(p:problem_text(), nil, "deep recursions")
t.equal(p.stacks:length(p.slots[5000].lua), 6001, "frames of the deepest")
t.ok(p.stacks:depth(p.slots[5000].lua) == 2, "nodes of the deepest")
collectgarbage()
t.ok(collectgarbage("count") - before < 8 * 1024, "memory")

for what, frames in pairs {
  ["a run of nothing"] = { F.again(3, 1) },
  ["a run of more frames than there are"] = { F.lfunc(1, 1), F.again(3, 2) },
  ["a group of no frame"] = { F.lfunc(1, 1), F.again(3, 0) },
  ["a group that is too long"] = { F.vm:rep(33), F.again(1, 33) },
  ["one frame"] = { F.lfunc(1, 1), F.again(1, 1) },
  ["no frame"] = { F.lfunc(1, 1), F.again(0, 1) },
  ["too many frames"] = { F.lfunc(1, 1), F.again(16385, 1) },
  ["too many runs"] = { F.lfunc(1, 1), F.again(10000, 1), F.lfunc(1, 1), F.again(10000, 1) },
  ["huge numbers"] = { F.lfunc(1, 1), F.again(2^40, 1) },
  ["a run of a run"] = { F.lfunc(1, 1), F.again(4, 1), F.again(2, 1) },
  ["a run within a group"] = { F.lfunc(1, 1), F.again(4, 1), F.lfunc(1, 1), F.again(2, 2) },
} do
  local _, profile = render(frames)
  t.contains(profile:problem_text(), what == "too many runs" and "a stack has more than 16384 frames" or
	     "expected a record", what)
end
t.equal(select(2, render { F.vm:rep(32), F.again(1, 32) }):problem_text(), nil, "the longest group")

t.finish()
