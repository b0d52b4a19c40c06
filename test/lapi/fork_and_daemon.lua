-- Children of fork, made by the program or by daemon(3). Without the option they are not
-- profiled, and leave the profile alone. With it, each has its own file.

local t = require("tools_test")
local parse = "'" .. os.getenv("SYSPROF_BUILD") .. "/bin/luajit-parse-sysprof' "

-- First lines of the programs. A child writes its process number into a file at its
-- end, because no parent waits for a daemon.
local HEAD = [[
local ffi = require("ffi")
ffi.cdef "int fork(void); int waitpid(int, int *, int); int getpid(void); int daemon(int, int);"
local FORK, HERE = %s, %q
function start(path)
  assert(misc.sysprof.start({ mode = "C", interval = 1, clock = "wall-signal", path = path,
			      fork = FORK }))
end
function work(samples)
  local s, deadline = 0, os.time() + 200
  repeat
    for i = 1, 1e5 do s = s + i %% 3 end
    assert(os.time() < deadline, "too few samples in time")
  until misc.sysprof.report().samples >= samples
end
function in_child() work(30) end
function told(name)
  local file = assert(io.open(HERE .. "/" .. name .. ".tmp", "w"))
  file:write(ffi.C.getpid())
  file:close()
  assert(os.rename(HERE .. "/" .. name .. ".tmp", HERE .. "/" .. name))
end
function forked(child)
  io.stdout:flush()
  local pid = ffi.C.fork()
  if pid == 0 then
    child()
    os.exit(7)
  end
  local status = ffi.new("int[1]")
  while ffi.C.waitpid(pid, status, 0) < 0 do assert(ffi.errno() == 4) end
  assert(status[0] == 7 * 256, "status of the child: " .. status[0])
  return pid
end
]]

local _, here = t.shell("pwd")
here = here:gsub("\n", "")

-- Runs a program. Waits for the process numbers of its children, and returns them.
local function run(what, fork, code, names)
  for _, name in ipairs(names) do os.remove(name) end
  t.write_file("program.lua", HEAD:format(tostring(fork), here) .. code)
  local status, _, err = t.shell(("'%s' program.lua"):format(t.luajit))
  t.equal(status, 0, what .. ": " .. err)
  local pids = {}
  for i, name in ipairs(names) do
    local deadline = os.time() + 200
    local file
    repeat
      file = io.open(name)
      if not file then t.nap(50) end
    until file or os.time() > deadline
    t.ok(file, what .. ": " .. name .. " has ended")
    pids[i] = file and file:read("*a") or "none"
    if file then file:close() end
  end
  return unpack(pids)
end

-- The profile at a path: its reader's status, and its number of samples.
local function read(path)
  local status, out = t.shell(parse .. path)
  local sum = 0
  for n in out:gmatch(" (%d+)\n") do sum = sum + n end
  return status, sum, out
end

local function exists(path)
  local file = io.open(path)
  if file then file:close() end
  return file ~= nil
end

-- fork().
local PLAIN = [[
start("plain.bin")
work(30)
forked(function()
  local ok, message = misc.sysprof.stop()
  assert(ok == nil and message == "profiler is not running")
  local s = 0
  for i = 1, 1e7 do s = s + i % 3 end
  told("child")
end)
work(60)
assert(misc.sysprof.stop())
]]
local pid = run("not profiled", false, PLAIN, { "child" })
local status, samples = read("plain.bin")
t.equal(status, 0, "the parent's profile is whole")
t.ok(samples >= 60, "the parent's samples")
t.ok(not exists("plain.bin." .. pid), "the child has no file")

pid = run("profiled", true, [[
start("parent.bin")
work(30)
forked(function()
  work(30)
  forked(function() work(30) told("grandchild") end)
  work(60)
  assert(misc.sysprof.stop())
  told("child")
end)
work(60)
assert(misc.sysprof.stop())
]], { "child", "grandchild" })
local child = t.read_file("child")
local grandchild = t.read_file("grandchild")
status, samples = read("parent.bin")
t.equal(status, 0, "the parent's profile is whole")
t.ok(samples >= 60, "the parent's samples")
status, samples = read("parent.bin." .. child)
t.equal(status, 0, "the child's profile is whole")
t.ok(samples >= 60, "the child's samples")
-- Ends by exit. The name extends the name of its own parent.
local path = "parent.bin." .. grandchild
if not exists(path) then path = "parent.bin." .. child .. "." .. grandchild end
status, samples = read(path)
t.equal(status, 0, "the grandchild's profile is whole")
t.ok(samples >= 30, "the grandchild's samples")

-- Counters only, without a file.
run("counters", true, [[
assert(misc.sysprof.start({ mode = "D", interval = 1, clock = "wall-signal", fork = true }))
work(30)
forked(function()
  assert(misc.sysprof.report().samples < 30)
  work(30)
  assert(misc.sysprof.stop())
  told("child")
end)
assert(misc.sysprof.stop())
]], { "child" })

-- daemon(3) changes the folder, too; the file stays where it was to be.
pid = run("daemon", true, [[
start("daemon.bin")
work(30)
assert(ffi.C.daemon(0, 0) == 0)
work(30)
assert(misc.sysprof.stop())
told("daemon")
]], { "daemon" })
status, samples = read("daemon.bin." .. pid)
t.equal(status, 0, "the daemon's profile is whole")
t.ok(samples >= 30, "the daemon's samples")
status = read("daemon.bin")
t.equal(status, 3, "what the first process had written, which ended by _exit")

pid = run("daemon, not profiled", false, [[
start("daemon.bin")
work(30)
assert(ffi.C.daemon(0, 0) == 0)
local s = 0
for i = 1, 1e7 do s = s + i % 3 end
assert(select(2, misc.sysprof.stop()) == "profiler is not running")
start(HERE .. "/later.bin")
work(30)
told("daemon")
]], { "daemon" })
t.ok(not exists("daemon.bin." .. pid), "no file of the daemon")
local deadline = os.time() + 200
repeat  -- It writes its number before it ends.
  status, samples = read("later.bin")
until status == 0 or os.time() > deadline
t.equal(status, 0, "a daemon that starts a profile itself")
t.ok(samples >= 30, "its samples")

-- The file of a child cannot be made: it goes on unprofiled.
run("no file for the child", true, [[
ffi.cdef "int chmod(const char *, unsigned); unsigned geteuid(void); int rmdir(const char *);"
os.execute("rm -rf gone && mkdir gone")
start("gone/away.bin")
os.execute("rm -rf gone")
work(30)
forked(function()
  assert(select(2, misc.sysprof.stop()) == "profiler is not running")
  told("child")
end)
work(60)
local ok, message, err = misc.sysprof.stop()	-- It is gone.
assert(ok == nil and err == 2 and message:find("^gone/away.bin: "))
]], { "child" })
t.finish()
