-- A child that stops tells its parent by SIGCHLD. The parent keeps that signal, and waits
-- on for the child's end.

local t = require("tools_test")
local child = require("sysprof.cli.child")

-- Stops ten times. Status 0: no SIGCHLD came.
t.write_file("stops.lua", [[
local ffi = require("ffi")
ffi.cdef("int getpid(void); int kill(int, int); int sigprocmask(int, const void *, void *);")
local SIG_BLOCK, SIGCHLD, SIGSTOP = 0, 17, 19
ffi.C.sigprocmask(SIG_BLOCK, ffi.new("uint64_t[16]", { 2^(SIGCHLD - 1) }), nil)
local file = io.open("pid", "w")
file:write(ffi.C.getpid(), "\n")
file:close()
for _ = 1, 10 do ffi.C.kill(ffi.C.getpid(), SIGSTOP) end
local pending = io.open("/proc/self/status"):read("*a"):match("ShdPnd:%s*(%x+)")
os.exit(tonumber(pending, 16) == 0 and 0 or 5)
]])
os.remove("pid")
-- Continues it as often as it stops.
os.execute([[{ until [ -s pid ]; do sleep 0.01; done
while state=$(grep State: "/proc/$(cat pid)/status"); do
  case $state in *stopped*) kill -CONT "$(cat pid)" ;; esac
  sleep 0.01
done; } >/dev/null 2>&1 &]])
t.equal(child.run(t.luajit, { "luajit", "stops.lua" }), 0, "status of a child that stops")

t.finish()
