----------------------------------------------------------------------------
-- Benchmark suite: runs the parts of etc/bench/run, one after the other.
--
-- Arguments: source folder, build folder, folder for the report, folder for
-- temporary files, seconds in total, parts, programs, another build. Commas separate parts
-- and programs; "" selects all, or no other build.
----------------------------------------------------------------------------

local source, build, folder, work, seconds, parts, names, old = ...
local here = arg[0]:match("^(.*)/")

local machine = require("machine")
local proc = require("proc")
local programs = require("programs")
local report = require("report")
local summary = require("summary")

-- Parts, each with its share of the time. run(suite, seconds, add) calls add for each table.
local PARTS = {
  { "1kHz", 0.28 }, { "off", 0.17 }, { "on", 0.15 }, { "alloc", 0.17 }, { "peers", 0.11 },
  { "nginx", 0.05 }, { "session", 0.07 },
}

-- With less time, parts leave out some measurements, or repeat none.
local QUICK_SECONDS, HASTY_SECONDS = 300, 20

local function words(list)
  local found = {}
  for word in list:gmatch("[^,]+") do found[#found + 1] = word end
  return found
end

local function fail(...)
  io.stderr:write("bench: ", ("").format(...), "\n")
  os.exit(2)
end

local suite = {
  source = source, build = build, work = work, here = here,
  luajit = build .. "/bin/luajit",
  old = old ~= "" and old .. "/bin/luajit" or nil,	-- Of another build.
  bare_library = work .. "/bare_handler.so",
  random_library = work .. "/same_random.so",
  programs = words(names), seconds = tonumber(seconds),
  quick = tonumber(seconds) < QUICK_SECONDS, hasty = tonumber(seconds) < HASTY_SECONDS,
}
suite.slice_ms = suite.hasty and 10 or suite.quick and 50 or 100

if #suite.programs == 0 then
  for i, program in ipairs(programs.list) do suite.programs[i] = program.name end
end
for _, name in ipairs(suite.programs) do
  if not programs.by_name(name) then
    local known = {}
    for i, program in ipairs(programs.list) do known[i] = program.name end
    fail("no program '%s'; there are %s", name, table.concat(known, ", "))
  end
end

local wanted, share_sum, run = words(parts), 0, {}
for _, name in ipairs(wanted) do
  wanted[name] = true
  local known
  for _, part in ipairs(PARTS) do known = known or part[1] == name end
  if not known then fail("no part '%s'; there are 1kHz, off, on, alloc, peers, nginx, session", name) end
end
for _, part in ipairs(PARTS) do
  if #wanted == 0 or wanted[part[1]] then
    run[#run + 1] = part
    share_sum = share_sum + part[2]
  end
end

local function main()
  local r = report.new(machine.describe(work, source), summary.of)
  for _, part in ipairs(run) do
    local began, share = proc.now(), suite.seconds * part[2] / share_sum
    io.stderr:write(("bench: %s, %.0f s\n"):format(part[1], share))
    require("part_" .. part[1]:lower()).run(suite, share, function(t) r:add(t, folder) end)
    io.stderr:write(("bench: %s took %.0f s\n"):format(part[1], proc.now() - began))
  end
  r:print()
end

local ok, why = xpcall(main, function(err)
  return type(err) == "string" and err or debug.traceback(tostring(err))
end)
if not ok then
  io.stderr:write("bench: ", why, "\n")
  os.exit(1)
end
