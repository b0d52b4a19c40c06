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

-- Returns the bytes of each function.
local function profile(flush)
  local path = flush .. ".bin"
  assert(sysprof.start({ mode = "C", clock = "alloc/period=1/", flush = flush, path = path, force = true }))
  compiled(400000)
  interpreted(5000)
  assert(sysprof.stop())
  local _, folded = t.parse("--no-host --event=alloc --weight=bytes " .. path)
  local bytes = { compiled = 0, interpreted = 0 }
  for line in folded:gmatch("[^\n]+") do
    for name in pairs(bytes) do
      if line:find(";" .. name .. " (", 1, true) then bytes[name] = bytes[name] + tonumber(line:match("%d+$")) end
    end
  end
  return bytes, sysprof.report()
end

compiled(1000)
interpreted(100)
collectgarbage()
local bytes, report = profile("vm")
t.equal(report.lost.queue, 0, "lost samples")
t.ok(report.samples > 400000, report.samples .. " samples")
-- What the functions allocate is known but for the collector's moments.
t.ok(bytes.compiled > 8 * bytes.interpreted, ("%d and %d bytes"):format(bytes.compiled, bytes.interpreted))
t.finish()
