-- A sample in a recursion of thousands of frames takes a few bytes, and the reader shows its
-- frames: the innermost and the outermost ones.

local t = require("tools_test")
local sysprof = misc.sysprof
local parse = "'" .. os.getenv("SYSPROF_BUILD") .. "/bin/luajit-parse-sysprof' "

jit.off()

local function down(n)
  if n > 0 then return down(n - 1) + 1 end
  local s = 0
  for i = 1, 2e4 do s = s + i % 3 end
  return s
end

-- Two functions, and a call through C.
local odd
local function even(n) if n == 0 then return down(0) end return odd(n - 1) + 1 end
function odd(n) return select(2, pcall(even, n - 1)) + 1 end

-- Returns the bytes of a profile, and its path.
local function size_of(work, depth, samples)
  local path = "recursion.bin"
  assert(sysprof.start({ mode = "C", interval = 1, clock = "wall-signal", path = path }))
  local deadline = os.time() + 200
  repeat work(depth) until sysprof.report().samples >= samples or os.time() > deadline
  local taken = sysprof.report().samples
  assert(sysprof.stop())
  t.ok(taken >= samples, "samples")
  return #t.read_file(path), taken, path
end

-- Bytes of a sample are the growth of the file. Each sample may have its own depth.
for name, work in pairs { down = down, even = even } do
  local few, n = size_of(work, 3000, 20)
  local many, m, path = size_of(work, 3000, 320)
  local bytes = (many - few) / (m - n)
  t.ok(bytes <= 30, ("%s: %.1f bytes a sample"):format(name, bytes))
  local status, out = t.shell(parse .. "--no-host " .. path)
  t.equal(status, 0, name .. ": the reader")
  local deepest = 0
  for stack in out:gmatch("(.-) %d+\n") do
    local depth = 0
    for frame in stack:gmatch("[^;]+") do
      if frame:find("recursion_takes_few_bytes.lua", 1, true) then depth = depth + 1 end
    end
    if stack:find("[lua frames left out]", 1, true) then deepest = math.max(deepest, depth) end
  end
  t.ok(deepest >= 500, name .. ": frames of the deepest stack")
end

t.finish()
