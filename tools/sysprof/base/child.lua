----------------------------------------------------------------------------
-- Child process: starts a program and waits for its end.
--
-- The child keeps the terminal, its signals and its status: it runs as if the shell had
-- started it.
----------------------------------------------------------------------------

local ffi = require("ffi")
local files = require("sysprof.base.files")
local system = require("sysprof.base.system")

local C = ffi.C

ffi.cdef [[
int execv(const char *, char *const *);
int sigwaitinfo(const void *, void *);
int sigtimedwait(const void *, void *, const void *);
int setenv(const char *, const char *, int);
int unsetenv(const char *);
int getrusage(int, void *);
int dup2(int, int);
]]

-- Of Linux, for x86-64 and arm64.
local SIGHUP, SIGINT, SIGPIPE, SIGTERM, SIGCHLD = system.SIGHUP, system.SIGINT, system.SIGPIPE, system.SIGTERM,
						   system.SIGCHLD
local SIG_SETMASK = system.SIG_SETMASK
local SI_KERNEL = 0x80		-- A signal of the terminal.
local WNOHANG = 1
local O_RDWR = 2
local INFO_SIGNO, INFO_CODE = 0, 2	-- In a siginfo_t, as numbers of int.
local RUSAGE_CHILDREN, RUSAGE_LONGS = -1, 18	-- The first four are the times in and for programs: s and us.
local FORWARDED = { SIGHUP, SIGINT, system.SIGQUIT, SIGTERM }

-- A siginfo_t has 128 bytes.
local signal_info = ffi.typeof("int[32]")

local child = {}
local is_size_ignored, on_size = false, nil	-- What SIGXFSZ did before us.
local came		-- The last signal that came for us while a child ran.
local held		-- The signals that were blocked before hold(), nil if none are held.

-- -- Signals ---------------------------------------------------------------

-- Whether a process still waits for its first SIGINT. The luajit program takes one
-- to interrupt the script, and ends by the next.
local function wants_interrupt(pid)
  local s = files.text(("/proc/%d/status"):format(pid))
  if not s then return false end
  local function has(field)
    local digit = tonumber(s:match(field .. ":%s*%x*(%x)%s") or "0", 16)
    return math.floor(digit / 2) % 2 == 1
  end
  return has("SigCgt") and not has("ShdPnd")
end

-- The terminal's signals also reach the child. A signal from another process may be meant
-- for the child, but reaches only us.
local function forward(pid, signo, code)
  if code == SI_KERNEL then return end
  if signo == SIGINT and not wants_interrupt(pid) then return end
  C.kill(pid, signo)
end

-- Returns the status of waitpid when the child has ended.
local function wait(pid, set)
  local info, status = signal_info(), ffi.new("int[1]")
  while true do
    local ended = C.waitpid(pid, status, WNOHANG)
    if ended == pid then return status[0] end
    if C.sigwaitinfo(set, info) > 0 and info[INFO_SIGNO] ~= SIGCHLD then
      came = info[INFO_SIGNO]
      forward(pid, info[INFO_SIGNO], info[INFO_CODE])
    end
  end
end

-- Standard input and output of this process lead nowhere from now on.
local function be_quiet()
  local fd = C.open("/dev/null", O_RDWR)
  for to = 0, 1 do C.dup2(fd, to) end
  if fd > 1 then C.close(fd) end
end

-- -- API -------------------------------------------------------------------

-- Sets a variable of the environment; nil removes it.
function child.setenv(name, value)
  if value then C.setenv(name, value, 1) else C.unsetenv(name) end
end

-- Runs the program at a path with a list of arguments; the first is its
-- name. Returns its exit status, or nil and the signal that ended it; nil, nil
-- and a message if it could not be started. Must be called with SIGCHLD at its
-- default or ignored. quiet: it reads nothing, and its output is lost.
function child.run(path, args, quiet)
  local argv = ffi.new("const char *[?]", #args + 1)
  for i, arg in ipairs(args) do argv[i - 1] = arg end
  local set, before = system.signals(FORWARDED), system.signal_set()
  C.sigaddset(set, SIGCHLD)
  local on_child = C.signal(SIGCHLD, nil)	-- If it is ignored, nobody waits.
  C.sigprocmask(SIG_SETMASK, set, before)
  io.stdout:flush()
  io.stderr:flush()
  local parent = C.getpid()
  local pid = C.fork()
  if pid == 0 then
    C.prctl(system.PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0)	-- Nobody would wait for it.
    if C.getppid() ~= parent then C._exit(127) end
    C.signal(SIGCHLD, on_child)
    if is_size_ignored then C.signal(system.SIGXFSZ, on_size) end
    C.sigprocmask(SIG_SETMASK, held or before, nil)
    if quiet then be_quiet() end
    C.execv(path, ffi.cast("char *const *", argv))
    io.stderr:write(path, ": ", files.reason(), "\n")
    io.stderr:flush()
    C._exit(127)
  elseif pid < 0 then
    local why = files.reason()
    C.sigprocmask(SIG_SETMASK, before, nil)
    return nil, nil, why
  end
  local status = wait(pid, set)
  -- What came for both is done with.
  local at_once = ffi.new("int64_t[2]")
  local info = signal_info()
  while C.sigtimedwait(set, info, at_once) > 0 do
    if info[INFO_SIGNO] ~= SIGCHLD then came = info[INFO_SIGNO] end
  end
  C.sigprocmask(SIG_SETMASK, before, nil)
  local signo = status % 128
  if signo == 0 then return math.floor(status / 256) % 256 end
  return nil, signo
end

-- Signals that end this process wait from now on: signal_that_came() tells of them.
function child.hold()
  held = system.signal_set()
  C.sigprocmask(system.SIG_BLOCK, system.signals(FORWARDED), held)
end

-- They have their usual effect again.
function child.release()
  if held then C.sigprocmask(SIG_SETMASK, held, nil) end
  held = nil
end

-- Returns the last signal that came for this process while a child ran or since hold(), or nil.
function child.signal_that_came()
  local signo = held and C.sigtimedwait(system.signals(FORWARDED), signal_info(), ffi.new("int64_t[2]")) or 0
  if signo > 0 then came = signo end
  return came
end

-- Returns the CPU time in seconds of all children that have ended, with those that they have waited for.
function child.cpu_seconds()
  local usage = ffi.new("int64_t[?]", RUSAGE_LONGS)
  if C.getrusage(RUSAGE_CHILDREN, usage) ~= 0 then return 0 end
  return tonumber(usage[0] + usage[2]) + tonumber(usage[1] + usage[3]) / 1e6
end

-- A write behind the limit of a file's size fails from now on, and ends this process no more; children are as before.
function child.ignore_size()
  is_size_ignored, on_size = true, C.signal(system.SIGXFSZ, ffi.cast("void *", system.SIG_IGN))
end

-- A write to a pipe without a reader fails from now on, and ends this process no more.
function child.ignore_pipe()
  C.signal(SIGPIPE, ffi.cast("void *", system.SIG_IGN))
end

-- Ends this process as a write to a pipe without a reader does.
function child.die_of_pipe()
  child.die(SIGPIPE)
end

-- Ends this process in the way that a signal has ended the child, so that a
-- shell sees the same.
function child.die(signo)
  if signo == SIGINT or signo == SIGTERM or signo == SIGHUP or signo == SIGPIPE then
    C.signal(signo, nil)
    C.sigprocmask(SIG_SETMASK, system.signals {}, nil)
    C.kill(C.getpid(), signo)
  end
  os.exit(128 + signo)
end

return child
