-- A forked child is sampled from its first tick on. The clocks block their signals during the fork: the child's profile
-- begins after that, or its thread would count as one that blocks them.

local t = require("tools_test")
local box = require("box")

box.fresh()
local status, out, err = box.run("path=p.bin,fork,hz=200", [[
local ffi = require("ffi")
ffi.cdef "int fork(void); int waitpid(int, int *, int);"
io.stdout:setvbuf("no")
local pid = ffi.C.fork()
if pid > 0 then
  ffi.C.waitpid(pid, nil, 0)
else
  io.write(misc.sysprof.report().unsampled, " ")
  local t0 = os.clock()
  repeat until os.clock() - t0 > 1 or misc.sysprof.report().samples > 0
  io.write(misc.sysprof.report().samples > 0 and "sampled" or "not sampled", " ", misc.sysprof.report().unsampled)
end
]])
t.equal(status, 0, "status: " .. err)
t.equal(out, "0 sampled 0", "threads that are not sampled in the child")

t.finish()
