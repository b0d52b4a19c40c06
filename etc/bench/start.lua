----------------------------------------------------------------------------
-- Times of start and stop: see etc/bench/start.
----------------------------------------------------------------------------

local ffi = require("ffi")

local KIND, ROUNDS, LIBRARIES = arg[1], tonumber(arg[2]), tonumber(arg[3])
local GOAL_MS = 2
local FUNCTIONS, PER_CHUNK = 50000, 100
local HEAP_MB = 500
local SAMPLES = 50

ffi.cdef [[
  typedef struct { long sec, nsec; } start_timespec;
  int clock_gettime(int, start_timespec *);
]]
local ts = ffi.new("start_timespec")

local MONOTONIC, THREAD_CPU = 1, 3

local function clock_ms(id)
  ffi.C.clock_gettime(id, ts)
  return tonumber(ts.sec) * 1e3 + tonumber(ts.nsec) / 1e6
end

local function samples()
  return misc.sysprof.report().samples
end

-- -- Processes -------------------------------------------------------------

-- Each sets up its process, and returns a function to run during the profile.
local make = {}

local function count(n)
  local x = 0
  for i = 1, n do x = (x + i) % 7 end
  return x
end

function make.empty()
  return function() count(1e5) end
end

function make.heap()
  local code = { "local M = {}" }
  for i = 1, PER_CHUNK do
    code[#code + 1] = ("function M.f%d(n) local x = 0 for i = 1, n do x = x + i %% %d end " ..
		       "return x end"):format(i, i + 1)
  end
  code[#code + 1] = "return M"
  code = table.concat(code, "\n")
  app = {}	-- Global, so that its functions have names.
  for i = 1, FUNCTIONS / PER_CHUNK do
    app["module" .. i] = load(code, "@module" .. i .. ".lua")()
  end
  local keep = {}
  while collectgarbage("count") < HEAP_MB * 1024 do
    local part = {}
    for i = 1, 10000 do part[i] = { i, i, i, name = i } end
    keep[#keep + 1] = part
  end
  local at = 0
  return function()
    at = at % (FUNCTIONS / PER_CHUNK) + 1
    for _, f in pairs(app["module" .. at]) do f(100) end
    return keep
  end
end

function make.libraries()
  local spin, at = {}, 0
  for i = 1, LIBRARIES do
    ffi.cdef(("void spin_%d(long)"):format(i))
    local library = ffi.load(("./lib%d.so"):format(i))
    spin[i] = function() library["spin_" .. i](1e6) end
  end
  return function()
    at = at % LIBRARIES + 1
    spin[at]()
  end
end

-- -- Times -----------------------------------------------------------------

local function new_times()
  return { wall = {}, cpu = {}, first = nil }
end

local function measure(times, f, ...)
  local wall, cpu = clock_ms(MONOTONIC), clock_ms(THREAD_CPU)
  assert(f(...))
  cpu = clock_ms(THREAD_CPU) - cpu
  times.cpu[#times.cpu + 1] = cpu
  times.wall[#times.wall + 1] = clock_ms(MONOTONIC) - wall
  times.first = times.first or cpu
end

local function median(list)
  table.sort(list)
  return list[math.ceil(#list / 2)]
end

local work = make[KIND]()
collectgarbage()
collectgarbage("stop")
local start, stop = new_times(), new_times()
for _ = 1, ROUNDS do
  measure(start, misc.sysprof.start,
	  { mode = "C", interval = 1, clock = "wall-signal", path = "start.bin" })
  repeat work() until samples() >= SAMPLES
  measure(stop, misc.sysprof.stop)
end
local start_ms = median(start.wall)
io.write(("%-10s"):format(KIND))
for _, part in ipairs { { "start", start }, { "stop", stop } } do
  io.write(("   %s %6.2f ms (CPU %5.2f, of the first one %5.2f)")
	   :format(part[1], median(part[2].wall), median(part[2].cpu), part[2].first))
end
io.write("\n")
os.exit(start_ms < GOAL_MS and 0 or 1)
