-- etc/check_truth measures events against independent logs, and finds errors that are larger than chance.
-- TIMEOUT: 600
-- BASE: none, it tests a judgement; accuracy/ and stack/ try each LuaJIT
-- LONG: 10

local sessions = require("truth_sessions")
local t = require("tools_test")

-- -- Bars: drawn errors, with a known mean and size --------------------------

math.randomseed(1)

-- A draw of the normal distribution.
local function draw()
  return math.sqrt(-2 * math.log(1 - math.random())) * math.cos(2 * math.pi * math.random())
end

-- Returns whether 200 sessions with ten parts meet the bars. Part 3 has a bias.
local function is_right(size, bias, is_random, limit)
  local row = sessions.row("drawn", "on", is_random)
  for _ = 1, 200 do
    local z = {}
    for k = 1, 10 do z[k] = size * draw() + (k == 3 and bias or 0) end
    sessions.add_session(row, z, limit or "")
  end
  return sessions.judge { row }
end

t.ok(is_right(1, 0, true), "chance alone")
t.ok(not is_right(1.2, 0), "errors larger than chance")
t.ok(is_right(0.5, 0), "regular ticks")
t.ok(not is_right(0.5, 0, true), "smaller than chance: allocations are independent")
t.ok(not is_right(1, 0.4), "a part that has too much")
t.ok(not is_right(1, -0.4), "a part that has too little")
t.ok(is_right(1.2, 0, false, "it says so"), "the profile says so")

-- -- The command: a few sessions ---------------------------------------------

local status, out, err = t.shell(("'%s/etc/check_truth' --sessions=2 --event=cpu,offcpu,coroutine-wait,alloc '%s'"):format(
  t.source, os.getenv("SYSPROF_BUILD")))
print(out .. err)
t.ok(status == 0 or status == 1, "status " .. status)	-- Chance may miss a bar, and a busy machine.
t.ok(not out:find("FAILED"), "all sessions ran")
for _, event in ipairs { "cpu 100 Hz", "offcpu", "coroutine-wait", "alloc, bytes", "alloc, objects", "live, bytes" } do
  for _, jit in ipairs { "off", "on" } do
    t.ok(("\n" .. out):find(("\n%-16s %-4s        2 "):format(event, jit), 1, true), event .. ", JIT " .. jit)
  end
end
t.finish()
