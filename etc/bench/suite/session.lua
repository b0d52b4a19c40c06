----------------------------------------------------------------------------
-- Benchmark suite: what a session takes besides its samples; run by
-- part_session.lua in a process of its own.
--
--   latency FUNCTIONS MEGABYTES REPEATS FILE   prints for each session the
--       microseconds of start and of stop, and the bytes that start has written
--   memory SECONDS CLOCK FILE                  prints KiB of resident memory
--       before, started, after so many seconds at 1 kHz, stopped
----------------------------------------------------------------------------

local ffi = require("ffi")
local programs = require("programs")
local sysprof = require("misc").sysprof

ffi.cdef "int clock_gettime(int, void *);"

local CLOCK_MONOTONIC = 1
local FUNCTIONS_PER_CHUNK = 500
local BYTES_PER_TABLE = 1000

local time = ffi.new("int64_t[2]")

local function microseconds()
  ffi.C.clock_gettime(CLOCK_MONOTONIC, time)
  return tonumber(time[0]) * 1e6 + tonumber(time[1]) / 1e3
end

-- A VM with so many functions, kept by name, and so much in tables.
local function fill(functions, megabytes)
  local kept = {}
  for chunk = 1, functions / FUNCTIONS_PER_CHUNK do
    local lines = { "local M = {}" }
    for i = 1, FUNCTIONS_PER_CHUNK do
      lines[#lines + 1] = ("function M.f%d_%d(a) return a + %d end"):format(chunk, i, i)
    end
    lines[#lines + 1] = "return M"
    kept[#kept + 1] = assert(loadstring(table.concat(lines, "\n"), "=chunk" .. chunk))()
  end
  for _ = 1, megabytes * 1e6 / BYTES_PER_TABLE do
    kept[#kept + 1] = { ("x"):rep(20), { 1, 2, 3, 4 }, BYTES_PER_TABLE }
    for i = 4, BYTES_PER_TABLE / 10 do kept[#kept][i] = i end
  end
  return kept
end

local function file_size(path)
  local file = assert(io.open(path, "rb"))
  local size = file:seek("end")
  file:close()
  return size
end

local command = {}

function command.latency(functions, megabytes, repeats, path)
  local kept = fill(tonumber(functions), tonumber(megabytes))
  local work = programs.by_name("strings").run
  work(1)
  for _ = 1, tonumber(repeats) do
    collectgarbage()
    os.remove(path)	-- The file system takes its time to empty a file.
    local before = microseconds()
    assert(sysprof.start({ mode = "C", path = path }))
    local started = microseconds()
    local bytes = file_size(path)
    work(2)
    local stopping = microseconds()
    assert(sysprof.stop())
    local stopped = microseconds()
    io.write(("%.1f %.1f %d\n"):format(started - before, stopped - stopping, bytes))
  end
  assert(#kept >= 0)
end

-- Resident memory of this process that is its own, in KiB: of all mappings together.
local function private_kib()
  local sum = 0
  for line in io.lines("/proc/self/smaps_rollup") do
    local kib = line:match("^Private_%a+:%s*(%d+)")
    if kib then sum = sum + kib end
  end
  return sum
end

-- CLOCK "off" is the same without the profiler.
function command.memory(seconds, clock, path)
  local work = programs.by_name("strings").run
  local function run(for_seconds)
    local till = microseconds() + for_seconds * 1e6
    repeat work(1) until microseconds() >= till
    collectgarbage()
    collectgarbage()
  end
  run(0.3)
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

local ok, why = pcall(command[(...)], select(2, ...))
if not ok then
  io.stderr:write(tostring(why), "\n")
  os.exit(1)
end
