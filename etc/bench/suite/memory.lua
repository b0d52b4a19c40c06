----------------------------------------------------------------------------
-- Memory of a session, for the benchmark suite. part_session.lua runs it in its own
-- process.
--
-- Arguments: seconds; clock, or "off" for no profiler; file. Prints KiB of resident
-- memory before the start, after it, after these seconds at 1 kHz, and after the stop.
----------------------------------------------------------------------------

local programs = require("programs")
local sysprof = require("misc").sysprof

local WARM_SECONDS = 0.3

-- Private memory of this process, in all mappings.
local function private_kib()
  local sum = 0
  for line in io.lines("/proc/self/smaps_rollup") do
    local kib = line:match("^Private_%a+:%s*(%d+)")
    if kib then sum = sum + kib end
  end
  return sum
end

local work = programs.by_name("strings").run

local function run(seconds)
  local till = os.clock() + seconds
  repeat work(1) until os.clock() >= till
  collectgarbage()
  collectgarbage()
end

local function main(seconds, clock, path)
  run(WARM_SECONDS)
  private_kib()
  local found = { private_kib() }
  if clock ~= "off" then
    assert(sysprof.start({ mode = "C", path = path, clock = clock, interval = 1 }))
  end
  found[2] = private_kib()
  run(tonumber(seconds))
  found[3] = private_kib()
  if clock ~= "off" then assert(sysprof.stop()) end
  found[4] = private_kib()
  print(table.concat(found, " "))
end

local ok, why = pcall(main, ...)
if not ok then
  io.stderr:write(tostring(why), "\n")
  os.exit(1)
end
