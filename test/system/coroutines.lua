-- Survives coroutines that are resumed, nested and failing all the time.
-- SERIAL: the samples of a loaded machine are few

local work = require("workloads").by_name("coroutines")
require("survive").run("coroutines", function() return work.run(1) end)
