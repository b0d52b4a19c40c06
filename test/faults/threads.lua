-- Failures to create, list or query threads. Information about the process is missing; no
-- page of the program is readable.
-- TIMEOUT: 900
-- BASE: none, calls of the system fail; faults/memory and faults/live try each LuaJIT
-- LONG: 23

local faults = require("faults")

faults.all {
  { { "pthread_create" }, { "EAGAIN" }, { "threads" } },
  { { "getdents64" }, { "EIO", "ENOENT" }, { "threads" } },
  { { "tgkill" }, { "EPERM" }, { "wall", "threads" } },
  { { "rt_tgsigqueueinfo" }, { "EAGAIN" }, { "wall", "threads" } },
  { { "pthread_atfork", "atexit", "pthread_getattr_np", "pthread_attr_getstack" }, { "ENOMEM" },
    { "wall", "threads", "fork" } },
  { { "sysconf", "nanosleep" }, { "EINTR" }, { "wall", "threads" } },
  { { "rt_sigprocmask" }, { "EFAULT" }, { "wall", "task", "threads" } },
  { { "process_vm_readv" }, { "EFAULT", "EPERM", "ENOSYS" }, { "wall", "task", "threads" } },
  { { "get_robust_list" }, { "EPERM", "ENOSYS" }, { "threads", "fork" } },
  { { "_dl_find_object" }, { "ENOENT" }, { "wall", "task", "threads" } },
}
