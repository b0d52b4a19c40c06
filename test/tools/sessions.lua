-- Several sessions in one stream: their chunks in any order, each session with its own
-- ids, numbers of chunks, names and end. Also several events.
-- BASE: none, it reads no profile of this LuaJIT

local t = require("tools_test")
local B = require("stream_builder")
local G = require("sysprof.base.grammar")
local reader = require("sysprof.read.reader")
local F = B.F

-- A session: chunk n has n samples in a function of its own and in the host symbol "main".
-- Other sessions have the same ids. Returns its chunks.
local function session(number, chunks)
  local start = tostring(9000 - number)
  local b, list = B.new(number), {}
  for n = 1, chunks do
    b:context(100 + number, n * 10)
    if n == 1 then b:meta("start_time", start):meta("clock", "cpu") end
    b:lfunc(n, n * 10, ("@s%d.lua"):format(number), "f" .. n)
    b:stack(1, { F.cbound, F.lfunc(n, n * 10) }):stack(2, { F.host(0x1000 + number), F.vm })
    b:sample(1, 2, n)
    b:counters { { G.SPF_VMST_LFUNC, n } }
    if n == chunks then
      b:hsym(0x1000 + number, 0x1000, "main"):add(G.SPF_END, "")
    end
    b:flush()
    list[n] = b.out[#b.out]
  end
  return list
end

local function lines_of(number, first, last)
  local lines = {}
  for n = first, last do
    lines[#lines + 1] = ("main;f%d (s%d.lua:%d) %d"):format(n, number, n * 10, n)
  end
  return lines
end

local function text_of(...)
  local all = {}
  for _, lines in ipairs { ... } do
    for _, line in ipairs(lines) do all[#all + 1] = line .. "\n" end
  end
  table.sort(all)
  return table.concat(all)
end

local function check(what, parts, output, problem)
  local out, p = t.render(B.PROLOGUE .. table.concat(parts))
  t.equal(out, output, what)
  t.equal(p.complete, problem == nil, what .. ": complete")
  if problem then t.contains(p:problem_text(), problem, what)
  else t.equal(p:problem_text(), nil, what) end
  return p
end

local a, b, c = session(0, 3), session(1, 2), session(77, 1)
local whole = text_of(lines_of(0, 1, 3), lines_of(1, 1, 2), lines_of(77, 1, 1))

-- -- Whole ----------------------------------------------------------------

local p = check("one after the other",
  { a[1], a[2], a[3], b[1], b[2], c[1] }, whole, nil)
t.equal(p.counters[G.SPF_VMST_LFUNC], 3 + 2 + 1, "counters are added up")
t.equal(#p.thread_list, 3, "threads")
check("by turns", { a[1], b[1], a[2], c[1], b[2], a[3] }, whole, nil)
check("the first ends first", { a[1], b[1], a[2], a[3], c[1], b[2] }, whole, nil)
check("prologues between",
  { a[1], B.PROLOGUE, b[1], a[2], B.PROLOGUE, B.PROLOGUE, c[1], b[2], a[3], B.PROLOGUE },
  whole, nil)
check("no session 0", { c[1] }, text_of(lines_of(77, 1, 1)), nil)

-- -- Damaged ---------------------------------------------------------------

local without_b1 = whole:gsub("main;f1 %(s1[^\n]*\n", "")
local without_b2 = "0x1001;f1 (s1.lua:10) 1\n" ..
		   without_b1:gsub("main;f2 %(s1[^\n]*\n", "")
local function size_of(...) return #B.PROLOGUE + #table.concat { ... } end

check("a chunk is cut short in the middle",
  { a[1], b[1]:sub(1, -20), a[2], c[1], b[2], a[3] }, without_b1,
  "offset " .. size_of(a[1]) .. ": the chunk is damaged")
check("a chunk is cut short that claims more than follows",
  { a[1], b[1], a[2], b[2], B.chunk(9, ("\1"):rep(5000)):sub(1, 900), c[1], a[3] },
  whole, "more than follow, skipped 900 bytes")
check("a session without its end", { a[1], b[1], a[2], c[1], a[3] }, without_b2,
  "without an end record of 1 of 3 sessions")
check("a chunk of a session is missing", { a[1], b[1], a[3], c[1], b[2] },
  (whole:gsub("main;f2 %(s0[^\n]*\n", "")),
  "expected chunk number 1, found 2")
check("the message has the session's number", { b[2], a[1], a[2], a[3], c[1] }, without_b1,
  "expected chunk number 0 of session 1, found 1")
check("a damaged chunk between is nobody's", { a[1], "junk of no chunk", b[1], a[2], c[1],
  b[2], a[3] }, whole, "expected a chunk")
check("a session goes on after its end", { a[1], b[1], a[2], c[1], b[2], b[1], b[2], a[3] },
  whole, "a chunk follows the end of the stream of session 1")
local s = B.PROLOGUE .. a[1] .. B.PROLOGUE
for cut = #s - #B.PROLOGUE + 4, #s - 1 do
  local _, q = t.render(s:sub(1, cut))
  t.contains(q:problem_text(), ("%d of the %d bytes of this prologue are missing")
	     :format(#s - cut, #B.PROLOGUE), "a prologue is cut at " .. cut)
end
local _, damaged = t.render(B.PROLOGUE .. "junk of no chunk" .. a[1])
t.contains(damaged:problem_text(), ": the end record is missing", "damaged, and without its end")
check("half a prologue between", { a[1], B.PROLOGUE:sub(1, 9), a[2], a[3] },
  (whole:gsub("[^\n]*s1[^\n]*\n", ""):gsub("[^\n]*s77[^\n]*\n", "")), "expected a chunk")

-- Each of the chunks changed somewhere: all others are used, and the order does
-- not matter.
local order = { a[1], b[1], a[2], c[1], b[2], a[3] }
for i, chunk in ipairs(order) do
  local parts = { unpack(order) }
  local at = #chunk - 3
  parts[i] = chunk:sub(1, at) .. string.char((chunk:byte(at + 1) + 1) % 256) .. chunk:sub(at + 2)
  local out, q = t.render(B.PROLOGUE .. table.concat(parts))
  local _, lines = whole:gsub("\n", "")
  local _, left = out:gsub("\n", "")
  t.equal(left, lines - 1, "lines without chunk " .. i)
  t.equal(q.complete, false, "not complete without chunk " .. i)
end

-- -- Records that tell the session -----------------------------------------

local function context(payload) return B.chunk(0, B.record(G.SPF_CONTEXT, payload)) end
for i, chunk in ipairs { B.chunk(0, ""), context(""), context("\1"), context("\1\2\128"),
			 context("\1\2" .. ("\255"):rep(9) .. "\1"), B.chunk(0, "\2"),
			 B.chunk(0, "\2\128"), B.chunk(0, "\2\4\1") } do
  local _, q = t.render(B.PROLOGUE .. chunk .. b[1] .. b[2])
  t.contains(q:problem_text(), "of 1 of 2 sessions", "no number of a session " .. i)
end

-- -- Many --------------------------------------------------------------------

local parts, N = {}, 3000
local lists = {}
for n = 1, N do lists[n] = session(n, 2) end
for turn = 1, 2 do
  for n = 1, N do parts[#parts + 1] = lists[n][turn] end
end
p = reader.parse_string(B.PROLOGUE .. table.concat(parts), { timeline = true })
t.equal(p:problem_text(), nil, "many sessions")
t.equal((p:totals()), N * 3, "samples of many sessions")
t.equal(#p.thread_list, N, "threads of many sessions")
t.equal(p.meta.start_time, tostring(9000 - N), "start of the first of many sessions")
t.equal(p.meta.clock, "cpu", "clock of many sessions")
local count, last = 0, 0
for time in p.timeline:in_order() do
  t.ok(time >= last, "in the order of time")
  count, last = count + 1, time
end
t.equal(count, N * 3, "samples in the timeline")

-- -- Limits ------------------------------------------------------------------

-- Sentences that differ in their figures only stand once, with ranges.
local function limits_of(list)
  local sessions = {}
  for n, limit in ipairs(list) do
    sessions[n] = B.new(n - 1):context(100 + n):meta("limit", limit):add(G.SPF_END, ""):finish()
  end
  return reader.parse_string(table.concat(sessions)).meta.limit
end

t.equal(limits_of { "a ticks 1252 times: off. hz=9 costs 1.5 us", "a ticks 1157 times: off. hz=9 costs 20 us",
		    "a ticks 1200 times: off" }, "a ticks 1157 to 1252 times: off. hz=9 costs 1.5 to 20 us", "ranges")
t.equal(limits_of { "b takes 5 of 10", "b takes 5 of 10" }, "b takes 5 of 10", "the same figures")
t.equal(limits_of { "r01 takes 5", "r02 takes 5", "hz=7 takes 5", "r01 takes 6" },
	"r01 takes 5 to 6. r02 takes 5. hz=7 takes 5", "digits of names")
t.equal(limits_of { "c 5. c 6", "c 7" }, "c 5 to 7", "a session with two like sentences, among others")
t.equal(limits_of { "c 5. c 6" }, "c 5. c 6", "one session")

-- -- Events ------------------------------------------------------------------

local US, COUNT = G.SPF_UNIT_US, G.SPF_UNIT_COUNT
local function events(number, first, second, weight)
  local e = B.new(number):context(7 + number, 0)
  for i, name in ipairs { first, second } do
    e:event(i - 1, name, i == 1 and US or COUNT, 1000000)
  end
  e:thread(7 + number, "worker " .. number)
  e:lfunc(1, 1, "@x.lua", "f"):stack(1, { F.cbound, F.lfunc(1, 1) })
  e:sample(1, 0, 2):sample(1, 0, 5, 1, weight, 1)
  e:counters { { G.SPF_COUNTER_TOTAL, 2000 }, { G.SPF_COUNTER_TOTAL + 1, 5 * weight } }
  return e:finish()
end

-- Samples and sum of weights of an event.
local function totals(q, name)
  for _, e in ipairs(require("sysprof.model.events").list(q)) do
    if e.name == name then return ("%d %d %d"):format(e.samples, e.weight, e.total) end
  end
end

p = reader.parse_string(events(0, "cpu-clock", "cache-misses", 100))
t.equal(p:problem_text(), nil, "two events")
t.equal(p.slots[2].event.name, "cache-misses", "name of an event")
t.equal(p.slots[2].event.unit, COUNT, "its unit")
t.equal(p.slots[2].event.period, 1000000, "its period")
t.equal(p.slots[2].thread.name, "worker 0", "name of a thread")
t.equal(totals(p, "cpu-clock"), "2 2000 2000", "event 0 alone")
t.equal(totals(p, "cache-misses"), "5 500 500", "the other event alone")

-- Events of two sessions: under the same index, the same ones or not.
p = reader.parse_string(events(0, "cpu-clock", "cache-misses", 100) ..
			events(1, "cpu-clock", "branches", 7))
t.equal(p:problem_text(), nil, "events of two sessions")
t.equal(totals(p, "cpu-clock"), "4 4000 4000", "the event of both")
t.equal(totals(p, "cache-misses"), "5 500 500", "the event of the first")
t.equal(totals(p, "branches"), "5 35 35", "the event of the second")
p = reader.parse_string(events(0, "cpu-clock", "branches", 100) ..
			events(1, "cpu-clock", "branches", 7))
t.equal(totals(p, "branches"), "10 535 535", "the same event in both")

-- What does not fit.
for i, payload in ipairs { "", "\16\1x\0\0", "\1\5x", "\1\1x", "\1\1x\0", "\1\1x\0\128" } do
  local _, q = t.render(B.new():context():add(G.SPF_EVENT, payload):finish())
  t.contains(q:problem_text(), "expected a record", "event " .. i)
end
for i, payload in ipairs { "", "\1", "\1\5x", ("\255"):rep(9) .. "\1\1x" } do
  local _, q = t.render(B.new():context():add(G.SPF_THREAD, payload):finish())
  t.contains(q:problem_text(), "expected a record", "thread " .. i)
end
t.finish()
