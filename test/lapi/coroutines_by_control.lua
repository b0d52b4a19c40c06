-- LUAJIT_SYSPROF: the word "coroutines" of a control file, and the signal of the option
-- coroutines, write where all coroutines are. Control reaches compiled loops that call
-- functions which are not compiled.
-- TIMEOUT: 900

local t = require("tools_test")
local box = require("box")
local ffi = require("ffi")
ffi.cdef("unsigned geteuid(void); int kill(int, int);")

local SIGUSR1, SIGUSR2 = 10, 12

local fresh, exists, contents, put, wait = box.fresh, box.exists, box.contents, box.put, box.wait

local function files() return box.files("-A") end
local function kill(pid, signo) t.equal(ffi.C.kill(pid, signo), 0, "kill") end

local _, here = t.shell("pwd")
here = here:gsub("\n", "")

local HEAD = [[
local ffi = require("ffi")
local C = ffi.C
ffi.cdef "int getpid(void); int kill(int, int); int access(const char *, int); int fork(void);\
int waitpid(int, int *, int); int usleep(unsigned);"
pid = C.getpid()
function is_there(name) return C.access(name, 0) == 0 end
function say_pid()
  local file = io.open("pid.tmp", "w")
  file:write(pid)
  file:close()
  os.rename("pid.tmp", "pid")
end
kept = {}
function idle_one() while true do coroutine.yield() end end
for i = 1, 3 do
  kept[i] = coroutine.create(idle_one)
  coroutine.resume(kept[i])
end
]]

local function run(value, code, options) return box.run(value, HEAD .. code, options) end

-- Checks the text of a dump.
local function check(text, what, ...)
  t.ok(text:find("^%d+ coroutines? of process %d+: 1 running"), what .. ": " .. text)
  for _, part in ipairs { "3 suspended\n    coroutine.yield\n    idle_one (../box.lua:14)\n", ... } do
    t.contains(text, part, what)
  end
end

-- Waits for a dump, which the program writes in several steps.
local function wait_dump(path, what)
  wait(what, function() return exists(path) and contents(path):find("idle_one", 1, true) end)
  return contents(path)
end

-- -- By a signal of the program itself -------------------------------------

fresh()
local status, out, err = run("coroutines=SIGUSR1,paused,path=x%r.bin", [[
local function here() C.kill(pid, 10) return 1 end
here()
coroutine.wrap(function() here() end)()
assert(is_there("x1.bin.coroutines") and is_there("x2.bin.coroutines"))
io.write(pid)
]])
t.equal(status .. err, "0", "its own signal")
t.equal(files(), "x1.bin.coroutines\nx2.bin.coroutines\n", "its own signal: files, and no profile")
check(contents("x1.bin.coroutines"), "main thread", "4 coroutines of process " .. out, "\n1 running\n    ", "main chunk (../box.lua:")
check(contents("x2.bin.coroutines"), "coroutine", "5 coroutines of process ", "1 normal\n    coroutine.wrap.iterator\n    main chunk")
t.equal(select(2, t.shell("stat -c %a box/x1.bin.coroutines")), "600\n", "mode of the file")

-- With a profile: both write their own files, with numbers of their own.
fresh()
status, out, err = run("coroutines=SIGUSR1,control=SIGUSR2,hz=1000,path=x%r.bin", [[
C.kill(pid, 10) C.kill(pid, 12) C.kill(pid, 12) C.kill(pid, 10) C.kill(pid, 10)
]])
t.equal(status .. err, "0", "with control")
t.equal(files(), "x1.bin\nx1.bin.coroutines\nx2.bin\nx2.bin.coroutines\nx3.bin.coroutines\n", "with control: files")

-- The default name; no file for a profile in the mode D.
fresh()
status, out, err = run("coroutines=SIGRTMIN+2,paused", "io.write(pid) C.kill(pid, 36)")
t.equal(status .. err, "0", "the default name")
t.equal(files(), ("sysprof.%s.1.1.bin.coroutines\n"):format(out), "the default name")
fresh()
status, out, err = run("coroutines=SIGUSR1,mode=D", "io.write(pid) C.kill(pid, 10) assert(misc.sysprof.stop())")
t.equal(status .. err, "0", "the name in the mode D")
t.equal(files(), ("sysprof.%s.1.1.bin.coroutines\n"):format(out), "the name in the mode D")

-- Files that exist are not touched.
fresh()
put("x1.bin.coroutines", "precious")
t.shell("cd box && mkdir x2.bin.coroutines && ln -s nowhere x3.bin.coroutines && : >x4.bin.coroutines && mkfifo x5.bin.coroutines")
status, out, err = run("coroutines=SIGUSR1,paused,path=x%r.bin", "C.kill(pid, 10) io.write(5)")
t.equal(status .. out, "05", "taken names")
t.equal(contents("x1.bin.coroutines"), "precious", "a taken name")
t.ok(not exists("nowhere"), "a link to nowhere")
t.equal(select(2, t.shell("stat -c %s box/x4.bin.coroutines")), "0\n", "an empty file")
t.equal(files():gsub("\n", " "), ("x1.bin x2.bin x3.bin x4.bin x5.bin x6.bin ")
	:gsub("bin", "bin.coroutines"), "taken names: files")
t.equal(err, "", "taken names: message")
check(contents("x6.bin.coroutines"), "taken names")

-- -- Failures --------------------------------------------------------------

-- Each is one sentence, leaves no file, and the program goes on.
local function fails(value, code, what, ...)
  local status, out, err = run(value, code .. "\nio.write(5)")
  t.equal(status .. out, "05", what .. ": the program")
  t.equal(select(2, err:gsub("\n", "")), 1, what .. ": one sentence, not " .. err)
  t.equal(err:find("LUAJIT_SYSPROF: dump of the coroutines of VM 1: ", 1, true), 1, what .. ": " .. err)
  for _, part in ipairs { ... } do t.contains(err, part, what) end
  t.equal(box.files("*coroutines* */*coroutines*"), "", what .. ": a file is left")
end

fresh()
fails("coroutines=SIGUSR1,paused,path=none/x%r.bin", "C.kill(pid, 10)", "no such folder",
      "none/x1.bin.coroutines: No such file or directory\n")
fresh()
fails("coroutines=SIGUSR1,paused,path=" .. ("long"):rep(62) .. "%r", "C.kill(pid, 10)", "a long name", "File name too long\n")
if ffi.C.geteuid() ~= 0 then
  fresh()
  t.shell("mkdir box/closed && chmod 500 box/closed")
  fails("coroutines=SIGUSR1,paused,path=closed/x%r.bin", "C.kill(pid, 10)", "a closed folder", "Permission denied\n")
  t.shell("chmod 700 box/closed")
elseif t.shell("which setpriv") == 0 then
  -- Root may write anywhere, the user nobody may not.
  fresh()
  t.write_file("box.lua", HEAD .. "C.kill(pid, 10) io.write(5)")
  t.shell("mkdir -m 755 box/closed")
  local _, out, err = t.shell(("cd box && LUAJIT_SYSPROF='coroutines=SIGUSR1,paused,path=closed/x%%r.bin' " ..
    "setpriv --reuid=65534 --regid=65534 --clear-groups '%s' - <../box.lua"):format(t.luajit))
  if out == "5" then
    t.contains(err, "closed/x1.bin.coroutines: Permission denied\n", "a closed folder")
    t.equal(select(2, err:gsub("\n", "")), 1, "a closed folder: one sentence")
    t.equal(box.files("closed"), "", "a closed folder: no file")
  else
    print("skipped: the user nobody cannot run the program: " .. err)
  end
end

-- A disk without room, and a file that may not grow. SIGXFSZ would end the program. The second
-- dump has room again.
local MANY = [[
local code = {}
for i = 1, 3000 do
  kept[i] = coroutine.create(loadstring("coroutine.yield()", "=" .. ("long name "):rep(20) .. i))
  coroutine.resume(kept[i])
end
C.kill(pid, 10)
]]
fresh()
fails("coroutines=SIGUSR1,paused,path=x%r.bin", [[
ffi.cdef "struct rlimit { unsigned long cur, max; }; int setrlimit(int, const void *);"
C.setrlimit(1, ffi.new("struct rlimit", 8192, 2^63))
]] .. MANY, "a file that may not grow", "x1.bin.coroutines: File too large\n")
t.shell("! mountpoint -q full || umount full; rm -rf full")
if t.shell("mkdir full && mount -t tmpfs -o size=64k tmpfs full") == 0 then
  fresh()
  fails("coroutines=SIGUSR1,paused,path=" .. here .. "/full/x%r.bin", MANY, "a full disk",
	"full/x1.bin.coroutines: No space left on device\n")
  local _, left = t.shell("ls full")
  t.equal(left, "", "a full disk: no file")
  t.equal(t.shell("umount full"), 0, "umount")
else
  print("skipped: not root, so no full disk")
end
t.shell("rmdir full")

-- Calls that fail, see test/lib/hosts/fail_call.c.
local function fault(call, errno)
  t.write_file("box.lua", HEAD .. "C.kill(pid, 10) io.write(5)")
  return t.shell(("cd box && FAULT='%s %d' FAULT_LOG=../log LUAJIT_SYSPROF='coroutines=SIGUSR1,paused,path=x%%r.bin' " ..
    "'%s/test/faulty_luajit' ../box.lua"):format(call, errno, os.getenv("SYSPROF_BUILD")))
end
for _, case in ipairs {
  { "open_memstream 1", 12, "Cannot allocate memory" }, { "calloc 1+", 12, "Cannot allocate memory" },
  { "realloc 1+", 12, "Cannot allocate memory" }, { "write 1", 28, "No space left on device" },
  { "write 1", 5, "Input/output error" }, { "close 1+", 5, "Input/output error" },
} do
  local what = case[1] .. " " .. case[2]
  fresh()
  local status, out, err = fault(case[1], case[2])
  t.equal(status .. out, "05", what .. ": the program")
  t.equal(err, "LUAJIT_SYSPROF: dump of the coroutines of VM 1: x1.bin.coroutines: " .. case[3] .. "\n", what)
  t.equal(box.files("*coroutines*"), "", what .. ": a file is left")
end

-- -- Wrong values ----------------------------------------------------------

local wrong = box.refuses
fresh()
for _, value in ipairs { "coroutines=SIGKILL", "coroutines=SIGPROF", "coroutines=SIGURG", "coroutines=USR1",
			 "coroutines=/a/file", "coroutines=12", "coroutines=true" } do
  wrong(value, "'" .. value .. "' has a wrong value; expected ")
end
wrong("coroutines", "'coroutines' has no value; expected ")
wrong("coroutines=SIGUSR2,control=SIGUSR2", "both use the same signal; choose another one for coroutines")
wrong("coroutines=SIGUSR2,control=SIGUSR2,paused", "both use the same signal")
wrong("coroutines=SIGUSR2,signal=SIGUSR2", "the clocks use the same signal; choose another one for signal")
wrong("paused", "'paused' needs control")
wrong("coroutines=SIGUSR1,path=x%q", "'path=x%q' has a '%'")

-- The program has a handler when the VM is created.
fresh()
t.write_file("handler.c", [[
#include <signal.h>
#include <unistd.h>
static void handler(int signo) { (void)signo; }
__attribute__((constructor)) static void init(void) { signal(SIGUSR1, handler); }
]])
if t.shell("cc $CFLAGS -shared -fPIC -o handler.so handler.c") == 0 then
  for _, value in ipairs { "coroutines=SIGUSR1,paused", "coroutines=SIGUSR1,control=SIGUSR2,paused" } do
    t.write_file("box.lua", HEAD .. "C.kill(pid, 10) io.write(5)")
    local status, out, err = t.shell(("cd box && LD_PRELOAD=%s/handler.so LUAJIT_SYSPROF='%s' '%s' ../box.lua")
				     :format(here, value, t.luajit))
    t.equal(status .. out, "05", value .. " beside a handler")
    t.contains(err, "the program has a handler for this signal; choose another signal such as SIGRTMIN+3", value)
    t.equal(select(2, err:gsub("\n", "")), 1, value .. " beside a handler: one sentence, not " .. err)
    t.equal(files(), "", value .. " beside a handler: no file")
  end
else
  print("skipped: a program with a handler, no compiler")
end

-- -- Children --------------------------------------------------------------

local FORK = [[
C.kill(pid, 10)
io.stdout:flush()
local child = C.fork()
if child == 0 then
  pid = C.getpid()
  C.kill(pid, 10)
  C.kill(pid, 10)
  os.exit(7)
end
local status = ffi.new("int[1]")
while C.waitpid(child, status, 0) < 0 do end
C.kill(pid, 10)
io.write(child, " ", status[0])
]]
fresh()
status, out, err = run("coroutines=SIGUSR1,paused,fork,path=x%r.bin", FORK)
t.equal(status .. err, "0", "a child")
local child, code = out:match("(%d+) (%d+)")
t.equal(code, "1792", "a child: its status")
-- The numbers go on in the child, as those of its profiles do.
t.equal(files(), ("x1.bin.coroutines\nx2.bin.%s.coroutines\nx2.bin.coroutines\nx3.bin.%s.coroutines\n"):format(child, child),
	"a child: files")
check(contents("x2.bin." .. child .. ".coroutines"), "a child", "4 coroutines of process " .. child .. ":")
fresh()
status, out, err = run("coroutines=SIGUSR1,paused,path=x%r.bin", FORK)
t.equal(status .. err, "0", "a child without the option")
t.equal(out:match(" (%d+)"), tostring(SIGUSR1), "a child without the option: the signal is its own")
t.equal(files(), "x1.bin.coroutines\nx2.bin.coroutines\n", "a child without the option: files")

-- -- Compiled loops that call functions which are not compiled --------------

-- Says its number when the loop is compiled.
local COMPILED = HEAD .. [[
jit.opt.start("hotloop=5")
jit.attach(function(what)
  if what == "stop" and not said then said = true say_pid() end
end, "trace")
]]

-- They call by stitching, until there is a file "end".
local LOOPS = {
  resume = [[
while not is_there("end") do
  C.usleep(100)
  coroutine.resume(kept[1])
end]],
  time = [[
local till = os.time() + 900
while os.time() < till and not is_there("end") do C.usleep(100) end]],
  c_function = [[
local report = misc.sysprof.report
while not is_there("end") do report() end]],
}
for name, loop in pairs(LOOPS) do
  local control = here .. "/box/control"
  fresh()
  box.start("control=" .. control .. ",coroutines=SIGUSR1,paused,hz=500,path=r%r.bin", COMPILED .. loop)
  local pid = tonumber(wait(name .. ": the program", function() return exists("pid") and contents("pid") end))
  kill(pid, SIGUSR1)
  check(wait_dump("r1.bin.coroutines", name .. ": by a signal"), name .. ": by a signal")
  put("control", "coroutines\n")
  check(wait_dump("r2.bin.coroutines", name .. ": by a file"), name .. ": by a file")
  put("control", "start")
  wait(name .. ": start", function() return exists("r1.bin") end)
  put("control", "coroutines please")
  wait_dump("r3.bin.coroutines", name .. ": beside a profile")
  put("control", "stop")
  wait(name .. ": stop", function()
    local file = contents("r1.bin")
    t.write_file("copy.bin", file)
    return t.parse("copy.bin") == 0
  end)
  box.stop(name)
  t.equal(contents("err"), "", name .. ": messages")
  t.equal(box.files("r*"), "r1.bin\nr1.bin.coroutines\nr2.bin.coroutines\nr3.bin.coroutines\n", name .. ": files")

  -- Start and stop by a signal.
  fresh()
  box.start("control=SIGUSR2,paused,hz=500,path=r%r.bin", COMPILED .. loop)
  pid = tonumber(wait(name .. ": the program", function() return exists("pid") and contents("pid") end))
  kill(pid, SIGUSR2)
  wait(name .. ": start by a signal", function() return exists("r1.bin") end)
  kill(pid, SIGUSR2)
  wait(name .. ": stop by a signal", function()
    t.write_file("copy.bin", contents("r1.bin"))
    return t.parse("copy.bin") == 0
  end)
  box.stop(name)
  t.equal(contents("err"), "", name .. ": messages of a signal")
end
t.finish()
