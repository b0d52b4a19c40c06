-- jit.profile and jit.p work as documented. They and sysprof exclude each other.

local t = require("tools_test")
local profile = require("jit.profile")
local sysprof = misc.sysprof

local function busy(seconds)
  local start, s = os.clock(), 0
  repeat
    for i = 1, 1e5 do s = s + i % 3 end
  until os.clock() - start > seconds
  return s
end

local calls, samples, states, stack = 0, 0, {}, nil
local function callback(thread, n, vmstate)
  calls, samples = calls + 1, samples + n
  states[vmstate] = true
  stack = profile.dumpstack(thread, "pl|", 10)
end

-- jit.profile alone.
jit.off()
profile.start("fi10", callback)
busy(0.5)
profile.stop()
t.ok(calls >= 10, "jit.profile calls back, did " .. calls .. " times")
t.ok(samples >= calls, "jit.profile counts samples")
t.ok(states.I or states.N, "jit.profile says the state")
t.contains(stack or "", "one_profiler_at_a_time.lua", "jit.profile dumps the stack")
local before = calls
busy(0.1)
t.equal(calls, before, "jit.profile has stopped")

-- sysprof while jit.profile runs.
t.write_file("kept.bin", "kept")
profile.start("i10", callback)
for _, mode in ipairs({ "D", "L", "C" }) do
  local r = { sysprof.start({ mode = mode, path = "kept.bin", force = true }) }
  t.equal(r[1], nil, "sysprof during jit.profile, mode " .. mode)
  t.equal(r[2], "profiler is running already", "sysprof during jit.profile")
  t.equal(type(r[3]), "number", "sysprof during jit.profile")
end
t.equal(select(2, sysprof.stop()), "profiler is not running", "sysprof did not start")
t.equal(t.read_file("kept.bin"), "kept", "a refused start leaves the file alone")
before = calls
busy(0.3)
t.ok(calls > before, "jit.profile goes on")
profile.stop()

-- jit.profile while sysprof runs: does nothing.
t.equal(sysprof.start({ mode = "D", interval = 10 }), true, "sysprof after jit.profile")
before = calls
profile.start("i1", callback)
busy(0.3)
profile.stop()
t.equal(calls, before, "jit.profile during sysprof does nothing")
local during = sysprof.report().samples
t.ok(during > 0, "sysprof goes on")
busy(0.3)
t.ok(sysprof.report().samples > during, "also after jit.profile's stop")
t.equal(sysprof.stop(), true, "sysprof stops")
busy(0.1)
t.equal(calls, before, "jit.profile was not started later")

-- And again, with the JIT compiler on.
jit.on()
profile.start("i10", callback)
busy(0.3)
profile.stop()
t.ok(calls > before, "jit.profile after sysprof")

-- jit.p from the command line.
t.write_file("hot.lua", "local s, till = 0, os.clock() + 0.4 repeat for i = 1, 1e6 do s = s + i % 7 end until os.clock() > till")
local status, out = t.shell(("'%s' -jp=fl hot.lua"):format(t.luajit))
t.equal(status, 0, "luajit -jp")
t.contains(out, "hot.lua:1", "luajit -jp")
t.contains(out, "%", "luajit -jp")
t.finish()
