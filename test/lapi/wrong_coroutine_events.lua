-- The event coroutine-wait: wrong thresholds and modifiers get one sentence, right ones work.
-- BASE: none, files, sockets, signals, processes; the VM runs a loop, or none

local t = require("tools_test")
local sysprof = misc.sysprof

local FORM = "expected /threshold=NANOSECONDS/, such as coroutine-wait/threshold=100000/"
local RANGE = "it must be between 0 and 1000000000 nanoseconds"
local wrong = {
  { "coroutine-wait/threshold=1000000001/", RANGE }, { "coroutine-wait/threshold=" .. ("9"):rep(25) .. "/", RANGE },
  { "coroutine-wait/threshold=" .. ("9"):rep(300) .. "/", RANGE },
  { "coroutine-wait/threshold=-1/", FORM }, { "coroutine-wait/threshold=1ms/", FORM },
  { "coroutine-wait/threshold=/", FORM }, { "coroutine-wait/threshold=5", FORM }, { "coroutine-wait/period=5/", FORM },
  { "coroutine-wait/", FORM }, { "coroutine-wait:u", FORM }, { "coroutine-wait:u/threshold=5/", FORM },
  { "coroutine-wait/threshold=5/x", FORM }, { "coroutine-wait/threshold=5//", FORM },
  { "coroutine-wait/threshold =5/", FORM }, { "coroutine-wait/" .. ("x"):rep(300), FORM },
  { "coroutine-wait,coroutine-wait/threshold=5/", "'coroutine-wait' twice" },
  { "coroutine-waits", "'coroutine-waits' is not a clock or event" },
  { "coroutine-wai", "'coroutine-wai' is not a clock or event" },
  { "coroutine", "'coroutine' is not a clock or event" },
}
for _, case in ipairs(wrong) do t.refuses_clock(case[1], case[2]) end

local _, err = sysprof.start({ mode = "C", clock = "none", path = "none.bin" })
t.contains(err, "coroutine-wait", "names of events")

-- A start may fail after the event is open: the VM goes on as before.
local ok = sysprof.start({ mode = "C", clock = "coroutine-wait", path = "no/folder/none.bin" })
t.equal(ok, nil, "no folder")
local calls = 0
debug.sethook(function() calls = calls + 1 end, "c")
local f = coroutine.wrap(function() coroutine.yield(1) return 2 end)
local sum = f() + f()
debug.sethook()
t.equal(sum, 3, "a hook of calls after a failed start")
t.ok(calls > 0, "hook")

for _, list in ipairs {
  "coroutine-wait", "coroutine-wait/threshold=0/", "coroutine-wait/threshold=00100000/",
  "coroutine-wait/threshold=1000000000/", "cpu,coroutine-wait", "coroutine-wait,page-faults,cpu",
} do
  t.equal(sysprof.start({ mode = "C", clock = list, path = "waits.bin" }), true, list)
  local co = coroutine.wrap(function() while true do coroutine.yield() end end)
  for _ = 1, 6 do co() end
  t.equal(sysprof.report().limit == nil or type(sysprof.report().limit) == "string", true, list)
  t.equal(sysprof.stop(), true, list)
  local status, out, message = t.parse("--event=coroutine-wait --weight=waits waits.bin")
  local n = 0
  for count in out:gmatch(" (%d+)\n") do n = n + count end
  t.equal(status .. message, "0", list)
  t.equal(n, 5, list .. ": waits")
end

t.finish()
