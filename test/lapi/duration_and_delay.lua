-- Options delay and duration: a profile has what runs in its window, and nothing else. It is
-- complete after it, and the program goes on.
-- TIMEOUT: 600
-- BASE: none, files, sockets, signals, processes; the VM runs a loop, or none
-- WAITS: half of its time

local t = require("tools_test")
package.path = t.source .. "/tools/?.lua;" .. package.path
local box = require("box")
local reader = require("sysprof.read.reader")
local ffi = require("ffi")
ffi.cdef [[
typedef struct { long s, ns; } sysprof_time;
int clock_gettime(int, sysprof_time *);
int nanosleep(const sysprof_time *, sysprof_time *);
int fork(void);
int waitpid(int, int *, int);
int getpid(void);
size_t strlen(const char *);
void _exit(int);
]]
local C, sysprof = ffi.C, misc.sysprof
local PATIENCE_S = 200

local function now()
  local ts = ffi.new("sysprof_time")
  C.clock_gettime(1, ts)
  return tonumber(ts.s) + tonumber(ts.ns) * 1e-9
end

-- Works until f() is true.
local function work_until(what, f)
  local deadline, s = now() + PATIENCE_S, 0
  repeat
    for i = 1, 1e4 do s = s + #tostring(i) end
    assert(now() < deadline, what .. ": not in time")
  until f()
end

local function work(seconds)
  local till = now() + seconds
  work_until("work", function() return now() >= till end)
end

local function samples() return sysprof.report().samples end

-- The real time of a profile grows until it is over.
local function is_over()
  local before, till = sysprof.report().wall_s, now() + 0.1
  while now() < till do end
  return sysprof.report().wall_s == before
end

local function in_early(seconds) work(seconds) return 1 end
local function in_window() work_until("the end", is_over) return 1 end
local function in_late() work(0.2) return 1 end

local function is_there(path)
  local file = io.open(path)
  if file then file:close() end
  return file ~= nil
end

local function wait_for(path)
  work_until(path, function() return is_there(path) end)
end

-- Checks that the profile is whole, and which functions it has.
local function check(path, what, has)
  local p = assert(reader.parse_string(t.read_file(path)))
  t.ok(p.complete, what .. ": complete")
  local code, folded = t.parse(path)
  t.equal(code, 0, what .. ": no warning")
  for _, name in ipairs { "in_early", "in_window", "in_late" } do
    t.equal(folded:find(name .. " (", 1, true) ~= nil, has[name] == true, what .. ": " .. name)
  end
  return p
end

local function fails(message, errno, ok, got_message, got_errno)
  t.equal(ok, nil, message .. ": fails")
  t.equal(got_message, message, message)
  t.equal(got_errno, errno, message .. ": errno")
end

-- -- The window ------------------------------------------------------------

for _, flush in ipairs { "vm", "thread" } do
  local what = "duration, flush=" .. flush
  assert(sysprof.start { mode = "C", path = "d.bin", hz = 1000, duration = 0.3, flush = flush })
  in_window()
  in_late()
  t.equal(sysprof.stop(), true, what .. ": stop")
  fails("profiler is not running", 22, sysprof.stop())
  local r = sysprof.report()
  local p = check("d.bin", what, { in_window = true })
  t.ok(r.wall_s >= 0.3, what .. ": real time is at least the duration")
  t.ok(r.cpu_s <= r.wall_s, what .. ": CPU time ends with the duration")
  t.equal(p:totals(), r.samples, what .. ": all samples are in the file")
end

-- The early function must end before the delay does: on a busy machine that takes tries.
local delay = 0.25
repeat
  os.remove("w.bin")
  delay = 2 * delay
  local start = now()
  assert(sysprof.start { mode = "C", path = "w.bin", hz = 1000, delay = delay, duration = 0.3 })
  t.equal(is_there("w.bin"), false, "delay: no file before it")
  in_early(0.1)
  local in_time = now() - start < delay
  wait_for("w.bin")
  in_window()
  in_late()
  t.equal(sysprof.stop(), true, "delay: stop")
until in_time or delay > 60
check("w.bin", "delay", { in_window = true })

-- Nobody calls stop: the next start finds the profile complete.
assert(sysprof.start { mode = "C", path = "n.bin", hz = 1000, duration = 0.1 })
in_window()
assert(sysprof.start { mode = "C", path = "m.bin", hz = 1000 })
check("n.bin", "no stop", { in_window = true })
in_late()
t.equal(sysprof.stop(), true, "the next profile")
check("m.bin", "the next profile", { in_late = true })

-- A stop before the end.
assert(sysprof.start { mode = "C", path = "b.bin", hz = 1000, duration = 1000 })
work_until("samples", function() return samples() > 5 end)
t.equal(sysprof.stop(), true, "stop before the end")
check("b.bin", "stop before the end", {})

-- Counters have a window, too.
local before = sysprof.report().wall_s
assert(sysprof.start { mode = "D", hz = 1000, delay = 0.1, duration = 0.2 })
work_until("the start", function() return sysprof.report().wall_s ~= before end)
in_window()
local n = samples()
in_late()
t.equal(samples(), n, "counters: none after the end")
t.equal(sysprof.stop(), true, "counters: stop")

-- -- Compiled code, and waits ----------------------------------------------

local function compiled(n)
  local s = 0
  for i = 1, n do s = s + i % 7 end
  return s
end
compiled(1e6)
local per_s = 1e7 / (function()
  local start = now()
  compiled(1e7)
  return now() - start
end)()
assert(sysprof.start { mode = "C", path = "c.bin", hz = 1000, duration = 0.2 })
local start = now()
compiled(math.ceil(per_s * 2))
local took, r = now() - start, sysprof.report()
t.ok(took < 0.6 or r.wall_s < took / 2, ("a compiled loop: %g s of %g s"):format(r.wall_s, took))
t.ok(r.cpu_s <= r.wall_s, "a compiled loop: CPU time")
t.equal(sysprof.stop(), true, "a compiled loop: stop")
t.equal(check("c.bin", "a compiled loop", {}):totals(), r.samples, "a compiled loop: samples after the end do not count")

-- No signal ends a wait early, and the rest of the wait counts.
for _, option in ipairs { "duration", "delay" } do
  os.remove("s.bin")
  local left = ffi.new("sysprof_time", 0, 400000000)
  assert(sysprof.start { mode = "C", path = "s.bin", clock = "wall", [option] = 0.1 })
  t.equal(C.nanosleep(left, left), 0, option .. ": the whole sleep")
  local status = sysprof.stop()
  t.equal(status, true, option .. ": stop after a sleep")
end

-- Its end in the middle of the wait.
assert(sysprof.start { mode = "C", path = "s.bin", clock = "wall", duration = 0.1 })
C.nanosleep(ffi.new("sysprof_time", 0, 500000000), nil)
assert(sysprof.stop())
local real_us = sysprof.report().wall_s * 1e6
local _, folded = t.parse("--weight=event s.bin")
local sum_ns = 0
for weight in folded:gmatch(" (%d+)\n") do sum_ns = sum_ns + tonumber(weight) end
-- CPU time less than the interval, 10 ms, may have no sample.
t.ok(math.abs(sum_ns / 1e3 - real_us) < 0.1 * real_us + 1e4, ("the parts of a wait: %g of %g us"):format(sum_ns / 1e3, real_us))

-- The VM completes the profile long after the end: what it adds then has a time in the window.
ffi.cdef [[
int pthread_create(unsigned long *, const void *, size_t (*)(const char *), char *);
int pthread_join(unsigned long, void **);
]]
local bytes, thread = ffi.new("char[?]", 2^22), ffi.new("unsigned long[1]")
ffi.fill(bytes, 2^22 - 1, 120)
assert(sysprof.start { mode = "C", path = "o.bin", clock = "cpu", threads = "all", duration = 1 })
local till = now() + 0.3
repeat
  t.equal(C.pthread_create(thread, nil, C.strlen, bytes), 0, "a short thread")
  C.pthread_join(thread[0], nil)
until now() >= till
C.nanosleep(ffi.new("sysprof_time", 1, 500000000), nil)
assert(sysprof.stop())
local short = assert(reader.parse_string(t.read_file("o.bin"), { timeline = true }))
_, folded = t.parse("o.bin")
t.contains(folded, "[threads not sampled]", "short threads")
t.ok(short.end_time <= sysprof.report().wall_s * 1e6 + 1, ("short threads: the last time is %d us, the end %g s")
     :format(short.end_time, sysprof.report().wall_s))

-- -- During the delay ------------------------------------------------------

os.remove("x.bin")
os.remove("y.bin")
assert(sysprof.start { mode = "C", path = "x.bin", delay = 1000 })
fails("a profile of this VM waits for its delay; misc.sysprof.stop cancels it", 22,
      sysprof.start { mode = "C", path = "y.bin" })
t.equal(sysprof.stop(), true, "stop cancels")
fails("profiler is not running", 22, sysprof.stop())
t.equal(is_there("x.bin") or is_there("y.bin"), false, "no file")
t.write_file("theirs.txt", "not a profile")
fails("none/x.bin: No such file or directory", 2, sysprof.start { mode = "C", path = "none/x.bin", delay = 1 })
t.equal(select(2, sysprof.start { mode = "C", path = "theirs.txt", delay = 1 }):find("theirs.txt: ", 1, true), 1,
	"not a profile")
t.equal(t.read_file("theirs.txt"), "not a profile", "a check writes nothing")
t.equal(select(2, sysprof.start { mode = "C", path = "x.bin", clock = "sun", delay = 1 }):find("'sun'", 1, true), 1,
	"a wrong clock is found at the call")
fails("profiler misuse: option 'delay' is -1; expected a number of seconds, or a time such as 500us, 20ms, 10s or 2m, 0 to 277777h", 22,
      sysprof.start { mode = "C", delay = -1 })
fails("profiler misuse: option 'duration' is '10x'; expected a number of seconds, or a time such as 500us, 20ms, 10s or 2m, 1ms to 277777h", 22,
      sysprof.start { mode = "C", duration = "10x" })
fails("profiler misuse: option 'duration' is 0; expected a number of seconds, or a time such as 500us, 20ms, 10s or 2m, 1ms to 277777h", 22,
      sysprof.start { mode = "C", duration = 0 })
assert(sysprof.start { mode = "C", path = "p%r%.bin", delay = 0.01, hz = 1000 })
wait_for("p%r%.bin")
t.equal(sysprof.stop(), true, "a path with percent signs: stop")
check("p%r%.bin", "a path with percent signs", {})

-- -- Children --------------------------------------------------------------

-- Forks a child, runs f in it, and returns its number and status.
local function child(f)
  io.stdout:flush()
  local pid = C.fork()
  if pid == 0 then
    C._exit(pcall(f) and 7 or 8)
  end
  local status = ffi.new("int[1]")
  while C.waitpid(pid, status, 0) < 0 do end
  return pid, status[0] / 256
end

-- The window of a child is that of its parent.
for _, delay in ipairs { 0, 0.2 } do
  local what = "a child, delay=" .. delay
  assert(sysprof.start { mode = "C", path = "f.bin", hz = 1000, delay = delay, duration = 0.4, fork = true })
  local pid, status = child(function()
    wait_for("f.bin." .. C.getpid())
    in_window()
    in_late()
    assert(sysprof.stop())
  end)
  t.equal(status, 7, what .. ": its status")
  t.equal(sysprof.stop(), true, what .. ": stop in the parent")
  if status == 7 then check("f.bin." .. pid, what, { in_window = true }) end
end

-- Without the option, the child has no profile, and the parent's goes on.
os.remove("g.bin")
assert(sysprof.start { mode = "C", path = "g.bin", hz = 1000, delay = 0.2 })
local _, status = child(function() in_early(0.5) assert(not sysprof.stop()) end)
t.equal(status, 7, "a child without the option")
wait_for("g.bin")
t.equal(sysprof.stop(), true, "a child without the option: stop in the parent")
check("g.bin", "a child without the option", {})

-- -- The end of the program, and the environment ---------------------------

box.fresh()
box.run("off", [[misc.sysprof.start { mode = "C", path = "e.bin", delay = 1000 }]])
t.equal(box.files(), "", "the program ends during the delay")

local CODE = [[
local start = os.time()
local function done() return misc.sysprof.report().samples end
local function in_window()
  local s, before
  repeat
    before = done()
    local till = os.clock() + 0.3
    while os.clock() < till do s = #tostring(till) end
    assert(os.time() < start + 200)
  until before > 0 and done() == before
end
in_window()
local function in_late() local till = os.clock() + 0.2 while os.clock() < till do local s = #tostring(till) end end
in_late()
os.exit(7)
]]
for _, value in ipairs { "delay=100ms,duration=0.2", "delay=0.1s,duration=200ms,control=SIGUSR2" } do
  box.fresh()
  local got, _, err = box.run(value .. ",hz=1000,path=e-%r.bin", CODE)
  t.equal(got .. err, "7", value .. ": the program is unharmed")
  check("box/e-1.bin", value, { in_window = true })
end
box.fresh()
for _, value in ipairs { "duration=x", "duration=1x", "delay=1..2", "duration=-1", "max_size=1T" } do
  box.refuses(value, "has a wrong value; expected ")
end
box.refuses("max_size=1M,shared", "max_size needs a file of its own; remove shared")
box.refuses("delay=1,path=none/x.bin", "none/x.bin: No such file or directory")
t.finish()
