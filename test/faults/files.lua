-- Failures to open, read, write or close the profile's file, or a file of the system, in
-- whole or in part.
-- TIMEOUT: 900
-- BASE: none, calls of the system fail; faults/memory and faults/live try each LuaJIT
-- LONG: 33

local faults = require("faults")

faults.all {
  { { "write" }, { "ENOSPC", "EIO", "EPIPE", "EINTR", "short" }, { "wall", "shared", "threads", "fork" } },
  { { "openat64", "open64" }, { "EACCES", "EMFILE" }, { "wall", "shared", "threads", "fork", "counters" } },
  { { "fstat64" }, { "EIO" }, { "wall", "shared", "threads", "fork" }, once = true },
  { { "fstatat64", "ftruncate64" }, { "EIO" }, { "wall", "shared", "threads", "fork" } },
  { { "close" }, { "EIO", "EINTR" }, { "wall", "shared", "threads", "fork" } },
  { { "pread64" }, { "EIO", "EINTR", "short" }, { "wall" }, old = true },
  { { "read" }, { "EIO", "short" }, { "wall", "threads", "task", "events" } },
  { { "unlinkat", "readlink" }, { "EACCES" }, { "wall", "fork" } },
}
