-- The n-th allocation of the profiler fails.
-- TIMEOUT: 900
-- LONG: 14

local faults = require("faults")

faults.all {
  { { "malloc", "calloc", "realloc", "strdup", "mmap64", "munmap", "get_current_dir_name" },
    { "ENOMEM" }, { "wall", "shared", "threads", "fork", "counters" } },
}
