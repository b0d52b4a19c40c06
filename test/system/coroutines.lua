-- Survives coroutines that are resumed, nested and failing all the time.

local work = require("workloads").by_name("coroutines")
require("survive").run("coroutines", function() return work.run(1) end)
