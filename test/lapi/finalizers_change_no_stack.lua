-- TIMEOUT: 300
-- Finalizers run in the collector's steps. The function that pays for a step keeps its name and its lines.

local t = require("tools_test")
local ffi = require("ffi")
local sysprof = misc.sysprof

local function finalize() local x = 0 for i = 1, 100 do x = x + i end end

local function make(n)
  for _ = 1, n do getmetatable(newproxy(true)).__gc = finalize end
end

-- C code calls a function without parameters, and finalizers run above it.
local function schedule()
  for _ = 1, 200 do
    local co = coroutine.create(function()	-- @body
      for _ = 1, 20 do
	make(200)
	coroutine.yield()
      end
    end)
    while coroutine.status(co) ~= "dead" do assert(coroutine.resume(co)) end
  end
end

local box = ffi.typeof("struct { int x; }")
local function allocate()	-- @header

  local kept
  for i = 1, 1000000 do
    kept = "a" .. i .. "b"
    if i % 5000 == 0 then kept = ffi.gc(box(), finalize) end
  end
  return kept
end

local lines = {}
do
  local number = 0
  for line in io.lines(arg[0]) do
    number = number + 1
    local label = line:match("%-%- @(%w+)$")
    if label then lines[label] = number end
  end
end

local function profile(name, clock, f)
  local path = name .. ".bin"
  assert(sysprof.start({ mode = "C", clock = clock, interval = 1, path = path, force = true }))
  f()
  assert(sysprof.stop())
  return path
end

local function folded(options)
  local code, text = t.parse("--no-host " .. options)
  t.equal(code, 0, options)
  return text
end

local function check_names(setting)
  local text = folded(profile("names", "wall-signal", schedule))
  local bodies = 0
  for line in text:gmatch("[^\n]+") do
    if line:find(":" .. lines.body .. "%f[%D]") then
      bodies = bodies + 1
      t.ok(not line:find("__gc %([^()]*:" .. lines.body .. "%)"),
	   setting .. ": a function below finalizers is none")
    end
  end
  t.ok(bodies > 0, setting .. ": stacks with the function")
  t.contains(text, "finalize (", setting .. ": stacks of finalizers")
end

local function check_lines()
  for _ = 1, 50000 do ffi.gc(box(), finalize) end	-- For the collector's steps.
  local text = folded("--event=alloc --lines " .. profile("lines", "alloc/period=2048/", allocate))
  t.contains(text, "allocate (", "allocations of the function")
  for line in text:gmatch("[^\n]+") do
    local at = tonumber(line:match("allocate %([^()]*:(%d+)%)"))
    if at then t.ok(at > lines.header, "allocation at the header's line " .. line) end
  end
end

check_names("JIT on")
jit.off()
check_names("JIT off")
check_lines()
t.finish()
