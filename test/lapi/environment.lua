-- LUAJIT_SYSPROF: a profile of an unchanged program.
-- BASE: none, files, sockets, signals, processes; the VM runs a loop, or none

local t = require("tools_test")
package.path = t.source .. "/tools/?.lua;" .. package.path
local box = require("box")
local reader = require("sysprof.read.reader")
local ffi = require("ffi")
ffi.cdef("unsigned geteuid(void); int getpid(void);")

-- Every piece begins in an empty folder.
local fresh, files = box.fresh, box.files

-- The program: says its process number, then runs some code.
local HEAD = [[
local ffi = require("ffi")
ffi.cdef "int getpid(void);"
io.write(ffi.C.getpid(), "\n")
function work(samples)
  local s, deadline = 0, os.time() + 200
  repeat
    for i = 1, 1e5 do s = s + i % 3 end
    assert(os.time() < deadline, "too few samples in time")
  until misc.sysprof.report().samples >= samples
end
]]

-- Runs code under a value of the variable. Returns status, process number, the rest
-- of the output, and standard error.
local function run(value, code, options)
  local status, out, err = box.run(value, HEAD .. code, options)
  local pid, rest = out:match("^(%d+)\n(.*)$")
  return status, pid, rest, err
end

local function parse(path)
  local p, err = reader.parse_string(t.read_file("box/" .. path))
  t.ok(p and p.complete, path .. " is whole: " .. tostring(err))
  return p
end

-- -- Defaults --------------------------------------------------------------

for _, code in ipairs { "work(3)", "work(3) os.exit(0)", "work(3) misc.sysprof.stop()" } do
  fresh()
  local status, pid, out, err = run("on", code .. " print('out')")
  t.equal(status, 0, code)
  t.equal(err, "", code .. ": no message")
  if not code:find("exit") then t.equal(out, "out\n", code) end
  local path = ("sysprof.%s.1.bin"):format(pid)
  t.equal(files(), path .. "\n", code .. ": its file")
  local p = parse(path)
  t.equal(p.meta.mode, "callgraph", code .. ": mode")
  t.equal(p.meta.clock, "cpu", code .. ": clock")
  t.equal(p.meta.interval_ns, "10000000", code .. ": interval")
  t.equal(p.meta.pid, pid, code .. ": process")
  local _, mode = t.shell("stat -c %a box/" .. path)
  t.equal(mode, "600\n", code .. ": only its owner may read it")
end

-- Words for on and off.
for _, value in ipairs { "on", "ON", "1", "true", "True", "yes", " on", "1,", "true,hz=100" } do
  fresh()
  local status, pid, out, err = run(value, "print(misc.sysprof.stop())")
  t.equal(status .. out .. err, "0true\n", value .. ": on")
  t.equal(files(), ("sysprof.%s.1.bin\n"):format(pid), value .. ": its file")
end
for _, value in ipairs { "", " ", "off", "OFF", "0", "false", "FALSE", "no", " off" } do
  fresh()
  local status, _, out, err = run(value, "print(misc.sysprof.stop())")
  t.equal(status, 0, "off")
  t.equal(err, "", "off: no message")
  t.equal(out, "nil\tprofiler is not running\t22\n", "off: nothing runs")
  t.equal(files(), "", "off: no file")
end
fresh()
local _, _, out = run("on", "print(misc.sysprof.stop())", "-E")
t.equal(out, "nil\tprofiler is not running\t22\n", "luajit -E")
t.equal(files(), "", "luajit -E: no file")

-- -- Options ---------------------------------------------------------------

-- What a profile of x.bin says about itself; code runs in the program.
local function with(value, code)
  fresh()
  local status, pid, printed, err = run(value .. ",path=x.bin", code or "")
  t.equal(status, 0, value .. ": " .. err)
  t.equal(err, "", value .. ": no message")
  return parse("x.bin").meta, printed, pid
end

t.equal(with("hz=200").interval_ns, "5000000", "hz")
t.equal(with("hz=2e2,").interval_ns, "5000000", "hz with an exponent, and a comma more")
t.equal(with("on,hz=200").interval_ns, "5000000", "on and more")
t.equal(with("hz=200, mode=L").mode, "leaf", "a space behind a comma")
t.equal(with("interval=2.5").interval_ns, "2500000", "interval")
t.equal(with("mode=L").mode, "leaf", "mode=L")
t.equal(with("mode=C").mode, "callgraph", "mode=C")
t.equal(with("clock=wall-signal").clock, "wall-signal", "clock")
t.equal(with("clock=wall-signal+cpu/period=5000000/,hz=50").clock, "wall-signal,cpu", "two clocks")
t.equal(with("period=1000").mode, "callgraph", "period, of no use for a clock")
for _, value in ipairs { "jitter", "jitter=true", "jitter=false", "shared", "shared=true",
			 "threads=own", "flush=vm", "flush=thread", "backtracer=own", "force", "follow", "follow=true" } do
  t.equal(with(value).mode, "callgraph", value)
end

local TASKS = [[
local n = 0
for _ in io.popen("ls /proc/" .. ffi.C.getpid() .. "/task"):lines() do n = n + 1 end
io.write(n)
]]
local _, own = with("flush=vm", TASKS)
local _, default = with("threads=own", TASKS)
local _, all = with("threads=all", TASKS)
local _, writes = with("flush=thread", TASKS)
t.equal(tonumber(default), tonumber(own) + 1, "by default a thread writes")
t.equal(tonumber(writes), tonumber(own) + 1, "flush=thread: the thread that writes")
t.equal(tonumber(all), tonumber(own) + 1, "threads=all: the thread that looks for others")

-- The signal has a handler.
local CAUGHT = [[
local mask = io.open("/proc/self/status"):read("*a"):match("SigCgt:%s*(%x+)")
local bit = 12 - 1
local digit = tonumber(mask:sub(-math.floor(bit / 4) - 1, -math.floor(bit / 4) - 1), 16)
io.write(math.floor(digit / 2 ^ (bit % 4)) % 2)
]]
for value, expected in pairs { ["hz=20"] = "0", ["hz=20,signal=SIGUSR2"] = "1",
			       ["hz=20,signal=12"] = "1" } do
  local _, caught = with(value, CAUGHT)
  t.equal(caught, expected, value .. ": SIGUSR2")
end

-- A child of fork has a file of its own, but only if it is asked for.
local FORK = [[
ffi.cdef "int fork(void); int waitpid(int, int *, int);"
io.stdout:flush()
local pid = ffi.C.fork()
if pid == 0 then os.exit(0) end
while ffi.C.waitpid(pid, nil, 0) < 0 do end
io.write(pid)
]]
local _, child = with("fork", FORK)
t.equal(files(), "x.bin\nx.bin." .. child .. "\n", "fork: a file of the child's")
t.equal(parse("x.bin." .. child).meta.pid, child, "fork: the child's profile")
with("hz=20", FORK)
t.equal(files(), "x.bin\n", "no fork")

-- The message on an unknown option lists those of the guide, in its order.
fresh()
local _, _, _, said = run("nonsense", "")
local documented = {}
for name, doors in t.read_file(t.source .. "/doc/options.md"):gmatch("\n| %[?`([%l_]+)`[^|]*|[^|]*|[^|]*| ([^|]*) |") do
  if doors:find("variable", 1, true) then documented[#documented + 1] = name end
end
t.equal(said, "LUAJIT_SYSPROF: 'nonsense' is not an option; expected on, off, live, or "
	.. table.concat(documented, ", ") .. " with commas between; the program is not profiled\n",
	"the names of all options")

-- Counters only.
fresh()
local status, _, _, err = run("mode=D", "work(3) assert(misc.sysprof.stop())")
t.equal(status, 0, "mode=D counts")
t.equal(err .. files(), "", "mode=D: no file")

-- An event that this system may not let us count.
fresh()
status, _, out, err = run("clock=page-faults,period=5,path=x.bin", "print('out')")
t.equal(status .. out, "0out\n", "an event")
if err == "" then
  t.equal(parse("x.bin").meta.clock, "page-faults", "an event: clock")
else
  print("page-faults not tested: " .. err)
  t.contains(err, "LUAJIT_SYSPROF='clock=page-faults,period=5,path=x.bin'", "an event: refused")
end

-- -- Names of files --------------------------------------------------------

fresh()
local before = os.time()
local _, pid = run("hz=20,path=a-%p-%n-%%-%t.bin", "")
local number, time = files():match("^a%-" .. pid .. "%-(%d+)%-%%%-(%d+)%.bin\n$")
t.equal(number, "1", "the number of the VM in " .. files())
t.ok(time and tonumber(time) >= before - 1 and tonumber(time) <= os.time() + 1,
     "the time in " .. files())

-- Endings of other formats: the file is a profile, and a sentence says so, once.
local endings = t.read_file(t.source .. "/tools/sysprof/formats/endings.lua"):match("\nlocal ENDINGS = (%b{})")
for ending, format in endings:gmatch('{ "(%.[%w.]+)", "(%l+)" }') do
  fresh()
  local _, _, _, said = run("path=a" .. ending, "")
  t.equal(files(), "a" .. ending .. "\n", ending .. ": its file")
  parse("a" .. ending)
  if format == "bin" then
    t.equal(said, "", ending .. ": nothing to say")
  else
    local last = ending:match("%.pb%.gz$") or ending:match("%.%l+$")
    t.equal(said, ("LUAJIT_SYSPROF='path=a%s': the file is a profile, whatever its ending '%s'; name it .bin; then " ..
      "'luajit-sysprof flame FILE.bin -o FILE%s' writes that format\n"):format(ending, last, last), ending .. ": a sentence")
  end
end

fresh()
t.equal(select(4, run("mode=D,path=a.svg", "")), "", "no file, nothing to say")

-- More VMs in a process: made by the host through the C API.
local HOST = [[
ffi.cdef "typedef struct lua_State lua_State; lua_State *luaL_newstate(void);\
void luaL_openlibs(lua_State *); void lua_close(lua_State *); int luaopen_base(lua_State *);\
int luaopen_misc(lua_State *); void lua_settop(lua_State *, int);"
local C = ffi.C
local function vm(open)
  local L = C.luaL_newstate()
  open(L)
  C.lua_settop(L, 0)
  return L
end
]]
fresh()
status, pid, _, err = run("on", HOST .. [[
local second = vm(C.luaL_openlibs)
C.lua_close(vm(C.luaopen_base))	-- Has no misc.
C.luaopen_misc(second)		-- Is profiled already.
local third = vm(C.luaL_openlibs)
C.lua_close(second)
C.lua_close(third)
]])
t.equal(status .. err, "0", "three VMs")
t.equal(files(), ("sysprof.%s.1.bin\nsysprof.%s.2.bin\nsysprof.%s.3.bin\n"):format(pid, pid, pid),
	"a file for each VM")
for n = 1, 3 do parse(("sysprof.%s.%d.bin"):format(pid, n)) end

fresh()
status, _, _, err = run("path=x.bin", HOST .. "C.lua_close(vm(C.luaL_openlibs))")
t.equal(status, 0, "two VMs, one file")
t.contains(err, "x.bin: another profile of this process", "two VMs, one file")
t.equal(select(2, err:gsub("\n", "")), 1, "said once: " .. err)
parse("x.bin")

fresh()
status, _, _, err = run("path=x.bin,shared", HOST .. "C.lua_close(vm(C.luaL_openlibs))")
t.equal(status .. err, "0", "two VMs share a file")
t.equal(#parse("x.bin").sessions, 2, "two VMs share a file: sessions")

-- Many VMs that cannot be profiled: it is not said for ever.
fresh()
_, _, _, err = run("path=none/%n.bin", HOST .. "for i = 1, 50 do C.lua_close(vm(C.luaL_openlibs)) end")
t.equal(select(2, err:gsub("\n", "")), 10, "not said for each of many VMs")
_, _, _, err = run("hz=x", HOST .. "for i = 1, 50 do C.lua_close(vm(C.luaL_openlibs)) end")
t.equal(select(2, err:gsub("\n", "")), 1, "one message for a wrong value")

-- -- Wrong values ----------------------------------------------------------

-- The program runs on, unprofiled, and one sentence holds all parts.
local function wrong(value, ...)
  local there = files()
  local status, _, out, err = run(value, "print(misc.sysprof.stop()) os.exit(7)")
  t.equal(status, 7, value .. ": the status is the program's")
  t.equal(out, "nil\tprofiler is not running\t22\n", value .. ": not profiled")
  t.equal(select(2, err:gsub("\n", "")), 1, value .. ": one sentence, not " .. err)
  t.equal(err:find("^LUAJIT_SYSPROF"), 1, value .. ": names the variable: " .. err)
  for _, part in ipairs { ... } do t.contains(err, part, value) end
  t.equal(files(), there, value .. ": no file")
end

fresh()
for value, meant in pairs {
  ["1000"] = "hz=1000", ["99"] = "hz=99", ["app.bin"] = "path=app.bin", ["/tmp/app"] = "path=/tmp/app",
  ["wall"] = "clock=wall", ["cpu,hz=10"] = "clock=cpu", ["page-faults"] = "clock=page-faults", ["C"] = "mode=C",
  ["all"] = "threads=all", ["vm"] = "flush=vm", ["hertz=10"] = "hz", ["clock=cpu,hertz=10"] = "hz", ["HZ=10"] = "hz",
  ["mod=C"] = "mode", ["clocks=cpu"] = "clock", ["pause"] = "paused", ["coroutine=SIGUSR1"] = "coroutines",
  ["out=x.bin"] = "path", ["2"] = "hz=2",
  livee = "live", lve = "live", liv = "live", Live = "live", onn = "on", of = "off", tru = "true", fals = "false",
  ["hz=1,liv"] = "live",
} do
  wrong(value, ("' is not an option (did you mean '%s'?); expected on, off, live, or path, "):format(meant))
end
for _, value in ipairs { "x", "once", "note", "liv=1", "cpuu", "told", "regular", "prefer_tick", "x=1", ("1"):rep(64), "1000=5" } do
  wrong(value, "' is not an option; expected on, off, live, or path, ")
end
for _, value in ipairs { "0,hz=10", "no,hz=10", "hz=10,false", "FALSE,hz=10" } do wrong(value, "takes no other options") end
wrong("hz=10, x=1", "'x' is not an option")
wrong("off,hz=10", "'off' takes no other options")
wrong("clock=cpu,wall,hz=10", "'wall' is not an option; to give several clocks, write '+' between them")
wrong("hz=10,x=1", "'x' is not an option")
wrong("=1", "'' is not an option")
for _, value in ipairs { "mode=c", "mode=X", "mode=CC", "hz=0", "hz=-1", "hz=abc", "hz=nan", "hz=inf", "hz=1e9",
			 "interval=0", "interval=1e300", "period=0", "period=1.5", "threads=some",
			 "flush=no", "backtracer=gdb", "signal=PROF", "signal=0", "signal=1.5", "signal=100", "jitter=yes",
			 "fork=1", "shared=TRUE", "force=yes" } do
  wrong(value, "'" .. value .. "' has a wrong value; expected ")
  wrong("path=y.bin," .. value, "'" .. value .. "' has a wrong value; expected ")
end
for _, value in ipairs { "hz", "hz=", "path", "path=", "mode=", "clock=", "jitter=", "signal" } do
  wrong(value, "'" .. value .. "' has no value; expected ")
end
wrong("hz=1,hz=2", "'hz' is given twice")
wrong("fork,fork=false", "'fork' is given twice")
wrong("hz=10,interval=10", "'hz=10,interval=10' has both hz and interval")
wrong("clock=none", "'clock=none'", "'none' is not a clock or event")
wrong("clock=cpu+", "'clock=cpu+'", "empty name")
wrong("signal=SIGKILL", "'signal=SIGKILL'", "signal 9 is not allowed for the clocks")
wrong("path=%q.bin", "'path=%q.bin' has a '%'")
wrong("path=x%", "'path=x%' has a '%'")
wrong("path=none/x.bin", "'path=none/x.bin'", "none/x.bin: No such file")
wrong("path=.", ".: Is a directory")
wrong("path=/dev/null", "/dev/null: not a regular file")
wrong("path=" .. ("x"):rep(2000), "x: File name too long")
wrong("a\27[31m\nb", "'a?[31m?b' is not an option")
wrong("a\226\128\174b\255c", "'a?b\\xffc' is not an option")
wrong("a\226\128\139b\226\128\141c", "'a?b?c' is not an option")
wrong(("\195\164"):rep(100), ": '" .. ("\195\164"):rep(40) .. "' is not an option")
wrong("path=none/\226\128\174x.bin", "none/?x.bin: No such file")
t.shell("mkfifo box/fifo")
wrong("path=fifo", "fifo: not a regular file")
wrong("path=fifo,force", "fifo: not a regular file")

-- Nobody hears the sentence: no SIGPIPE ends the program.
status, out = t.shell("mkfifo box/pipe && exec 3<>box/pipe 4>box/pipe 3>&- && LUAJIT_SYSPROF=hz=x '"
		      .. t.luajit .. "' -e 'io.write(5) os.exit(7)' 2>&4 4>&-")
t.equal(status .. out, "75", "standard error is a pipe without reader")

-- -- Files that are there --------------------------------------------------

for _, text in ipairs { "text of somebody", "lj", "\27LJ\2" } do
  fresh()
  t.write_file("box/kept", text)
  wrong("path=kept", "kept: not a profile")
  t.equal(t.read_file("box/kept"), text, "left alone")
  _, _, _, err = run("path=kept,force", "")
  t.equal(err, "", "force: no message")
  t.equal(parse("kept").meta.mode, "callgraph", "force: overwritten")
end
fresh()
t.write_file("box/x.bin", "")
for hz, interval in pairs { [20] = "50000000", [50] = "20000000" } do
  run("path=x.bin,hz=" .. hz, "")
  t.equal(parse("x.bin").meta.interval_ns, interval, "an empty file, an old profile: overwritten")
end

-- -- More rights than the user has -----------------------------------------

-- A copy of luajit that runs as another user, if we may make one.
local function secure()
  if (os.getenv("CFLAGS") or ""):find("sanitize") then return "built with sanitizers" end
  if ffi.C.geteuid() ~= 0 then return "only root can make such a program" end
  local status = t.shell(("cp '%s' box/other && chown 65534 box/other && chmod 4755 box/other")
			 :format(t.luajit))
  if status ~= 0 then return "the program cannot be made" end
  local _, out = t.shell([[box/other -e 'local ffi = require("ffi")
    ffi.cdef "unsigned long getauxval(unsigned long);" print(tonumber(ffi.C.getauxval(23)))']])
  return out ~= "1\n" and "the system gives the program no other rights"
end

fresh()
local why = secure()
if why then
  print("setuid not tested: " .. why)
else
  t.shell("chmod 777 box")
  for _, value in ipairs { "on", "hz=x", "path=/etc/passwd" } do
    status, out, err = t.shell(("cd box && LUAJIT_SYSPROF=%s ./other -e 'print(misc.sysprof.stop()) os.exit(7)'")
			       :format(value))
    t.equal(status, 7, "setuid: status")
    t.equal(out, "nil\tprofiler is not running\t22\n", "setuid: not profiled")
    t.equal(err:find("^LUAJIT_SYSPROF: '" .. value .. "' is ignored [^\n]*\n$"), 1, "setuid: " .. err)
    t.equal(files(), "other\n", "setuid: no file")
  end
end

-- -- Beside other ways to profile ------------------------------------------

fresh()
status, _, out = run("path=x.bin", "print(misc.sysprof.start({ mode = 'C', path = 'y.bin' })) error('bad')")
t.equal(status, 1, "an error: status")
t.equal(out, "nil\tprofiler is running already\t22\n", "a start in the program")
t.equal(files(), "x.bin\n", "a start in the program makes no file")
parse("x.bin")

fresh()
t.write_file("box.lua", HEAD .. "work(3) assert(os.getenv('LUAJIT_SYSPROF') == nil)")
local bin = os.getenv("SYSPROF_BUILD") .. "/bin/"
status, _, err = t.shell(("export LUAJIT_SYSPROF=on; cd box && '%sluajit-sysprof' run -o z.bin ../box.lua"):format(bin))
t.equal(status, 0, "luajit-sysprof: " .. err)
t.equal(files(), "z.bin\n", "luajit-sysprof: its profile alone")
status, _, err = t.shell(("export LUAJIT_SYSPROF=on; cd box && '%sluajit-parse-sysprof' z.bin"):format(bin))
t.equal(status .. err, "0", "the reader")
t.equal(files(), "z.bin\n", "the reader is not profiled")
t.finish()
