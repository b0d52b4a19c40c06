-- Live control while calls fail: misc.sysprof.live succeeds, or returns a sentence with the cause; the program
-- runs on; a client gets its recording or a sentence, and never waits for ever.
-- TIMEOUT: 600
-- WAITS: half of its time
-- LONG: 20

local t = require("tools_test")
local faults = require("faults")

local BUILD = os.getenv("SYSPROF_BUILD")

t.write_file("program.lua", [[
local ok, why = misc.sysprof.live()
local function work() local x = 0 for i = 1, 1e5 do x = x + i % 7 end return x end
local out = assert(io.open("ready.new", "w"))
out:write(io.open("/proc/self/stat"):read("*n"), "\n", tostring(ok), "\n", tostring(why), "\n")
out:close()
os.rename("ready.new", "ready")
local t0 = os.time()
repeat work() until io.open("end") or os.time() - t0 > 60
if misc.sysprof.start { mode = "C", path = "after.bin" } then	-- The same calls fail here.
  for _ = 1, 100 do work() end
  misc.sysprof.stop()
end
os.exit(true, true)
]])

local has_failed = {}	-- Calls.

-- Runs the program with a fault. With a client, records it. Returns what live returned, the client's status and message.
local function run(call, nth, errno, has_client)
  os.execute("rm -f ready end after.bin status calls")
  os.execute(("{ FAULT='%s %s %d' FAULT_LOG=calls timeout -s ABRT 90 '%s/test/faulty_luajit' program.lua >out 2>&1; " ..
	      "echo $? >status.new; mv status.new status; } &"):format(call, nth, faults.errno[errno], BUILD))
  t.wait_until("the program runs", function() return t.content("ready") ~= "" end)
  local pid, ok, why = t.read_file("ready"):match("^(%d+)\n(.-)\n(.-)\n")
  local status, message
  if has_client and ok == "true" then
    local _
    status, _, message = t.shell(("timeout 60 '%s/bin/luajit-sysprof' record -d 200ms -o client.bin %s"):format(BUILD, pid))
  end
  os.execute("touch end")
  t.wait_until("the program ends", function() return t.content("status") ~= "" end)
  if t.content("calls"):sub(9, 16):find("[^%z]") then has_failed[call] = true end
  local what = ("%s %s %s"):format(call, nth, errno)
  t.equal(t.read_file("status"), "0\n", what .. ": the program runs on: " .. t.read_file("out"))
  t.ok(ok == "true" or #why > 10 and not why:find("\n"), what .. ": a reason, not " .. why)
  return ok, why, status, message
end

-- While the socket opens.
for _, call in ipairs { "mkdir", "socket", "socketpair", "bind", "listen", "fchmodat", "renameat", "fcntl64", "fstat64",
			"fstatat64", "open64" } do
  for _, nth in ipairs { "1", "2", "1+" } do run(call, nth, call == "mkdir" and "EACCES" or "EMFILE") end
  t.ok(has_failed[call], call .. " has failed")
end
local ok, why = run("bind", "1+", "EACCES")
t.equal(ok, "nil", "no bind")
t.ok(why:find("^bind in /tmp/%.luajit%-sysprof%-%d+: Permission denied$"), "no bind: " .. why)
ok, why = run("listen", "1+", "EACCES")
t.equal(ok, "nil", "no listen")
t.ok(why:find("^listen in /tmp/%.luajit%-sysprof%-%d+: Permission denied$"), "no listen: " .. why)

-- While a client is served.
has_failed = {}
for _, call in ipairs { "accept4", "getsockopt", "recvmsg", "fcntl64", "fstat64", "poll" } do
  for _, nth in ipairs { "1", "3", "1+", "6+" } do
    local is_live, _, status, message = run(call, nth, "EMFILE", true)
    t.ok(is_live ~= "true" or status == 0 or status == 1 and #message > 0,
	 ("%s %s: a client: status %s, %s"):format(call, nth, tostring(status), tostring(message)))
  end
  t.ok(has_failed[call], call .. " has failed beside a client")
end
t.finish()
