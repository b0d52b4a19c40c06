-- Random programs whose functions have one legal stack each: no format shows another one.
-- The programs are those of the day.
-- LONG: 10

local shell_status = require("shell_status")
local keep = "kept"
assert(shell_status("rm -rf " .. keep .. " && mkdir " .. keep) == 0)
local seed = tonumber(os.date("!%Y%m%d")) * 1000
os.exit(require("random_stacks").run(seed, 10, keep) and 0 or 1)
