-- LUAJIT_SYSPROF=control=...: a signal or a file starts, stops and dumps profiles of a
-- running program. Each run has its own file.
-- BASE: none, files, sockets, signals, processes; the VM runs a loop, or none
-- WAITS: half of its time

local t = require("tools_test")
package.path = t.source .. "/tools/?.lua;" .. package.path
local box = require("box")
local reader = require("sysprof.read.reader")
local ffi = require("ffi")
ffi.cdef("unsigned geteuid(void); int kill(int, int);")

local SIGUSR2 = 12

local fresh, exists, contents, put, wait = box.fresh, box.exists, box.contents, box.put, box.wait

local function files() return box.files("*.bin*") end

local function parse(path)
  local p, err = reader.parse_string(t.read_file("box/" .. path))
  return p or error(path .. ": " .. err)
end

local _, here = t.shell("pwd")
here = here:gsub("\n", "")

local HEAD = [[
local ffi = require("ffi")
local C = ffi.C
ffi.cdef "int getpid(void); int kill(int, int); int access(const char *, int); int fork(void);\
int waitpid(int, int *, int); int poll(void *, unsigned long, int);"
pid = C.getpid()
function signal() C.kill(pid, 12) end
function running() return not misc.sysprof.start { mode = "D", interval = 0 / 0 } and
			  misc.sysprof.report().sessions > 0 end
function samples() return misc.sysprof.report().samples end
function work(n)
  local s, deadline = 0, os.time() + 200
  repeat
    for i = 1, 1e4 do s = s + #tostring(i) end
    assert(os.time() < deadline, "too few samples in time")
  until samples() >= n
end
function is_there(name) return C.access(name, 0) == 0 end
]]

local function run(value, code) return box.run(value, HEAD .. code) end

-- -- By a signal: the program sends it to itself ---------------------------

-- Three rounds. Each profile is complete at its stop.
fresh()
local status, out, err = run("control=SIGUSR2,paused,hz=1000,clock=wall-signal", [[
function first() work(20) end
function second() work(20) end
function third() work(20) end
io.write(pid, "\n")
assert(select(2, misc.sysprof.stop()) == "profiler is not running")
assert(samples() == 0 and not is_there("sysprof." .. pid .. ".1.1.bin"))
for i, f in ipairs { first, second, third } do
  signal()
  f()
  signal()
  assert(select(2, misc.sysprof.stop()) == "profiler is not running")
  assert(is_there(("sysprof.%d.1.%d.bin"):format(pid, i)))
end
]])
t.equal(status .. err, "0", "three rounds")
local pid = out:match("%d+")
for i, name in ipairs { "first", "second", "third" } do
  local path = ("sysprof.%s.1.%d.bin"):format(pid, i)
  local p = parse(path)
  t.ok(p.complete, path .. ": complete")
  local _, folded = t.parse("box/" .. path)
  for _, other in ipairs { "first", "second", "third" } do
    t.equal(folded:find(other .. " (", 1, true) ~= nil, other == name, path .. ": " .. other)
  end
  local _, mode = t.shell("stat -c %a box/" .. path)
  t.equal(mode, "600\n", path .. ": mode")
end
t.equal(select(2, files():gsub("\n", "")), 3, "three rounds: files")

-- Not paused: the signal stops; the end of the process completes.
fresh()
status, out, err = run("control=SIGUSR2,hz=1000,clock=wall-signal,path=x-%r.bin",
		       "work(5) signal() signal() work(5) signal() signal()")
t.equal(status .. err, "0", "not paused")
t.equal(files(), "x-1.bin\nx-2.bin\nx-3.bin\n", "not paused: files")
for i = 1, 3 do t.ok(parse(("x-%d.bin"):format(i)).complete, "not paused: complete") end

-- A path without the number of the run gets it at its end.
fresh()
run("control=SIGUSR1,path=x.bin", "C.kill(pid, 10) C.kill(pid, 10)")
t.equal(files(), "x.bin.1\nx.bin.2\n", "another signal, a number at the end")
fresh()
run("path=x-%r.bin", "")
t.equal(files(), "x-1.bin\n", "a run without control")

-- Compiled code is left first, a call of C returns first; also in a coroutine, and
-- while the collector runs a finalizer.
fresh()
status, out, err = run("control=SIGUSR2,paused", [[
local function stopped() return misc.sysprof.stop() == true end
local signals = ffi.new("int[100001]")
signals[90000] = 12
for i = 1, 100000 do C.kill(pid, signals[i]) end
assert(stopped(), "a compiled loop")
local co = coroutine.wrap(function() signal() coroutine.yield(1) end)
co()
assert(stopped(), "a coroutine")
assert(pcall(function() signal() end))
assert(stopped(), "a protected call")
table.sort({ 3, 1, 2 }, function(a, b) if b == 1 then signal() end return a < b end)
while misc.sysprof.stop() do end
do
  local p = newproxy(true)
  getmetatable(p).__gc = function() signal() end
end
collectgarbage()
assert(stopped(), "a finalizer")
debug.sethook(function() end, "l")
signal()
local x = 1
assert(stopped(), "beside a hook")
debug.sethook()
jit.off()
signal()
assert(stopped(), "interpreted")
]])
t.equal(status .. err, "0", "where it is served")

-- A waiting process gets commands from outside.
local function start_program(value, code) box.start(value, HEAD .. code) end

-- Says its number, then works until there is a file "end". Compiled code might never
-- be left.
local LOOP = [[
jit.off()
local file = io.open("pid.tmp", "w")
file:write(pid)
file:close()
os.rename("pid.tmp", "pid")
local s, deadline = 0, os.time() + 900
while not is_there("end") and os.time() < deadline do
  for i = 1, 1e4 do s = s + #tostring(i) end
end
]]
fresh()
start_program("control=SIGUSR2,paused,hz=500,clock=wall-signal,path=r%r.bin", LOOP)
pid = tonumber(wait("the program", function() return exists("pid") and contents("pid") end))
for i = 1, 3 do
  ffi.C.kill(pid, SIGUSR2)
  wait("round " .. i, function() return exists(("r%d.bin"):format(i)) end)
  ffi.C.kill(pid, SIGUSR2)
  wait("round " .. i .. ": its end", function()
    local p = reader.parse_string(contents(("r%d.bin"):format(i)))
    return p and p.complete
  end)
end
box.stop("by a signal")
t.equal(contents("err"), "", "by a signal: no message")
t.equal(files(), "r1.bin\nr2.bin\nr3.bin\n", "by a signal: files")

-- -- By a file -------------------------------------------------------------

-- Number of samples in a file so far, and whether it is complete.
local function count(path)
  local p = exists(path) and reader.parse_string(contents(path))
  return p and p:totals() or -1, p and p.complete and not p.goes_on
end

-- Wrong words, and files that another user could have written.
local function refused()
  put("control", "begin")
  wait("an unknown word", function() return contents("err"):find("the first word is unknown", 1, true) end)
  t.shell("cd box && echo stop >c && chmod 622 c && mv c control")
  wait("everybody's", function() return contents("err"):find("other users may write the file", 1, true) end)
  t.shell("cd box && rm control && mkfifo control")
  wait("a FIFO", function() return contents("err"):find("not a regular file", 1, true) end)
  t.shell("cd box && rm control && echo stop >c && ln c control")
  wait("two names", function() return contents("err"):find("the file has a second name", 1, true) end)
  if ffi.C.geteuid() == 0 and t.shell("cd box && : >d && chown 65534 d") == 0 then
    t.shell("cd box && rm control && echo stop >d && mv d control")
    wait("another user's", function() return contents("err"):find("another user owns the file", 1, true) end)
  else
    print("skipped: a control file of another user")
  end
end

for _, mode in ipairs { "threads=own", "threads=all", "threads=own,flush=thread" } do
  fresh()
  start_program(mode .. ",control=" .. here .. "/box/control,paused,hz=500,clock=wall-signal,path=r%r.bin", LOOP)
  wait("the program", function() return exists("pid") end)
  put("control", "start\n")
  wait("start", function() return exists("r1.bin") end)
  -- A dump can be read, with names, while the program goes on; samples follow.
  local before = 0
  for i = 1, 2 do
    wait("samples before dump " .. i, function()
      local size = #contents("r1.bin")
      put("control", "dump")
      wait("dump " .. i, function() return #contents("r1.bin") > size end)
      return count("r1.bin") > before
    end)
    local n, has_ended = count("r1.bin")
    t.ok(n > before and not has_ended, mode .. ": dump " .. i)
    local code, folded = t.parse("box/r1.bin")
    -- The background thread may have written more since the dump, and on a slow machine the VM, too.
    for _ = 1, mode == "threads=own" and 20 or 0 do
      if code ~= 3 then break end
      local size = #contents("r1.bin")
      put("control", "dump")
      wait("another dump", function() return #contents("r1.bin") > size end)
      code, folded = t.parse("box/r1.bin")
    end
    t.ok(code == 0 or mode ~= "threads=own" and code == 3, mode .. ": a dump is whole")
    t.contains(folded, "main chunk (../box.lua)", mode .. ": names in a dump")
    t.contains(folded, "lua_pcall", mode .. ": names of C in a dump")
    before = n
  end
  put("control", "stop please")
  wait("stop", function() return select(2, count("r1.bin")) end)
  t.ok(count("r1.bin") >= before, mode .. ": samples after the dumps")
  -- Touched: the other state.
  put("control", "")
  wait("touch", function() return exists("r2.bin") end)
  t.shell("touch box/control")
  wait("touch again", function() return select(2, count("r2.bin")) end)
  put("control", "toggle")
  wait("toggle", function() return exists("r3.bin") end)
  if mode == "threads=own" then refused() end
  t.ok(not select(2, count("r3.bin")), mode .. ": what was refused has stopped nothing")
  for line in contents("err"):gmatch("[^\n]+") do
    t.equal(line:find("LUAJIT_SYSPROF: control file '" .. here:gsub("%p", "%%%0") .. "/box/control': "), 1,
	    mode .. ": says " .. line)
  end
  box.stop(mode)
  for i = 1, 3 do t.ok(select(2, count(("r%d.bin"):format(i))), mode .. ": complete at the end") end
end

-- A link that another user has put on the path of the file.
if ffi.C.geteuid() == 0 and t.shell("rm -rf theirs && mkdir theirs && ln -s ../box theirs/link && "
				    .. "chown -h 65534 theirs theirs/link") == 0 then
  fresh()
  start_program("control=" .. here .. "/theirs/link/control,paused,path=r%r.bin", LOOP)
  wait("the program", function() return exists("pid") end)
  put("control", "start")
  wait("another user's link", function()
    return contents("err"):find("another user owns a symbolic link of the path", 1, true)
  end)
  box.stop("another user's link")
  t.ok(not exists("r1.bin"), "another user's link: nothing is started")
else
  print("another user's link to a control file not tested")
end

-- -- Children --------------------------------------------------------------

local FORK = [[
signal()
io.stdout:flush()
local child = C.fork()
if child == 0 then
  pid = C.getpid()
  signal()
  signal()
  os.exit(7)
end
local status = ffi.new("int[1]")
while C.waitpid(child, status, 0) < 0 do end
io.write(child, " ", status[0])
]]
fresh()
status, out, err = run("control=SIGUSR2,paused,fork,path=x%r.bin", FORK)
t.equal(status .. err, "0", "a child")
local child, code = out:match("(%d+) (%d+)")
t.equal(code, "1792", "a child: its status")
t.equal(files(), ("x1.bin\nx1.bin.%s\nx2.bin.%s\n"):format(child, child), "a child: files")
fresh()
status, out, err = run("control=SIGUSR2,paused,path=x%r.bin", FORK)
t.equal(status .. err, "0", "a child without the option")
t.equal(out:match(" (%d+)"), tostring(SIGUSR2), "a child without the option: the signal is its own")
t.equal(files(), "x1.bin\n", "a child without the option: files")

-- Without a file, the message has no path.
fresh()
status, out, err = run("control=SIGUSR2,paused,mode=D", [[
require("jit.profile").start("i10", function() end)
signal()
for i = 1, 1e6 do tostring(i) end
]])
t.equal(status .. err, "0LUAJIT_SYSPROF: start of run 1 of VM 1: profiler is running already\n",
	"mode=D: message")

-- A child goes on counting, as one with a file goes on writing.
for _, how in ipairs { "", "control=SIGUSR2," } do
  fresh()
  status, out, err = run(how .. "fork,mode=D", [[
local child = C.fork()
if child == 0 then os.exit(misc.sysprof.stop() and 7 or 8) end
local status = ffi.new("int[1]")
while C.waitpid(child, status, 0) < 0 do end
io.write(status[0] / 256)
]])
  t.equal(status .. err .. out, "07", how .. "mode=D: the child counts")
  t.equal(files(), "", how .. "mode=D: no file")
end

-- Each process has a control file of its own, by its number.
fresh()
status, out, err = run("control=" .. here .. "/box/c.%p,paused,fork,path=x%r.bin", [[
io.stdout:flush()
local child = C.fork()
if child ~= 0 then
  local status = ffi.new("int[1]")
  while C.waitpid(child, status, 0) < 0 do end
  io.write(child, " ", status[0])
  os.exit(0)
end
jit.off()
pid = C.getpid()
local function tell(word, until_it)
  local file = assert(io.open("c.new", "w"))
  file:write(word)
  file:close()
  assert(os.rename("c.new", "c." .. pid))
  local deadline = os.time() + 200
  repeat
    for i = 1, 1e4 do tostring(i) end
    if os.time() > deadline then os.exit(8) end
  until until_it()
end
tell("start", function() return is_there("x1.bin." .. pid) end)
os.exit(7)
]])
t.equal(status .. err, "0", "a child with a control file of its own")
child, code = out:match("(%d+) (%d+)")
t.equal(code, "1792", "a child with a control file of its own: its status")
t.equal(files(), ("x1.bin.%s\n"):format(child), "a child with a control file of its own: files")
t.ok(parse("x1.bin." .. child).complete, "a child with a control file of its own: complete")

-- -- Wrong values ----------------------------------------------------------

local wrong = box.refuses
fresh()
for _, value in ipairs { "control=SIGKILL", "control=SIGPROF", "control=SIGURG", "control=SIGSEGV",
			 "control=USR2", "control=file", "control=./file", "control=12", "paused=1" } do
  wrong(value, "'" .. value .. "' has a wrong value; expected ")
end
wrong("control", "'control' has no value; expected the absolute path of a file, or a signal such as SIGUSR2")
wrong("paused", "'paused' needs control")
wrong("control=/x%r", "'control=/x%r' has a '%'")
wrong("control=/x%q,paused", "'control=/x%q' has a '%'")
wrong("control=SIGUSR2,signal=SIGUSR2", "the clocks use the same signal")
wrong("control=SIGUSR2,paused,clock=sun", "'sun' is not a clock")
wrong("control=SIGUSR2,paused,signal=SIGKILL", "signal 9 is not allowed for the clocks")
t.shell("cd box && echo >all && chmod 666 all && mkfifo fifo && ln -s all link")
wrong("control=" .. here .. "/box/all,paused", "box/all: other users may write the file")
wrong("control=" .. here .. "/box/fifo", "box/fifo: not a regular file")
wrong("control=" .. here .. "/box/link", "box/link: not a regular file")

-- A run that cannot begin is reported, and the program goes on.
fresh()
status, out, err = run("control=SIGUSR2,paused,path=none/x%r.bin", "signal() signal() io.write(5)")
t.equal(status .. out, "05", "no such folder")
t.contains(err, "LUAJIT_SYSPROF: start of run 1 of VM 1: none/x1.bin: No such file", "no such folder")
t.contains(err, "LUAJIT_SYSPROF: start of run 2 of VM 1: none/x2.bin: No such file", "no such folder")
t.finish()
