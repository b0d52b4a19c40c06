----------------------------------------------------------------------------
-- Signals that end a recording: taken as something to read, so that the end is orderly.
----------------------------------------------------------------------------

local ffi = require("ffi")

ffi.cdef [[
int sigemptyset(void *);
int sigaddset(void *, int);
int sigprocmask(int, const void *, void *);
int signalfd(int, const void *, int);
ssize_t read(int, void *, size_t);
int isatty(int);
int close(int);
void *signal(int, void *);
]]

local C = ffi.C
local SIGHUP, SIGINT, SIGTERM = 1, 2, 15
local SIG_IGN = 1
local SIG_BLOCK, SIG_SETMASK = 0, 2
local SFD_NONBLOCK, SFD_CLOEXEC = 0x800, 0x80000
local INFO = 128	-- Bytes that describe a signal.
local STDERR = 2

local signal_set = ffi.typeof("uint64_t[16]")

local interrupts = {}

-- Is a signal ignored, as nohup lets it?
local function is_ignored(signo)
  local before = C.signal(signo, nil)
  C.signal(signo, before)
  return before == ffi.cast("void *", SIG_IGN)
end

-- Takes SIGINT, SIGTERM and SIGHUP from now on. Returns an object whose fd is readable when one has come.
function interrupts.begin()
  local self, set, before = {}, signal_set(), signal_set()
  C.sigemptyset(set)
  for _, signo in ipairs { SIGINT, SIGTERM } do C.sigaddset(set, signo) end
  if not is_ignored(SIGHUP) then C.sigaddset(set, SIGHUP) end
  C.sigprocmask(SIG_BLOCK, set, before)
  self.fd = C.signalfd(-1, set, SFD_NONBLOCK + SFD_CLOEXEC)

  -- Takes what has come. Returns whether there was something.
  function self.take()
    local info, any = ffi.new("char[?]", INFO), false
    while C.read(self.fd, info, INFO) == INFO do any = true end
    -- The terminal shows ^C on the line.
    if any and C.isatty(STDERR) ~= 0 then io.stderr:write("\n") end
    return any
  end

  -- Signals have their usual effect again.
  function self.finish()
    self.take()
    C.close(self.fd)
    C.sigprocmask(SIG_SETMASK, before, nil)
  end

  return self
end

return interrupts
