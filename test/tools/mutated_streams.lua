-- Streams changed at random, most with their checksums set right again: never
-- an error, never silent, never slow or large.
-- TIMEOUT: 300

local t = require("tools_test")
local B = require("stream_builder")
local G = require("sysprof.grammar")
local reader = require("sysprof.reader")
local view = require("sysprof.view")
local F = B.F

local ROUNDS = 6000
local SECONDS_MAX = 1	-- For one stream; they take about a millisecond.
local OUTPUT_MAX = 4e6	-- Bytes of one output.

math.randomseed(20)

local function base_stream()
  local b = B.new():meta("clock", "cpu")
  b:module(0x1000, 0x9000, 0x1000, "/lib/libx.so")
  for chunk = 1, 3 do
    b:context(chunk, chunk * 1000)
    for fid = 1, 3 do b:lfunc(fid, fid * 10, "@x.lua", "f" .. fid) end
    b:stack(1, { F.cbound, F.lfunc(1, 3), F.cbound, F.lfunc(2, 200) })
    b:stack(2, { F.lfunc(3, 1), F.ffunc(5), F.resume, F.cut(100, 2) }, 2)
    b:stack(3, { F.host(0x1234), F.vm, F.host(0x2345), F.vm, F.host(0x7fffffffffff) })
    b:stack(4, { F.cut(3, 1), F.broken(4), F.cfunc(0x2000) }, 1, 1)
    b:stack(5, { F.broken(1) })
    b:stack(6, { F.cbound, F.lfunc(1, 3), F.lfunc(2, 4), F.trace(7, 2, true),
		 F.work(G.SPF_WORK_EXIT, 7 * 65536 + 1) })
    b:sample(1, 3, 4):sample(2, 4, 2, G.SPF_VMST_GC, 500):sample(5, 3):sample(0, 0)
    b:sample(6, 3, 2, G.SPF_VMST_EXIT)
    b:counters { { 1, 7 }, { G.SPF_COUNTER_LOST_BUFFER, 2 } }
    if chunk < 3 then b:flush() end
  end
  b:ffunc(5, "pcall"):hsym(0x1234, 0x1200, "main"):hsym(0x2345, 0x2000, "cf")
  return b
end

-- The records of each chunk, to be put together again with right checksums.
local function split(stream)
  local list, at = {}, #B.PROLOGUE
  while at < #stream do
    local a, b, c = stream:byte(at + 9, at + 11)
    local len = a + b * 256 + c * 65536
    list[#list + 1] = stream:sub(at + 17, at + 16 + len)
    at = at + 16 + len
  end
  return list
end

local function change(s)
  local kind, at = math.random(6), math.random(#s)
  if kind <= 2 then
    return s:sub(1, at - 1) .. string.char(math.random(0, 255)) .. s:sub(at + 1)
  elseif kind == 3 then
    return s:sub(1, at - 1) .. s:sub(at + math.random(8))
  elseif kind == 4 then
    return s:sub(1, at) .. s:sub(math.max(1, at - math.random(30)), at) .. s:sub(at + 1)
  elseif kind == 5 then
    return s:sub(1, at - 1) .. ("\255"):rep(math.random(9)) .. s:sub(at)
  end
  return s:sub(1, at - 1) .. string.char(math.random(0, 255)):rep(math.random(4)) ..
	 s:sub(at + 4)
end

local function bytes_changed(stream)
  for _ = 1, math.random(3) do stream = change(stream) end
  return stream
end

local function records_changed(records)
  local n, out = math.random(#records), { B.PROLOGUE }
  for i, r in ipairs(records) do
    if i == n then
      for _ = 1, math.random(3) do r = change(r .. "\0") end
    end
    out[#out + 1] = B.chunk(i - 1, r)
  end
  return table.concat(out)
end

local FORMATS = { "folded", "top", "flamegraph" }

-- Reads and renders; returns whether all went well and whether it was silent.
local function try(s, round)
  local size = 0
  local ok, err = pcall(function()
    local p, why = reader.parse_string(s)
    if not p then
      assert(type(why) == "string" and not why:find("\n"))
      return false
    end
    local format = FORMATS[round % #FORMATS + 1]
    require("sysprof." .. format).render(view.new(p, { lines = round % 2 == 0,
      traces = round % 5 < 2, coroutine = round % 7 == 0 }),
      function(part) size = size + #part end)
    return p.complete
  end)
  t.ok(ok, ("round %d: %s"):format(round, tostring(err)))
  t.ok(size < OUTPUT_MAX, ("round %d: output of %d bytes"):format(round, size))
  return ok and err
end

local stream = base_stream():finish()
local records = split(stream)
t.equal(B.PROLOGUE .. B.chunk(0, records[1]) .. B.chunk(1, records[2]) ..
	B.chunk(2, records[3]), stream, "chunks put together again")

for round = 1, ROUNDS do
  local only_bytes = round % 3 == 0
  local s = only_bytes and bytes_changed(stream) or records_changed(records)
  local start = os.clock()
  local silent = try(s, round)
  t.ok(os.clock() - start < SECONDS_MAX, "round " .. round .. " took long")
  if only_bytes and s ~= stream then
    t.ok(not silent, "round " .. round .. " was silent")
  end
end

-- Streams made to be expensive: magics everywhere, deep stacks.
local start = os.clock()
try(B.PROLOGUE .. ("ljc\3"):rep(200000), 0)
try(B.PROLOGUE .. ("ljc\3\0\0\0\0\0\0\8\0zzzz"):rep(60000), 0)
t.ok(os.clock() - start < 20 * SECONDS_MAX, "many magics took long")
local b = B.new():context()
for i = 1, 2000 do b:stack(i, { F.host(i) }, i - 1) end
b:sample(0, 2000)
local out = t.render(b:finish())
t.equal(#(out or ""):gsub("[^;]", ""), 1999, "frames of a deep stack")
start = os.clock()
b = B.new():context()
for i = 1, 10000 do b:stack(i, { F.host(i) }, i - 1) end
for _ = 1, 20000 do b:stack(10001, { F.host(1) }, 0, 10000):stack(10001, {}, 1, 10000) end
local packed = table.concat(b:sample(0, 10001).records)
out = t.render(B.PROLOGUE .. B.chunk(0, packed))
t.equal(out, "0x1 1\n", "few frames of deep stacks")
t.ok(os.clock() - start < 2 * SECONDS_MAX, "few frames of deep stacks took long")

t.finish()
