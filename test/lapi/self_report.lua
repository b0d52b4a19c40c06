-- The self-report of report(), at all times. The file has the same.

local t = require("tools_test")
local sysprof = misc.sysprof

local REASONS = { "no_base", "chain", "stack_move", "fault", "no_cfi", "not_vm", "join",
		  "trace" }

local function check(what)
  local r = sysprof.report()
  for field, kind in pairs({ samples = "number", vmstate = "table", clock = "string",
      asked_hz = "number", hz = "number", cpu_s = "number", wall_s = "number",
      sessions = "number", overruns = "number", throttled = "number", uncopied = "number",
      replaced = "boolean", lost = "table", broken = "table", handler = "table" }) do
    t.equal(type(r[field]), kind, what .. ": " .. field)
  end
  for _, reason in ipairs({ "buffer", "writer", "nested" }) do
    t.equal(type(r.lost[reason]), "number", what .. ": lost " .. reason)
  end
  for _, side in ipairs({ "lua", "host" }) do
    local n = 0
    for _ in pairs(r.broken[side]) do n = n + 1 end
    t.equal(n, #REASONS, what .. ": reasons of " .. side)
    for _, reason in ipairs(REASONS) do
      t.equal(type(r.broken[side][reason]), "number", what .. ": " .. side .. " " .. reason)
    end
  end
  t.ok(r.handler.mean_us <= r.handler.max_us, what .. ": mean and longest")
  t.equal(type(r.handler.signal_us), "number", what .. ": interrupt and signal")
  t.ok(r.hz >= 0 and r.cpu_s >= 0 and r.wall_s >= 0, what .. ": not negative")
  return r
end

local r = check("before any start")
t.equal(r.clock, "", "no clock before any start")
t.equal(r.sessions, 0, "no sessions before any start")
t.equal(r.samples + r.asked_hz + r.hz + r.cpu_s + r.wall_s + r.handler.max_us, 0, "all 0")

for _, mode in ipairs({ "D", "L", "C" }) do
  local begin = os.clock()
  assert(sysprof.start({ mode = mode, clock = "wall-signal", interval = 1, path = mode .. ".bin" }))
  t.work_until(50)
  local running = check(mode .. ", running")
  t.ok(running.samples >= 50, mode .. ": samples")
  t.equal(running.clock, "wall-signal", mode .. ": clock")
  t.equal(running.asked_hz, 1000, mode .. ": asked_hz")
  t.equal(running.sessions, 1, mode .. ": sessions")
  t.ok(running.hz > 0, mode .. ": hz")
  t.ok(running.handler.mean_us > 0, mode .. ": time in the handler")
  t.equal(running.replaced, false, mode .. ": the handler is ours")
  t.work_until(100)
  assert(sysprof.stop())
  local ended = check(mode .. ", stopped")
  local used = os.clock() - begin
  t.ok(ended.samples >= running.samples and ended.cpu_s >= running.cpu_s and
       ended.wall_s >= running.wall_s, mode .. ": totals grow")
  -- The clock of the process has a coarser unit.
  t.ok(ended.cpu_s > 0 and ended.cpu_s <= used + 0.02,
       ("%s: %g s of CPU time, the program used %g"):format(mode, ended.cpu_s, used))
  t.ok(ended.handler.max_us * 1e-6 <= ended.wall_s, mode .. ": longest handler")
  local again = check(mode .. ", later")
  t.equal(again.cpu_s, ended.cpu_s, mode .. ": stays")
  t.equal(again.wall_s, ended.wall_s, mode .. ": stays")
  t.equal(again.hz, ended.hz, mode .. ": stays")
end

-- A coroutine asks for the same VM.
t.equal(coroutine.wrap(function() return sysprof.report().clock end)(), "wall-signal", "coroutine")

-- An event has no requested rate.
local ok, message = sysprof.start({ mode = "C", clock = "page-faults", path = "e.bin" })
if ok then
  t.equal(check("events").asked_hz, 0, "asked_hz of an event")
  t.equal(sysprof.report().clock, "page-faults", "clock is the event")
  assert(sysprof.stop())
else
  print("without events: " .. message)
end
-- What interrupt and signal take is measured, except for clocks on the kernel's tick.
for _, case in ipairs({ { "wall-signal", 0.1 }, { "wall-signal", 1 }, { "ctimer", 10 } }) do
  local clock, ms = case[1], case[2]
  assert(sysprof.start({ mode = "C", clock = clock, interval = ms, path = "signal.bin" }))
  t.work_until(300)
  assert(sysprof.stop())
  local report = sysprof.report()
  t.equal(report.handler.signal_us > 0, clock == "wall-signal", clock .. ": interrupt and signal")
  t.equal(type(report.limit), "string", clock .. ": limit")
end
-- A rate that no machine serves is lowered at once, and the report says so.
assert(sysprof.start({ mode = "C", clock = "wall-signal", interval = 0.01, path = "limit.bin" }))
t.work_until(100)
t.ok(sysprof.report().limit:find("^wall%-signal takes about %d+ samples a second instead of 100000: "),
  "report().limit names the lowered rate: " .. sysprof.report().limit)
assert(sysprof.stop())
t.ok(sysprof.report().limit ~= "", "and after the stop")
-- A rate that is only preferred gives way to the kernel's tick where interrupts are costly.
for _, prefers in ipairs({ true, false }) do
  assert(sysprof.start({ mode = "C", clock = "wall-signal", interval = 0.02, prefer_tick = prefers,
			 path = "prefer.bin" }))
  assert(sysprof.stop())
  local hz = sysprof.report().asked_hz
  t.ok(prefers and hz <= 1000 or not prefers and hz == 50000, "preferred: " .. hz)
end
t.finish()
