-- Failures to make, set, read or end a clock, and to handle signals.
-- TIMEOUT: 900
-- BASE: none, calls of the system fail; faults/memory and faults/live try each LuaJIT
-- LONG: 32

local faults = require("faults")

faults.all {
  { { "timer_create" }, { "EAGAIN", "EPERM", "EINVAL" }, { "wall", "cpu", "task", "threads", "fork" } },
  { { "timer_settime" }, { "EINVAL" }, { "wall", "cpu", "threads", "fork" } },
  { { "perf_event_open" }, { "EACCES", "EPERM", "ENOSYS", "EMFILE", "EINVAL" }, { "task", "events" } },
  -- What asks whether a descriptor is still the event's cannot fail otherwise.
  { { "ioctl" }, { "EINVAL" }, { "task", "events" }, limit = 2, once = true },
  { { "fcntl64" }, { "EINVAL" }, { "task", "events" } },
  { { "uname" }, { "EFAULT" }, { "task" }, limit = 1, once = true },
  { { "clock_gettime", "clock_getres" }, { "EINVAL" }, { "wall", "task", "threads" } },
  { { "setitimer", "getitimer" }, { "EINVAL" }, { "itimer" }, limit = 1, once = true },
  { { "sigaction", "sigpending", "sigtimedwait" }, { "EINVAL" },
    { "wall", "task", "threads", "fork" } },
}
