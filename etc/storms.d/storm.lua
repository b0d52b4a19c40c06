----------------------------------------------------------------------------
-- Lua side of the storms of etc/storms: programs with known results, and
-- profiles that must agree with their own counters.
----------------------------------------------------------------------------

local coverage = require("coverage")
local semantics = require("semantics")

local storm = {}
local expected = {}		-- Text of each area without the profiler.
local at = 0			-- Area that ran last.
local path			-- Of the profile.

for i, area in ipairs(semantics.areas) do
  expected[i] = semantics.run(area)
  assert(not expected[i]:find("WRONG"), expected[i])
end

local function leave_out(name)
  for i = #semantics.areas, 1, -1 do
    if semantics.areas[i].name == name then
      table.remove(semantics.areas, i)
      table.remove(expected, i)
    end
  end
end

-- Lets clients in. They ask for collections, which change the order of finalizers.
function storm.live()
  leave_out("finalizers")
  assert(misc.sysprof.live())
end

-- Runs the next program. Fails if its results are not those without the profiler.
function storm.round()
  at = at % #expected + 1
  local area = semantics.areas[at]
  local text = semantics.run(area)
  if text ~= expected[at] then
    error(("%s: expected\n%sgot\n%s"):format(area.name, expected[at], text))
  end
end

-- Starts a profile. Returns true; or nil and a message, such as that a client records the VM.
function storm.try(options)
  path = options.path
  options.mode, options.hz = "C", 10000
  return misc.sysprof.start(options)
end

function storm.start(options)
  local ok, message = storm.try(options)
  if not ok then error("start: " .. message) end
end

local function judge(file)
  local why = coverage.inconsistency(coverage.read(file), misc.sysprof.report())
  os.remove(file)
  if why then error(file .. ": " .. why) end
end

-- Completes the profile. Returns the number of samples.
function storm.stop()
  local ok, message = misc.sysprof.stop()
  if not ok then error("stop: " .. message) end
  judge(path)
  return misc.sysprof.report().samples
end

-- Reads the profile of a process that has ended. Returns the number of samples.
function storm.read(file)
  local p = coverage.read(file)
  if not p.complete then error(file .. ": " .. p:problem_text()) end
  os.remove(file)
  return coverage.of(p).samples
end

-- In a child of fork(): completes the profile that went on, if it did.
function storm.stop_inherited(pid)
  if misc.sysprof.stop() then judge(path .. "." .. pid) end
end

return storm
