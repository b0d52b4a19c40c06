-- A signal kills a compiled loop, or a program that waits. The profile of LUAJIT_SYSPROF
-- and of luajit-sysprof run lacks at most one second and a tick of the kernel. Where no
-- thread starts, the VM writes the profile, and a line on standard error reports this.
-- SYSPROF_STRESS_KILLS is the number of random moments at which SIGKILL comes (4).
-- TIMEOUT: 900
-- BASE: none, files, sockets, signals, processes; the VM runs a loop, or none
-- WAITS: half of its time
-- LONG: 63

local t = require("tools_test")
package.path = t.source .. "/tools/?.lua;" .. package.path
local box = require("box")
local reader = require("sysprof.read.reader")

local LOST_S = 1
local TICK_S = 0.01	-- Of the slowest kernel.
local RUN_S = 1.6	-- CPU time of a program: clearly more than may be lost.
local TRIES = 3		-- A loaded machine may delay the thread that writes.
local MOMENTS = tonumber(os.getenv("SYSPROF_STRESS_KILLS") or "4")
local SIGKILL, SIGPIPE, SIGTERM = 9, 13, 15

-- The program keeps its CPU time in a file that survives it. A child without a profile
-- kills it some real time after it has used some CPU time.
local HEAD = [[
local ffi = require("ffi")
ffi.cdef "int open(const char *, int, int); int ftruncate(int, long);"
ffi.cdef "void *mmap(void *, size_t, int, int, int, long); int clock_gettime(int, void *);"
ffi.cdef "int fork(void); int getpid(void); int getppid(void); int kill(int, int);"
ffi.cdef "int usleep(unsigned); void _exit(int); void *signal(int, void *);"
local C = ffi.C
local signo, cpu_s, real_s = %d, %g, %g
local fd = C.open("times", 66, 384)			-- O_RDWR | O_CREAT.
C.ftruncate(fd, 4096)
local times = ffi.cast("volatile int64_t *", C.mmap(nil, 4096, 3, 1, fd, 0))
local cpu, reached = ffi.cast("void *", times), nil
local function seconds(i) return tonumber(times[i]) + tonumber(times[i + 1]) / 1e9 end
C.clock_gettime(3, cpu)					-- CLOCK_THREAD_CPUTIME_ID.
times[4] = times[0] * 1000000000 + times[1]		-- CPU time before the work.
local pid = C.getpid()
C.signal(signo, nil)
if C.fork() == 0 then
  for _ = 1, 60000 do
    C.usleep(10000)
    C.clock_gettime(1, ffi.cast("void *", times + 6))	-- CLOCK_MONOTONIC.
    if C.getppid() ~= pid then break end
    if seconds(0) >= cpu_s then reached = reached or seconds(6) end
    if reached and seconds(6) - reached >= real_s then C.kill(pid, signo) end
  end
  C._exit(0)
end
]]
local COMPILED = HEAD .. [[
jit.opt.start("hotloop=2")
while true do C.clock_gettime(3, cpu) end
]]
local TURNS = HEAD .. [[
local function spin(n) local s = 0 for i = 1, n do s = s + i %% 7 end return s end
local n = 0
while true do
  n = n + 1
  local f = load("local spin, n = ... local s = spin(n) return s", "=chunk_" .. n)
  for _ = 1, n %% 50 * 10 do
    f(spin, 1e4)
    C.clock_gettime(3, cpu)
  end
  collectgarbage()
  C.clock_gettime(3, cpu)
end
]]
local WAITS = HEAD .. [[
while seconds(0) < cpu_s do C.clock_gettime(3, cpu) end
while true do C.usleep(1000000) end
]]

-- Seconds of CPU time that the program had used, and before its work.
local function cpu_of_program()
  local ffi = require("ffi")
  local times = ffi.new("int64_t[8]")
  ffi.copy(times, t.read_file("box/times"), 64)
  return tonumber(times[0]) + tonumber(times[1]) / 1e9, tonumber(times[4]) / 1e9
end

-- Runs code that is killed. Returns the seconds of CPU time that are missing.
local function missing(what, way, code, signo)
  box.fresh()
  t.write_file("box/killed.lua", code)
  local status, out, err = t.shell("cd box && " .. way .. " killed.lua")
  t.equal(status % 128, signo, what .. ": the signal ends it: " .. out .. err)
  local p, problem = reader.parse_string(t.read_file("box/p.bin"))
  t.ok(p ~= nil, what .. ": the file is a profile: " .. tostring(problem))
  if not p then return 0, 0, "" end
  t.equal(p.complete, false, what .. ": the profile is cut")
  t.contains(p:problem_text(), "SIGKILL, SIGTERM or SIGPIPE", what .. ": the reader names signals")
  local samples, cpu_us = p:totals()
  local cpu, before = cpu_of_program()
  print(("%s: %d samples, %.3f of %.3f s"):format(what, samples, cpu_us / 1e6, cpu))
  return cpu - cpu_us / 1e6, before, err
end

local function env(options)
  return ("LUAJIT_SYSPROF=path=p.bin%s '%s'"):format(options, t.luajit)
end
local function run(options)
  return ("TMPDIR=. '%s' '%s/tools/luajit-sysprof.lua' run -o p.bin%s")
	 :format(t.luajit, t.source, options)
end

local function check(what, way, code, signo)
  local lost, before
  for _ = 1, TRIES do
    lost, before = missing(what, way, code, signo)
    if lost <= LOST_S + TICK_S + before then return end
  end
  t.ok(false, ("%s: %.3f s are missing, at most %g expected"):format(what, lost, LOST_S + TICK_S))
end

-- -- A compiled loop -------------------------------------------------------

for signo, name in pairs { [SIGKILL] = "SIGKILL", [SIGTERM] = "SIGTERM", [SIGPIPE] = "SIGPIPE" } do
  local code = COMPILED:format(signo, RUN_S, 0)
  check("LUAJIT_SYSPROF, " .. name, env(""), code, signo)
  check("run, " .. name, run(""), code, signo)
end
check("a run of two seconds", env(",hz=1000"), COMPILED:format(SIGKILL, 2, 0), SIGKILL)
check("all threads", env(",threads=all"), COMPILED:format(SIGKILL, RUN_S, 0), SIGKILL)
check("all threads, flush=vm", env(",threads=all,flush=vm"), COMPILED:format(SIGKILL, RUN_S, 0),
      SIGKILL)

-- The VM does not write while it runs compiled code: the checks above can fail.
local lost = missing("flush=vm", env(",flush=vm"), COMPILED:format(SIGKILL, RUN_S, 0), SIGKILL)
t.ok(lost > LOST_S + TICK_S, ("flush=vm: %.3f s are missing, more expected"):format(lost))

-- -- Any moment -----------------------------------------------------------

math.randomseed(os.time())
for i = 1, MOMENTS do
  local hz, code = ({ 100, 1000, 5000 })[i % 3 + 1], i % 2 == 0 and COMPILED or TURNS
  local cpu_s = 2.5 * math.random()
  check(("after %.3f s at %d Hz"):format(cpu_s, hz), env(",hz=" .. hz),
	code:format(SIGKILL, cpu_s, 0), SIGKILL)
end

-- -- A program that waits --------------------------------------------------

-- It computes for half a second and is killed when that is a second ago and more: no
-- sample comes that would hand the others over.
for _ = 1, TRIES do
  local before
  lost, before = missing("waits", env(""), WAITS:format(SIGKILL, 0.5, 2), SIGKILL)
  lost = lost - before
  if lost < 0.05 then break end
end
t.ok(lost < 0.05, ("waits: %.3f s are missing, less than five intervals expected"):format(lost))

-- -- No thread can be made -------------------------------------------------

local SAID = "the background thread of the profiler did not start: "
local WORK = [[
local s, deadline = 0, os.time() + 200
repeat for i = 1, 1e5 do s = s + i % 3 end
until misc.sysprof.report().samples >= 3 or os.time() > deadline
]]

-- Runs the program by a command. Returns false if that cannot be done here.
local function refused(what, command, name, says)
  box.fresh()
  t.shell("chmod 777 box")
  t.write_file("box/program.lua", WORK)
  local status, _, err = t.shell("cd box && " .. command .. " program.lua")
  if status > 124 then
    print(what .. " is left out: " .. err)
    return
  end
  t.equal(status, 0, what .. ": status, " .. err)
  t.contains(err, name .. ": " .. SAID .. says .. "; the VM writes the profile\n", what)
  local p = reader.parse_string(t.read_file("box/p.bin"))
  t.ok(p and p.complete and p:totals() >= 3, what .. ": the profile is whole")
end

local FILTER = ("'%s' '%s/test/lib/helpers/guide_seccomp.lua' --no-threads env ")
	       :format(t.luajit, t.source)
local FILTERED = "Operation not permitted"
local MAYBE = " (a seccomp filter may refuse clone3, futex or mprotect)"
refused("a seccomp filter", FILTER .. env(""), "LUAJIT_SYSPROF", FILTERED)
refused("a seccomp filter, run", FILTER .. run(""), "luajit-sysprof", FILTERED .. MAYBE)
refused("a seccomp filter, flush=thread", FILTER .. env(",flush=thread"), "LUAJIT_SYSPROF", FILTERED)

-- The limit counts the processes of an ordinary user; run needs a second one itself.
local _, user = t.shell("id -u")
local ORDINARY = tonumber(user) ~= 0 and "" or
  "setpriv --reuid=65534 --regid=65534 --clear-groups "
refused("RLIMIT_NPROC", ORDINARY .. "prlimit --nproc=1 env " .. env(""), "LUAJIT_SYSPROF",
	"Resource temporarily unavailable")

-- Other threads than the VM's are found by the profiler's thread only.
box.fresh()
t.write_file("box/program.lua", "print(misc.sysprof.stop())")
local status, out, err = t.shell("cd box && " .. FILTER .. env(",threads=all") .. " program.lua")
if status ~= 125 then
  t.equal(out, "nil\tprofiler is not running\t22\n", "threads=all: no profile")
  t.contains(err, SAID .. FILTERED .. MAYBE .. "; this VM is not profiled\n", "threads=all")
end
t.finish()
