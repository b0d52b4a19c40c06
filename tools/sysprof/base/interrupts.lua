----------------------------------------------------------------------------
-- Signals taken as something to read, so that a command ends in order.
----------------------------------------------------------------------------

local ffi = require("ffi")
local system = require("sysprof.base.system")

ffi.cdef("int signalfd(int, const void *, int);")

local C = ffi.C
local SIGHUP, SIGINT, SIGTERM = system.SIGHUP, system.SIGINT, system.SIGTERM
local SFD_NONBLOCK, SFD_CLOEXEC = 0x800, 0x80000
local INFO = 128	-- Bytes that describe a signal; the first four are its number.
local STDERR = 2

local interrupts = {}

-- Is a signal ignored, as nohup lets it?
local function is_ignored(signo)
  local before = C.signal(signo, nil)
  C.signal(signo, before)
  return before == ffi.cast("void *", system.SIG_IGN)
end

-- Takes a list of signals from now on. Returns an object whose fd is readable when one has come.
function interrupts.take_over(list)
  local self, set, before = {}, system.signals(list), system.signal_set()
  C.sigprocmask(system.SIG_BLOCK, set, before)
  self.fd = C.signalfd(-1, set, SFD_NONBLOCK + SFD_CLOEXEC)

  -- Returns the number of a signal that has come, or nil.
  function self.next()
    local info = ffi.new("int[?]", INFO / 4)
    return C.read(self.fd, info, INFO) == INFO and info[0] or nil
  end

  -- Sends a signal to this process, with its usual effect.
  function self.raise(signo)
    C.sigprocmask(system.SIG_SETMASK, before, nil)
    C.kill(C.getpid(), signo)
    C.sigprocmask(system.SIG_BLOCK, set, nil)
  end

  -- Signals have their usual effect again.
  function self.finish()
    system.close(self.fd)
    C.sigprocmask(system.SIG_SETMASK, before, nil)
  end

  return self
end

-- Takes the signals that end a command: SIGINT, SIGTERM and SIGHUP.
function interrupts.begin()
  local self = interrupts.take_over(is_ignored(SIGHUP) and { SIGINT, SIGTERM } or { SIGINT, SIGTERM, SIGHUP })
  local finish = self.finish

  -- Takes what has come. Returns whether there was something.
  function self.take()
    local any = false
    for _ in self.next do any = true end
    -- The terminal shows ^C on the line.
    if any and C.isatty(STDERR) ~= 0 then io.stderr:write("\n") end
    return any
  end

  function self.finish()
    self.take()
    finish()
  end

  return self
end

return interrupts
