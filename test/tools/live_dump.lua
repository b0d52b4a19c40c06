-- dump of real programs: stacks of threads that compute, stay in compiled code and sleep in C; coroutines; several VMs; a
-- program that is stopped, recorded, or profiled by itself.
-- TIMEOUT: 300
-- BASE: none, a command beside a program; tools/live_programs tries each LuaJIT
-- WAITS: most of its time
-- LONG: 37

local programs = require("live_programs")
local server = require("live_server")
local shell_status = require("shell_status")
local t = require("tools_test")

local start, try = programs.start, programs.try

os.execute("rm -rf ./*")

-- Dumps; returns the text and the messages.
local function dump(arguments, code)
  local status, out, err = try("dump " .. arguments)
  t.equal(status, code or 0, arguments .. ": status: " .. err)
  return out, err
end

-- Repeats a dump until it has a text: a sample may come where a stack has not what is expected. Beside others, a program
-- may have none.
local function dump_until(arguments, part)
  local out, err
  t.wait_until(("%s has %s"):format(arguments, part), function()
    out, err = dump(arguments)
    return out:find(part, 1, true)
  end)
  return out, err
end

local loop = start("loop.lua", [[
local x = 0
local function never_left() while true do x = (x + 1) % 7 end end
up()
never_left()
]])
local sleeper = start("sleeper.lua", [[
local ffi = require("ffi")
ffi.cdef "unsigned int sleep(unsigned int);"
local function naps() ffi.C.sleep(1000) return 1 end
up()
naps()
]])
-- Computes after each nap, which is longer than the recording.
local napper = start("napper.lua", [[
jit.off()
local ffi = require("ffi")
ffi.cdef "int usleep(unsigned);"
local function pause() ffi.C.usleep(600000) return 1 end
up()
while true do
  io.open("nap", "w"):close()
  pause()
  local computes = os.clock() + 0.3
  repeat until os.clock() > computes
end
]])

-- -- Single programs -------------------------------------------------------

do
  local out, err = dump_until(loop, "\n    never_left (loop.lua:2) [compiled]\n")
  t.equal(err, "", "a loop: messages")
  t.contains(out, ("process %d: luajit loop.lua\n"):format(loop), "a loop: head")
  t.ok(out:find(("\nthread %d %%([^\n]*%%): running"):format(loop)), "a loop: state: " .. out)
  t.ok(out:find("never_left.*main chunk %(loop%.lua:4%).*_start"), "a loop: innermost first: " .. out)
  t.contains(out, ("coroutines unknown: the VM was met in no Lua code outside of compiled code: thread %d stays in " ..
		   "compiled code\n"):format(loop), "a loop: why there are no coroutines")
end
programs.halt(loop)	-- What spins takes the machine's time.
t.wait_until("a napper: the name of what naps", function()
  os.remove("nap")
  t.wait_until("a nap", function() return io.open("nap") end)
  -- From the beginning of a nap on, its end is the first moment that has names.
  return dump(napper):find("\n    pause (napper.lua:4)\n", 1, true)
end)
programs.stop { napper }
do
  local out = dump_until(sleeper, "waiting: clock_nanosleep, for at least ")
  t.ok(out:find("\n    sleep\n.*\n    [^\n]*sleeper%.lua:3[^\n]*\n    main chunk %(sleeper%.lua:5%)"),
       "a sleeper: its C call and who called it: " .. out)
  t.contains(out, ("outside of compiled code: thread %d waits in clock_nanosleep\n"):format(sleeper), "a sleeper: why")
end
local scheduler = start("scheduler.lua", [[
jit.off()
local function waits(n) while true do coroutine.yield(n) end end
local function job(n) return waits(n) + 1 end
local list = {}
for i = 1, 20 do list[i] = coroutine.create(job) end
local function turns()
  for _, co in ipairs(list) do coroutine.resume(co, 1) end
  return 1
end
local function forever() while true do turns() end end
up()
forever()
]])
do
  local out = dump(scheduler)
  t.contains(out, ("\nthread %d ("):format(scheduler), "coroutines: the thread")
  t.contains(out, "\n21 coroutines at another moment: 1 running", "coroutines: their number")
  t.ok(out:find("\n%d+ suspended\n    coroutine%.yield\n    waits %(scheduler%.lua:2%)\n    job %(scheduler%.lua:3%)\n"),
       "coroutines: where they are: " .. out)
  t.ok(not out:find("unknown:", 1, true), "coroutines: nothing is unknown: " .. out)
end
do	-- Its recording ends before it lists its coroutines.
  local brief = start("brief.lua", [[
jit.off()
local ffi = require("ffi")
ffi.cdef "int usleep(unsigned);"
up()
while true do ffi.C.usleep(10000) end
]])
  dump_until(brief, "\n1 coroutine at another moment: 1 running\n")
  programs.stop { brief }
end

-- -- Several programs, outputs ---------------------------------------------

programs.go_on(loop)
do
  local out, err = dump(("%d 99999999 --name=sleeper.lua"):format(loop))
  local _
  t.contains(err, "there is no process 99999999", "two of three")
  t.contains(out, "process " .. loop, "by PID")
  t.contains(out, "process " .. sleeper, "by name")
  dump("-o dump.txt " .. scheduler)
  dump("-o dump.txt " .. loop)
  t.contains(t.content("dump.txt"), "never_left (loop.lua:2)", "a file of ours is overwritten")
  t.write_file("letter.txt", "a letter")
  _, err = dump("-o letter.txt " .. loop, 1)
  t.contains(err, "cannot overwrite letter.txt: sysprof did not write this file", "a letter is kept")
  _, err = dump("-o page.html " .. loop, 2)
  t.contains(err, "'page.html' has no known ending; expected .txt or .json, or --format", "a wrong ending")
  _, err = dump("luajit", 2)
  t.contains(err, "did you mean 'luajit-sysprof dump --name=luajit'?", "a name")
end
do
  dump(("-o dump.json %d %d"):format(sleeper, scheduler))
  local s = t.content("dump.json")
  t.contains(s, '{"format":"sysprof dump","version":1,"processes":[', "JSON: head")
  t.contains(s, '"state":"waiting","waits_for":"clock_nanosleep"', "JSON: a wait")
  t.contains(s, '"coroutines":21', "JSON: coroutines")
  if shell_status("command -v python3 >/dev/null") ~= 0 then
    print("skipped: JSON in Python, which is not installed")
  else
    local status, out, err = t.shell([[python3 -c "
import json
d = json.load(open('dump.json'))['processes']
print(d[0]['threads'][0]['frames'][-1]['name'], len(d[0]['vms']), d[1]['vms'][0]['coroutines'], len(d[1]['vms']))"]])
    t.equal(status, 0, "JSON: " .. err)
    t.equal(out, "_start 0 21 1\n", "JSON: content")
  end
end

programs.stop { loop }

-- -- Programs that are busy otherwise --------------------------------------

do	-- Another client records it.
  programs.spawn(("%s record -o other.bin %d >log 2>&1"):format(programs.COMMAND, scheduler))
  t.wait_until("a recording", function() return t.content("log"):find("press Ctrl-C to end\n", 1, true) end)
  local out = dump(scheduler)
  t.contains(out, "\nthreads unknown: another client records this process already; try again when that recording has ended\n",
	     "beside a recording")
  t.contains(out, "\n21 coroutines: ", "beside a recording: coroutines")
  try("stop " .. scheduler)
  t.wait_until("the recording ends", function() return t.content("log"):find("next: ", 1, true) end)
end
do	-- It profiles itself.
  local own = start("own.lua", [[
jit.off()
assert(misc.sysprof.start { mode = "C", path = "own.bin" })
local function spins() local s = 0 for i = 1, 1e5 do s = s + i end return s end
local function forever() while true do spins() end end
up()
forever()
]])
  local out = dump(own)
  t.contains(out, "\nthreads unknown: the VM is being profiled already\n", "beside a profile")
  t.contains(out, "\n1 coroutine: 1 running\n", "beside a profile: coroutines")
  programs.stop { own }
end
do	-- It is stopped.
  programs.halt(scheduler)
  local out, err = dump(scheduler, 1)
  t.equal(out, "", "a stopped process: output")
  t.contains(err, ("process %d (scheduler.lua) is stopped by a signal; 'kill -CONT %d'"):format(scheduler, scheduler),
	     "a stopped process")
  programs.stop { scheduler }
end

-- Dumps programs, and sends each a signal when it has got the first request, until the dump says a text. Beside others, this
-- test may come too late.
local function dump_broken_by(signal, name, part)
  t.wait_until(("%s: %s"):format(name, part), function()
    local pid = start(name, programs.LOOP)
    local function descriptors() return select(2, select(2, t.shell(("ls /proc/%d/fd"):format(pid))):gsub("\n", "")) end
    local usual = descriptors()
    programs.spawn_for_status(("%s dump %d >broken.out 2>&1"):format(programs.COMMAND, pid))
    t.wait_until("a request", function() return descriptors() > usual or t.content("status") ~= "" end)
    os.execute(("kill -%s %d"):format(signal, pid))
    programs.status()
    programs.stop { pid }
    return t.content("broken.out"):find(part, 1, true)
  end)
end
dump_broken_by("STOP", "halted.lua", "is stopped by a signal")
dump_broken_by("KILL", "killed.lua", " has ended")

do	-- Its first thread has ended.
  local headless = start("headless.lua", [=[
local ffi = require("ffi")
ffi.cdef [[void pthread_exit(void *); int pthread_create(unsigned long *, const void *, int (*)(void), void *);
	   int pause(void);]]
local thread = ffi.new("unsigned long[1]")
assert(ffi.C.pthread_create(thread, nil, ffi.C.pause, nil) == 0)	-- The process lives as long as a thread.
up()
ffi.C.pthread_exit(nil)
]=])
  t.wait_until("its first thread ends", function()
    return t.content(("/proc/%d/stat"):format(headless)):find(") Z ", 1, true)
  end)
  local out = dump(headless)
  t.contains(out, ("process %d: luajit headless.lua\n"):format(headless), "without a first thread: its name")
  t.contains(out, ("\nthread %d (luajit): no stack: the thread has ended\n"):format(headless), "without a first thread")
  t.contains(out, ("thread %d has ended\n"):format(headless), "without a first thread: why there are no coroutines")
  t.contains(dump("--name=headless.lua"), "process " .. headless, "without a first thread: by its name")
  os.execute("kill -STOP " .. headless)
  local _, err = dump(headless, 1)
  t.contains(err, "is stopped by a signal", "without a first thread: stopped")
end

if programs.can_be_user(65534) then	-- After setuid, procfs is root's.
  local sleeps = start("setuid.lua", [[
local ffi = require("ffi")
ffi.cdef "int usleep(unsigned int); int setuid(unsigned int);"
up()
assert(ffi.C.setuid(65534) == 0)
jit.off()
local function naps() ffi.C.usleep(50000) return 1 end
while true do naps() end
]])
  dump_until(sleeps, "no stack: the kernel hides where it waits; ")
end

-- -- In namespaces of its own ----------------------------------------------

local inner = programs.start_in_a_box("scheduler.lua")
if inner then
  local out = dump_until(inner, "\n21 coroutines at another moment: ")
  t.contains(out, ("\nthread %d ("):format(inner), "in a box: the number that we see")
  t.ok(out:find("forever %(stdin:10%)"), "in a box: its stack: " .. out)
  programs.stop { inner }
end

-- -- Programs that answer wrongly (test/lib/helpers/live_server.lua) ---------------

for behaviour, expected in pairs {
  garbage = { 1, "threads unknown: the process sent an answer that this version of sysprof does not know" },
  silent = { 1, "threads unknown: the process did not answer within " },
  closes = { 1, "coroutines unknown: the process " },
  never_done = { 0, "threads may lack samples: the process did not answer within " },
  dies = { 0, "threads may lack samples: the process has ended" },
  another = { 1, "threads unknown: the process sent the recording of another process, expected PID " },
  garbage_file = { 1, "threads unknown: not a sysprof profile" },
  empty_file = { 1, "threads unknown: it recorded nothing" },
  done_with_error = { 0, "threads may lack samples: the VM is being profiled already" },
  long_list = { 0, "coroutines unknown: their list: it has more than 16777216 bytes" },
  odd_values = { 0, "thread 7 (?): running" },
} do
  local pid = server.start(behaviour)
  local out = dump(pid, expected[1])
  t.contains(out, ("process %d: "):format(pid), behaviour)
  t.contains(out, "\n" .. expected[2], behaviour)
  t.ok(behaviour ~= "closes" or programs.tells_closing(out), "closes: " .. out)
  server.stop { pid }
end

programs.finish()
