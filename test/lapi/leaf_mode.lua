-- Mode L keeps the innermost frame of both sides, and the Lua function that called a C function. Mode C keeps all frames.

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

t.ok(depths("L") <= 2, "mode L: a function, and a C function that it called")
t.ok(depths("C") >= 4, "mode C")

-- C functions: each sample has its Lua function as the root.
local function calls_c()
  local n = 0
  for word in (("word "):rep(500)):gmatch("%a+") do n = n + #word end
  return n
end

assert(sysprof.start({ mode = "L", interval = 1, clock = "cpu", path = "c.bin" }))
local deadline = os.time() + 200
repeat
  for _ = 1, 20 do pcall(pcall, calls_c) end
until sysprof.report().samples >= 100 or os.time() > deadline
assert(sysprof.stop())
for _, option in ipairs { "", "--no-host " } do
  local _, out = t.shell(parse .. option .. "c.bin")
  local by, total, deepest = {}, 0, 0
  for stack, n in out:gmatch("(.-) (%d+)\n") do
    local root = stack:match("^([^ ;]+) %(") or stack
    by[root], total = (by[root] or 0) + n, total + n
    deepest = math.max(deepest, select(2, stack:gsub(";", "")) + 1)
    t.ok(not stack:find("host frames", 1, true), "C functions: nothing is missing: " .. stack)
  end
  t.ok((by.calls_c or 0) > total * 0.8, ("C functions, %s%d of %d are of the Lua function: %s"):format(option,
    by.calls_c or 0, total, out))
  t.ok(deepest <= 4, "C functions: depth " .. deepest)	-- Lua, C, the VM's work, and a C frame.
end
local _, rows = t.shell(parse .. "--format=top --by=lua c.bin")
t.ok(rows:find("calls_c (", 1, true), "C functions: a row of the Lua function: " .. rows)
t.finish()
