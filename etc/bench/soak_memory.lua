----------------------------------------------------------------------------
-- Endurance test of etc/soak_memory: blocks of many sizes come and go at random.
--
--   LUAJIT_SYSPROF=path=soak.bin,... luajit soak_memory.lua LUAJIT GB
--   luajit soak_memory.lua --look FILE      prints what a profile knows, for the above
--
-- What the profile estimates and what LuaJIT's own account holds differ by the sampling error, and
-- by what LuaJIT held before the profile.
----------------------------------------------------------------------------

local MOMENTS = 20
local BOUND = 4.5		-- Standard errors.
local TABLE = 32768		-- Blocks that the profiler knows at most.
local SLOTS = 2^17
local MEAN = 1150		-- Bytes of a block, about.

if arg[1] == "--look" then
  local events = require("sysprof.model.events")
  local reader = require("sysprof.read.reader")
  local total
  for _, e in ipairs(events.list(assert(reader.read(arg[2])))) do
    if e.name == "alloc" then total = e.total end
    if e.name == "live" then
      print(("%.0f %.0f %.0f %.0f %.0f %.0f"):format(e.weight, e.total, math.sqrt(e.variance), e.samples, total,
						    e.periods[1]))
    end
  end
  os.exit(0)
end

local luajit, gigabytes = arg[1], assert(tonumber(arg[2]))
local before = collectgarbage("count") * 1024
local ffi = require("ffi")
local bytes = ffi.typeof("char[?]")
local random = math.random
math.randomseed(os.time())
print("seed: " .. os.time())

local kinds = {
  function() return { random() } end,
  function(n) local t = {} for i = 1, n % 64 do t[i] = i end return t end,
  function(n) return ("x"):rep(n) .. random() end,
  function(n) return bytes(n) end,
  function(n) return function() return n end end,
}

local kept = {}
for i = 1, SLOTS do kept[i] = false end

-- Replaces blocks at random. Sizes are from 1 byte to 64 KiB; small ones are the most frequent.
local function work(steps)
  for _ = 1, steps do
    kept[random(SLOTS)] = kinds[random(#kinds)](math.floor(2 ^ (random() * 16)))
  end
end

local function resident_kb()
  local f = assert(io.open("/proc/self/status"))
  local kb = tonumber(f:read("*a"):match("RssAnon:%s*(%d+)"))
  f:close()
  return kb
end

print(("%8s %12s %12s %10s %8s %8s %8s %9s"):format("GB", "live MB", "held MB", "error MB", "off by", "blocks",
  "period", "RSS MB"))
local steps, worst, blocks_max = math.ceil(gigabytes * 1e9 / MEAN / MOMENTS), 0, 0
local allocated = 0
for moment = 1, MOMENTS do
  repeat
    work(steps / 20)
    assert(misc.sysprof.dump())
    local pipe = io.popen(("env -u LUAJIT_SYSPROF '%s' '%s' --look soak.bin 2>&1"):format(luajit, arg[0]))
    local out = pipe:read("*a")
    pipe:close()
    local live, held, err, samples, total, period = out:match("(%d+) (%d+) (%d+) (%d+) (%d+) (%d+)")
    assert(live, out)
    allocated = tonumber(total)
    if allocated >= gigabytes * 1e9 * moment / MOMENTS then
      local off = (live - (held - before)) / err
      worst = math.max(worst, math.abs(off))
      blocks_max = math.max(blocks_max, samples)
      print(("%8.1f %12.1f %12.1f %10.2f %+8.2f %8d %8d %9.1f"):format(allocated / 1e9, live / 1e6, held / 1e6,
	err / 1e6, off, samples, period, resident_kb() / 1e3))
    end
  until allocated >= gigabytes * 1e9 * moment / MOMENTS
end
assert(misc.sysprof.stop())

assert(#kept == SLOTS)
local bounded = blocks_max <= TABLE
print(("the worst moment is off by %.2f standard errors; the table had at most %d blocks of %d")
      :format(worst, blocks_max, TABLE))
os.exit(worst < BOUND and bounded and 0 or 1)
