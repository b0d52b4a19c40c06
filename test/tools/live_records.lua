-- record, ps and stop beside programs that serve the socket: which programs are meant, what is requested, how a recording
-- ends, outputs. The programs have no profiler (test/lib/helpers/live_server.lua).
-- TIMEOUT: 300
-- BASE: none, it reads no profile of this LuaJIT
-- WAITS: most of its time

local programs = require("live_programs")
local server = require("live_server")
local t = require("tools_test")

local says, spawn, try = programs.says, programs.spawn, programs.try
local RUN = programs.RUN

local OTHER_USER = 65531	-- No program of it is live.

os.execute("rm -rf ./*")

-- Waits until a file has a text.
local function wait_for(path, part)
  local function has_it() return t.content(path):find(part, 1, true) end
  if not t.wait_until(path .. " has " .. part, has_it) then print(t.content(path)) end
end

-- -- Processes that cannot be recorded -------------------------------------

says("record", 2, "expected a PID or --name=NAME; 'luajit-sysprof ps' lists live programs")
local NOBODY = programs.unique("nobody.lua")
says("record luajit", 2, "expected a PID, got 'luajit'; did you mean 'luajit-sysprof record --name=luajit'?")
says("record no_such_program", 2, "expected a PID, got 'no_such_program'; no process has the name 'no_such_program'; 'luajit-sysprof ps'")
says("record " .. NOBODY, 2, ("expected a PID, got '%s'; did you mean 'luajit-sysprof run %s'?"):format(NOBODY, NOBODY))
says("record app.bin", 2, "expected a PID, got 'app.bin'; did you mean 'luajit-sysprof report app.bin'?")
says("record 7,8", 2, "expected a PID, got '7,8'; did you mean '7 8'?")
says("top", 2, "expected a PID or --name=NAME; 'luajit-sysprof ps' lists live programs")
says("top app.bin", 2, "expected a PID, got 'app.bin'; did you mean 'luajit-sysprof report app.bin'?")
says("top --once --duration=2h 7", 2, "option '--duration': expected a number of seconds, or a time such as 500us, 20ms, 10s or 2m, 100ms to 1h, got ")
says("top --hz=10 --interval=5 7", 2, "--interval and --hz both set the rate")
says("top --by=x 7", 2, "option '--by': expected lua or line or thread or vmstate or label, got 'x'")
says("top 99999999", 1, "there is no process 99999999; 'luajit-sysprof ps' lists live programs")
says("record 0", 2, "expected a PID, got '0'; 'luajit-sysprof ps' lists live programs")
says("record 12345678901", 2, "expected a PID, got '12345678901'")
says("record --children --name=x", 2, "--children needs a PID")
says("record -o x.png 7", 2, "'x.png' has no known ending")
says("record --hz=10 --interval=5 7", 2, "--interval and --hz both set the rate")
says("record -p 7", 2, "unknown option '-p'; a PID needs no option")
says("top --pid=7", 2, "unknown option '--pid=7'; a PID needs no option")
says("top -b 7", 2, "unknown option '-b'; did you mean '--once'?")
says("top -e live 7", 2, "top shows no live memory; 'luajit-sysprof record -e alloc PID' records it")
says("top luajit", 2, "expected a PID, got 'luajit'; did you mean 'luajit-sysprof top --name=luajit'?")
says("dump --pid=7", 2, "unknown option '--pid=7'; a PID needs no option")
says("dump --json 7", 2, "unknown option '--json'; did you mean '--format=json'?")
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

do
  local name = programs.unique("nap")
  os.execute("cp $(command -v sleep) " .. name)
  local pid = spawn(("./%s 300"):format(name))
  wait_for(("/proc/%d/comm"):format(pid), name)
  says("record " .. pid, 1, ("process %d (%s) has no LuaJIT; expected a program on the LuaJIT of sysprof"):format(pid, name))
  says(("record --name=%s -d 1s"):format(name), 1, "has no LuaJIT")
  server.stop { pid }
  local asleep = programs.unique("asleep.lua")
  t.write_file(asleep, [[
    local file = io.open("up", "w")
    file:write("up")
    file:close()
    local ffi = require("ffi")
    ffi.cdef "int pause(void);"
    while true do ffi.C.pause() end
  ]])
  pid = spawn(("'%s' %s"):format(t.luajit, asleep))
  wait_for("up", "up")
  says("record " .. pid, 1, ("process %d (%s) is not live; start it with LUAJIT_SYSPROF=live, or let it call misc.sysprof.live()")
       :format(pid, asleep))
  -- A script that runs, by its name and by a part of it.
  says("record " .. asleep, 2, ("did you mean 'luajit-sysprof record --name=%s'?"):format(asleep))
  says("record x " .. asleep, 2, ("did you mean 'luajit-sysprof run %s'?"):format(asleep))
  local part = asleep:match("^(.*)%.lua$")
  for _, arguments in ipairs { "record --name=", "dump ", "stop " } do
    says(arguments .. part, arguments:find("=") and 1 or 2,
	 ("no process has the name '%s'; expected a whole name, such as %s"):format(part, asleep))
  end
  local _, _, err = try("ps")
  t.contains(err, "not live: ", "ps: not live")
  t.contains(err, "'LUAJIT_SYSPROF=live PROGRAM' starts a live one", "ps: the remedy")
  server.stop { pid }
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
  pid = spawn(("'%s' parent.lua"):format(t.luajit))
  wait_for("child", "\n")
  local child = tonumber(t.content("child"))
  wait_for(("/proc/%d/stat"):format(child), ") Z ")
  says("record " .. child, 1, ("process %d (luajit) has ended"):format(child))
  server.stop { pid }
end

-- -- Which programs --------------------------------------------------------

local first, second = server.start("good", "first.lua"), server.start("profiled", "second.lua")

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
  return err, t.content("out.folded")
end

local err, folded = record("-d 100ms " .. first)
t.contains(err, ("recording process %d (first.lua) for 0.1 s; press Ctrl-C to end sooner"):format(first), "one")
t.contains(err, ("process %d (first.lua): a ?[1mnote at the start"):format(first), "a note")
t.contains(err, ("process %d (first.lua): a note at the end"):format(first), "a note at the end")
t.contains(err, "30 samples, 0.030 s of CPU time, written to out.folded", "the summary")
t.contains(folded, "main chunk (live.lua);hot_in_good (live.lua:2) 30\n", "the output")
t.ok(not err:find("itimer"), "no caution: " .. err)
t.contains(record("-d 100ms -e itimer " .. first), "exec keeps the clock itimer", "a caution")

err, folded = record(("-d 100ms %d 99999999 %d %d"):format(first, second, first))
t.contains(err, "there is no process 99999999", "two of three")
t.contains(err, "recording 2 processes for 0.1 s", "two of three")
t.contains(folded, "hot_in_good (live.lua:2) 30\n", "two of three")
t.contains(folded, "hot_in_profiled (live.lua:2) 30\n", "two of three")

local twins, single = programs.unique("twins.lua"), programs.unique("single.lua")
server.start("good", twins)
server.start("good", twins)
server.start("profiled", single)
err, folded = record(("-d 100ms --name=%s --name=%s --name=no_such_program"):format(twins, single))
t.contains(err, "recording 3 processes", "by names")
t.contains(err, "no process has the name 'no_such_program'", "by names")
t.contains(folded, "hot_in_profiled (live.lua:2) 30\n", "by names")
t.contains(err, "written to out.folded", "by names")
err, folded = record("-d 100ms --name=" .. twins)
t.contains(err, "recording 2 processes", "by name")
t.contains(folded, "hot_in_good (live.lua:2) 60\n", "by name")

-- The shell starts a program, whose socket is its own.
do
  local ready = os.tmpname()
  os.remove(ready)
  local parent = spawn(("sh -c '%s %s/test/lib/helpers/live_server.lua good %s; true' >/dev/null 2>&1"):format(t.luajit, t.source, ready))
  local child = t.wait_until("the child serves", function() return tonumber(t.content(ready)) end)
  os.remove(ready)
  programs.adopt(child)
  err, folded = record("-d 100ms --children " .. parent)
  t.contains(err, ("recording process %d (live_server.lua)"):format(child), "a child")
  t.contains(folded, "hot_in_good (live.lua:2) 30\n", "a child")
  t.ok(not err:find("has no LuaJIT", 1, true), "the parent is no error")
  server.stop { parent }
end

-- Another user's.
if programs.can_be_user(OTHER_USER) then
  local as_other = ("setpriv --reuid=%d "):format(OTHER_USER)
  local status, _, message = try("record -o - " .. first, as_other)
  t.equal(status, 1, "another user: status")
  t.contains(message, ("process %d (first.lua) belongs to user root; run luajit-sysprof as that user or as root"):format(first),
	     "another user")
  status, _, message = try("ps", as_other)
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
  return (t.content(path):gsub("info\n%-%-\n", ""))
end

os.remove(log)
record("-d 1500ms -e cpu,alloc -F 250 --threads --max-size=1M --jitter --gc --period=3 --mode=L --backtracer=libunwind " .. first)
t.equal(logged(log), "record\nbacktracer=libunwind\nclock=cpu,alloc\nduration=1.5\ngc=true\nhz=250\njitter=true\n" ..
	"max_size=1048576\nmode=L\nperiod=3\nthreads=all\nwith a descriptor\n--\n", "the request")
os.remove(log)
record("-d 1ms " .. first)
t.equal(logged(log), "record\nduration=0.001\nwith a descriptor\n--\n", "the request of defaults")

-- -- The end ---------------------------------------------------------------

-- Starts a recording without an end; returns its PID.
local function begin(arguments)
  os.remove("log")
  local pid = spawn(("%s record %s >log.out 2>log"):format(RUN, arguments))
  wait_for("log", "press Ctrl-C to end\n")
  return pid
end

for _, signal in ipairs { "INT", "TERM", "HUP" } do
  os.remove("out.bin")
  local pid = begin(("-o out.bin %d %d"):format(first, second))
  local _, out = try("ps")
  t.ok(out:find(first .. " +[%w_ -]* 2 +recording +luajit"), "ps beside a recording: " .. out)
  os.execute(("kill -%s %d"):format(signal, pid))
  wait_for("log", "next: luajit-sysprof report out.bin")
  t.contains(t.content("log"), "60 samples", signal)
  t.contains(select(2, t.parse("out.bin")), "hot_in_good (live.lua:2) 30\n", signal)
end
t.equal((try("record -d 100ms -o out.bin " .. first)), 0, "again")
t.ok(t.content("out.bin.old") ~= "" and t.content("out.bin.old") ~= t.content("out.bin"), "the old file is kept")

-- By another command.
begin("-o out.txt " .. first)
says("stop " .. first, 0, ("process %d (first.lua): 1 recording ended"):format(first))
wait_for("log", "30 samples")
says("stop " .. first, 1, ("process %d (first.lua): there was no recording"):format(first))
says("stop 99999999", 1, "there is no process 99999999")

-- The status after Ctrl-C.
do
  os.remove("log")
  local pid = programs.spawn_for_status(("%s record -o out.txt %d 2>log"):format(RUN, first))
  wait_for("log", "press Ctrl-C to end\n")
  os.execute("kill -INT " .. pid)
  t.equal(programs.status(), 0, "status after Ctrl-C")
end

-- A profile without its end, such as after two interrupts, has a status of its own, also as a page.
do
  local B = require("stream_builder")
  local b = B.new(3):context(7):lfunc(1, 0, "@live.lua", "f"):stack(1, { B.F.lfunc(1, 5) }):sample(1, 0, 9):flush()
  t.write_file("live_server.profile", B.PROLOGUE .. table.concat(b.out))
  local cut = server.start("contents", "cut.lua")
  for _, output in ipairs { "cut.bin", "cut.html" } do
    local status, _, its = try(("record -d 50ms -o %s %d"):format(output, cut))
    t.equal(status, 3, output .. ": status")
    t.contains(its, "the stream ends here without an end record", output)
  end
  local status = try(("record -d 50ms -o cut.bin %d %d"):format(cut, first))
  t.equal(status, 3, "one of two: status")
  os.remove("live_server.profile")
end

-- Processes without samples, such as nginx's master, do not count beside others.
do
  local B = require("stream_builder")
  t.write_file("live_server.profile", B.new():context(7):lfunc(1, 0, "@live.lua", "f"):finish())
  local idle = server.start("contents", "idle.lua")
  local status, _, its = try(("record -d 50ms -o idle.bin %d %d"):format(idle, first))
  t.equal(status, 0, "one of two without samples: status")
  t.contains(its, ("left out, without samples: process %d (idle.lua)\n"):format(idle), "one of two without samples")
  t.ok(not its:find("written to idle.bin of", 1, true) and not its:find("of 2 processes", 1, true), "one process counts: " .. its)
  _, _, its = try("record -d 50ms -o idle.bin " .. idle)
  t.ok(not its:find("left out", 1, true), "the only one stays: " .. its)
  os.remove("live_server.profile")
  server.stop { idle }
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
  t.contains(t.content("out.folded"), "hot_in_good (live.lua:3)", "--lines")
end

-- -- Sockets of others -----------------------------------------------------

-- A socket with the number of another process is not used.
do
  local folder = "/tmp/.luajit-sysprof-424242." .. first
  os.execute(("mkdir -p %s && ln -sf /tmp/.luajit-sysprof-%d/%d %s/%d"):format(folder, programs.uid, second, folder, first))
  local _, its = record("-d 50ms " .. first)
  t.ok(not its:find("hot_in_profiled"), "a planted socket")
  os.rename(("/tmp/.luajit-sysprof-%d/%d"):format(programs.uid, first), "/tmp/.luajit-sysprof-" .. programs.uid .. "/x" .. first)
  says("record " .. first, 1, "is not live")
  os.rename(("/tmp/.luajit-sysprof-%d/x%d"):format(programs.uid, first), folder .. "/" .. first)
  t.contains(select(2, record("-d 50ms " .. first)), "hot_in_good", "a folder of another number")
  os.execute("rm -r " .. folder)
end

programs.finish()
