----------------------------------------------------------------------------
-- Terminal as a screen: alternate screen, keys without Enter, size, signals.
--
-- Whatever ends the command must call finish(). The signals that would end it come as something to read.
----------------------------------------------------------------------------

local ffi = require("ffi")
local interrupts = require("sysprof.base.interrupts")
local system = require("sysprof.base.system")

ffi.cdef [[
struct sysprof_termios { unsigned int input, output, control, modes; unsigned char line, keys[32];
			 unsigned int speeds[2]; };
struct sysprof_winsize { unsigned short rows, columns, x, y; };
int tcgetattr(int, struct sysprof_termios *);
int tcsetattr(int, int, const struct sysprof_termios *);
int tcgetpgrp(int);
int getpgrp(void);
int ioctl(int, unsigned long, ...);
]]

-- Of Linux, for x86-64 and arm64.
local C = ffi.C
local STDIN, STDOUT = 0, 1
local SIGNALS = { system.SIGHUP, system.SIGINT, system.SIGQUIT, system.SIGTERM, system.SIGCONT, system.SIGTSTP,
		  system.SIGWINCH }
local TCSADRAIN, TIOCGWINSZ = 1, 0x5413
local ICANON, ECHO = 0x2, 0x8
local VTIME, VMIN = 5, 6
local EINTR, EAGAIN = system.EINTR, system.EAGAIN
local INPUT_BYTES, STOPS = 4096, 100
local FULL_SECONDS = 1		-- Between two attempts to write to a terminal that takes nothing and must not block.

local ENTER = "\27[?1049h\27[?25l\27[H\27[2J"	-- Alternate screen, without a cursor.
local LEAVE = "\27[0m\27[?25h\27[?1049l"

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
  local signals, old = interrupts.take_over(SIGNALS), ffi.new("struct sysprof_termios")
  local is_ours = false
  self.fd = signals.fd

  -- Writes to the terminal. Returns whether that worked. A signal ends the wait for a terminal that takes nothing.
  function self.write(s)
    local at = 0
    while at < #s do
      local n = tonumber(C.write(STDOUT, ffi.cast("const char *", s) + at, #s - at))
      local err = n < 0 and ffi.errno()
      if err == EAGAIN then
	if system.wait({ self.fd }, FULL_SECONDS, { STDOUT })[self.fd] then return true end
      elseif err and err ~= EINTR then
	return false
      end
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

  -- Takes the terminal again after a stop. In the background, stops until this process is in front.
  local function resume()
    for _ = 1, STOPS do
      if C.tcgetpgrp(control) == C.getpgrp() then break end
      signals.raise(system.SIGTTOU)
    end
    take()
  end

  -- Gives the terminal back, stops this process, and takes the terminal when the user wants it to go on.
  local function suspend()
    give_back()
    signals.raise(system.SIGTSTP)
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
    local buf = ffi.new("char[?]", INPUT_BYTES)
    local n = tonumber(C.read(self.input, buf, INPUT_BYTES))
    if n < 0 and (ffi.errno() == EINTR or ffi.errno() == EAGAIN) then return nil end
    return n > 0 and ffi.string(buf, n) or ""
  end

  -- Takes signals that have come. Returns the number of one that ends the command, or nil.
  function self.take_signals()
    local ends
    for signo in signals.next do
      if signo == system.SIGTSTP then
	suspend()
      elseif signo == system.SIGCONT then	-- Something else had stopped it, and others may have changed the modes.
	resume()
      elseif signo ~= system.SIGWINCH then
	ends = signo
      end
    end
    return ends
  end

  -- Gives the terminal back.
  function self.finish()
    give_back()
    signals.finish()
  end

  C.tcgetattr(control, old)
  take()
  return self
end

return terminal
