-- The commands and the reader leave room on the Lua stack. In LuaJIT before July 2023, a full one makes compiled code
-- change a number.

local t = require("tools_test")

-- Counts up to 50 at different depths of the stack. The loop is compiled. An exit of it leads to the inner loop,
-- which needs more of the stack; that code looks for room with the register that holds the 50.
local COUNTS = [[
local band = bit.band
local taken = {}
local function clear() for i = 0, 255 do taken[i] = 0 end end

local function place(from, a, b)
  local c, d, e, f, g, h = a, b, a, b, a, b	-- So it needs more of the stack.
  local at = band(from, 255)
  while taken[at] ~= 0 do at = band(at + 1, 255) end
  return at
end

local function count(n, step)
  local rounds = 0
  for i = 1, n do
    taken[place(i * step, i, n)] = i
    rounds = rounds + 1
    if rounds > 200 then break end
  end
  return rounds
end

clear()
for i = 0, 250 do taken[i] = 1 end
for _ = 1, 100 do taken[place(1, 1, 1)] = 0 end	-- The inner loop.
clear()
count(150, 1)	-- The outer one.
for _ = 1, 100 do clear() count(40, 128) end	-- From the outer one to the inner one.

local function deep(k)
  if k == 0 then return (count(50, 128)) end
  return (deep(k - 1))
end
jit.off(deep)

local wrong = 0
local function all()
  for depth = 0, 200 do
    clear()
    if deep(depth) ~= 50 then wrong = wrong + 1 end
  end
end
]]

local function run(how)
  local _, out, err = t.with_file(COUNTS .. how .. " io.write(wrong)", function(path)
    return t.shell(("LUA_PATH='%s/tools/?.lua' '%s' %s"):format(t.source, t.luajit, path))
  end)
  t.equal(err, "", how)
  return out
end

print(run("all()") .. " of 201 counts are wrong on a stack that fills")
t.equal(run("require('sysprof.base.stackroom').call(all)"), "0", "wrong counts with room")
t.equal(run("local main = function() all() io.write(wrong) return 0 end require('sysprof.cli.command').new('x').run(main, {})"),
	"0", "wrong counts in a command")
t.equal(run("require('sysprof.read.reader').parse(function() all() return nil end)"), "0", "wrong counts in the reader")
t.finish()
