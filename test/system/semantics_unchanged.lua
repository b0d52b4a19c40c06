-- Programs that use the whole VM print the same bytes in plain LuaJIT, with sysprof
-- inside, and profiled at 10 kHz. They run interpreted, compiled with each level of
-- optimisation, compiled at once, and with a collector that always runs.
-- TIMEOUT: 600

local shell_status = require("shell_status")
local build, source = os.getenv("SYSPROF_BUILD"), os.getenv("SYSPROF_SOURCE")

local RUN = source .. "/test/lib/programs/semantics_run.lua"
local SECONDS = 0.06		-- CPU time of a profiled run, in rounds of some 20 ms.

-- Options of the compiler; whether to try all modes and collectors.
local JIT = {
  { "-joff", true }, { "-O0" }, { "-O1" }, { "-O2" }, { "-O3" },
  { "-Ohotloop=1,hotexit=1", true }, { "-Ohotloop=2,minstitch=1" },
  { "-Omaxmcode=16,sizemcode=4" },
}

-- The wall clock is there on each machine. The VM writes the file at its safe points.
local WALL = "hz = 10000, clock = 'wall-signal'"
local FILE = ", path = 'profile.bin'"
local PROFILES = {
  C = ("{ mode = 'C', %s%s }"):format(WALL, FILE),
  L = ("{ mode = 'L', %s%s }"):format(WALL, FILE),
  D = ("{ mode = 'D', %s }"):format(WALL),
  thread = ("{ mode = 'C', flush = 'thread', %s%s }"):format(WALL, FILE),
  cpu = ("{ mode = 'C', hz = 10000, clock = 'cpu'%s }"):format(FILE),
}

local failures = 0

local function fail(format, ...)
  failures = failures + 1
  print("FAIL: " .. format:format(...))
end

local function read(path)
  local f = assert(io.open(path, "rb"))
  local text = f:read("*a")
  f:close()
  return text
end

-- Runs the programs. Returns their text, and the samples if they are profiled.
local function run(luajit, jit, collector, profile)
  local command = ("'%s' %s '%s' %g %s %s >out 2>err"):format(luajit, jit, RUN,
    profile and SECONDS or 0, collector, profile and '"' .. profile .. '"' or "")
  local status = shell_status(command)
  if status ~= 0 then
    fail("status %d of: %s\n%s", status, command, read("err"))
    return
  end
  return read("out"), tonumber(read("err"):match("(%d+) samples"))
end

-- The first line that differs.
local function difference(a, b)
  local list = {}
  for line in a:gmatch("[^\n]*") do list[#list + 1] = line end
  local i = 0
  for line in b:gmatch("[^\n]*") do
    i = i + 1
    if line ~= list[i] then return ("line %d:\n  %s\n  %s"):format(i, list[i] or "(end)", line) end
  end
  return "it ends sooner"
end

io.stdout:setvbuf("line")
local ours, plain = build .. "/bin/luajit", build .. "/plain/bin/luajit"
if not io.open(plain) then
  print("not compared with plain LuaJIT: configure with -DSYSPROF_BUILD_PLAIN=ON")
  plain = ours
end
local expected = run(plain, "-joff", "default")
if not expected then os.exit(1) end
if expected:find("WRONG", 1, true) then
  fail("plain LuaJIT: %s", expected:match("[^\n]*WRONG[^\n]*"))
end

local function compare(what, luajit, jit, collector, profile)
  local text, samples = run(luajit, jit, collector, profile)
  if not text then return end
  if text ~= expected then
    fail("%s, %s, %s: %s", what, jit, collector, difference(expected, text))
  end
  if profile and samples == 0 then fail("%s, %s, %s: no samples", what, jit, collector) end
  return samples
end

for _, row in ipairs(JIT) do
  local jit, all, samples = row[1], row[2], {}
  for _, collector in ipairs(all and { "default", "stress" } or { "default" }) do
    -- Does plain LuaJIT differ in the same way?
    local before = failures
    compare("off", ours, jit, collector)
    if failures > before and plain ~= ours then compare("plain", plain, jit, collector) end
    samples[#samples + 1] = compare("mode C", ours, jit, collector, PROFILES.C)
  end
  for _, mode in ipairs(all and { "L", "D", "thread", "cpu" } or {}) do
    samples[#samples + 1] = compare(mode, ours, jit, "default", PROFILES[mode])
  end
  print(("%-26s samples: %s"):format(jit, table.concat(samples, " ")))
end

os.exit(failures == 0 and 0 or 1)
