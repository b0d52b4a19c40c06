-- Live control is switched on by a word of LUAJIT_SYSPROF or a call, and starts no profile by itself.

local t = require("tools_test")
local LUAJIT = os.getenv("LUAJIT")

-- Does the process have a thread of the profiler, and does this VM have a running profile?
local STATE = [[
local function threads()
  local pipe, n = io.popen("ls /proc/" .. io.open("/proc/self/stat"):read("*n") .. "/task | wc -l"), 0
  n = pipe:read("*n") pipe:close()
  return n
end
]]

local function run(value, code)
  local file = assert(io.open("program.lua", "w"))
  file:write(STATE, code)
  file:close()
  local pipe = io.popen(("LUAJIT_SYSPROF='%s' '%s' program.lua 2>&1"):format(value, LUAJIT))
  local out = pipe:read("*a")
  pipe:close()
  return out
end

local PRINT = "io.write(threads(), ' ', tostring(misc.sysprof.stop()))"

t.equal(run("off", PRINT), "1 nil", "off")
t.equal(run("live", PRINT), "2 nil", "live alone starts no profile")
t.equal(run("live,path=a.bin", PRINT), "2 true", "live beside a start")
t.equal(run("path=b.bin,live", PRINT), "2 true", "a start beside live")
t.contains(run("live,foo", PRINT), "'foo' is not an option", "a wrong word beside live")
t.equal(run("off", "io.write(tostring(misc.sysprof.live()), threads(), tostring(misc.sysprof.live()))"), "true2true",
	"misc.sysprof.live")
t.equal(run("live", [[
assert(misc.sysprof.start { mode = "C", path = "c.bin", duration = 0.05 })
local t0 = os.clock()
while os.clock() - t0 < 0.5 do ("x"):rep(10) end
io.write(tostring(misc.sysprof.stop()), " ")
local ok, why = misc.sysprof.start { mode = "C", path = "c.bin", delay = 1 }
io.write(tostring(ok), " ", why)]]),
	"true nil profiler misuse: option 'delay' is given beside the control of this VM; expected one of them",
	"a duration beside live, and a delay")
t.equal(run("live,control=" .. (os.getenv("PWD") or io.popen("pwd"):read("*l")) .. "/control,paused", PRINT), "2 nil",
	"live beside a control file")

-- The signal that wakes the VM's thread may come from outside, for out-of-band data: it starts nothing.
t.equal(run("live", [[
local ffi = require("ffi")
ffi.cdef "int raise(int);"
for _ = 1, 20 do
  ffi.C.raise(23)	-- SIGURG
  for i = 1, 1000 do ("x"):rep(i % 7) end
end
]] .. PRINT), "2 nil", "a signal from outside")

t.finish()
