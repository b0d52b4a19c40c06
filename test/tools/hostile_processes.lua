-- ps, record and perf-map beside processes that would lead root: files that never answer, pipes, huge files, sockets of
-- others. One sentence each, no endless wait, and other programs are recorded as before.
-- TIMEOUT: 300
-- BASE: none, a command beside a program; tools/live_programs tries each LuaJIT

local json = require("json_decode")
local programs = require("live_programs")
local server = require("live_server")
local shell_status = require("shell_status")
local t = require("tools_test")

local try = programs.try

os.execute("rm -rf ./*")

-- A second process has the socket: it would answer for a process that took the number of one that has ended.
do
  local pid = server.start("child_answers", "server.lua")
  local sentence = ("another process answers for process %d (server.lua)"):format(pid)
  for _, verb in ipairs { "record -d 100ms ", "stop ", "perf-map " } do
    programs.says(verb .. pid, 1, sentence)
  end
  local _, out, err = try("ps")
  t.ok(out:find(("\n *%d [^\n]*no answer"):format(pid)), "ps: another process answers: " .. out)
  t.contains(err, sentence, "ps: another process answers")
  server.stop { pid }
end

-- What it sends stays its own: no member of the command's JSON, no line of its text, no escape for a terminal.
do
  local pid = server.start("evil_list", "server.lua")
  local status, out, err = try("dump --format=json " .. pid)
  t.equal(status, 0, "an evil list: status: " .. err)
  local dump = json.decode(out)
  t.equal(dump.evil, nil, "an evil list: members")
  t.equal(#dump.processes, 1, "an evil list: processes")
  local its = dump.processes[1]
  t.equal(its.pid, pid, "an evil list: PID")
  t.equal(#its.vms, 0, "an evil list: VMs")
  t.equal(its.coroutines_unknown, "byte 49 of what the program sent is no JSON", "an evil list: why")
  out = select(2, try("dump " .. pid))
  t.contains(out, "\n1 coroutine at another moment: 1 running\n\n    process 1: init\n    ?[31mred\n    thread 1 (root): running\n    a frame\n",
	     "an evil list: text")
  t.equal(select(2, ("\n" .. out):gsub("\nprocess ", "")), 1, "an evil list: one head: " .. out)
  err = select(3, try("perf-map " .. pid))
  t.contains(err, ("2 traces written to /tmp/perf-%d.map"):format(pid), "an evil map")
  t.equal(t.read_file(("/tmp/perf-%d.map"):format(pid)),
	  "1000 10 trace 1 app.lua:1\n2000 10 trace 2 ?]0;title?\n3000 10 " .. ("x"):rep(4096) .. "...\n", "an evil map")
  os.remove(("/tmp/perf-%d.map"):format(pid))
  server.stop { pid }
end

if not programs.can_be_user(server.OTHER_USER) then programs.finish() end

local function can_mount(what)
  if shell_status("unshare --mount true 2>/dev/null") == 0 then return true end
  print(("skipped: %s, which needs mount namespaces"):format(what))
end

-- Starts a live program of a user, whose /tmp is this folder. Returns its PID.
local function start_below(folder, user)
  return programs.spawn(("unshare --mount sh -c 'mount --bind %s /tmp && LUAJIT_SYSPROF=live exec setpriv " ..
    "--reuid=%d %s -e \"while true do os.getenv(1) end\"' >%s.out 2>&1"):format(folder, user, t.luajit, folder))
end

local function wait_for_socket(path)
  t.wait_until(path, function() return shell_status("test -S " .. path) == 0 end)
end

-- Root's process has a socket at which it began to listen as another user: so does one that took a user's number.
do
  local pid = server.start("was_another", "server.lua", server.OTHER_USER)
  local good = server.start("good", "server.lua")
  local status, _, err = try("record -d 100ms -o out.bin " .. pid)
  t.equal(status, 1, "a user's socket: status")
  t.contains(err, ("process %d (server.lua) is not live"):format(pid), "a user's socket")
  t.equal(try("record -d 100ms -o out.bin " .. good), 0, "root's socket")
  server.stop { pid, good }
end

-- All users may write its folder. It has a /tmp of its own, because other tests have their sockets in the real one.
if can_mount("a folder of all users") then
  os.execute("rm -rf all_users; mkdir -m 1777 all_users")
  local pid = start_below("all_users", 0)
  wait_for_socket("all_users/.luajit-sysprof-0/" .. pid)
  t.equal(try("record --force -d 100ms -o out.bin " .. pid), 0, "a folder of root")
  os.execute("chmod 777 all_users/.luajit-sysprof-0")
  programs.says("record --force -d 100ms -o out.bin " .. pid, 1,
		"is live, but other users may write /tmp/.luajit-sysprof-0, the folder of its socket; run 'chmod 700 /tmp/")
  server.stop { pid }
end

-- The same of a user, whose folder has its second name.
if can_mount("a second folder of all users") then
  local folder = ".luajit-sysprof-65534"
  os.execute(("rm -rf second; mkdir -m 1777 second; mkdir second/%s"):format(folder))
  local pid = start_below("second", server.OTHER_USER)
  wait_for_socket(("second/%s.2/%d"):format(folder, pid))
  os.execute(("chmod 777 second/%s.2"):format(folder))
  programs.says("record --force -d 100ms -o out.bin " .. pid, 1, ("is live, but other users may write /tmp/%s.2, the " ..
    "folder of its socket; run 'chmod 700 /tmp/%s.2'"):format(folder, folder))
  t.contains(select(3, try("ps")), ("process %d (luajit) is live, but other users may write /tmp/%s.2,")
	     :format(pid, folder), "ps: a second folder")
  server.stop { pid }
end

-- The mapped library has become a pipe, and the program one, too. Not root, so only the paths lead to them.
do
  os.execute(("mkdir -m 777 -p their; cp '%s' their/luajit; chmod 755 their/luajit"):format(t.luajit))
  local pid = programs.spawn("setpriv --reuid=65534 ./their/luajit -e 'io.stdin:read(1)' <&0 >/dev/null 2>&1 </dev/zero")
  os.execute("kill -STOP " .. pid .. "; rm their/luajit; mkfifo -m 666 their/luajit")
  for _, before in ipairs { "setpriv --reuid=65534 --clear-groups ", "" } do
    local status, _, err = try("record -d 100ms " .. pid, before)
    t.equal(status, 1, "a pipe: status: " .. err)
    programs.one_line(err, "a pipe")
  end
  server.stop { pid }
end

-- A program of a terabyte of holes is read like a small one.
do
  os.execute(("cp '%s' big_luajit && truncate -s 1T big_luajit"):format(t.luajit))
  local pid = programs.spawn("./big_luajit -e 'while true do os.getenv(1) end' >/dev/null 2>&1")
  programs.says("record -d 100ms " .. pid, 1, ("process %d ("):format(pid))
  local _, out = t.shell(("'%s' -e '" .. [[package.path = %q
local library = require("sysprof.live.library")
print(library.of_all({ { folder = "/proc/%d" } })[1])' ]]):format(t.luajit, t.source .. "/tools/?.lua", pid))
  t.equal(out, "ours\n", "a huge program")
  server.stop { pid }
end

-- Its /tmp is a folder of root.
if can_mount("a /tmp that is a folder of root") then
  os.execute("mkdir -p roots/.luajit-sysprof-65534 && chmod 755 roots && cd roots/.luajit-sysprof-65534 && chown 65534 . && chmod 700 .")
  local pid = start_below("roots", server.OTHER_USER)
  wait_for_socket("roots/.luajit-sysprof-65534/" .. pid)
  programs.says("perf-map " .. pid, 1, "the folder is no temporary folder of the program's user")
  t.equal(shell_status("ls roots/perf-* 2>/dev/null"), 2, "no map in a folder of root")
  server.stop { pid }
end

-- Its /tmp is that of all, and it chooses its number there: it must not choose whose map is replaced.
if can_mount("a number that others have") then
  os.execute("rm -rf numbers; mkdir -m 1777 numbers")
  local outer = programs.spawn(("unshare --mount --pid --fork --kill-child sh -c 'mount --bind numbers /tmp && " ..
    "LUAJIT_SYSPROF=live exec setpriv --reuid=%d %s -e \"while true do os.getenv(1) end\"' >numbers.out 2>&1")
    :format(server.OTHER_USER, t.luajit))
  wait_for_socket(("numbers/.luajit-sysprof-%d/1"):format(server.OTHER_USER))
  local pid = tonumber(t.content(("/proc/%d/task/%d/children"):format(outer, outer)):match("%d+"))
  programs.adopt(pid, server.OTHER_USER)
  for _, owner in ipairs { 0, server.OTHER_USER - 1 } do
    t.write_file("numbers/perf-1.map", "1000 10 theirs\n")
    os.execute(("chown %d numbers/perf-1.map"):format(owner))
    programs.says("perf-map " .. pid, 1, ("/root/tmp/perf-1.map: user %s owns this file, and the program is of user")
		  :format(owner == 0 and "root" or owner))
    t.equal(t.read_file("numbers/perf-1.map"), "1000 10 theirs\n", "a map of user " .. owner)
  end
  os.execute(("chown %d numbers/perf-1.map"):format(server.OTHER_USER))
  t.equal(try("perf-map " .. pid), 0, "a map of its own user")
  t.ok(not t.read_file("numbers/perf-1.map"):find("theirs"), "a map of its own user is replaced")
  -- A command with the same /tmp takes the number for its own process 1.
  os.remove("numbers/perf-1.map")
  local status, _, err = try("perf-map " .. pid, ("nsenter --target=%d --mount "):format(pid))
  t.equal(status, 1, "a map in the command's own /tmp: status: " .. err)
  t.contains(err, "/root/tmp/perf-1.map: its PID namespace has numbers of its own, but its /tmp is yours",
	     "a map in the command's own /tmp")
  t.equal(t.content("numbers/perf-1.map"), "", "no map in the command's own /tmp")
  server.stop { pid, outer }
end

-- Others have names of its folder, so it takes the next one. Once they have all of them, the message says so.
if can_mount("names that others have") then
  local folder = ".luajit-sysprof-65534"
  os.execute(("rm -rf names; mkdir names; chmod 1777 names; mkdir names/%s; ln -s / names/%s.2"):format(folder, folder))
  local pid = start_below("names", server.OTHER_USER)
  wait_for_socket(("names/%s.3/%d"):format(folder, pid))
  local status, _, err = try("record -d 100ms --force -o out.bin " .. pid)
  t.equal(status, 0, "a third folder: status: " .. err)
  server.stop { pid }
  os.execute(("rm -rf names/%s.3; for i in 3 4 5 6 7 8 9; do mkdir names/%s.$i; done"):format(folder, folder))
  pid = start_below("names", server.OTHER_USER)
  t.wait_until("no live program", function() return t.content("names.out"):find("\n") end)
  t.contains(t.content("names.out"), ("the folder /tmp/%s: another user owns it, and others have its other names")
	     :format(folder), "no folder: the program")
  programs.says("record -d 100ms " .. pid, 1, ("user root owns /tmp/%s, and others have all names to /tmp/%s.9: " ..
    "remove them as root, then start it with LUAJIT_SYSPROF=live"):format(folder, folder))
  server.stop { pid }
end

-- Its /tmp never answers.
local runner = ("'%s' '%s/test/lib/helpers/hung_files.lua' /tmp \"$PWD/ready\" "):format(t.luajit, t.source)
if not can_mount("a file system that never answers") then programs.finish() end
if shell_status("test -c /dev/fuse") ~= 0 then
  print("skipped: a file system that never answers, which needs /dev/fuse")
  programs.finish()
end
t.write_file("hung.lua", "while true do os.getenv('HOME') end\n")
local outer = programs.spawn(runner .. ("'%s' hung.lua >runner.out 2>&1"):format(t.luajit))
local inner = t.wait_until("a program whose files hang: " .. t.content("runner.out"), function()
  return tonumber(t.content("ready"))
end)
programs.adopt(inner)
local good = server.start("good", "server.lua")
local status, _, err = try(("record -d 100ms -o out.bin %d %d"):format(inner, good))
t.equal(status, 0, "files that hang: another program: status: " .. err)
t.contains(err, ("process %d (hung.lua) keeps its files from answering"):format(inner), "files that hang")
t.contains(select(2, t.parse("out.bin")), "hot_in_good", "files that hang: samples of another program")
local out
status, out, err = try("ps")
t.equal(status, 0, "ps: files that hang: " .. err)
t.ok(out:find(("\n *%d +2 +%%- +luajit server%%.lua\n"):format(good)), "ps: files that hang: another program: " .. out)
programs.says("perf-map " .. inner, 1, ("process %d (hung.lua) keeps its files from answering"):format(inner))
server.stop { inner, outer, good }

programs.finish()
