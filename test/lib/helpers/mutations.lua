----------------------------------------------------------------------------
-- Random changes of streams, for test/tools/mutated_streams and etc/bench/reader_fuzz.
--
-- A round depends only on a seed and its number, so a test can repeat it alone.
----------------------------------------------------------------------------

local B = require("stream_builder")
local G = require("sysprof.base.grammar")
local merge = require("sysprof.model.merge")
local reader = require("sysprof.read.reader")
local view = require("sysprof.show.view")
local F, uleb = B.F, B.uleb

local OUTPUT_MAX = 4e6	-- Bytes of one output; they are small.

-- All output formats.
local FORMATS = { "folded", "top", "flamegraph", "svg", "pprof", "speedscope", "gecko",
		  "json", "tree" }

local mutations = {}

-- -- Streams to change -----------------------------------------------------

-- Three chunks with every kind of record, frame and sample.
local function version_4()
  local b = B.new():meta("clock", "cpu")
  b:module(0x1000, 0x9000, 0x1000, "/lib/libx.so", "\1\2\3\4")
  for chunk = 1, 3 do
    b:context(chunk, chunk * 1000)
    for fid = 1, 3 do b:lfunc(fid, fid * 10, "@x.lua", "f" .. fid) end
    b:stack(1, { F.cbound, F.lfunc(1, 3), F.cbound, F.lfunc(2, 200) })
    b:stack(2, { F.lfunc(3, 1), F.ffunc(5), F.resume, F.cut(100, 2) }, 2)
    b:stack(3, { F.host(0x1234), F.vm, F.near(0x1111), F.vm, F.host(0x7fffffffffff), F.near(-9) })
    b:stack(4, { F.cut(3, 1), F.broken(4), F.cfunc(0x2000), F.closure(0x2000, 2) }, 1, 1)
    b:cfunc(0x2000, 2, "m.f"):cfunc(0x2000, 0, "m.f|m.g")
    b:stack(5, { F.broken(1) })
    b:stack(6, { F.cbound, F.lfunc(1, 3), F.lfunc(2, 4), F.lsame(-2),
		 F.trace(7, 2, true),
		 F.work(G.SPF_WORK_EXIT, 7 * 65536 + 1) })
    b:sample(1, 3, 4):sample(2, 4, 2, G.SPF_VMST_GC, 500):sample(5, 3):sample(0, 0)
    b:sample(6, 3, 2, G.SPF_VMST_EXIT)
    b:stack(7, { F.cbound, F.lfunc(1, 3), F.lfunc(2, 4), F.again(5, 2), F.lsame(1) })
    b:stack(8, { F.host(0x1234), F.again(90, 1), F.near(7) })
    b:event(3, "alloc", G.SPF_UNIT_BYTES, 4096,
	    { { G.SPF_FIELD_COUNT, "objects" }, { G.SPF_FIELD_THING, "object" }, { G.SPF_FIELD_SIZE, "size" },
	      { G.SPF_FIELD_CYCLE, "cycle" } })
    b:add(G.SPF_LABELS, uleb(1) .. B.str("route") .. B.str("/a")):add(G.SPF_LABELS, uleb(200)):add(G.SPF_TEXT, uleb(2) .. B.str("why"))
    b:labelled(1):sample(7, 8, 2, nil, 5000, 3, { 2, 300, 5000, 1 }):sample(7, 8, 1, nil, 9, 3, { 1, 301 + chunk, 9, 0 }):labelled(200):sample(7, 0)
    b:event(4, "offcpu", G.SPF_UNIT_NS, 0, { { G.SPF_FIELD_COUNT, "waits" } })
    b:stack(9, { F.work(G.SPF_WORK_WAIT, 233) }, 3, 6):stack(10, { F.work(G.SPF_WORK_UNSEEN, 1) })
    b:event(5, "coroutine-wait", G.SPF_UNIT_NS, 0, { { G.SPF_FIELD_COUNT, "waits" } })
    b:stack(11, { F.lfunc(1, 3), F.work(G.SPF_WORK_BUSY) }):stack(12, { F.work(G.SPF_WORK_UNSEEN, G.SPF_UNSEEN_MANY) })
    b:sample(9, 8, 2, nil, 3e6, 4, { 1 }):sample(10, 0, 1, nil, nil, 4, { 70 })
    b:sample(11, 0, 1, nil, 4e6, 5, { 1 }):sample(12, 0, 1, nil, 9e6, 5, { 300 })
    b:add(G.SPF_ENDED, uleb(3) .. "\0" .. uleb(300) .. "\2"):add(G.SPF_MARK, uleb(900) .. "\1\1")
    local of_alloc = G.SPF_COUNTER_EVENT + 3 * G.SPF_COUNTER_EVENT_STEP
    b:counters { { 1, 7 }, { G.SPF_COUNTER_LOST_BUFFER, 2 }, { of_alloc + G.SPF_EVENT_LEFT_PERIOD, 8192 },
		 { of_alloc + G.SPF_EVENT_CYCLES, 3 }, { of_alloc + G.SPF_EVENT_HELD, 1e6 } }
    if chunk < 3 then b:flush() end
  end
  b:ffunc(5, "pcall"):hsym(0x1234, 0x1200, "main", { 0x1236, 0x1300 }):hsym(0x2345, 0x2000, "cf")
  return b:finish()
end

-- Two sessions in turns, with several events and a step.
local function two_sessions()
  local function session(number)
    local b = B.new(number)
    for chunk = 1, 2 do
      b:context(50 + number, chunk * 5000, 1000)
      if chunk == 1 then
	b:event(0, "cpu-clock", G.SPF_UNIT_US, 1000000)
	b:event(1, "page-faults", G.SPF_UNIT_COUNT, 10):thread(50 + number, "worker")
      end
      b:lfunc(1, 5, "@y.lua", "g" .. number)
      b:stack(1, { F.cbound, F.lfunc(1, 7) }):stack(2, { F.host(0x3000), F.vm })
      b:sample(1, 2, 2):sample(1, 2, 1, G.SPF_VMST_GC, 20, 1):sample(0, 2, 1, 0, 1)
      b:stack(3, { F.host(0x4000):rep(40) }, 1, 2):sample(1, 3)
      b:counters { { 1, 3 }, { G.SPF_COUNTER_TOTAL + 1, 20 } }
      if chunk == 2 then b:add(G.SPF_END, "") end
      b:flush()
    end
    return b.out
  end
  local a, b = session(0), session(9)
  return a[1] .. a[2] .. b[1] .. b[2] .. a[3] .. b[3]
end

-- A stream of Tarantool's sysprof: symbols, samples of all kinds, more symbols.
local function version_2()
  local function lfunc(addr, line) return uleb(addr) .. B.str("@x.lua") .. uleb(line) end
  local function cfunc(addr, name) return uleb(addr) .. B.str(name) end
  local host = uleb(0x5010) .. uleb(0x2010) .. uleb(0x1010) .. "\0"
  local out = { "ljs\3\0\0\0\0", lfunc(0x7f1234567890, 0), "\0", lfunc(0x200, 5),
    "\2", uleb(1), uleb(0x200), uleb(6), "\1", cfunc(0x5000, "lj_BC_FUNCC"), "\1",
    cfunc(0x1000, "main"), "\1", cfunc(0x2000, "lua_pcall"), "\128ljp\2\0\0\0" }
  for i = 1, 12 do
    out[#out + 1] = "\1\1" .. uleb(0x200) .. uleb(i % 3 + 5) .. "\2" .. uleb(0x3000) ..
      "\3" .. uleb(84) .. "\1" .. uleb(0x7f1234567890) .. uleb(1) .. "\128" .. host
    out[#out + 1] = "\9" .. uleb(1) .. uleb(0x200) .. uleb(6)
    out[#out + 1] = "\4" .. host
    if i % 4 == 0 then
      out[#out + 1] = "\10" .. lfunc(0x200 + i % 8 * 16, i) .. "\11" ..
	cfunc(0x6000 + i, "late") .. "\12" .. uleb(i) .. uleb(0x200) .. uleb(9)
    end
  end
  return table.concat(out) .. "\128"
end

-- Splits a stream into chunks, { seq =, records = } or { prologue = }. A change joins
-- them again with right checksums.
function mutations.split(stream)
  local list, at = {}, 0
  while at < #stream do
    if stream:sub(at + 1, at + #B.PROLOGUE) == B.PROLOGUE then
      list[#list + 1] = { prologue = B.PROLOGUE }
      at = at + #B.PROLOGUE
    else
      local a, b, c = stream:byte(at + 9, at + 11)
      local len = a + b * 256 + c * 65536
      list[#list + 1] = { seq = stream:byte(at + 5),
			  records = stream:sub(at + 17, at + 16 + len) }
      at = at + 16 + len
    end
  end
  return list
end

function mutations.join(chunks)
  local out = {}
  for i, c in ipairs(chunks) do out[i] = c.prologue or B.chunk(c.seq, c.records) end
  return table.concat(out)
end

-- -- Changes ---------------------------------------------------------------

local function change(s)
  if s == "" then return s end
  local kind, at = math.random(8), math.random(#s)
  local head, tail = s:sub(1, at - 1), s:sub(at)
  if kind <= 2 then
    return head .. string.char(math.random(0, 255)) .. tail:sub(2)
  elseif kind == 3 then
    return head .. tail:sub(1 + math.random(8))
  elseif kind == 4 then
    return s:sub(1, at) .. s:sub(math.max(1, at - math.random(30)), at) .. s:sub(at + 1)
  elseif kind == 5 then
    return head .. ("\255"):rep(math.random(9)) .. tail
  elseif kind == 6 then
    return head
  elseif kind == 7 then		-- A part of it from elsewhere.
    local from = math.random(#s)
    return head .. s:sub(from, from + math.random(40)) .. tail:sub(math.random(40))
  end
  return head .. string.char(math.random(0, 255)):rep(math.random(4)) .. tail:sub(6)
end

local function bytes_changed(stream)
  for _ = 1, math.random(3) do stream = change(stream) end
  return stream
end

local function records_changed(stream)
  local chunks = mutations.split(stream)
  local n = math.random(2, #chunks)
  for _ = 1, math.random(3) do
    local c = chunks[n]
    if c.records then c.records = change(c.records .. "\0")
    else c.prologue = change(c.prologue) end
  end
  return mutations.join(chunks)
end

local V4, V2, SESSIONS = version_4(), version_2(), two_sessions()

-- Removes the prologues between chunks: one more or less changes nothing.
local function without_prologues(s)
  local out, at = {}, 1
  repeat
    local found = s:find(B.PROLOGUE, at, true)
    out[#out + 1] = s:sub(at, (found or 0) - 1)
    at = (found or 0) + #B.PROLOGUE
  until not found
  return table.concat(out)
end

-- Returns the stream of a round, whether the reader must notice the change, and the
-- original stream.
function mutations.stream(seed, round)
  math.randomseed(seed * 2^24 + round)
  local kind = round % 6
  local whole = round % 12 < 6 and V4 or SESSIONS
  if kind == 0 then
    local s = bytes_changed(whole)
    return s, without_prologues(s) ~= without_prologues(whole), whole
  elseif kind == 1 or kind == 2 then
    return bytes_changed(V2), false, V2
  end
  return records_changed(whole), false, whole
end

mutations.originals = { V4, V2, SESSIONS }

-- -- Checks ----------------------------------------------------------------

local function is_sentence(s)
  return type(s) == "string" and #s > 0 and not s:find("[\r\n]")
end

local renderers = {}
for _, name in ipairs(FORMATS) do
  renderers[#renderers + 1] = require("sysprof.formats." .. name)
end

local function options_of(round)
  return { lines = round % 2 == 0, traces = round % 5 < 2, coroutine = round % 7 == 0,
	   no_lua = round % 11 == 1, no_host = round % 13 == 1, limit = 60, title = "x",
	   weight = ({ [0] = "cpu", "event" })[round % 17],
	   event = ({ [0] = "page-faults", "cpu" })[round % 19],
	   by = round % 23 == 2 and "thread" or round % 23 == 3 and "syscall" or nil,
	   blocking = round % 29 < 5, loops = round % 3 == 0 and { "f" } or nil }
end

local function read_and_render(s, round)
  local p, why = reader.parse_string(s, { timeline = true })
  if not p then
    if not is_sentence(why) then error("no sentence: " .. tostring(why)) end
    return false
  end
  if p.complete ~= (p:problem_text() == nil) or
     (not p.complete and not is_sentence(p:problem_text())) then
    error("no sentence: " .. tostring(p:problem_text()))
  end
  -- Merge it with a complete profile, in either order.
  if round % 4 < 2 then
    local whole = reader.parse_string(mutations.originals[round % 3 + 1] or s,
				      { timeline = true })
    if round % 4 == 0 then
      merge.into(p)(whole)
    else
      merge.into(whole)(p)
      whole.complete, whole.problems = p.complete, p.problems
      p = whole
    end
  end
  local size = 0
  local shown, reason = view.new(p, options_of(round))
  if not shown then		-- Nothing is measured in what was asked for.
    if not is_sentence(reason) then error("no sentence: " .. tostring(reason)) end
    return p.complete
  end
  renderers[round % #renderers + 1].render(shown, function(part) size = size + #part end)
  if size > OUTPUT_MAX then error("output of " .. size .. " bytes") end
  return p.complete
end

-- Reads and renders a stream. Returns the fault, or nil and whether the reader found
-- no problem.
function mutations.try(s, round)
  local ok, silent = pcall(read_and_render, s, round)
  if not ok then return tostring(silent) end
  return nil, silent
end

return mutations
