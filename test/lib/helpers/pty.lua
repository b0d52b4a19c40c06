----------------------------------------------------------------------------
-- A program on a terminal of its own, for tests: types keys, collects what it writes, changes the size.
----------------------------------------------------------------------------

local ffi = require("ffi")

ffi.cdef [[
struct pty_termios { unsigned int input, output, control, modes; unsigned char line, keys[32]; unsigned int speeds[2]; };
struct pty_winsize { unsigned short rows, columns, x, y; };
struct pty_poll { int fd; short events, revents; };
int posix_openpt(int);
int grantpt(int);
int unlockpt(int);
char *ptsname(int);
int open(const char *, int, ...);
int dup2(int, int);
int setsid(void);
int fork(void);
int execv(const char *, char *const *);
void _exit(int);
int waitpid(int, int *, int);
int kill(int, int);
int close(int);
int ioctl(int, unsigned long, ...);
int tcgetattr(int, struct pty_termios *);
int tcsetpgrp(int, int);
int setpgid(int, int);
int getpid(void);
void *signal(int, void *);
int setenv(const char *, const char *, int);
ssize_t read(int, void *, size_t);
ssize_t write(int, const void *, size_t);
int poll(void *, unsigned long, int);
]]
local C = ffi.C
local O_RDWR, O_NOCTTY, TIOCSCTTY, TIOCSWINSZ, SIGTTOU = 2, 0x100, 0x540e, 0x5414, 22
local WNOHANG = 1
local ICANON, ECHO = 2, 8

local pty = {}

-- In a child: runs a program in the foreground of the terminal, with a parent in its session, as a shell does.
local function run(path, args)
  local argv, status = ffi.new("const char *[?]", #args + 1), ffi.new("int[1]")
  for i, a in ipairs(args) do argv[i - 1] = a end
  C.setsid()
  local fd = C.open(path, O_RDWR)
  C.ioctl(fd, TIOCSCTTY, ffi.cast("int", 0))
  for i = 0, 2 do C.dup2(fd, i) end
  C.setenv("TERM", "xterm", 1)
  C.setenv("LC_ALL", "C.UTF-8", 1)
  local pid = C.fork()
  if pid == 0 then
    C.setpgid(0, 0)
    C.signal(SIGTTOU, ffi.cast("void *", 1))
    C.tcsetpgrp(0, C.getpid())
    C.signal(SIGTTOU, nil)
    C.execv(args[1], ffi.cast("char *const *", argv))
    C._exit(127)
  end
  C.waitpid(pid, status, 0)
  local signo = status[0] % 128
  C._exit(signo > 0 and 128 + signo or status[0] / 256)
end

local function file_text(path)
  local file = io.open(path)
  local s = file and file:read("*a") or ""
  if file then file:close() end
  return s
end

-- Starts a program, given by a list of its path and arguments. Returns an object.
function pty.start(args, width, height)
  local self = { output = "" }
  local master = C.posix_openpt(O_RDWR + O_NOCTTY)
  assert(master >= 0 and C.grantpt(master) == 0 and C.unlockpt(master) == 0)
  local path = ffi.string(C.ptsname(master))
  local slave = C.open(path, O_RDWR + O_NOCTTY)	-- Keeps the modes after the program's end.

  function self.resize(columns, rows)
    C.ioctl(master, TIOCSWINSZ, ffi.new("struct pty_winsize", rows, columns))
  end
  self.resize(width, height)

  local parent = C.fork()
  if parent == 0 then
    C.close(master)
    C.close(slave)
    run(path, args)
  end

  -- Collects output for a time, or until is_so() holds. Returns whether it does.
  function self.wait(seconds, is_so)
    local buf, poll = ffi.new("char[4096]"), ffi.new("struct pty_poll[1]")
    for _ = 1, seconds * 50 do
      if is_so and is_so() then return true end
      poll[0].fd, poll[0].events = master, 1
      if C.poll(poll, 1, 20) > 0 then
	local n = tonumber(C.read(master, buf, 4096))
	if n > 0 then self.output = self.output .. ffi.string(buf, n) end
      end
    end
    return is_so == nil or is_so()
  end

  -- Waits until the program writes a plain text.
  function self.expect(part)
    return self.wait(30, function() return self.output:find(part, 1, true) ~= nil end)
  end

  -- Types keys; forgets the output so far.
  function self.press(bytes)
    self.output = ""
    C.write(master, bytes, #bytes)
  end

  -- Sends a signal to the program.
  function self.kill(signo)
    C.kill(tonumber(file_text(("/proc/%d/task/%d/children"):format(parent, parent)):match("%d+")), signo)
  end

  -- Waits until a signal has stopped the program.
  function self.stops()
    return self.wait(30, function()
      local pid = file_text(("/proc/%d/task/%d/children"):format(parent, parent)):match("%d+")
      return pid and file_text(("/proc/%s/stat"):format(pid)):find("%) T ") ~= nil
    end)
  end

  -- Are the modes of the terminal the usual ones?
  function self.is_usual()
    local modes = ffi.new("struct pty_termios")
    C.tcgetattr(slave, modes)
    return bit.band(modes.modes, ICANON + ECHO) == ICANON + ECHO
  end

  -- Waits for the end. Returns the status as a shell tells it, or nil.
  function self.finish()
    local status = ffi.new("int[1]")
    local ok = self.wait(30, function() return C.waitpid(parent, status, WNOHANG) == parent end)
    self.wait(0.1)
    C.close(master)
    C.close(slave)
    return ok and status[0] / 256 or nil
  end

  return self
end

return pty
