-- Survives table.sort, which moves results over frames while the comparator runs.

local work = require("workloads").by_name("sort")
require("survive").run("sort", function() return work.run(1) end)
