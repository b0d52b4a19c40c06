-- table.sort moves results over frames while the comparator runs: survived.
-- SERIAL: the samples of a loaded machine are few

local work = require("workloads").by_name("sort")
require("survive").run("sort", function() return work.run(1) end)
