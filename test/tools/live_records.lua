-- record, ps and stop beside programs that serve the socket: which programs are meant, what is requested, how a recording
-- ends, outputs. The programs have no profiler (test/lib/live_server.lua).
-- TIMEOUT: 300

local ffi = require("ffi")
local t = require("tools_test")
local server = require("live_server")

os.execute("rm -rf ./*")

ffi.cdef "unsigned int getuid(void);"

local RUN = ("'%s' '%s/tools/luajit-sysprof.lua' "):format(t.luajit, t.source)
local COMMAND = "timeout -k 1 100 " .. RUN

local function try(arguments)
  local status, out, err = t.shell(COMMAND .. arguments)
  t.ok(not err:find("traceback") and not err:find("internal error"), arguments .. ": " .. err)
  return status, out, err
end

-- Checks status and the only message of a command line.
local function says(arguments, code, message)
  local status, out, err = try(arguments)
  t.equal(status, code, arguments .. ": status: " .. err)
  t.equal(out, "", arguments .. ": output")
  t.contains(err, message, arguments .. ": message")
  t.equal(select(2, err:gsub("\n", "")), 1, arguments .. ": one line: " .. err)
end

local function content(path)
  local file = io.open(path, "rb")
  local s = file and file:read("*a") or ""
  if file then file:close() end
  return s
end

-- Waits until a file has a text.
local function wait_for(path, part)
  local limit = server.now() + 60
  repeat
    local s = content(path)
    if s:find(part, 1, true) then return true end
    os.execute("sleep 0.02")
  until server.now() > limit
  t.ok(false, ("%s never had %s, but %s"):format(path, part, content(path)))
end

-- -- Processes that cannot be recorded -------------------------------------

says("record", 2, "expected a PID or --name=NAME; 'luajit-sysprof ps' lists live programs")
says("record nginx", 2, "expected a PID, got 'nginx'; did you mean 'luajit-sysprof record --name=nginx'?")
says("record app.lua", 2, "expected a PID, got 'app.lua'; did you mean 'luajit-sysprof run app.lua'?")
says("record app.bin", 2, "expected a PID, got 'app.bin'; did you mean 'luajit-sysprof report app.bin'?")
says("record 7,8", 2, "expected a PID, got '7,8'; did you mean '7 8'?")
says("top", 2, "expected a PID or --name=NAME; 'luajit-sysprof ps' lists live programs")
says("top app.bin", 2, "expected a PID, got 'app.bin'; did you mean 'luajit-sysprof report app.bin'?")
says("top --once --duration=2h 7", 2, "option '--duration': expected 100ms to 1h, got 7200 s")
says("top --hz=10 --interval=5 7", 2, "--interval and --hz both set the rate")
says("top --by=x 7", 2, "option '--by': expected lua or line or thread or vmstate or label, got 'x'")
says("top 99999999", 1, "there is no process 99999999; 'luajit-sysprof ps' lists live programs")
says("record 0", 2, "expected a PID, got '0'")
says("record 12345678901", 2, "expected a PID, got '12345678901'")
says("record --children --name=x", 2, "--children needs a PID")
says("record -o x.png 7", 2, "'x.png' has no known ending")
says("record --hz=10 --interval=5 7", 2, "--interval and --hz both set the rate")
says("record -p 7", 2, "unknown option '-p'; 'luajit-sysprof record PID' profiles a program that runs")
says("ps 7", 2, "expected no argument, got '7'; did you mean 'luajit-sysprof record 7'?")
says("stop", 2, "expected a PID or --name=NAME")
says("record --name=no_such_program", 1, "no process has the name 'no_such_program'; 'luajit-sysprof ps'")
says("record 99999999", 1, "there is no process 99999999; 'luajit-sysprof ps' lists live programs")
t.write_file("mine.txt", "a letter")
says("record -o mine.txt 99999999", 1, "cannot overwrite mine.txt: sysprof did not write this file")
do
  local status, _, err = t.shell("exec 3>&2; sh -c 'exec " .. RUN:gsub("'", "'\\''") .. " record $$'")
  t.equal(status, 1, "itself: status")
  t.contains(err, "is this command itself; expected the PID of another program", "itself")
end

-- Starts a program of the shell; returns its PID.
local function spawn(command)
  os.execute(("{ %s ; } >/dev/null 2>&1 & echo $! >pid"):format(command))
  return tonumber(t.read_file("pid"))
end

local function kill(pid) server.stop { pid } end

do
  os.execute("cp $(command -v sleep) nap_of_test")
  local pid = spawn("exec ./nap_of_test 300")
  wait_for(("/proc/%d/comm"):format(pid), "nap_of_test")
  says("record " .. pid, 1, ("process %d (nap_of_test) has no LuaJIT; expected a program on the LuaJIT of sysprof"):format(pid))
  says("record --name=nap_of_test -d 1s", 1, "has no LuaJIT")
  kill(pid)
  t.write_file("asleep.lua", [[
    local file = io.open("up", "w")
    file:write("up")
    file:close()
    local ffi = require("ffi")
    ffi.cdef "int pause(void);"
    while true do ffi.C.pause() end
  ]])
  pid = spawn(("exec '%s' asleep.lua"):format(t.luajit))
  wait_for("up", "up")
  says("record " .. pid, 1, ("process %d (asleep.lua) is not live; start it with LUAJIT_SYSPROF=live, or let it call misc.sysprof.live()")
       :format(pid))
  local _, _, err = try("ps")
  t.contains(err, "not live: ", "ps: not live")
  t.contains(err, "'LUAJIT_SYSPROF=live PROGRAM' starts a live one", "ps: the remedy")
  kill(pid)
  -- A parent that does not wait.
  t.write_file("parent.lua", [[
    local ffi = require("ffi")
    ffi.cdef "int fork(void); void _exit(int); int pause(void);"
    local child = ffi.C.fork()
    if child == 0 then ffi.C._exit(0) end
    local file = io.open("child", "w")
    file:write(child, "\n")
    file:close()
    while true do ffi.C.pause() end
  ]])
  pid = spawn(("exec '%s' parent.lua"):format(t.luajit))
  wait_for("child", "\n")
  local child = tonumber(content("child"))
  wait_for(("/proc/%d/stat"):format(child), ") Z ")
  says("record " .. child, 1, ("process %d (luajit) has ended"):format(child))
  kill(pid)
end

-- -- Which programs --------------------------------------------------------

local first, second = server.start("good", "first.lua"), server.start("profiled", "second.lua")
local others = server.start("good", "first.lua")
local all = { first, second, others }

do
  local status, out = try("ps")
  t.equal(status, 0, "ps: status")
  t.contains(out, "  VMS  STATE", "ps: head")
  t.ok(out:find(first .. " +[%w_ -]* 2 +%- +luajit first%.lua\n"), "ps: " .. out)
  t.ok(out:find(second .. " +[%w_ -]* 2 +profiled +luajit second%.lua\n"), "ps: " .. out)
end

-- Records into out.folded; returns the messages and the output.
local function record(arguments)
  os.remove("out.folded")
  local status, out, err = try("record -o out.folded " .. arguments)
  t.equal(status, 0, arguments .. ": status: " .. err)
  t.equal(out, "", arguments .. ": output")
  return err, content("out.folded")
end

local err, folded = record("-d 100ms " .. first)
t.contains(err, ("recording process %d (first.lua) for 0.1 s; press Ctrl-C to end sooner"):format(first), "one")
t.contains(err, ("process %d (first.lua): a ?[1mnote at the start"):format(first), "a note")
t.contains(err, ("process %d (first.lua): the recording of 1 of 2 VMs begins when the program runs Lua code outside of compiled code"):format(first), "a VM that waits")
t.contains(err, ("process %d (first.lua): a note at the end"):format(first), "a note at the end")
t.contains(err, "30 samples, 0.030 s of CPU time, written to out.folded", "the summary")
t.contains(folded, "main chunk (live.lua);hot_in_good (live.lua:2) 30\n", "the output")

err, folded = record(("-d 100ms %d 99999999 %d %d"):format(first, second, first))
t.contains(err, "there is no process 99999999", "two of three")
t.contains(err, "recording 2 processes for 0.1 s", "two of three")
t.contains(folded, "hot_in_good (live.lua:2) 30\n", "two of three")
t.contains(folded, "hot_in_profiled (live.lua:2) 30\n", "two of three")

err, folded = record("-d 100ms --name=first.lua --name=second.lua --name=no_such_program")
t.contains(err, "recording 3 processes", "by names")
t.contains(err, "no process has the name 'no_such_program'", "by names")
t.contains(folded, "hot_in_profiled (live.lua:2) 30\n", "by names")
t.contains(err, "written to out.folded", "by names")
err, folded = record("-d 100ms --name=first.lua")
t.contains(err, "recording 2 processes", "by name")
t.contains(folded, "hot_in_good (live.lua:2) 60\n", "by name")

-- The shell starts a program, whose socket is its own.
do
  local ready = os.tmpname()
  os.remove(ready)
  local parent = spawn(("sh -c '%s %s/test/lib/live_server.lua good %s; true'"):format(t.luajit, t.source, ready))
  wait_for(ready, "")
  local limit = server.now() + 60
  while content(ready) == "" and server.now() < limit do os.execute("sleep 0.02") end
  local child = tonumber(content(ready))
  err, folded = record("-d 100ms --children " .. parent)
  t.contains(err, ("recording process %d (live_server.lua)"):format(child), "a child")
  t.contains(folded, "hot_in_good (live.lua:2) 30\n", "a child")
  t.ok(not err:find("has no LuaJIT", 1, true), "the parent is no error")
  server.stop { child }
  kill(parent)
end

-- Another user's.
if ffi.C.getuid() == 0 and os.execute("setpriv --reuid=65531 true") == 0 then
  local status, _, message = t.shell("setpriv --reuid=65531 " .. COMMAND .. " record -o - " .. first)
  t.equal(status, 1, "another user: status")
  t.contains(message, ("process %d (first.lua) belongs to user root; run luajit-sysprof as that user or as root"):format(first),
	     "another user")
  status, _, message = t.shell("setpriv --reuid=65531 " .. COMMAND .. " ps")
  t.equal(status, 1, "another user: ps: status")
  t.contains(message, "no program with sysprof runs that this user can record", "another user: ps")
end

-- Names that would write to the terminal.
do
  local pid = server.start("good", "e\27[31m.lua")
  local status, out, message = try("ps")
  t.equal(status, 0, "a hostile name: ps: status")
  t.contains(out, "luajit e?[31m.lua\n", "a hostile name: ps")
  t.ok(not (out .. message):find("\27"), "a hostile name: ps: no control character")
  err, folded = record("-d 50ms " .. pid)
  t.contains(err, ("recording process %d (e?[31m.lua)"):format(pid), "a hostile name")
  t.ok(not (err .. folded):find("\27"), "a hostile name: no control character")
  server.stop { pid }
end

-- -- What is requested -----------------------------------------------------

local log = ("live_server.%d.log"):format(first)

-- A `ps` of another test may have asked, too.
local function logged(path)
  return (content(path):gsub("info\n%-%-\n", ""))
end

os.remove(log)
record("-d 1500ms -e cpu,alloc -F 250 --threads --max-size=1M --jitter --gc --period=3 --mode=L --backtracer=libunwind " .. first)
t.equal(logged(log), "record\nbacktracer=libunwind\nclocks=cpu,alloc\nduration_ns=1500000000\ngc=1\ninterval_ns=4000000\njitter=1\n" ..
	"max_size=1048576\nmode=leaf\nperiod=3\nthreads=all\nwith a descriptor\n--\n", "the request")
os.remove(log)
record("-d 1ms " .. first)
t.equal(logged(log), "record\nduration_ns=1000000\nwith a descriptor\n--\n", "the request of defaults")

-- -- The end ---------------------------------------------------------------

-- Starts a recording without an end; returns its PID.
local function begin(arguments)
  os.execute(("rm -f log; %s record %s >log.out 2>log & echo $! >pid"):format(RUN, arguments))
  wait_for("log", "press Ctrl-C to end\n")
  return tonumber(t.read_file("pid"))
end

for _, signal in ipairs { "INT", "TERM", "HUP" } do
  os.remove("out.bin")
  local pid = begin(("-o out.bin %d %d"):format(first, second))
  local _, out = try("ps")
  t.ok(out:find(first .. " +[%w_ -]* 2 +recording +luajit"), "ps beside a recording: " .. out)
  os.execute(("kill -%s %d"):format(signal, pid))
  wait_for("log", "next: luajit-sysprof report out.bin")
  t.contains(content("log"), "60 samples", signal)
  t.contains(select(2, t.parse("out.bin")), "hot_in_good (live.lua:2) 30\n", signal)
end
t.equal((try("record -d 100ms -o out.bin " .. first)), 0, "again")
t.ok(content("out.bin.old") ~= "" and content("out.bin.old") ~= content("out.bin"), "the old file is kept")

-- By another command.
begin("-o out.txt " .. first)
says(("stop %d %d"):format(first, 99999999):gsub(" 99999999", ""), 0,
     ("process %d (first.lua): 1 recording ended"):format(first))
wait_for("log", "30 samples")
says("stop " .. first, 0, ("process %d (first.lua): there was no recording"):format(first))
says("stop 99999999", 1, "there is no process 99999999")

-- The status after Ctrl-C.
do
  os.execute(("rm -f log; sh -c '%s record -o out.txt %d 2>log; echo $? >status' & echo $! >pid"):format(RUN:gsub("'", ""), first))
  wait_for("log", "press Ctrl-C to end\n")
  local children = content(("/proc/%s/task/%s/children"):format(content("pid"):match("%d+"), content("pid"):match("%d+")))
  os.execute("kill -INT " .. children:match("%d+"))
  wait_for("status", "\n")
  t.equal(content("status"), "0\n", "status after Ctrl-C")
end

-- -- Outputs ---------------------------------------------------------------

do
  local status, out = try("record -d 50ms -o - " .. first)
  t.equal(status, 0, "standard output")
  t.contains(out, "hot_in_good (live.lua:2)", "standard output: a table")
  status, out = try("record -d 50ms --format=bin -o - " .. first .. " | " .. t.parser .. "-")
  t.equal(status, 0, "a profile in a pipe")
  t.contains(out, "hot_in_good (live.lua:2) 30", "a profile in a pipe")
  status, out, err = try("record -d 50ms -o /no/folder.html " .. first)
  t.equal(status, 1, "no folder: status")
  t.contains(err, "there is no folder /no", "no folder")
  record("-d 50ms --lines " .. first)
  t.contains(content("out.folded"), "hot_in_good (live.lua:3)", "--lines")
end

-- -- Sockets of others -----------------------------------------------------

-- A socket with the number of another process is not used.
do
  local folder = "/tmp/.luajit-sysprof-424242." .. first
  os.execute(("mkdir -p %s && ln -sf /tmp/.luajit-sysprof-%d/%d %s/%d"):format(folder, ffi.C.getuid(), second, folder, first))
  local _, its = record("-d 50ms " .. first)
  t.ok(not its:find("hot_in_profiled"), "a planted socket")
  os.rename(("/tmp/.luajit-sysprof-%d/%d"):format(ffi.C.getuid(), first), "/tmp/.luajit-sysprof-" .. ffi.C.getuid() .. "/x" .. first)
  says("record " .. first, 1, "is not live")
  os.rename(("/tmp/.luajit-sysprof-%d/x%d"):format(ffi.C.getuid(), first), folder .. "/" .. first)
  t.contains(select(2, record("-d 50ms " .. first)), "hot_in_good", "a folder of another number")
  os.execute("rm -r " .. folder)
end

server.stop(all)
t.finish()
