----------------------------------------------------------------------------
-- C functions and constants of Linux that several modules need; time, and waiting for descriptors.
----------------------------------------------------------------------------

local ffi = require("ffi")

ffi.cdef [[
int open(const char *, int, ...);
int openat(int, const char *, int, ...);
int close(int);
int fcntl(int, int, ...);
ssize_t read(int, void *, size_t);
ssize_t write(int, const void *, size_t);
int isatty(int);
int ioctl(int, unsigned long, ...);
struct sysprof_poll { int fd; short events, revents; };
int poll(struct sysprof_poll *, unsigned long, int);
int clock_gettime(int, void *);
int socket(int, int, int);
ssize_t recv(int, void *, size_t, int);
int fork(void);
void _exit(int);
int waitpid(int, int *, int);
int getpid(void);
int getppid(void);
int prctl(int, unsigned long, unsigned long, unsigned long, unsigned long);
struct sysprof_limit { uint64_t now, most; };
int getrlimit(int, void *);
int setrlimit(int, const void *);
int kill(int, int);
void *signal(int, void *);
int sigemptyset(void *);
int sigaddset(void *, int);
int sigfillset(void *);
int sigprocmask(int, const void *, void *);
]]

local C = ffi.C
local POLLIN, POLLOUT = 1, 4
local CLOCK_MONOTONIC = 1
local RLIMIT_NOFILE = 7
local FIONREAD = 0x541b
local WAIT_SECONDS = 3600		-- Seconds.

-- For x86-64 and arm64.
local system = {
  EPERM = 1, ENOENT = 2, EINTR = 4, ENXIO = 6, EAGAIN = 11, EACCES = 13, ECONNRESET = 104,
  O_WRONLY = 1, O_CREAT = 0x40, O_EXCL = 0x80, O_NOCTTY = 0x100, O_NONBLOCK = 0x800, O_CLOEXEC = 0x80000,
  O_PATH = 0x200000,
  O_DIRECTORY = ffi.arch == "arm64" and 0x4000 or 0x10000, O_NOFOLLOW = ffi.arch == "arm64" and 0x8000 or 0x20000,
  SOCK_NONBLOCK = 0x800, SOCK_CLOEXEC = 0x80000, SOL_SOCKET = 1, MSG_NOSIGNAL = 0x4000, MSG_DONTWAIT = 0x40,
  SIGHUP = 1, SIGINT = 2, SIGQUIT = 3, SIGKILL = 9, SIGPIPE = 13, SIGTERM = 15, SIGCHLD = 17, SIGCONT = 18,
  SIGTSTP = 20, SIGTTOU = 22, SIGXFSZ = 25, SIGWINCH = 28,
  SIG_IGN = 1, SIG_BLOCK = 0, SIG_SETMASK = 2,
  PR_SET_PDEATHSIG = 1,
}

-- A sigset_t.
system.signal_set = ffi.typeof("uint64_t[16]")

-- Returns a set of signals.
function system.signals(list)
  local set = system.signal_set()
  C.sigemptyset(set)
  for _, signo in ipairs(list) do C.sigaddset(set, signo) end
  return set
end

-- Returns seconds of a clock that no one sets.
function system.now()
  local t = ffi.new("int64_t[2]")
  C.clock_gettime(CLOCK_MONOTONIC, t)
  return tonumber(t[0]) + tonumber(t[1]) / 1e9
end

-- Waits until a descriptor of a list has something to read, or one of the other list takes something, at most this many
-- seconds, or for a signal. Returns a set of those that are ready.
function system.wait(readable, seconds, writable)
  local n, n_writable, ready = #readable, writable and #writable or 0, {}
  local polls = ffi.new("struct sysprof_poll[?]", n + n_writable + 1)
  for i, fd in ipairs(readable) do polls[i - 1].fd, polls[i - 1].events = fd, POLLIN end
  for i, fd in ipairs(writable or {}) do polls[n + i - 1].fd, polls[n + i - 1].events = fd, POLLOUT end
  if C.poll(polls, n + n_writable, math.ceil(math.max(0, math.min(seconds, WAIT_SECONDS)) * 1000)) > 0 then
    for i = 0, n + n_writable - 1 do
      if polls[i].revents ~= 0 then ready[polls[i].fd] = true end
    end
  end
  return ready
end

-- Returns how many bytes a descriptor has to read now; 0 of a terminal.
function system.unread(fd)
  local n = ffi.new("int[1]")
  return C.isatty(fd) == 0 and C.ioctl(fd, FIONREAD, n) == 0 and n[0] or 0
end

-- Lets this process open as many files as it may. Its children inherit that.
function system.allow_files()
  local limit = ffi.new("struct sysprof_limit")
  if C.getrlimit(RLIMIT_NOFILE, limit) ~= 0 then return end
  limit.now = limit.most
  C.setrlimit(RLIMIT_NOFILE, limit)
end

-- Writes all of a text to a descriptor. Returns true, or nil.
function system.write(fd, s)
  local at = 0
  while at < #s do
    local n = tonumber(C.write(fd, ffi.cast("const char *", s) + at, #s - at))
    if n < 0 and ffi.errno() ~= system.EINTR or n == 0 then return nil end
    at = at + math.max(n, 0)
  end
  return true
end

function system.close(fd)
  C.close(fd)
end

return system
