----------------------------------------------------------------------------
-- Processor counters of the benchmark suite: cycles and instructions of this thread,
-- by perf_event_open(2).
----------------------------------------------------------------------------

local ffi = require("ffi")

ffi.cdef [[
long syscall(long number, ...);
long read(int fd, void *data, size_t size);
]]

local counter = {}

local PERF_EVENT_OPEN = ({ x64 = 298, arm64 = 241 })[jit.arch]
local PERF_TYPE_HARDWARE = 0
local EVENTS = { cycles = 0, instructions = 1 }

-- The structure perf_event_attr as words of 8 bytes.
local ATTR_WORDS, ATTR_SIZE_BITS, ATTR_CONFIG, ATTR_FLAGS = 14, 32, 1, 5
local EXCLUDE_KERNEL, EXCLUDE_HV = 2^5, 2^6

-- Returns a function that returns the number of events so far; nil if the machine
-- does not count them. user: leaves out events in the kernel.
function counter.open(event, user)
  if not PERF_EVENT_OPEN then return nil end
  local attr = ffi.new("uint64_t[?]", ATTR_WORDS)
  attr[0] = PERF_TYPE_HARDWARE + ATTR_WORDS * 8 * 2^ATTR_SIZE_BITS
  attr[ATTR_CONFIG] = EVENTS[event]
  attr[ATTR_FLAGS] = EXCLUDE_HV + (user and EXCLUDE_KERNEL or 0)
  local fd = ffi.C.syscall(PERF_EVENT_OPEN, attr, ffi.cast("int", 0), ffi.cast("int", -1),
			   ffi.cast("int", -1), ffi.cast("unsigned long", 8))
  if fd < 0 then return nil end
  local value = ffi.new("uint64_t[1]")
  return function()
    if ffi.C.read(fd, value, 8) ~= 8 then return nil end
    return tonumber(value[0])
  end
end

return counter
