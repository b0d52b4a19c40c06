-- A program that starts with the clocks' signals blocked. If it has no samples, standard
-- error gets one line. If it has some nevertheless, it gets none.

local t = require("tools_test")

t.write_file("start.lua", [[
local ffi = require("ffi")
ffi.cdef "int sigemptyset(void *); int sigaddset(void *, int); int sigprocmask(int, const void *, void *);"
ffi.cdef "int setenv(const char *, const char *, int); int execv(const char *, const char **);"
local C, set = ffi.C, ffi.new("char[128]")
C.sigemptyset(set)
for signal in arg[1]:gmatch("%d+") do assert(C.sigaddset(set, tonumber(signal)) == 0) end
assert(C.sigprocmask(0, set, nil) == 0)
C.setenv("LUAJIT_SYSPROF", "path=x.bin," .. arg[2], 1)
C.execv(arg[3], ffi.new("const char *[4]", { arg[3], "-e", "print(misc.sysprof.stop())" }))
error("not executed")
]])

local URG, USR2, PROF = 23, 12, 27
local BOTH = URG .. " " .. PROF

local function check(signals, value, is_said)
  local status, out, err = t.shell(("'%s' start.lua '%s' %s '%s'"):format(t.luajit, signals, value, t.luajit))
  local what = ("%s blocked, %s: "):format(signals, value)
  t.equal(status, 0, what .. "status")
  t.equal(out, "true\n", what .. "the program")
  t.equal(err, is_said and ("LUAJIT_SYSPROF='path=x.bin,%s': the thread blocks the signal of the clocks; " ..
    "it has no samples until it unblocks the signal\n"):format(value) or "", what .. "standard error")
end

check(BOTH, "clock=wall-signal", true)
check(BOTH, "clock=cpu", true)
check(BOTH, "clock=ctimer,control=SIGUSR2", true)
check(BOTH, "clock=wall-signal,threads=all", false)
check(BOTH, "clock=wall-signal,signal=SIGUSR2", false)
check(USR2, "clock=wall-signal,signal=SIGUSR2", true)
check(USR2, "clock=wall-signal", false)
check("", "clock=wall-signal", false)
t.finish()
