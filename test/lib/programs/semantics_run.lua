-- Runs of the programs of semantics.lua, for tests that compare the output.
--
--   luajit semantics_run.lua SECONDS [COLLECTOR [PROFILE]]
--
-- Runs all programs for these seconds of CPU time, at least twice. The first text goes to
-- standard output; all others must be the same. COLLECTOR: "default", or "stress", which
-- collects all the time. PROFILE: options of misc.sysprof.start as Lua. Then the program
-- profiles itself, and prints the number of samples on standard error.

local semantics = require("semantics")

local seconds, collector, profile = tonumber(arg[1]), arg[2] or "default", arg[3]

if collector == "stress" then
  collectgarbage("setpause", 0)
  collectgarbage("setstepmul", 100)
end

if profile then
  assert(misc.sysprof.start(loadstring("return " .. profile)()))
end

local first
local till = os.clock() + seconds
local rounds = 0
repeat
  local text = semantics.run_all()
  rounds = rounds + 1
  if first and text ~= first then
    io.stdout:write(text)
    io.stderr:write(("round %d differs from the first\n"):format(rounds))
    os.exit(1)
  end
  first = text
until rounds >= 2 and os.clock() >= till

if profile then
  local r = misc.sysprof.report()
  assert(misc.sysprof.stop())
  io.stderr:write(("%d rounds, %d samples\n"):format(rounds, r.samples))
end
io.stdout:write(first)
