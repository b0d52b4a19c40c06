-- Survives errors that are thrown and caught all the time, through C and Lua.

local work = require("workloads").by_name("errors")
require("survive").run("errors", function() return work.run(1) end)
