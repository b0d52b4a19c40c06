-- A dump of made profiles: the sums of several VMs, which VM's stack counts, why a thread has no stack, times as text, lists
-- of coroutines.
-- BASE: none, it reads no profile of this LuaJIT

local t = require("tools_test")
local B = require("stream_builder")
local G = require("sysprof.base.grammar")
local dumped = require("sysprof.formats.dumped")
local json = require("json_decode")
local reader = require("sysprof.read.reader")
local threadstacks = require("sysprof.show.threadstacks")
local F = B.F

local US, NS = G.SPF_UNIT_US, G.SPF_UNIT_NS
local MS = 1000000	-- Nanoseconds.

-- Stacks of a session: a wait of f, the same wait by another VM, computing, and what has no stack.
local WAITS, FOREIGN, RUNS, READY, SHORT, UNSEEN, OTHERS = 1, 2, 3, 4, 5, 6, 7

-- Returns a session as a stream. samples: { stack, milliseconds }, one behind the other; OTHERS last.
local function session(number, tid, samples, reason)
  local b = B.new(number):context(tid, 0):meta("clock", "cpu,offcpu"):meta("pid", "7"):meta("wall", "cpu,offcpu")
  b:event(0, "ctimer", US, 5 * MS):event(1, "switch-records", NS, 0, { { G.SPF_FIELD_COUNT, "waits" } })
  b:thread(tid, "t" .. tid):lfunc(1, 1, "@a.lua", "f"):hsym(0x1010, 0x1000, "call")
  b:stack(WAITS, { F.lfunc(1, 1), F.work(G.SPF_WORK_WAIT, 1) }):stack(RUNS, { F.lfunc(1, 1) })
  b:stack(FOREIGN, { F.work(G.SPF_WORK_WAIT, 1) }):stack(READY, { F.work(G.SPF_WORK_READY) })
  b:stack(SHORT, { F.work(G.SPF_WORK_SHORT) }):stack(UNSEEN, { F.work(G.SPF_WORK_UNSEEN, reason or 0) })
  b:stack(OTHERS, { F.work(G.SPF_WORK_OTHERS) })
  local now = 0
  for _, sample in ipairs(samples) do
    now = now + sample[2] * 1000
    b:context(sample[1] == OTHERS and 0 or tid, now)
    if sample[1] == RUNS or sample[1] == OTHERS then b:sample(sample[1], 0, 1, nil, sample[2] * 1000, 0)
    else b:sample(sample[1], 0, 1, nil, sample[2] * MS, 1, { 1 })
    end
  end
  return b:counters({ { G.SPF_COUNTER_WALL_US, 200000 } }):finish()
end

-- Returns the threads of sessions, by their ids.
local function threads_of(...)
  local parts = { ... }
  for i = 2, #parts do parts[i] = parts[i]:sub(#B.PROLOGUE + 1) end
  local p = assert(reader.parse_string(table.concat(parts), { timeline = true }))
  t.equal(p:problem_text(), nil, "problems")
  local by_tid, list, real = {}, threadstacks.of(p)
  t.equal(real, 0.2, "real time")
  for _, thread in ipairs(list) do by_tid[thread.tid] = thread end
  return by_tid
end

-- Returns the line of a thread, and its object of JSON.
local function shown(thread)
  local dump, parts = { facts = { pid = 7, program = "app" }, threads = { thread }, coroutines = "" }, {}
  local function write(s) parts[#parts + 1] = s end
  dumped.render(write, "txt", { dump })
  local line = table.concat(parts):match("\nthread [^\n]*: (no stack[^\n]*)\n") or
	       table.concat(parts):match("\nthread %d+ %b(): ([^\n]*)\n")
  parts = {}
  dumped.render(write, "json", { dump })
  return line, json.decode(table.concat(parts)).processes[1].threads[1]
end

-- -- Several VMs -----------------------------------------------------------

do	-- Two VMs have sampled the threads 70 and 71; the thread 72 began later, and one VM has seen it.
  local threads = threads_of(
    session(0, 70, { { RUNS, 60 }, { READY, 20 }, { WAITS, 120 } }), session(1, 71, { { RUNS, 200 } }),
    session(2, 70, { { RUNS, 60 }, { READY, 20 }, { FOREIGN, 120 } }), session(3, 71, { { RUNS, 200 } }),
    session(4, 72, { { WAITS, 100 } }))
  local line, object = shown(threads[70])
  t.equal(line, "waiting: read, for 0.12 s; 30 % on CPU, 60 % waiting, 10 % without a processor", "two VMs")
  t.equal(("%.3f %.3f %.3f %.3f"):format(object.on_cpu, object.waiting, object.runnable, object.waited),
	  "0.060 0.120 0.020 0.120", "two VMs: the sums are of the thread")
  t.equal(object.frames[1] and object.frames[1].name, "f (a.lua:1)", "two VMs: the stack of its own VM")
  line, object = shown(threads[71])
  t.equal(line, "running; 100 % on CPU", "two VMs: it runs")
  t.equal(object.on_cpu, 0.2, "two VMs: it runs: sum")
  line, object = shown(threads[72])
  t.equal(line, "waiting: read, for at least 0.1 s", "two VMs, and one has seen it")
  t.equal(object.waiting, 0.1, "two VMs, and one has seen it: sum")
end
do	-- One VM, and other threads: a wait of the half of the time is not "at least".
  local threads = threads_of(session(0, 70, { { WAITS, 100 }, { RUNS, 10 }, { WAITS, 90 } }), session(1, 71, { { RUNS, 200 } }),
			     session(2, 72, { { RUNS, 200 } }))
  t.equal(shown(threads[70]), "waiting: read, for 90 ms; 5 % on CPU, 95 % waiting", "three threads")
end

-- -- No stack --------------------------------------------------------------

for text, samples in pairs {
  ["no stack: its waits were too short; 95 % waiting, 5 % without a processor"] = { { SHORT, 185 }, { UNSEEN, 5 }, { READY, 10 } },
  ["no stack: the profiler came too late for its waits; 100 % waiting"] = { { SHORT, 5 }, { UNSEEN, 195 } },
  ["no stack: it had no processor; 100 % without a processor"] = { { READY, 200 } },
} do
  local line, object = shown(threads_of(session(0, 70, samples))[70])
  t.equal(line, text, text)
  t.equal(object.state, "unknown", text .. ": state")
  t.ok(line:find(object.stack_unknown, 1, true) and object.stack_unknown ~= "", text .. ": JSON")
end
for reason, text in pairs {
  [G.SPF_UNSEEN_MOVED] = "it went on while its stack was read", [G.SPF_UNSEEN_HIDDEN] = "the kernel hides where it waits",
} do
  t.equal(shown(threads_of(session(0, 70, { { UNSEEN, 200 } }, reason))[70]), ("no stack: %s; 100 %% waiting"):format(text), text)
end

-- -- Threads not sampled --------------------------------------------------

for ms, line in pairs { [30] = "\nthreads not sampled: 30 ms on CPU\n", [0.7] = "" } do
  local threads, real, _, others = threadstacks.of(assert(reader.parse_string(session(0, 70, { { RUNS, 150 }, { OTHERS, ms } }),
										       { timeline = true })))
  t.equal(#threads, 1, "threads not sampled are no thread")
  local dump, parts = { facts = { pid = 7, program = "app" }, threads = threads, real = real, others = others, coroutines = "" }, {}
  local function write(s) parts[#parts + 1] = s end
  dumped.render(write, "txt", { dump })
  local out = table.concat(parts)
  t.equal(out:match("\nthreads not[^\n]*\n") or "", line, "threads not sampled: " .. out)
  parts = {}
  dumped.render(write, "json", { dump })
  local object = json.decode(table.concat(parts)).processes[1]
  t.equal(object.not_sampled, ms / 1000, "threads not sampled: JSON")
  t.equal(#object.threads, 1, "threads not sampled: JSON: threads")
end

-- -- Coroutines ------------------------------------------------------------

do	-- Of two VMs, with bytes that JSON does not allow. A VM does not write these.
  local VM = '{"pid":7,"groups":[\n{"name":"\255b\127ü"},\n{"name":"c"}]}\n'
  local parts = {}
  dumped.render(function(s) parts[#parts + 1] = s end, "json", { { facts = { pid = 7, program = "app" }, coroutines = VM .. VM } })
  local vms = json.decode(table.concat(parts)).processes[1].vms
  t.equal(#vms, 2, "two VMs")
  t.equal(vms[2].groups[1].name .. vms[2].groups[2].name, "\\xffb?üc", "two VMs: names")
end

-- -- Times -----------------------------------------------------------------

for text, ms in pairs { ["0.11 ms"] = 0.11, ["0.9 ms"] = 0.9, ["1 ms"] = 1.2, ["99 ms"] = 99, ["0.1 s"] = 100 } do
  t.contains(shown(threads_of(session(0, 70, { { RUNS, 50 }, { WAITS, ms } }))[70]), ("waiting: read, for %s; "):format(text), text)
end

t.finish()
