-- Threads: names in all formats, the same id in two processes as two threads, and a
-- profile's report on several sessions.
-- BASE: none, it reads no profile of this LuaJIT

local t = require("tools_test")
local B = require("stream_builder")
local G = require("sysprof.base.grammar")
local json = require("json_decode")
local merge_files = require("sysprof.read.mergefiles")
local reader = require("sysprof.read.reader")
local view = require("sysprof.show.view")
local F = B.F

local ODD = 'a<b>"\n\255;'		-- A name is any bytes,
local CLEAN = 'a<b>"?\\xff;'		-- and this is how it is shown.

-- A session of a process: n samples on a thread.
local function add_session(b, tid, name, pid, n)
  b:context(tid, 0):meta("clock", "cpu"):meta("pid", pid):meta("start_time", "17000000" .. pid)
  b:event(0, "ctimer", G.SPF_UNIT_US, 1000000)
  if name then b:thread(tid, name) end
  b:lfunc(1, 1, "@a.lua", "f"):stack(1, { F.lfunc(1, 1) }):sample(1, 0, n)
  b:counters { { G.SPF_VMST_LFUNC, n }, { G.SPF_COUNTER_TOTAL, n * 1250 },
	       { G.SPF_COUNTER_HANDLER_NS, n * 5000 }, { G.SPF_COUNTER_HANDLER_MAX_NS, tid * 1000 },
	       { G.SPF_COUNTER_HANDLER_P99_NS, tid * 100 }, { G.SPF_COUNTER_OVERRUNS, 1 } }
  return b
end

local function stream(tid, name, pid, n)
  return add_session(B.new(), tid, name, pid, n):finish()
end

-- Two sessions of one process in one stream.
local function two_sessions()
  local first = add_session(B.new(0), 70, "main", "70", 3):finish()
  local second = add_session(B.new(1), 71, ODD, "70", 5):finish()
  return first .. second:sub(#B.PROLOGUE + 1)
end

local function read(streams, options)
  return t.with_files(streams, function(paths) return assert(reader.read_all(paths, options)) end)
end

local function render(p, format, options)
  local out = {}
  require("sysprof.formats." .. format).render(view.new(p, options), function(s) out[#out + 1] = s end)
  return table.concat(out)
end

-- Rows of --by=thread: "self name".
local function rows_by_thread(p)
  local rows = {}
  for row in render(p, "top", { by = "thread" }):match("\n\n[^\n]+\n(.*)"):gmatch("[^\n]+") do
    local self, name = row:match("^ +(%d+) +[%d.]+ +%d+ +[%d.]+  (.*)$")
    rows[#rows + 1] = self .. " " .. name
  end
  return table.concat(rows, "\n")
end

-- -- Names -----------------------------------------------------------------

local p = read({ two_sessions() }, { timeline = true })
t.equal(p:problem_text(), nil, "two sessions")
t.equal(rows_by_thread(p), "5 " .. CLEAN .. " (71)\n3 main (70)", "top")
local out = render(p, "top", {})
t.contains(out, "samples            8, 0.010 s of CPU time, 2 threads\n", "top: samples")
t.contains(out, "event cpu          8 samples, 0.008 s of 0.010 s (80.0%) of CPU time; " ..
  "1000 samples a second asked, 800.0 got; by ctimer\n", "top: event")
t.contains(out, "handler            5.0 us mean, 99% below 7.1 us (the largest of 2 sessions), " ..
  "71.0 us at most, 0.040 ms in total, 0.40% of the CPU time\n", "top: handler")
t.contains(out, "timer overruns     2\n", "top: overruns")
t.contains(out, "pid                70\n", "top: facts")

local d = json.decode(render(p, "json", {}))
local names = {}
for i, thread in ipairs(d.threads) do
  names[i] = ("%s %d %s"):format(thread.pid, thread.tid, thread.name)
end
t.equal(table.concat(names, ", "), "70 70 main, 70 71 " .. CLEAN, "json")
t.equal(d.samples[1].pid, nil, "json: the id is enough")
d = json.decode(render(p, "speedscope", {}))
t.equal(d.profiles[1].name .. ", " .. d.profiles[2].name, "main (70), " .. CLEAN .. " (71)",
	"speedscope")
d = json.decode(render(p, "gecko", {}))
t.equal(d.threads[1].name .. ", " .. d.threads[2].name, "main (70), " .. CLEAN .. " (71)", "gecko")
t.equal(d.threads[2].tid .. "/" .. d.threads[2].pid, "71/70", "gecko: ids")
t.equal(d.meta.startTime, 1700000070000, "gecko: start")
t.with_file(render(p, "pprof", {}), function(path)
  local _, proto = t.shell("gzip -dc <" .. path)
  t.contains(proto, "main (70)", "pprof")
  t.contains(proto, CLEAN .. " (71)", "pprof: an odd name")
end)
local f = "f (a.lua:1) "
t.equal(render(p, "folded", { threads = { "main" } }), f .. "3\n", "filter by name")
t.equal(render(p, "folded", { threads = { 71 } }), f .. "5\n", "filter by id")
t.equal(render(p, "folded", { threads = { 71, "main" } }), f .. "8\n", "filter by both")
t.with_file(two_sessions(), function(path)
  for arguments, n in pairs { ["--thread=main"] = 3, ["--thread=71"] = 5,
			      ["--thread 71 --thread main"] = 8 } do
    local _, stdout = t.parse(arguments .. " " .. path)
    t.equal(stdout, f .. n .. "\n", arguments)
  end
  local status, stdout = t.parse("--format=top --by=thread --thread=main " .. path)
  t.equal(status, 0, "--by=thread")
  t.contains(stdout, "\n           3   100.0            3   100.0  main (70)\n", "--by=thread")
end)

-- -- Several processes -----------------------------------------------------

-- The same id in two processes, like in two containers: in files of their own, or merged into one.
local function check_processes(p, what)
  t.equal(rows_by_thread(p), "4 7 of process 72\n2 worker (7 of process 71)\n1 8", what .. ": rows")
  t.equal(#p.thread_list, 3, what .. ": threads")
  local d = json.decode(render(p, "json", {}))
  local by_pid = {}
  for _, s in ipairs(d.samples) do
    if s.thread == 7 then by_pid[s.pid] = (by_pid[s.pid] or 0) + 1
    else t.equal(s.pid, nil, what .. ": json: an id of one process") end
  end
  t.ok(by_pid["71"] == 2 and by_pid["72"] == 4, what .. ": json")
  d = json.decode(render(p, "speedscope", {}))
  t.equal(#d.profiles, 3, what .. ": speedscope")
  d = json.decode(render(p, "gecko", {}))
  local names = {}
  for i, thread in ipairs(d.threads) do
    names[i] = ("%d/%d %d"):format(thread.tid, thread.pid, #thread.samples.data)
  end
  table.sort(names)
  t.equal(table.concat(names, ", "), "7/71 2, 7/72 4, 8/72 1", what .. ": gecko")
  t.equal(d.meta.startTime, 1700000071000, what .. ": gecko: the first start")
  t.equal(render(p, "folded", { threads = { 7 } }), f .. "6\n", what .. ": filter: both of this id")
end
local streams = { stream(7, "worker", "71", 2), stream(7, nil, "72", 4), stream(8, nil, "72", 1) }
check_processes(read(streams, { timeline = true }), "files")
local paths, parts = {}, {}
for i, its in ipairs(streams) do
  paths[i] = ("part%d.bin"):format(i)
  t.write_file(paths[i], its)
end
t.equal(merge_files(paths, function(part) parts[#parts + 1] = part end, {}), nil, "merged")
check_processes(read({ table.concat(parts) }, { timeline = true }), "merged")

-- The same thread in two files of one process; only one has its name.
p = read { stream(7, nil, "71", 2), stream(7, "worker", "71", 4), two_sessions() }
t.equal(rows_by_thread(p), "6 worker (7)\n5 " .. CLEAN .. " (71)\n3 main (70)", "the same thread")
t.equal(p.slots:count(), 3, "the same thread: distinct samples")
-- The thread of the process is the first one, whichever has the first sample.
p = read({ stream(70, "second", "71", 2), stream(71, "first", "71", 2) }, { timeline = true })
d = json.decode(render(p, "speedscope", {}))
t.equal(d.profiles[1].name, "first (71)", "speedscope: the thread of the process")
d = json.decode(render(p, "gecko", {}))
t.equal(d.threads[1].name, "first (71)", "gecko: the thread of the process")
-- A process that is not known.
local unknown = B.new():context(7):stack(1, { F.host(1) }):sample(0, 1, 2):finish()
p = read { unknown, stream(7, nil, "71", 3) }
t.equal(rows_by_thread(p), "3 7 of process 71\n2 7 of process ?", "a process that is not known")

t.finish()
