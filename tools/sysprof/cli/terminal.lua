----------------------------------------------------------------------------
-- Terminal as a screen: alternate screen, keys without Enter, size, signals.
--
-- Whatever ends the command must call finish(). The signals that would end it come as something to read.
----------------------------------------------------------------------------

local ffi = require("ffi")

ffi.cdef [[
struct sysprof_termios { unsigned int input, output, control, modes; unsigned char line, keys[32];
			 unsigned int speeds[2]; };
struct sysprof_winsize { unsigned short rows, columns, x, y; };
int tcgetattr(int, struct sysprof_termios *);
int tcsetattr(int, int, const struct sysprof_termios *);
int tcgetpgrp(int);
int getpgrp(void);
int ioctl(int, unsigned long, ...);
int isatty(int);
int kill(int, int);
int getpid(void);
int sigemptyset(void *);
int sigaddset(void *, int);
int sigprocmask(int, const void *, void *);
int signalfd(int, const void *, int);
ssize_t read(int, void *, size_t);
ssize_t write(int, const void *, size_t);
int close(int);
]]

-- Of Linux, for x86-64 and arm64.
local C = ffi.C
local STDIN, STDOUT = 0, 1
local SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGCONT, SIGTSTP, SIGTTOU, SIGWINCH = 1, 2, 3, 15, 18, 20, 22, 28
local SIG_BLOCK, SIG_SETMASK = 0, 2
local SFD_NONBLOCK, SFD_CLOEXEC = 0x800, 0x80000
local INFO = 128	-- Bytes that describe a signal; the first four are its number.
local TCSADRAIN, TIOCGWINSZ = 1, 0x5413
local ICANON, ECHO = 0x2, 0x8
local VTIME, VMIN = 5, 6
local EINTR, EAGAIN = 4, 11
local INPUT_MAX, STOPS_MAX = 4096, 100

local ENTER = "\27[?1049h\27[?25l\27[H\27[2J"	-- Alternate screen, without a cursor.
local LEAVE = "\27[0m\27[?25h\27[?1049l"

local signal_set = ffi.typeof("uint64_t[16]")

local terminal = {}

-- Is standard output a terminal that has a screen?
function terminal.exists()
  local kind = os.getenv("TERM") or ""
  return C.isatty(STDOUT) ~= 0 and kind ~= "" and kind ~= "dumb"
end

-- Does the terminal show UTF-8?
function terminal.has_utf8()
  local function set(name)
    local value = os.getenv(name)
    return value ~= "" and value or nil
  end
  local locale = set("LC_ALL") or set("LC_CTYPE") or set("LANG") or ""
  return locale:lower():find("utf%-?8") ~= nil
end

-- Takes the terminal. Returns an object:
--   fd      readable when a signal has come
--   input   readable when a key was pressed; nil without a keyboard
function terminal.begin()
  local self = { input = C.isatty(STDIN) ~= 0 and STDIN or nil }
  local control = self.input or STDOUT
  local set, before, old = signal_set(), signal_set(), ffi.new("struct sysprof_termios")
  local is_ours = false
  C.sigemptyset(set)
  for _, signo in ipairs { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGCONT, SIGTSTP, SIGWINCH } do C.sigaddset(set, signo) end

  -- Writes to the terminal. Returns whether that worked.
  function self.write(s)
    local at = 0
    while at < #s do
      local n = tonumber(C.write(STDOUT, ffi.cast("const char *", s) + at, #s - at))
      if n < 0 and ffi.errno() ~= EINTR and ffi.errno() ~= EAGAIN then return false end
      at = at + math.max(n, 0)
    end
    return true
  end

  local function take()
    local new = ffi.new("struct sysprof_termios", old)
    new.modes = bit.band(old.modes, bit.bnot(ICANON + ECHO))
    new.keys[VMIN], new.keys[VTIME] = 1, 0
    C.tcsetattr(control, TCSADRAIN, new)
    is_ours = true
    self.write(ENTER)
  end

  local function give_back()
    if not is_ours then return end
    is_ours = false
    self.write(LEAVE)
    C.tcsetattr(control, TCSADRAIN, old)
  end

  -- Sends a signal to this process, with its usual effect.
  local function raise(signo)
    C.sigprocmask(SIG_SETMASK, before, nil)
    C.kill(C.getpid(), signo)
    C.sigprocmask(SIG_BLOCK, set, nil)
  end

  -- Takes the terminal again after a stop. In the background, stops until this process is in front.
  local function resume()
    for _ = 1, STOPS_MAX do
      if C.tcgetpgrp(control) == C.getpgrp() then break end
      raise(SIGTTOU)
    end
    take()
  end

  -- Gives the terminal back, stops this process, and takes the terminal when the user wants it to go on.
  local function suspend()
    give_back()
    raise(SIGTSTP)
    C.tcgetattr(control, old)
    resume()
  end

  -- Returns columns and rows.
  function self.size()
    local size = ffi.new("struct sysprof_winsize")
    if C.ioctl(STDOUT, TIOCGWINSZ, size) ~= 0 or size.columns == 0 or size.rows == 0 then return 80, 24 end
    return size.columns, size.rows
  end

  -- Returns what was typed, "" if nothing comes any more.
  function self.read()
    local buf = ffi.new("char[?]", INPUT_MAX)
    local n = tonumber(C.read(self.input, buf, INPUT_MAX))
    if n < 0 and (ffi.errno() == EINTR or ffi.errno() == EAGAIN) then return nil end
    return n > 0 and ffi.string(buf, n) or ""
  end

  -- Takes signals that have come. Returns the number of one that ends the command, or nil.
  function self.take_signals()
    local info, ends = ffi.new("int[?]", INFO / 4), nil
    while C.read(self.fd, info, INFO) == INFO do
      local signo = info[0]
      if signo == SIGTSTP then
	suspend()
      elseif signo == SIGCONT then	-- Something else had stopped it, and others may have changed the modes.
	resume()
      elseif signo ~= SIGWINCH then
	ends = signo
      end
    end
    return ends
  end

  -- Gives the terminal back.
  function self.finish()
    give_back()
    C.close(self.fd)
    C.sigprocmask(SIG_SETMASK, before, nil)
  end

  C.sigprocmask(SIG_BLOCK, set, before)
  self.fd = C.signalfd(-1, set, SFD_NONBLOCK + SFD_CLOEXEC)
  C.tcgetattr(control, old)
  take()
  return self
end

terminal.SIGINT = SIGINT

return terminal
