-- The clock on the wall jumps by years, forth and back, whenever it is looked at: only
-- the time of the start that is written into the file is it, nothing else.
-- TIMEOUT: 300

local faults = require("faults")

faults.all {
  { { "realtime" }, { "short" }, { "wall", "cpu", "task", "counters", "threads", "fork" } },
}
