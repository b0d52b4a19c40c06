-- TIMEOUT: 300
-- A compiled loop takes more samples of allocations than the buffers hold. Although the VM writes them, none is lost.

local t = require("tools_test")
local sysprof = misc.sysprof

collectgarbage("setpause", 400)

local function compiled(n)
  local list = {}
  for i = 1, n do list["k" .. i] = i end
  return list
end

local function interpreted(n)
  local f
  for _ = 1, n do f = coroutine.wrap(function() end) end
  return f
end

compiled(1000)
interpreted(100)
collectgarbage()
assert(sysprof.start({ mode = "C", clock = "alloc/period=1/", flush = "vm", path = "vm.bin", force = true }))
compiled(400000)
interpreted(5000)
assert(sysprof.stop())
local report = sysprof.report()
local _, folded = t.parse("--no-host --event=alloc --weight=samples vm.bin")
local samples = 0
for n in folded:gmatch(" (%d+)\n") do samples = samples + tonumber(n) end
t.equal(report.lost.queue, 0, "lost samples")
t.equal(samples, tonumber(report.samples), "samples in the profile")
t.ok(samples > 400000, samples .. " samples")
t.contains(folded, ";compiled (", "the compiled loop")
t.contains(folded, ";interpreted (", "the interpreted loop")
t.finish()
