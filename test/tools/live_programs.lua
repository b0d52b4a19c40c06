-- ps, record and stop on real programs: one that computes, one that never leaves compiled code, one asleep in C, children,
-- one that ends, one of another user, one in namespaces of its own.
-- TIMEOUT: 300

local ffi = require("ffi")
local t = require("tools_test")
local server = require("live_server")

os.execute("rm -rf ./*")

ffi.cdef "unsigned int getuid(void);"
local is_root = ffi.C.getuid() == 0

local COMMAND = ("timeout -k 1 100 '%s' '%s/tools/luajit-sysprof.lua' "):format(t.luajit, t.source)

local function try(arguments)
  local status, out, err = t.shell(COMMAND .. arguments)
  t.ok(not err:find("traceback") and not err:find("internal error"), arguments .. ": " .. err)
  return status, out, err
end

local function content(path)
  local file = io.open(path, "rb")
  local s = file and file:read("*a") or ""
  if file then file:close() end
  return s
end

local function wait_until(what, is_so)
  local limit = server.now() + 60
  while not is_so() do
    if server.now() > limit then return t.ok(false, "never: " .. what) end
    os.execute("sleep 0.02")
  end
end

local function socket_of(pid, user) return ("/tmp/.luajit-sysprof-%d/%d"):format(user or ffi.C.getuid(), pid) end

local function is_live(pid, user) return os.execute("test -S " .. socket_of(pid, user)) == 0 end

local all = {}

-- Starts a live script; returns its PID. before: words of the shell before the command.
local function start(name, source, before, user)
  t.write_file(name, source)
  os.execute(("LUAJIT_SYSPROF=live %s '%s' %s >%s.out 2>&1 & echo $! >pid"):format(before or "", t.luajit, name, name))
  local pid = tonumber(t.read_file("pid"))
  all[#all + 1] = pid
  wait_until(name .. " is live", function() return is_live(pid, user) end)
  return pid
end

-- Records, and returns the messages and the folded stacks.
local function record(arguments, expected)
  os.remove("out.folded")
  local status, out, err = try("record -o out.folded " .. arguments)
  t.equal(status, expected or 0, arguments .. ": status: " .. err)
  t.equal(out, "", arguments .. ": output")
  return err, content("out.folded")
end

-- Returns the samples of folded stacks with a name, and of all.
local function samples(folded, name)
  local n, sum = 0, 0
  for stack, count in folded:gmatch("([^\n]*) (%d+)\n") do
    sum = sum + count
    if stack:find(name, 1, true) then n = n + count end
  end
  return n, sum
end

local LOOP = "local function never_left() local s, i = 0, 0 while true do s = s + i % 7 i = i + 1 end end\nnever_left()\n"
local MIXED = "local kept\nlocal function makes() kept = {} for i = 1, 100 do kept[i] = { i } end end\n" ..
	      "local function works() for i = 1, 1000 do makes() end return 1 end\nwhile true do works() end\n"
local ASLEEP = "local ffi = require('ffi')\nffi.cdef 'int usleep(unsigned int);'\n" ..
	       "local function naps() ffi.C.usleep(100000) return 1 end\nwhile true do naps() end\n"

local loop, mixed, asleep = start("loop.lua", LOOP), start("mixed.lua", MIXED), start("asleep.lua", ASLEEP)

local function finds(part)
  local status, out, err = try("ps")
  t.equal(status, 0, "ps: status: " .. err)
  t.ok(out:find(part), ("ps: expected %s in\n%s"):format(part, out))
end

for name, pid in pairs { loop = loop, mixed = mixed, asleep = asleep } do
  finds(("%d +[%%w_ -]* 1 +%%- +luajit %s%%.lua\n"):format(pid, name))
end

local _, folded = record("-d 500ms " .. loop)
local n, sum = samples(folded, "never_left (loop.lua:1)")
t.ok(n > 0 and n == sum, ("a loop in compiled code: %d of %d samples"):format(n, sum))

local err
err, folded = record("-d 500ms -e wall " .. asleep)
n, sum = samples(folded, "asleep.lua:3")	-- Its name is in a table of the VM, which never answers.
t.ok(n > 0 and n > sum * 0.9, ("a program asleep: %d of %d us: %s"):format(n, sum, err))

_, folded = record("-d 500ms -e alloc " .. mixed)
n, sum = samples(folded, "makes (mixed.lua:2)")
t.ok(n > 0 and n > sum * 0.9, ("allocations: %d of %d bytes"):format(n, sum))
err = record("-d 300ms -e alloc " .. loop, 1)
t.contains(err, "the recording of 1 of 1 VM begins when the program runs Lua code outside of compiled code", "alloc in compiled code")
t.contains(err, ("process %d (loop.lua) recorded nothing"):format(loop), "alloc in compiled code")
err = record("-d 300ms -e no_event " .. mixed, 1)
t.contains(err, ("process %d (mixed.lua): 'no_event' is not a clock or event"):format(mixed), "an unknown event")

-- Again and again.
for _ = 1, 20 do
  local status, _, message = try("record -d 10ms -o again.bin " .. mixed)
  t.equal(status, 0, "again: " .. message)
end

-- -- Several ---------------------------------------------------------------

local twin = start("mixed.lua", MIXED)
err, folded = record("-d 500ms --name=mixed.lua")
t.contains(err, "recording 2 processes for 0.5 s", "by name")
t.contains(err, "of 2 processes, written to out.folded", "by name: the summary")
t.equal(samples(folded, "makes (mixed.lua:2)") > 0, true, "by name: samples")

err, folded = record(("-d 500ms %d %d"):format(loop, mixed))
t.ok(samples(folded, "makes (mixed.lua:2)") > 0 and samples(folded, "never_left (loop.lua:1)") > 0, "two: " .. err)

-- A program that forks after its VM is live.
local parent = start("parent.lua", "local ffi = require('ffi')\nffi.cdef 'int fork(void); int pause(void); int getpid(void);'\n" ..
  "local function child() local s = 0 while true do s = s + 1 end end\n" ..
  "for i = 1, 2 do if ffi.C.fork() == 0 then child() end end\nlocal function waits() ffi.C.pause() return 1 end\nwhile true do waits() end\n")
local children
wait_until("two children", function()
  children = {}
  for pid in content(("/proc/%d/task/%d/children"):format(parent, parent)):gmatch("%d+") do children[#children + 1] = tonumber(pid) end
  return #children == 2 and is_live(children[1]) and is_live(children[2])
end)
for _, pid in ipairs(children) do all[#all + 1] = pid end
err, folded = record("-d 500ms --children " .. parent)
t.contains(err, "recording 3 processes", "children")
n, sum = samples(folded, "child (parent.lua:3)")
t.ok(n > 0 and n == sum, ("children: %d of %d samples"):format(n, sum))

-- -- Ends ------------------------------------------------------------------

-- Starts a recording without an end.
local function begin(arguments)
  os.execute(("rm -f log status; ( %s record %s >log.out 2>log; echo $? >status ) &"):format(COMMAND, arguments))
  wait_until("it records", function() return content("log"):find("press Ctrl-C to end\n", 1, true) end)
end

do	-- The program is killed. What it wrote each second is kept.
  local pid = start("mixed.lua", MIXED)
  begin("-o killed.bin " .. pid)
  finds(pid .. " +[%w_ -]* 1 +recording +luajit mixed%.lua\n")
  os.execute("sleep 1.5; kill -KILL " .. pid)
  wait_until("the end", function() return content("status") ~= "" end)
  t.equal(content("status"), "0\n", "a killed program: status: " .. content("log"))
  t.contains(content("log"), ("process %d (mixed.lua) has ended; what it recorded until then is kept"):format(pid), "a killed program")
  t.contains(content("log"), "makes (mixed.lua:2)", "a killed program: samples")
end
do	-- By 'stop'.
  begin(("-o stopped.bin %d %d"):format(loop, mixed))
  err = record("-d 100ms " .. loop, 1)
  t.contains(err, "another client records this process already; 'luajit-sysprof stop' ends that recording", "a second client")
  local _, _, message = try(("stop %d %d"):format(loop, mixed))
  t.contains(message, ("process %d (loop.lua): 1 recording ended"):format(loop), "stop")
  t.contains(message, ("process %d (mixed.lua): 1 recording ended"):format(mixed), "stop")
  wait_until("the end", function() return content("status") ~= "" end)
  t.equal(content("status"), "0\n", "stop: status: " .. content("log"))
  t.contains(select(2, t.parse("stopped.bin")), "never_left (loop.lua:1)", "stop: samples")
end
do	-- A stopped process.
  os.execute("kill -STOP " .. twin)
  wait_until("it is stopped", function() return content(("/proc/%d/stat"):format(twin)):find(") T ", 1, true) end)
  err = record("-d 100ms " .. twin, 1)
  t.contains(err, ("process %d (mixed.lua) is stopped by a signal"):format(twin), "a stopped process")
  finds(twin .. " +[%w_ -]* %- +stopped +luajit mixed%.lua\n")
  os.execute("kill -CONT " .. twin)
end

-- -- Users and namespaces --------------------------------------------------

if is_root and os.execute("setpriv --reuid=65534 true 2>/dev/null") == 0 then
  local status, _, message = t.shell("setpriv --reuid=65534 " .. COMMAND .. "record -o - " .. mixed)
  t.equal(status, 1, "another user: status")
  t.contains(message, ("process %d (mixed.lua) belongs to user root; run luajit-sysprof as that user or as root"):format(mixed),
	     "another user")
  local its = start("mixed.lua", MIXED, "setpriv --reuid=65534", 65534)
  _, folded = record("-d 500ms " .. its)
  t.ok(samples(folded, "makes (mixed.lua:2)") > 0, "root records another user's program")
  local _, out = try("ps")
  t.ok(out:find("PID  USER", 1, true), "ps: users: " .. out)
end

if is_root and os.execute("unshare --pid --mount-proc --mount --fork true 2>/dev/null") == 0 then
  t.write_file("mixed.lua", MIXED)
  -- Its /tmp hides files of this test.
  os.execute(("unshare --pid --mount --mount-proc --fork sh -c 'exec 3<%s 4<mixed.lua && mount -t tmpfs none /tmp && " ..
	      "LUAJIT_SYSPROF=live exec /proc/self/fd/3 - <&4' >box.out 2>&1 & echo $! >pid"):format(t.luajit))
  local outer, inner = tonumber(t.read_file("pid")), nil
  wait_until("a program in a box", function()
    inner = tonumber(content(("/proc/%d/task/%d/children"):format(outer, outer)):match("%d+") or "")
    return inner and os.execute(("test -S /proc/%d/root/tmp/.luajit-sysprof-0/1"):format(inner)) == 0
  end)
  all[#all + 1], all[#all + 2] = inner, outer
  err, folded = record("-d 500ms " .. inner)
  t.contains(err, ("recording process %d ("):format(inner), "in a box")
  t.ok(samples(folded, "makes (stdin:2)") > 0, "in a box: samples: " .. err)
  finds(inner .. " +[%w_ -]* 1 +%- ")
end

server.stop(all)
server.stop(all, 65534)
t.finish()
