-- CLOCK_REALTIME jumps by years, forwards and backwards, at each read. Only the start
-- time in the file depends on it.
-- TIMEOUT: 900

local faults = require("faults")

faults.all {
  { { "realtime" }, { "short" }, { "wall", "cpu", "task", "counters", "threads", "fork" } },
}
