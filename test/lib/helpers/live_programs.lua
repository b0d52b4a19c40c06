----------------------------------------------------------------------------
-- Live programs for tests of the commands beside them: starts scripts, runs commands, and ends all programs.
----------------------------------------------------------------------------

local ffi = require("ffi")
local server = require("live_server")
local shell_status = require("shell_status")
local t = require("tools_test")

ffi.cdef [[
unsigned int getuid(void);
int getpid(void);
]]

local programs = { uid = ffi.C.getuid(), is_root = ffi.C.getuid() == 0 }

programs.SCRIPT = t.source .. "/tools/luajit-sysprof.lua"
programs.RUN = ("'%s' '%s' "):format(t.luajit, programs.SCRIPT)
programs.COMMAND = "timeout -k 1 100 " .. programs.RUN

-- Scripts: one that never leaves compiled code, one that sleeps in C.
programs.LOOP =
  "local function never_left() local s, i = 0, 0 while true do s = s + i % 7 i = i + 1 end end\nnever_left()\n"
programs.ASLEEP = "local ffi = require('ffi')\nffi.cdef 'int usleep(unsigned int);' jit.opt.start('hotloop=1')\n" ..
  "local function naps() ffi.C.usleep(100000) return 1 end\nwhile true do naps() end\n"

-- Returns a name that no other test has at the same time, for programs that are found by their names.
function programs.unique(name)
  local stem, ending = name:match("^(.-)(%.?%a*)$")
  return ("%s_%d%s"):format(stem, ffi.C.getpid(), ending)
end

-- -- Commands --------------------------------------------------------------

-- Runs luajit-sysprof; returns status, output and messages. before: words of the shell before the command.
function programs.try(arguments, before)
  local status, out, err = t.shell((before or "") .. programs.COMMAND .. arguments)
  t.ok(not err:find("traceback") and not err:find("internal error"), arguments .. ": " .. err)
  t.ok(not (out .. err):find("[%z\1-\9\11-\31]"), arguments .. ": control characters: " .. out .. err)
  t.ok(not err:find("/proc/%d+/fd"), arguments .. ": a file without a name: " .. err)
  return status, out, err
end

function programs.one_line(err, what)
  t.equal(select(2, err:gsub("\n", "")), 1, what .. ": one line: " .. err)
end

-- Tells a text that a program closed a connection? It may do so before or after the request.
function programs.tells_closing(s)
  return s:find(" closed the connection\n", 1, true) ~= nil or s:find(" took no request: ", 1, true) ~= nil
end

-- Checks status and the only message of a command line without output.
function programs.says(arguments, code, message)
  local status, out, err = programs.try(arguments)
  t.equal(status, code, arguments .. ": status: " .. err)
  t.equal(out, "", arguments .. ": output")
  t.contains(err, message, arguments .. ": message")
  programs.one_line(err, arguments)
end

-- Has ps a row of a program that somebody records?
function programs.is_recorded(pid)
  local _, out = programs.try("ps")
  return out:find(pid .. " +[%w_ -]* %d+ +recording ") ~= nil
end

-- -- Programs --------------------------------------------------------------

-- Starts a command of the shell, which ends with this test; returns its PID. user: its user, unless it is this one.
function programs.spawn(command, user)
  os.execute(("exec %s & echo $! >pid"):format(command))
  local pid = tonumber(t.read_file("pid"))
  server.adopt(pid, user)
  return pid
end

-- The same for a command whose status is wanted later.
function programs.spawn_for_status(command)
  os.execute("rm -f pid status")
  os.execute(("{ exec %s & echo $! >pid; wait $!; echo $? >status.new; mv status.new status; } &"):format(command))
  local pid = t.wait_until("a command begins", function() return tonumber(t.content("pid")) end)
  server.adopt(pid)
  return pid
end

-- Waits for the end of that command; returns its status.
function programs.status()
  return t.wait_until("the command ends", function() return tonumber(t.content("status")) end)
end

function programs.is_live(pid, user)
  return shell_status(("test -S /tmp/.luajit-sysprof-%d/%d"):format(user or programs.uid, pid)) == 0
end

-- Starts a live script; returns its PID. If it calls up(), it has done so by then. arguments: its own. user: its user, if not
-- this one.
function programs.start(name, source, arguments, user)
  local up = name .. ".up"
  os.remove(up)
  t.write_file(name, ("local function up() io.open(%q, 'w'):close() end "):format(up) .. source)
  local pid = programs.spawn(("env LUAJIT_SYSPROF=live %s '%s' %s %s >%s.out 2>&1")
			     :format(user and "setpriv --reuid=" .. user or "", t.luajit, name, arguments or "", name), user)
  t.wait_until(name .. " is live", function() return programs.is_live(pid, user) end)
  if source:find("up()", 1, true) then t.wait_until(name .. " runs", function() return io.open(up) end) end
  return pid
end

-- Starts a script of the current folder in namespaces of its own. Its /tmp hides files of this test. Returns its PID, or nil
-- where this is not allowed.
function programs.start_in_a_box(name)
  if not programs.is_root or shell_status("unshare --pid --mount-proc --mount --fork true 2>/dev/null") ~= 0 then
    return print("skipped: a program in namespaces of its own, which root may make")
  end
  local outer = programs.spawn(("unshare --pid --mount --mount-proc --fork sh -c 'exec 3<%s 4<%s && " ..
    "mount -t tmpfs none /tmp && LUAJIT_SYSPROF=live exec /proc/self/fd/3 - <&4' >box.out 2>&1"):format(t.luajit, name))
  local inner = t.wait_until("a program in a box", function()
    local pid = t.content(("/proc/%d/task/%d/children"):format(outer, outer)):match("%d+")
    return pid and shell_status(("test -S /proc/%s/root/tmp/.luajit-sysprof-0/1"):format(pid)) == 0 and tonumber(pid)
  end)
  server.adopt(inner)
  return inner
end

-- Returns whether root can run programs as another user here.
function programs.can_be_user(uid)
  if programs.is_root and shell_status(("setpriv --reuid=%d true 2>/dev/null"):format(uid)) == 0 then return true end
  print(("skipped: programs of user %d, which root may start"):format(uid))
  return false
end

-- Stops a process by a signal.
function programs.halt(pid)
  os.execute("kill -STOP " .. pid)
  t.wait_until("it is stopped", function() return t.content(("/proc/%d/stat"):format(pid)):find(") T ", 1, true) end)
end

-- Lets it go on.
function programs.go_on(pid) os.execute("kill -CONT " .. pid) end

-- Waits until a program has written samples with a name into the file of its recording, which has no name itself.
function programs.wait_for_samples(pid, name)
  t.wait_until("samples of " .. name, function()
    local _, files = t.shell(("ls -l /proc/%d/fd"):format(pid))
    for fd in files:gmatch(" (%d+) %-> [^\n]*%(deleted%)") do
      local _, folded = t.parse(("/proc/%d/fd/%s"):format(pid, fd))
      if folded:find(name, 1, true) then return true end
    end
  end)
end

programs.adopt, programs.stop, programs.finish = server.adopt, server.stop, server.finish

return programs
