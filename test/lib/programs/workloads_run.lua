-- Run of one workload of workloads.lua: prints its checksum, which must always be the
-- same.  luajit workloads_run.lua NAME SECONDS

local workloads = require("workloads")

local w = workloads.by_name(arg[1])
local expected = w.run(1)
local _, same = workloads.repeat_for(w, tonumber(arg[2]), expected)
print(w.name, expected, same)
os.exit(same and 0 or 1)
