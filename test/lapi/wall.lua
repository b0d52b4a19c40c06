-- Clock wall: its lists, right and wrong, and what a profile of a program that computes and waits shows.

local t = require("tools_test")
local sysprof = misc.sysprof

for _, case in ipairs {
  { "wall:u", "'cpu' has no modifier 'u'" }, { "wall/", "expected /period=N/" }, { "wall/x=1/", "expected /period=N/" },
  { "wall/threshold=5/", "the threshold of 'offcpu' is '/threshold=5/'" },
  { "wall/threshold=" .. ("9"):rep(80) .. "/", "'offcpu'" }, { "wall/period=" .. ("9"):rep(80) .. "/", "'cpu'" },
  { "wall,offcpu/threshold=5000000/", "'offcpu' twice, with different modifiers: 'wall' is 'cpu' and 'offcpu'" },
  { "walls", "'walls' is not a clock or event (did you mean 'wall'?); choose wall, " },
  { "wall,r1,r2,r3,r4,r5,r6,r7,r8,r9,ra,rb,rc,rd,re,rf", "more than 16" },
  { "r1,r2,r3,r4,r5,r6,r7,r8,r9,ra,rb,rc,rd,re,rf,wall", "more than 16" },
} do
  local ok, err, code = sysprof.start { mode = "C", clock = case[1], path = "none.bin" }
  t.equal(ok, nil, case[1])
  t.contains(err, case[2], case[1])
  t.ok(code > 0, case[1] .. ": errno")
  t.equal(io.open("none.bin"), nil, case[1] .. ": no file")
end

local ffi = require("ffi")
ffi.cdef [[
int usleep(unsigned);
struct timespec { long tv_sec, tv_nsec; };
int clock_gettime(int, struct timespec *);
]]

local PROCESS_CPUTIME, THREAD_CPUTIME = 2, 3	-- CLOCK_*_CPUTIME_ID.
local now = ffi.new("struct timespec")

local function cpu_time(clock)
  ffi.C.clock_gettime(clock or THREAD_CPUTIME, now)
  return tonumber(now.tv_sec) + tonumber(now.tv_nsec) * 1e-9
end

-- Returns the CPU time of other threads than this one, at most.
local function others_time()
  local own = cpu_time()
  return cpu_time(PROCESS_CPUTIME) - own
end

local function compute(seconds)
  local till = cpu_time() + seconds
  while cpu_time() < till do end
end

-- The cost of the sum's parts is that of the parts: report() names these.
local BY = { ["switch-records"] = true, schedstat = true }
for _, list in ipairs { "wall", "wall/threshold=100000/", "wall/period=4000000/", "page-faults,wall" } do
  local others = others_time()
  t.equal(sysprof.start { mode = "C", clock = list, hz = 100, path = "wall.bin" }, true, list)
  for _ = 1, 10 do
    compute(0.02)
    ffi.C.usleep(20000)
  end
  local names = {}
  for name in sysprof.report().clock:gmatch("[^,]+") do names[#names + 1] = name end
  t.ok(BY[names[#names]], list .. ": " .. table.concat(names, " "))
  t.equal(#names, list:find("page") and 3 or 2, list .. ": clocks")
  t.equal(sysprof.stop(), true, list)
  others = others_time() - others
  local status, out, err = t.parse("--event=wall --format=top wall.bin")
  t.equal(status .. err, "0", list)
  -- Each second of real time is there once.
  local sum, real, on, waiting, runnable = out:match("\nevent wall +%d+ samples, ([%d.]+) s of ([%d.]+) s %([%d.]+%%%) " ..
    "of real time: ([%d.]+) s on CPU, ([%d.]+) s waiting, ([%d.]+) s runnable\n")
  t.ok(sum, list .. ": " .. out)
  if sum then
    -- The source balances its sums up to 1 ms, and each figure is rounded to one. Ten long waits may each be some 30 us
    -- too long: the switch counts twice. Real time begins before the events are open, which takes long on a busy machine.
    t.ok(tonumber(sum) <= tonumber(real) + 0.003, list .. ": sum " .. sum .. " of " .. real)
    t.ok(tonumber(sum) >= 0.359, list .. ": sum " .. sum)
    t.ok(tonumber(on) >= 0.2, list .. ": on CPU " .. on)
    -- A tick may end a call of 20 ms.
    t.ok(waiting + runnable >= 0.179, list .. ": off CPU " .. waiting .. ", " .. runnable)
  end
  t.ok(out:find("\nwall +cpu,offcpu\n"), list .. ": metadata")
  -- The profiler has the only other thread. Its CPU time has one decimal place.
  local own = tonumber(out:match("\nprofiler's thread +([%d.]+) ms of CPU time, in no other figure\n") or 0)
  t.ok(own > 0 and own <= others * 1e3 + 0.1, list .. ": profiler's thread " .. own .. " of " .. others * 1e3 .. " ms")
end

-- A dump has all up to now.
t.equal(sysprof.start { mode = "C", clock = "wall", hz = 100, path = "dump.bin" }, true, "dump: start")
compute(0.05)
ffi.C.usleep(100000)
t.equal(sysprof.dump(), true, "dump")
local _, dumped = t.parse("--format=top dump.bin")
t.equal(sysprof.stop(), true, "dump: stop")
local sum, real = dumped:match("\nevent wall +%d+ samples, ([%d.]+) s of ([%d.]+) s")
t.ok(sum and tonumber(sum) <= tonumber(real) + 0.003 and tonumber(sum) > 0.1, "dump: " .. dumped)

-- What was asked for first is shown first.
local _, shown = t.parse("wall.bin --format=json")
local order = {}
for name in shown:gmatch('{"name":"([%w-]+)","unit"') do order[#order + 1] = name end
t.equal(table.concat(order, " "), "page-faults wall cpu offcpu", "order of events")

t.finish()
