-- CLOCK_REALTIME jumps by years, forwards and backwards, at each read. Only the start
-- time in the file depends on it.
-- TIMEOUT: 900
-- BASE: none, calls of the system fail; faults/memory and faults/live try each LuaJIT

local faults = require("faults")

faults.all {
  { { "realtime" }, { "short" }, { "wall", "cpu", "task", "counters", "threads", "fork" } },
}
