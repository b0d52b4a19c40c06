-- Mode L keeps the innermost frame of both sides, mode C keeps all frames.

local t = require("tools_test")
local sysprof = misc.sysprof
local parse = "'" .. os.getenv("SYSPROF_BUILD") .. "/bin/luajit-parse-sysprof' "

jit.off()

local function leaf()
  local s = 0
  for i = 1, 1e5 do s = s + i % 3 end
  return s
end

local function middle() local s = leaf() return s end

local function depths(mode)
  local path = "leaf_" .. mode .. ".bin"
  assert(sysprof.start({ mode = mode, interval = 1, clock = "cpu", path = path }))
  local deadline = os.time() + 200
  repeat	-- Between them, the time of report() is little.
    for _ = 1, 10 do pcall(middle) end
  until sysprof.report().samples >= 100 or os.time() > deadline
  assert(sysprof.stop())
  local status, out = t.shell(parse .. "--no-host " .. path)
  t.equal(status, 0, mode .. ": the reader")
  local deepest, total, at_leaf = 0, 0, 0
  for stack, n in out:gmatch("(.-) (%d+)\n") do
    local depth = 0	-- Without marks, such as [gc: sweep].
    for frame in stack:gmatch("[^;]+") do
      if frame:sub(1, 1) ~= "[" then depth = depth + 1 end
    end
    deepest = math.max(deepest, depth)
    total = total + n
    if stack:find("leaf_mode.lua:" .. debug.getinfo(leaf, "S").linedefined .. "%)$") then
      at_leaf = at_leaf + n
    end
  end
  t.ok(total >= 100, mode .. ": samples")
  t.ok(at_leaf > total * 0.9, mode .. ": the innermost function")
  return deepest
end

t.equal(depths("L"), 1, "mode L")
t.ok(depths("C") >= 4, "mode C")
t.finish()
