-- The verb perf-map: a file that perf reads, in the program's own /tmp, with a name for each trace.
-- TIMEOUT: 120

local t = require("tools_test")

local COMMAND = ("'%s/bin/luajit-sysprof' "):format(os.getenv("SYSPROF_BUILD"))

local file = assert(io.open("traces.lua", "w"))
file:write([[
local function hot(n) local s = 0 for i = 1, n do s = s + i % 7 end return s end
io.stdout:write("ready\n") io.stdout:flush()
while true do hot(1e5) io.stdout:write("") os.getenv("HOME") end
]])
file:close()
file = assert(io.open("stuck.lua", "w"))
file:write([[io.stdout:write("ready\n") io.stdout:flush() local s = 0 while true do s = s + 1 end]])
file:close()

-- Starts a live program. Returns its number.
local function start(script)
  local pipe = io.popen(("LUAJIT_SYSPROF=live '%s' %s >out.txt & echo $!"):format(t.luajit, script))
  local pid = pipe:read("*n")
  pipe:close()
  for _ = 1, 600 do
    if os.execute(("test -s out.txt && '%s/bin/luajit-sysprof' ps 2>ps.txt | grep -q '^ *%d '"):format(
	os.getenv("SYSPROF_BUILD"), pid)) == 0 then break end
    os.execute("sleep 0.1")
  end
  os.remove("out.txt")
  return pid
end

local pid = start("traces.lua")
local path = ("/tmp/perf-%d.map"):format(pid)
local status, _, message = t.shell(COMMAND .. "perf-map " .. pid)
t.equal(status, 0, "status")
t.contains(message, "written to " .. path, "message")
local map = t.read_file(path)
t.ok(map:find("\n?%x+ %x+ trace 1 traces.lua:1\n"), "the trace has the line of its loop")
local last = 0
for line in map:gmatch("[^\n]+") do
  local addr, size = line:match("^(%x+) (%x+) %S.*$")
  t.ok(addr and tonumber(size, 16) > 0 and tonumber(addr, 16) > 0, "line " .. line)
  last = last + 1
end
t.ok(last > 0, "the map has lines")
-- Again: the file is replaced.
t.equal(t.shell(COMMAND .. "perf-map " .. pid), 0, "a second time")
os.execute("kill " .. pid)
os.remove(path)

pid = start("stuck.lua")
status, _, message = t.shell(COMMAND .. "perf-map " .. pid)
t.equal(status, 1, "a program that stays in compiled code: status")
t.contains(message, "has not come to Lua code outside of compiled code", "a program that stays in compiled code")
os.execute("kill " .. pid)
t.ok(not io.open(("/tmp/perf-%d.map"):format(pid)), "no map of it")

status, _, message = t.shell(COMMAND .. "perf-map")
t.equal(status, 2, "no PID: status")
t.contains(message, "expected a PID or --name=NAME", "no PID")
t.finish()
