-- The collection at the end of a profile and at a dump calls no function that a hook of the program sees.

local t = require("tools_test")
local box = require("box")

local COUNT = 100	-- Profiles and dumps.

box.fresh()
local status, out, err = box.run("control=SIGUSR2,gc,hz=100", ([=[
local ffi = require("ffi")
ffi.cdef "int raise(int);"
local raise = ffi.C.raise
local SIGUSR2 = 12
jit.off()
local seen = {}
local finalized = 0
local function leave()
  getmetatable(newproxy(true)).__gc = function() finalized = finalized + 1 end
end
local function work()
  local s = 0
  for i = 1, 20 do s = s + i %% 7 end
  return s
end
for i = 1, %d do
  leave()
  debug.sethook(function()
    local info = debug.getinfo(2, "nS")
    seen[tostring(info.name) .. " " .. info.what] = true
  end, "c")
  raise(SIGUSR2)
  work()
  debug.sethook()
end
local list = {}
for name in pairs(seen) do list[#list + 1] = name end
table.sort(list)
io.write(table.concat(list, ","), " ", finalized > %d / 4 and "finalized" or finalized)
]=]):format(COUNT, COUNT))
t.equal(status, 0, "status: " .. err)
t.equal(out, "raise C,sethook C,work Lua finalized", "what the hook saw")
t.ok(select(2, box.files("*.bin"):gsub("\n", "")) >= COUNT / 4, "profiles")

t.finish()
