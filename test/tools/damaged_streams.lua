-- Damaged and cut streams: the reader uses the whole parts, and always reports the rest.
-- TIMEOUT: 600
-- BASE: none, it reads no profile of this LuaJIT

local t = require("tools_test")
local B = require("stream_builder")
local G = require("sysprof.base.grammar")
local F, uleb = B.F, B.uleb

local NAMES = { "one", "two", "three", "four" }

-- Four chunks; chunk n has n samples in function n. Returns the stream and the
-- offsets where its chunks begin.
local function four_chunks()
  local b, at = B.new(), {}
  for n, name in ipairs(NAMES) do
    at[n] = #b:bytes()
    b:context(1, n):lfunc(n, n, "@x", name)
    b:stack(n, { F.cbound, F.lfunc(n, n) }):sample(n, 0, n)
    if n < #NAMES then b:flush() end
  end
  at[#NAMES + 1] = #b:finish()
  return b:bytes(), at
end

local stream, at = four_chunks()

local function expected(first, last, without)
  local lines = {}
  for n = first, last do
    if n ~= without then
      lines[#lines + 1] = ("%s (x:%d) %d\n"):format(NAMES[n], n, n)
    end
  end
  table.sort(lines)
  return table.concat(lines)
end

-- Renders s and checks output and problem; problem nil means complete.
local function check(what, s, output, problem)
  local out, p = t.render(s)
  t.equal(out, output, what)
  if not out then
    t.contains(p, problem, what)
  elseif problem then
    t.ok(not p.complete, what .. ": incomplete")
    t.contains(p:problem_text(), problem, what)
    t.ok(not p:problem_text():find("\n"), what .. ": one line")
  else
    t.equal(p:problem_text(), nil, what)
    t.ok(p.complete, what .. ": complete")
  end
end

local function put(s, offset, part)
  return s:sub(1, offset) .. part .. s:sub(offset + #part + 1)
end

check("whole", stream, expected(1, 4), nil)

-- -- Cut at every offset ---------------------------------------------------

for cut = 0, #stream - 1 do
  local s, whole = stream:sub(1, cut), 0
  while at[whole + 2] <= cut do whole = whole + 1 end
  local what = "cut at " .. cut
  if cut == 0 then
    check(what, s, nil, "empty")
  elseif cut < G.SPF_PROLOGUE_SIZE then
    check(what, s, nil, "ends at offset " .. cut)
  elseif cut == at[whole + 1] then
    check(what, s, expected(1, whole), "offset " .. cut .. ": the stream ends here")
  else
    check(what, s, expected(1, whole), "offset " .. at[whole + 1] .. ": the file is cut")
  end
end
local _, p = t.render(stream:sub(1, -8))
t.contains(p:problem_text(), "7 of the", "how much is missing")

-- -- Every byte changed ----------------------------------------------------

local whole_output = expected(1, 4)
for offset = 0, #stream - 1 do
  local old = stream:byte(offset + 1)
  for _, new in ipairs { 0, 1, 127, 128, 255, (old + 1) % 256,
			 (old + 255) % 256, old < 128 and old + 128 or old - 128 } do
    if new ~= old then
      local s = put(stream, offset, string.char(new))
      local out, prof = t.render(s)
      local what = ("byte %d from %d to %d"):format(offset, old, new)
      if offset == 11 and new == G.SPF_VERSION_OLDEST then
	t.equal(out, "", what .. ": no chunk of that version")
	t.contains(prof:problem_text(), "expected a chunk", what)
      elseif offset < G.SPF_PROLOGUE_SIZE then
	t.ok(out == nil, what .. ": no output")
	-- Without its magic it is anything.
	t.ok(type(prof) == "string" and (offset < #G.MAGIC_SYMTAB and prof == "not a sysprof profile" or
	     prof:find("^sysprof profile of stream version %d+, expected version 3 or 4; [^\n]+$") or
	     prof:find("^cut or damaged profile: offset %d+: [^\n]+$")),
	     what .. ": message")
      else
	t.ok(out and not prof.complete, what .. ": not silent")
	t.ok(out ~= whole_output, what .. ": the damaged chunk is left out")
	local n = 1
	while offset >= at[n + 1] do n = n + 1 end
	t.equal(out, expected(1, 4, n), what .. ": the other chunks are used")
	t.contains(prof:problem_text(), "offset " .. at[n] .. ":", what)
      end
    end
  end
end

-- -- Some damages ----------------------------------------------------------

local function part(n) return stream:sub(at[n] + 1, at[n + 1]) end
local head = stream:sub(1, at[1])

check("chunk missing", head .. part(1) .. part(3) .. part(4), expected(1, 4, 2),
      "offset " .. at[2] .. ": expected chunk number 1, found 2")
check("first chunk missing", head .. part(2) .. part(3) .. part(4), expected(2, 4),
      "expected chunk number 0, found 1")
check("chunk twice", head .. part(1) .. part(2) .. part(2) .. part(3) .. part(4),
      expected(1, 4), "left out")
check("junk between", head .. part(1) .. "some junk" .. part(2) .. part(3) .. part(4),
      expected(1, 4), "offset " .. at[2] .. ": expected a chunk")
check("more is missing than was damaged", head .. part(1) .. "some junk" .. part(4),
      (expected(1, 1) .. expected(4, 4)):gsub("^(one[^\n]*\n)(four[^\n]*\n)", "%2%1"),
      "expected chunk number 1, found 3")
check("junk with a magic", head .. part(1) .. "ljc\4xxljc\4" .. part(2) .. part(3) .. part(4),
      expected(1, 4), "offset " .. at[2])
check("junk at the end", stream .. "x", expected(1, 4), "offset " .. #stream)
check("zeros at the end", stream .. ("\0"):rep(5000), expected(1, 4),
      "offset " .. #stream)
check("stream twice", stream .. stream, expected(1, 4),
      "offset " .. #stream + #B.PROLOGUE .. ": a chunk follows the end")
check("chunk after the end", stream .. B.chunk(4, ""), expected(1, 4),
      "a chunk follows the end")
check("zeros in the middle", put(stream, at[2] + 3, ("\0"):rep(at[3] - at[2])),
      expected(1, 4, 2):gsub("three[^\n]*\n", ""), "offset " .. at[2])
check("huge length", put(stream, at[2] + 8, "\255\255\255\255"), expected(1, 4, 2),
      "expected less than " .. G.SPF_CHUNK_MAX)
check("length behind the end", put(stream, at[2] + 8, B.u32(100000)),
      expected(1, 4, 2), "more than follow")
check("only a prologue", head, "", "the stream ends here")
check("text", "frame;frame 5\n" .. ("x"):rep(20), nil, "not a sysprof profile")
check("other version", put(stream, 11, "\5"), nil, "version 5")
check("zeros", ("\0"):rep(100), nil, "not a sysprof profile")

-- -- Records that do not fit, in chunks with a right checksum ---------------

-- A record must not extend into the bytes behind its chunk.
for what, bytes in pairs {
  ["a record one byte longer than its chunk"] = "\31\1",
  ["a sample that begins in its chunk"] =
    string.char(G.SPF_SAMPLE + G.SPF_SAMPLE_WEIGHT_USUAL + G.SPF_VMST_LFUNC) .. "\2",
} do
  local b = B.new():context():lfunc(1, 1, "@x", "f"):stack(1, { F.lfunc(1) }):sample(1, 0)
  local s = b:raw(bytes):flush():context():finish()
  local out, prof = t.render(s)
  t.equal(out, "f (x:1) 1\n", what)
  t.contains(prof:problem_text(), "skipped the last 2 bytes of this chunk", what)
end

local function bad_record(what, add, problem)
  local b = B.new():context():lfunc(1, 1, "@x", "f"):stack(1, { F.lfunc(1) })
  b:sample(1, 0)
  add(b)
  local s = b:sample(1, 0):finish()
  local out, prof = t.render(s)
  t.equal(out, problem and "f (x:1) 1\n" or "f (x:1) 2\n", what)
  t.ok(prof.complete == not problem, what .. ": complete or not")
  if problem then t.contains(prof:problem_text(), problem, what) end
end
bad_record("the largest state", function(b) b:sample(1, 0, 0, G.SPF_VMST__MAX - 1) end)
bad_record("a state above all", function(b) b:sample(1, 0, 1, G.SPF_VMST__MAX) end,
	   "expected a record")

local RECORD = "expected a record"
bad_record("unknown tag", function(b) b:add(0x1f, "anything") end)
bad_record("unknown tag of no bytes", function(b) b:add(0x1e, "") end)
bad_record("longer than known", function(b)
  b:raw(B.record(G.SPF_META, B.str("k") .. B.str("v") .. "more"))
end)
bad_record("length behind the chunk", function(b) b:raw("\31\200\1") end, RECORD)
bad_record("length of many bytes", function(b) b:raw("\31" .. ("\255"):rep(12)) end, RECORD)
bad_record("symbol at a number of many bytes", function(b)
  b:raw(B.record(G.SPF_HSYM, ("\255"):rep(10) .. B.str("f") .. ("\255"):rep(10)))
end, RECORD)
bad_record("unknown state", function(b) b:raw("\207\1\1\0") end, RECORD)
bad_record("string behind the record", function(b) b:add(G.SPF_META, "\9ab") end, RECORD)
bad_record("meta without value", function(b) b:add(G.SPF_META, "\1a") end, RECORD)
bad_record("empty function", function(b) b:add(G.SPF_LFUNC, "") end, RECORD)
bad_record("half a counter", function(b) b:add(G.SPF_COUNTERS, "\1") end, RECORD)
bad_record("keep all", function(b) b:stack(2, {}, 1, 1) end)
bad_record("keep more than all", function(b) b:stack(2, {}, 2, 1) end, RECORD)
bad_record("keep of nothing", function(b) b:stack(2, {}, 1, 0) end, RECORD)
bad_record("base not defined", function(b) b:stack(2, {}, 0, 9) end, RECORD)
bad_record("base is itself, not defined", function(b) b:stack(2, {}, 0, 2) end, RECORD)
bad_record("base of another chunk", function(b)
  b:flush():context():stack(2, {}, 1, 1)
end, RECORD)
bad_record("stack of nothing", function(b) b:raw("\64") end, RECORD)
bad_record("stack without keep", function(b) b:raw("\65\1") end, RECORD)
bad_record("keep behind the record", function(b) b:raw("\66\1\129") end, RECORD)
bad_record("stack behind the chunk", function(b) b:raw("\127\200\1\1\1") end, RECORD)
bad_record("stack of many bytes", function(b) b:raw("\127" .. ("\255"):rep(12)) end, RECORD)
bad_record("one stack only", function(b) b:raw(B.stack(2, 1, "")) end, RECORD)
bad_record("stack after the last", function(b) b:raw(B.stack(4, 1, "")) end, RECORD)
bad_record("kind of frame", function(b) b:stack(2, { "\15" }) end, RECORD)
bad_record("half a frame", function(b) b:stack(2, { "\16" }) end, RECORD)
bad_record("half a frame of a trace", function(b) b:stack(2, { "\57" }) end, RECORD)
bad_record("half a frame of work", function(b) b:stack(2, { "\58" }) end, RECORD)
bad_record("difference without an address", function(b)
  b:stack(2, { F.cfunc(9), F.near(5) })
end, RECORD)
bad_record("difference to less than 0", function(b)
  b:stack(2, { F.host(9), F.near(-10) })
end, RECORD)
bad_record("same function as none", function(b)
  b:stack(2, { F.host(9), F.lsame(5) })
end, RECORD)
bad_record("line less than 0", function(b)
  b:stack(2, { F.lfunc(1, 9), F.lsame(-10) })
end, RECORD)
bad_record("huge line", function(b)
  b:stack(2, { F.lfunc(1, 9), F.lsame(2^40), F.lsame(0) })
end)
bad_record("large differences", function(b)
  b:stack(2, { F.host(9), F.near(2^48 - 1), F.near(1 - 2^48) })
end)
bad_record("huge difference", function(b) b:stack(2, { F.host(9), F.near(2^48) }) end, RECORD)
bad_record("huge difference of lines", function(b)
  b:stack(2, { F.lfunc(1, 9), F.lsame(2^48) })
end, RECORD)
bad_record("difference of many bytes", function(b)
  b:stack(2, { F.host(9), "\139" .. ("\255"):rep(12) })
end, RECORD)
bad_record("half a symbol's address", function(b)
  b:add(G.SPF_HSYM, "\2" .. B.str("x") .. "\5\129")
end, RECORD)
bad_record("symbol without addresses", function(b)
  b:add(G.SPF_HSYM, "\2" .. B.str("x"))
end)
bad_record("trace of many frames", function(b)
  b:stack(2, { F.lfunc(1), F.trace(2^40, 2^52) }):sample(2, 0, 0)
end)
bad_record("huge weight", function(b) b:sample(1, 0, 1, 1, 2^63) end, RECORD)
bad_record("weight below 0", function(b) b:sample(1, 0, 1, 1, -1) end, RECORD)
bad_record("time below 0", function(b) b:raw("\193" .. uleb(B.signed(-1001)) .. "\3\0") end,
	   RECORD)
bad_record("huge time", function(b) b:raw("\193" .. uleb(2^51) .. "\3\0") end, RECORD)
bad_record("huge step", function(b) b:context(1, 0, 2^53) end, RECORD)
bad_record("half a step", function(b) b:add(G.SPF_CONTEXT, "\1\1\0\129") end, RECORD)
bad_record("record after the end", function(b) b:add(G.SPF_END, "") end, RECORD)

local function bad_stream(what, s, output, problem)
  local out, prof = t.render(s)
  t.equal(out, output, what)
  t.contains(prof:problem_text(), problem, what)
end
bad_stream("sample without context", B.new():sample(0, 0):finish(), "", RECORD)
bad_stream("cut sample", B.new():context():raw("\193\1"):flush():bytes(), "", RECORD)
-- Chunks that keep the stacks of earlier chunks. Some earlier chunks are missing.
local function three_chunks(without)
  local c = B.new():context():stack(1, { F.host(1) }):stack(2, { F.host(2) }):sample(0, 1)
  c:flush(true):context(1, 1000):stack(3, { F.host(3) }, 1, 2):sample(0, 3):sample(0, 1)
  c:flush(true):context(1, 3000):stack(4, { F.host(4) }):sample(0, 2):sample(0, 4)
  c:sample(0, 3):finish()
  if without then table.remove(c.out, without + 1) end
  return table.concat(c.out)
end

local kept, whole = t.render(three_chunks())
t.equal(kept, "0x1 2\n0x2 1\n0x2;0x3 2\n0x4 1\n", "stacks of other chunks")
t.equal(whole.complete, true, "stacks of other chunks: whole")
bad_stream("stacks of a missing chunk", three_chunks(2),
  "0x1 1\n[stack not defined in the stream] 3\n", "between are missing")
bad_stream("stacks of a missing first chunk", three_chunks(1), "[stack not defined in the stream] 3\n",
  "between are missing")

-- The same number of stacks of an older chunk does not replace those of the missing one.
local other = B.new():context():stack(1, { F.host(1) }):sample(0, 1)
other:flush():context():stack(1, { F.host(2) }):sample(0, 1)
other:flush(true):context():sample(0, 1):finish()
table.remove(other.out, 3)
bad_stream("as many stacks as the missing chunk", other:bytes(),
  "0x1 1\n[stack not defined in the stream] 1\n", "between are missing")

bad_stream("stack of another chunk",
  B.new():context():stack(1, { F.host(1) }):sample(0, 1):flush()
    :context():sample(0, 1):finish(),
  "0x1 1\n[stack not defined in the stream] 1\n", "not defined")

-- -- Stacks that build on others -------------------------------------------

local b = B.new():context()
b:stack(1, { F.host(1), F.host(2), F.host(3) }):stack(2, { F.host(4) }, 2, 1)
b:stack(3, { F.host(5) }, 3, 2):stack(4, {}, 1, 2):stack(5, { F.host(6) }, 0, 3)
for id = 1, 5 do b:sample(0, id) end
-- Those that were built on a stack stay when it is defined again, also by itself.
b:stack(1, { F.host(7) }):stack(6, { F.host(8) }, 1, 1):stack(2, { F.host(9) }, 2, 2)
for id = 1, 6 do b:sample(0, id) end
check("stacks on others", b:finish(), table.concat({
  "0x1 2", "0x1;0x2;0x3 1", "0x1;0x2;0x4 1", "0x1;0x2;0x4;0x5 2", "0x1;0x2;0x9 1",
  "0x6 2", "0x7 1", "0x7;0x8 1" }, "\n") .. "\n", nil)

-- The same function at other lines.
b = B.new():context():lfunc(1, 1, "@x", "f"):lfunc(2, 5, "@x", "g")
b:stack(1, { F.cbound, F.lfunc(1, 3), F.lsame(0), F.ffunc(7), F.lsame(1) })
b:stack(2, { F.lsame(-2) }, 2, 1):stack(3, { F.lfunc(2, 7), F.lsame(-1), F.cbound, F.lsame(1) })
for id = 1, 3 do b:sample(id, 0) end
t.equal((t.render(b:finish(), nil, { lines = true })), table.concat({
  "f (x:3);f (x:1) 1", "f (x:3);f (x:3);[builtin 7];f (x:4) 1",
  "g (x:7);g (x:6);g (x:7) 1" }, "\n") .. "\n", "the same function")

-- Differences of addresses, also to a frame that is kept.
b = B.new():context()
b:stack(1, { F.host(0x5000), F.vm, F.near(0x10), F.near(-0x20), F.host(0x9000), F.near(1) })
b:stack(2, { F.near(2) }, 2, 1):stack(3, { F.near(3), F.near(0) }, 4, 1)
for id = 1, 3 do b:sample(0, id) end
b:hsym(0x5010, 0x5000, "sym", { 0x5011, 0x5ff0 })
check("differences of addresses", b:finish(), table.concat({
  "0x5000;0x5002 1", "0x5000;sym;0x4ff0;0x4ff3;0x4ff3 1",
  "0x5000;sym;0x4ff0;0x9000;0x9001 1" }, "\n") .. "\n", nil)

t.finish()
