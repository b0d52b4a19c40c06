-- A cleaner of temporary files removes the socket of a live program. The commands say so; they do not blame the user. The
-- program makes a new socket by itself. And a program that calls exec has left its socket.
-- TIMEOUT: 300
-- BASE: none, a command beside a program; tools/live_programs tries each LuaJIT
-- WAITS: most of its time

local programs = require("live_programs")
local t = require("tools_test")

os.execute("rm -rf ./*")

local script = programs.unique("loses.lua")
local pid = programs.start(script, programs.LOOP)
local socket = ("/tmp/.luajit-sysprof-%d/%d"):format(programs.uid, pid)

-- While a recording runs, the program looks once a second.
local recording = programs.spawn_for_status(programs.COMMAND .. "record -d 2s -o out.bin " .. pid)
t.wait_until("a recording", function() return programs.is_recorded(pid) end)
t.ok(os.remove(socket), "the socket is removed")
t.wait_until("a new socket", function() return programs.is_live(pid) end)
t.equal(programs.status(), 0, "the recording of " .. recording .. " ends")
local status, folded = t.parse("out.bin")
t.equal(status, 0, "its profile")
t.contains(folded, "never_left", "its profile")
status = programs.try("record -d 100ms -o again.bin " .. pid)
t.equal(status, 0, "the next recording")

-- A stopped program makes no new one.
programs.halt(pid)
t.ok(os.remove(socket), "the socket is removed again")
local SENTENCE = ("process %d (%s) is live, but its socket in /tmp/.luajit-sysprof-%d was removed, perhaps by a cleaner " ..
  "of temporary files; it makes a new one within 10 s: run the command again then"):format(pid, script, programs.uid)
for _, verb in ipairs { "record -d 100ms", "top --once", "dump", "perf-map", "stop" } do
  programs.says(("%s %d"):format(verb, pid), 1, SENTENCE)
end
local _, out, err = programs.try("ps")
t.contains(err, SENTENCE, "ps")
t.ok(not err:find("not live: [^\n]*" .. pid), "ps: it is live: " .. err)
t.ok(not out:find("\n *" .. pid .. " "), "ps: no row: " .. out)

-- A program that calls exec keeps its process, and another program has that.
local execs = programs.unique("execs.lua")
local its = programs.start(execs, [[local ffi = require("ffi") ffi.cdef "int execv(const char *, const char **);"
while not io.open("go") do for i = 1, 1e5 do tostring(i) end end
ffi.C.execv("/bin/sleep", ffi.new("const char *[3]", "/bin/sleep", "100"))]])
programs.spawn_for_status(programs.COMMAND .. "record -d 100s -o exec.bin " .. its .. " 2>exec.err")
t.wait_until("a recording of it", function() return programs.is_recorded(its) end)
t.write_file("go", "")
t.equal(programs.status(), 3, "exec: " .. t.content("exec.err"))
t.contains(t.read_file("exec.err"), ("process %d (%s) runs another program now, sleep; what it had written until then " ..
  "is kept"):format(its, execs), "exec")

programs.finish()
t.finish()
