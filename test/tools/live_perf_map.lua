-- The verb perf-map: a file that perf reads, in the program's own /tmp, with a name for each trace.
-- TIMEOUT: 120

local programs = require("live_programs")
local server = require("live_server")
local t = require("tools_test")

local try = programs.try

local function map_of(pid) return ("/tmp/perf-%d.map"):format(pid) end

local pid = programs.start("traces.lua", [[
local function hot(n) local s = 0 for i = 1, n do s = s + i % 7 end return s end
hot(1e5)
up()
while true do hot(1e5) io.stdout:write("") os.getenv("HOME") end
]])
local path = map_of(pid)
local status, _, message = try("perf-map " .. pid)
t.equal(status, 0, "status")
t.contains(message, "written to " .. path, "message")
local map = t.read_file(path)
t.ok(map:find("%f[^\n%z]%x+ %x+ trace 1 traces%.lua:1\n"), "the trace has the line of its loop: " .. map)
for line in map:gmatch("[^\n]+") do
  local addr, size = line:match("^(%x+) (%x+) %S.*$")
  t.ok(addr and tonumber(size, 16) > 0 and tonumber(addr, 16) > 0, "line " .. line)
end
-- Again: the file is replaced.
t.write_file(path, "an old map\n")
t.equal(try("perf-map " .. pid), 0, "a second time")
t.contains(t.read_file(path), " trace 1 traces.lua:1\n", "a second time")
t.ok(not t.read_file(path):find("an old map"), "a second time: the old map is gone")
-- A link is replaced, too: who plants one does not choose what is written over.
os.remove(path)
t.write_file("victim", "a letter\n")
os.execute(("ln -s \"$PWD/victim\" %s"):format(path))
t.equal(try("perf-map " .. pid), 0, "a link")
t.equal(t.read_file("victim"), "a letter\n", "a link: where it leads")
t.contains(t.read_file(path), " trace 1 traces.lua:1\n", "a link: the map")
os.remove(path)
-- In a container, a link leads to the files of the one who follows it.
local inner = programs.start_in_a_box("traces.lua")
if inner then
  local root = ("/proc/%d/root"):format(inner)
  local function map_in_box() return (t.content(root .. "/tmp/perf-1.map")) end
  t.wait_until("a map", function() return try("perf-map " .. inner) == 0 end)
  t.contains(map_in_box(), " trace 1 stdin:1\n", "in a box: the map")
  os.execute(("ln -sf \"$PWD/victim\" %s/tmp/perf-1.map"):format(root))
  t.equal(try("perf-map " .. inner), 0, "in a box: a link")
  t.equal(t.read_file("victim"), "a letter\n", "in a box: where the link leads")
end

pid = programs.start("stuck.lua", programs.LOOP)
status, _, message = try("perf-map " .. pid)
t.equal(status, 1, "a program that stays in compiled code: status")
t.contains(message, "has not come to Lua code outside of compiled code", "a program that stays in compiled code")
t.equal(t.content(map_of(pid)), "", "no map of it")

-- A map of 1 GiB takes neither time nor memory.
local huge = server.start("long_map")
status, _, message = t.shell(("ulimit -v %s; '%s' '%s/tools/luajit-sysprof.lua' perf-map %d"):format(
  (os.getenv("CFLAGS") or ""):find("sanitize") and "unlimited" or "600000", t.luajit, t.source, huge))
t.equal(status, 1, "a huge map: status: " .. message)
t.contains(message, "no map: it has more than 67108864 bytes", "a huge map")
t.equal(t.content(map_of(huge)), "", "no map of it")
server.stop { huge }

status, _, message = try("perf-map")
t.equal(status, 2, "no PID: status")
t.contains(message, "expected a PID or --name=NAME", "no PID")
programs.finish()
