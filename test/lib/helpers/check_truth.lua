----------------------------------------------------------------------------
-- Runs what etc/check_truth names: check_truth.lua SESSIONS SEED quiet|busy EVENTS.
----------------------------------------------------------------------------

local neighbours = require("neighbours")
local sessions = require("truth_sessions")
local switches = require("truth_switches")

local SWITCHES, NEIGHBOURS = "switches", 3

local n, seed, is_busy, names = tonumber(arg[1]), tonumber(arg[2]), arg[3] == "busy", arg[4]
local list, with_switches = {}, false
if names == "" then names = table.concat(sessions.NAMES, ",") .. "," .. SWITCHES end
for name in names:gmatch("[^,]+") do
  if name == SWITCHES then
    with_switches = true
  elseif not sessions.add(list, name) then
    io.stderr:write(("etc/check_truth: no event '%s', expected %s or %s; see --help\n"):format(name,
      table.concat(sessions.NAMES, ", "), SWITCHES))
    os.exit(2)
  end
end

print(("seed %d, %s"):format(seed, is_busy and "beside busy processes" or "without busy processes"))
local busy, is_right = is_busy and neighbours.start(NEIGHBOURS) or {}, true
if #list > 0 then is_right = sessions.run(list, n, seed) end
if with_switches then is_right = switches.run() and is_right end
neighbours.stop(busy)
os.exit(is_right and 0 or 1)
