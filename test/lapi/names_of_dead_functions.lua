-- A profile stops while the collector frees functions that it has sampled. The collector frees
-- strings before functions, so the name of such a function's chunk may be another string by
-- then: no function gets the chunk of another one.

local t = require("tools_test")

local SOURCE = [[
local keep
local function work() for i = 1, 50 do keep = { i } end end
for i = 1, 3 do work() end
return keep
]]
local STOPS = 150	-- Places in a cycle of the collector.

jit.off()
collectgarbage("setstepmul", 20)	-- Small steps.
local kept = {}
for stop = 1, STOPS do
  collectgarbage()
  collectgarbage("stop")
  assert(misc.sysprof.start({ mode = "C", clock = "alloc/period=1/", path = "dead.bin" }))
  loadstring(SOURCE, ("@dead%03d.lua"):format(stop))()
  for i = 1, stop do
    collectgarbage("step", 0)
    -- They take the memory of freed names.
    for k = 1, 20 do kept[k] = ("!%03d %05d"):format(stop, i * 20 + k) end
  end
  assert(misc.sysprof.stop())
  local status, out, err = t.parse("--event=alloc dead.bin")
  t.equal(status .. err, "0", "the profile")
  t.ok(out:find(("(dead%03d.lua:2)"):format(stop), 1, true), stop .. " steps: the function")
  local foreign = out:match("[^;\n]*!%d%d%d[^;\n]*") or out:match("[^;\n]*%[string[^;\n]*")
  t.equal(foreign, nil, stop .. " steps: the chunk of a function")
end
t.ok(#kept == 20, "kept")
t.finish()
