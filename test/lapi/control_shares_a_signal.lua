-- Clocks on a signal for which the program has a handler: the start by control reports
-- this.

local t = require("tools_test")

t.write_file("shares.lua", [[
local ffi = require("ffi")
ffi.cdef "void *signal(int, void *); int raise(int);"
local USR1, USR2 = 10, 12
if arg[1] == "handler" then ffi.C.signal(USR2, ffi.cast("void *", ffi.C.raise)) end
ffi.C.raise(USR1)
local begin = os.time()
repeat for i = 1, 1e5 do end until misc.sysprof.report().samples >= 3 or os.time() - begin > 30
local r = misc.sysprof.report()
assert(r.samples >= 3)
assert(r.signal == "SIGUSR2")
print(r.shared)
ffi.C.raise(USR1)
]])

local function check(how, shared)
  local status, out, err = t.shell(("LUAJIT_SYSPROF=control=SIGUSR1,paused,signal=SIGUSR2,clock=wall-signal,path=%s.bin "
    .. "'%s' -joff shares.lua %s"):format(how, t.luajit, how))
  t.equal(status, 0, how .. ": status")
  t.equal(out, tostring(shared) .. "\n", how .. ": report")
  t.equal(err, shared and "LUAJIT_SYSPROF: start of run 1 of VM 1: the program has a handler for the signal of the "
    .. "clocks; its interrupted calls are restarted\n" or "", how .. ": standard error")
end

check("handler", true)
check("none", false)
t.finish()
