-- Seccomp filters that answer one system call with an error, each call of ours, before a profile starts: by start(),
-- by LUAJIT_SYSPROF, and with live control. The result is a sound profile, or one sentence that names the call or the
-- cause. The program runs on with its own results. Calls without which it does not run without us are left out. The
-- suite takes an eighth of the calls, those of the day, and the ones that failed once; etc/fault_matrix takes all.
-- TIMEOUT: 900
-- BASE: none, calls of the system fail; faults/memory and faults/live try each LuaJIT
-- WAITS: half of its time
-- LONG: 14

local t = require("tools_test")
local coverage = require("coverage")
local ffi = require("ffi")
local reader = require("sysprof.read.reader")

if ffi.arch ~= "x64" then
  print("the numbers of system calls are those of x86-64")
  os.exit(77)
end

local NUMBERS = {
  read = 0, write = 1, close = 3, poll = 7, mmap = 9, mprotect = 10, munmap = 11, rt_sigaction = 13, rt_sigprocmask = 14,
  rt_sigreturn = 15, ioctl = 16, pread64 = 17, sched_yield = 24, madvise = 28, nanosleep = 35, getpid = 39, socket = 41,
  connect = 42, accept = 43, sendto = 44, recvfrom = 45, recvmsg = 47, bind = 49, listen = 50, socketpair = 53,
  getsockopt = 55, clone = 56, exit = 60, wait4 = 61, uname = 63, fcntl = 72, flock = 73, ftruncate = 77, getcwd = 79,
  mkdir = 83, rmdir = 84, readlink = 89, getrusage = 98, sysinfo = 99, geteuid = 107, rt_sigpending = 127,
  rt_sigtimedwait = 128, sigaltstack = 131, prctl = 157, gettid = 186, futex = 202, sched_getaffinity = 204,
  getdents64 = 217, timer_create = 222, timer_settime = 223, timer_delete = 226, clock_gettime = 228, clock_getres = 229,
  exit_group = 231, tgkill = 234, openat = 257, unlinkat = 263, newfstatat = 262, renameat = 264, fchmodat = 268,
  accept4 = 288, perf_event_open = 298, prlimit64 = 302, process_vm_readv = 310, rseq = 334, clone3 = 435,
}
local ERRORS = { EPERM = 1, EACCES = 13, ENOSYS = 38 }
local TEXTS = { EPERM = "Operation not permitted", EACCES = "Permission denied", ENOSYS = "Function not implemented" }
local PATIENCE_S = 60
local PARTS = 8
local ALWAYS = { accept4 = true, poll = true, fcntl = true, gettid = true, futex = true, newfstatat = true,
		 clone = true, wait4 = true }

-- A program without the profiler needs these itself. With the latter, it only needs them for threads and handlers.
local OWN_NEEDS = { mmap = true, mprotect = true, write = true }
local OWN_NEEDS_LATER = { exit = true, rseq = true, rt_sigreturn = true }

local SCRIPT = t.source .. "/test/lib/programs/refused_call.lua"
local RECORD = ("timeout %d '%s' '%s/tools/luajit-sysprof.lua' record --hz=1000 -o live.bin "):format(PATIENCE_S,
  t.luajit, t.source)
local DURATIONS = { "100ms", "1s", "5s" }	-- Beside load, a program may get no CPU time.

t.write_file("worker.lua", "for _ = 1, 400 do local t = {} for i = 1, 1000 do t[i] = { i } end end print('END')\n")

-- Runs the program. Returns its status, output and messages.
local function run(call, errno, mode, path, seconds)
  os.remove("p.bin")
  return t.shell(("timeout -s KILL %d '%s' '%s' %d %d %s %s"):format(seconds or PATIENCE_S, t.luajit, SCRIPT, NUMBERS[call],
    ERRORS[errno], mode, path or "p.bin"))
end

-- Does a message name the call or the cause, in one line?
local function is_sentence(why, call, errno)
  return #why > 10 and not why:find("\n.") and
    (why:find(call, 1, true) or why:find("seccomp filter", 1, true) or why:find(TEXTS[errno], 1, true)) ~= nil
end

local function samples_of(path)
  local p = t.content(path) ~= "" and reader.parse_string(t.content(path))
  return p and p.complete and coverage.of(p).samples or 0
end

local function check_start(call, errno, clock)
  local what = ("%s %s, start of %s"):format(call, errno, clock)
  local status, out, err = run(call, errno, clock)
  t.equal(status, 0, what .. ": status: " .. err)
  t.ok(out:find("END\n$") ~= nil, what .. ": the program's end: " .. out)
  local started, why = out:match("^(%a+)\t([^\n]*)\n")
  if started == "true" then
    local stopped, stop_why = out:match("\n(%a+)\t?([^\n]*)\nEND")
    t.ok(stopped == "true" or is_sentence(stop_why or "", call, errno), what .. ": stop: " .. out)
    t.ok(samples_of("p.bin") > 0, what .. ": samples")
  else
    t.ok(is_sentence(why or "", call, errno), what .. ": a reason: " .. out .. err)
  end
end

-- The filter is there before the program begins.
local function check_run(call, errno)
  local what = ("%s %s, LUAJIT_SYSPROF"):format(call, errno)
  if run(call, errno, "exec", "worker.lua") ~= 0 then return false end
  local status, out, err = t.shell(("rm -f p.bin; LUAJIT_SYSPROF=path=p.bin,clock=cpu,hz=1000 timeout -s KILL %d '%s' '%s' %d %d exec worker.lua")
    :format(PATIENCE_S, t.luajit, SCRIPT, NUMBERS[call], ERRORS[errno]))
  t.equal(status, 0, what .. ": status: " .. err)
  t.equal(out, "END\n", what .. ": output")
  t.ok(samples_of("p.bin") > 0 or is_sentence(err, call, errno), what .. ": neither samples nor a reason: " .. err)
  return true
end

local function check_live(call, errno, mode)
  local what = ("%s %s, %s"):format(call, errno, mode)
  os.remove("live.bin")
  os.remove("ready")
  os.execute(("{ timeout -s KILL %d '%s' '%s' %d %d %s ready >out 2>err & echo $! >pid; wait $!; echo $? >status.new; mv status.new status; } &")
    :format(2 * PATIENCE_S, t.luajit, SCRIPT, NUMBERS[call], ERRORS[errno], mode))
  t.wait_until(what, function() return t.content("ready"):find("\n") ~= nil end)
  local ok, why = t.content("ready"):match("^(%a+) (.-)\n")
  if ok == "true" then
    local pid = t.content("pid"):match("%d+")
    pid = t.content(("/proc/%s/task/%s/children"):format(pid, pid)):match("%d+")
    local status, out, err, has_samples
    for _, duration in ipairs(DURATIONS) do
      status, out, err = t.shell(("%s -d %s %s"):format(RECORD, duration, pid))
      has_samples = samples_of("live.bin") > 0
      if status ~= 0 or has_samples then break end
    end
    t.ok(status == 0 and has_samples or is_sentence(err:match("[^\n]*"), call, errno), what .. ": " .. out .. err)
  else
    t.ok(is_sentence(why, call, errno), what .. ": a reason: " .. why)
  end
  os.execute("printf '%1100s' x >>ready")
  t.wait_until(what .. ": ends", function() return t.content("status") ~= "" end)
  os.remove("status")
  t.equal(t.content("out"), "END\n", what .. ": the program's end: " .. t.content("err"))
end

if run("accept", "EPERM", "bare") == 77 then
  print("no seccomp filters here")
  os.exit(77)
end

local names, calls = {}, {}
for call in pairs(NUMBERS) do names[#names + 1] = call end
table.sort(names)
for i, call in ipairs(names) do
  local is_of_day = (i + os.date("!*t").yday) % PARTS == 0
  if os.getenv("SYSPROF_FAULTS") or ALWAYS[call] or is_of_day then calls[#calls + 1] = call end
end
print(("%d of %d calls"):format(#calls, #names))
local n_run = 0
for _, call in ipairs(calls) do
  local status, out = run(call, "EPERM", "bare")
  local needs = status ~= 0 or out ~= "END\n"
  t.equal(needs, OWN_NEEDS[call] == true, call .. ": the program needs it itself")
  if OWN_NEEDS_LATER[call] then
    status, out = run(call, "EPERM", "threads", nil, 5)
    t.ok(status ~= 0 or out ~= "END\n", call .. ": the program needs it itself for a thread or handler")
    needs = true
  end
  if not needs then
    for errno in pairs(ERRORS) do check_start(call, errno, "cpu") end
    check_start(call, "EPERM", "wall")
    check_start(call, "EPERM", "alloc")
    if check_run(call, "EPERM") then n_run = n_run + 1 end
    check_live(call, "EPERM", "live")
    check_live(call, "EPERM", "later")
  end
end
t.ok(n_run > #calls / 2, ("the filter lets %d programs begin"):format(n_run))

t.finish()
