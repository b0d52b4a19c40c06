-- A child that stops tells its parent by SIGCHLD. The parent keeps that signal, and waits
-- on for the child's end; then it can end in the same way.
-- BASE: none, a command beside a program; tools/live_programs tries each LuaJIT

local t = require("tools_test")
local child = require("sysprof.base.child")

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

-- A process that ends in the way of its child ends by the same signal, even where it has
-- blocked and ignored that one. Of other signals it has the status.
local END = [[
local child, ffi, signo = require("sysprof.base.child"), require("ffi"), %d
ffi.C.signal(signo, ffi.cast("void *", 1))
ffi.C.sigprocmask(0, ffi.new("uint64_t[16]", { 2^(signo - 1) }), nil)
child.die(signo)
]]
for _, signo in ipairs { 1, 2, 13, 15, 9, 14 } do
  local status, by = child.run(t.luajit, { "luajit", "-e", END:format(signo) })
  local ends = signo ~= 9 and signo ~= 14
  t.equal(by, ends and signo or nil, "signal of the end: " .. signo)
  t.equal(status, not ends and 128 + signo or nil, "status of the end: " .. signo)
end

t.finish()
