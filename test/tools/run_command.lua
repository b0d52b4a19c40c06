-- luajit-sysprof run: the script behaves and ends like without a profile. However it
-- ends, the profile is complete.
-- TIMEOUT: 600
-- BASE: none, a command beside a program; tools/live_programs tries each LuaJIT
-- LONG: 51

local t = require("tools_test")

local RUN = ("TMPDIR=. '%s' '%s/tools/luajit-sysprof.lua' "):format(t.luajit, t.source)
local TRIES = 3
local WAIT = 1200	-- Steps of 50 ms until a script must have said something.

os.execute("rm -f luajit-sysprof-* out.* sysprof.bin")	-- Of a run that was broken off.

-- Computes until it has used enough CPU time for some samples. Prints that it is there,
-- then runs its command.
t.write_file("spin.lua", [[
local function spin()
  local s = 0
  for i = 1, 10000 do s = s + i % 7 end
  return s
end
local start = os.clock()
while os.clock() - start < 0.15 do spin() end
require("ffi").cdef("int getpid(void); int kill(int, int);")
local C = require("ffi").C
print("ready " .. C.getpid())
print(...)
print(arg[0], #arg, arg[-1] and arg[-1]:match("[^/]*$"), arg[-2], arg[-3])
io.stdout:flush()
local how = ...
if how == "exit" then os.exit(7)
elseif how == "true" then os.exit(true, true)
elseif how == "error" then error("oops")
elseif how == "table" then error({})
elseif how == "read" then print(io.read("*a"))
elseif how == "kill" then C.kill(C.getpid(), 9)
elseif how == "loop" then
  jit.off(true, true)	-- Compiled code does not look for interrupts.
  while os.clock() - start < 100 do spin() end
  os.exit(9)
end
]])

local function summary_of(err)
  return err:match("luajit%-sysprof: (%d+) samples?, [%d.]+ s of CPU time[^,]*, written to ([^\n]*)\n")
end

-- What the script has said, with nothing of us and no number of a process.
local function of_script(out, err)
  err = err:gsub("luajit%-sysprof: [^\n]*\n", ""):gsub("\n +[%d.]+%%  [^\n]*", "")
  err = ("\n" .. err):gsub("\n +[%d.]+%%  [^\n]*", ""):sub(2)
  local function clean(s)
    return (s:gsub("ready %d+", "ready"):gsub("at 0x%x+", "at"):gsub("%S*/luajit:", "luajit:"))
  end
  return clean(out), clean(err)
end

-- -- It ends as without us -------------------------------------------------

for _, how in ipairs { "", "exit", "true", "error", "table", "read <spin.lua",
		       "a 'b c' '' -x --help" } do
  local what = "'" .. how .. "'"
  local status, out, err = t.shell(("'%s' spin.lua %s"):format(t.luajit, how))
  local got, got_out, got_err, samples, path
  for _ = 1, TRIES do	-- A loaded machine may give too few samples.
    os.remove("out.folded")
    got, got_out, got_err = t.shell(RUN .. "run -o out.folded spin.lua " .. how)
    samples, path = summary_of(got_err)
    if tonumber(samples or 0) > 5 then break end
  end
  t.equal(got, status, what .. ": status")
  out, err = of_script(out, err)
  local script_out, script_err = of_script(got_out, got_err)
  t.equal(script_out, out, what .. ": output")
  t.equal(script_err, err, what .. ": errors")
  t.equal(path, "out.folded", what .. ": summary: " .. got_err)
  t.ok(tonumber(samples or 0) > 0, what .. ": samples")
  t.contains(t.read_file("out.folded"), "spin (spin.lua:1)", what .. ": profile")
  os.remove("out.folded")
end

-- As a file, from standard input, and with a name like an option.
local status, out = t.shell(RUN .. "run -o out.folded - x <spin.lua")
t.equal(status, 0, "standard input")
t.contains(out, "\nx\n", "standard input: arguments")
t.write_file("-s.lua", "print(arg[0], arg[-1]:match('luajit$'), arg[-2])")
status, out = t.shell(RUN .. "run -o out.folded -- -s.lua")
t.equal(status, 0, "name like an option")
t.equal(out, "-s.lua\tluajit\tnil\n", "name like an option: output")

-- Killed: the same signal, and the profile so far.
local _, err
_, out, err = t.shell(("sh -c \"%s run -o out.bin spin.lua kill\" ; echo status $?"):format(RUN))
t.contains(out, "status 137", "killed: status")
t.contains(err, "warning: offset", "killed: profile is cut")
t.equal(t.read_file("out.bin"):sub(1, 3), "ljs", "killed: profile")

-- -- Interrupted -----------------------------------------------------------

-- Runs a command. When the script has printed that it is there, sends SIGINT to the child
-- (child) or to the command itself. Returns the status, and standard error.
local function interrupt(command, to_child)
  os.remove("said")
  local script = ([[
%s >said 2>errors &
pid=$!
i=0
until grep -q '^ready' said 2>/dev/null; do
  sleep 0.05
  i=$((i + 1))
  if [ $i -gt %d ] || ! kill -0 $pid; then break; fi
done
to=%s
kill -INT $to
wait $pid
exit $?
]]):format(command, WAIT, to_child and "$(sed -n 's/^ready //p' said)" or "$pid")
  t.write_file("interrupt.sh", script)
  local code = t.shell("sh interrupt.sh")
  return code, t.read_file("errors")
end

-- luajit itself ends by an error of the script, of status 1, or by the signal.
local plain = interrupt(("'%s' spin.lua loop"):format(t.luajit), true)
for _, to_child in ipairs { true, false } do
  local what = to_child and "interrupt, to the script" or "interrupt, to us"
  local code, message, samples
  for _ = 1, TRIES do
    os.remove("out.folded")
    code, message = interrupt(RUN .. "run -o out.folded spin.lua loop", to_child)
    samples = summary_of(message)
    if code == plain and samples and tonumber(samples) > 0 then break end
  end
  t.ok(code == plain or code == 1 or code == 130,
       ("%s: status %d, without us %d"):format(what, code, plain))
  t.ok(samples, what .. ": summary: " .. message)
  t.contains(t.read_file("out.folded"), "spin (spin.lua:1)", what .. ": profile")
end

-- -- Formats ---------------------------------------------------------------

t.write_file("short.lua", "local s = 0 for i = 1, 1e6 do s = s + i % 7 end")
local HEADS = { bin = "ljs", folded = nil, html = "<!DOCTYPE html>", txt = "profile ",
		svg = "<?xml", ["pb.gz"] = "\31\139", pprof = "\31\139", json = "{",
		["speedscope.json"] = '{"$schema"', ["gecko.json"] = '{"meta"', tree = " " }
local _, help = t.shell(RUN .. "run --help")
local endings = help:match("format:%s(.-)%-%-format"):gsub("\n", " ")
local seen = 0
for ending in endings:gmatch("%.([%l.]+)") do
  local path = "out." .. ending
  status, _, err = t.shell(("%s run -o %s short.lua"):format(RUN, path))
  t.equal(status, 0, ending .. ": status: " .. err)
  local text = t.read_file(path)
  local head = HEADS[ending]
  if head then t.equal(text:sub(1, #head), head, ending .. ": beginning") end
  os.remove(path)
  seen = seen + 1
end
t.ok(seen >= 4, "endings in the help: " .. endings)
status = t.shell(RUN .. "run -o out.x --format=folded short.lua")
t.equal(status, 0, "format by name")
status = t.shell(RUN .. "run short.lua")
t.equal(status, 0, "default output")
t.equal(t.read_file("sysprof.bin"):sub(1, 3), "ljs", "default output: profile")
local parsed, folded = t.parse("sysprof.bin")
t.equal(parsed, 0, "default output: whole")
t.ok(folded, "default output: can be read")
status, _, err = t.shell(RUN .. "run --hz=1500.5 --threads --fork --jitter --flush=thread --signal=usr2 " ..
			 "--event=cpu -o out.txt short.lua")
t.equal(status, 0, "options of the profiler: " .. err)
t.contains(t.read_file("out.txt"), "1500.5 a second asked", "the rate that was asked for")
status, _, err = t.shell(RUN .. "run -joff -O1 -ljit.util -i 0.5 --clock=wall-signal --mode=L " ..
			 "--weight=cpu --lines -o out.folded short.lua")
t.equal(status, 0, "all options: " .. err)

-- -- Children ---------------------------------------------------------------

-- Both compute until they have used enough CPU time for some samples.
t.write_file("forks.lua", [[
local ffi = require("ffi")
ffi.cdef("int fork(void); int waitpid(int, int *, int);")
local function spin()
  local s = 0
  for i = 1, 10000 do s = s + i % 7 end
end
local function compute(what)
  local start = os.clock()
  while os.clock() - start < 0.2 do spin() end
  io.stdout:write(what, "\n")
  io.stdout:flush()
end
local function in_parent() compute("parent") return 1 end
local function in_child() compute("child") return 1 end
local pid = ffi.C.fork()
if pid == 0 then in_child() os.exit(0) end
ffi.C.waitpid(pid, nil, 0)
in_parent()
]])
for _, path in ipairs { "out.folded", "out.bin" } do
  local text
  for _ = 1, TRIES do
    os.execute("rm -f out.*")
    status, out, err = t.shell(RUN .. "run --fork -o " .. path .. " forks.lua")
    text = path == "out.bin" and select(2, t.parse("out.bin out.bin.*")) or t.read_file(path)
    if text:find("in_child") and text:find("in_parent") then break end
  end
  t.equal(status, 0, "children: status")
  t.equal(out, "child\nparent\n", "children: output")
  t.contains(text, "in_parent", "children: the script: " .. err)
  t.contains(text, "in_child", "children: the child: " .. err)
  t.contains(err, "with the profile of a child" .. (path == "out.bin" and ": out.bin." or "\n"),
	     "children: summary")
end
os.execute("rm -f out.*")

-- A pipe with the name of a child's profile, as another user can make it in /tmp.
t.write_file("plants.lua", [[
os.execute("for path in ./luajit-sysprof-*; do mkfifo \"$path.77\"; done")
local start = os.clock()
while os.clock() - start < 0.2 do end
]])
status, _, err = t.shell("timeout -k 1 60 env " .. RUN .. "run --fork -o out.folded plants.lua")
t.equal(status, 0, "a planted pipe: status: " .. err)
t.contains(err, ".77 is no profile of this user; it is left out", "a planted pipe")
os.execute("rm -f out.* luajit-sysprof-*")

-- -- What the script gets of it ----------------------------------------------

-- No name of a file means anything else, and what the script starts is not profiled.
t.write_file("starts.lua", [[
os.execute(("'%s' -e 'local s = 0 for i = 1, 1e7 do s = s + i %% 7 end'"):format(arg[-1]))
for _, name in ipairs { "LUAJIT_SYSPROF", "LUA_INIT", "SYSPROF_RUN_LUA_INIT" } do print(os.getenv(name)) end
]])
status, out, err = t.shell(RUN .. "run -o 'out.a,b%p.bin' starts.lua")
t.equal(status, 0, "odd name: " .. err)
t.equal(out, "nil\nnil\nnil\n", "environment of the script")
local _, files = t.shell("ls out.* sysprof.* 2>/dev/null")
t.equal(files, "out.a,b%p.bin\nsysprof.bin\n", "files")
-- The installed command keeps LUA_INIT for the script.
_, out = t.shell("SYSPROF_RUN_LUA_INIT='x = 1' " .. RUN .. "run -o out.bin starts.lua")
t.equal(out, "nil\nx = 1\nnil\n", "environment of the script, with LUA_INIT")
os.execute("rm -f out.*")

-- -- Several clocks, and events ---------------------------------------------

local text
for _ = 1, TRIES do
  status, _, err = t.shell(RUN .. "run --clock=cpu,wall-signal -o out.txt spin.lua")
  text = t.read_file("out.txt")
  if err:match("cpu: [1-9].*wall%-signal: [1-9]") then break end
end
t.equal(status, 0, "two clocks: " .. err)
t.contains(err, "luajit-sysprof: warning: wall-signal wakes sleeping threads", "waits that end early")
t.ok(err:match("luajit%-sysprof: cpu: [1-9]%d* samples?, [^\n]* %(shown%)\n"), "two clocks: summary: " .. err)
t.ok(err:match("luajit%-sysprof: wall%-signal: [1-9]%d* samples?, [^\n]* got\n"), "two clocks: summary: " .. err)
t.ok(text:match("\ncpu +[1-9]%d* samples?; ") and text:match("\nwall%-signal +[1-9]%d* samples?; "),
     "two clocks: events: " .. text)
t.contains(text, "\nshown       cpu: ", "two clocks: the first one is shown")

t.write_file("touch.lua", "local s = {} for i = 1, 40 do s[i] = ('x'):rep(1e6 + i) end")
status, _, err = t.shell(RUN .. "run --clock=page-faults --period=1 --weight=event -o out.txt touch.lua")
if err:find("cannot profile: ", 1, true) then
  print("skipped: no page faults: " .. err)
else
  t.equal(status, 0, "page faults: " .. err)
  t.ok(t.read_file("out.txt"):match("\npage%-faults +[1-9]%d* samples?, [1-9]%d* of .*one in 1 asked"),
       "page faults: events: " .. t.read_file("out.txt"))
end
os.execute("rm -f out.*")

-- -- Messages --------------------------------------------------------------

local function wrong(what, arguments, code, message)
  local got, text, errors = t.shell(RUN .. arguments)
  t.equal(got, code, what .. ": status")
  t.equal(text, "", what .. ": output")
  t.contains(errors, "luajit-sysprof: " .. message, what .. ": message")
  t.ok(not errors:find("traceback"), what .. ": no traceback: " .. errors)
end
wrong("no script", "run -o x.bin", 2, "expected a SCRIPT")
wrong("unknown option", "run --wrong x.lua", 2, "unknown option '--wrong'")
wrong("unknown ending", "run -o x.doc short.lua", 2, "'x.doc' has no known ending; expected .html ")
wrong("a program", "run /bin/true", 1, "/bin/true is a program; expected a Lua script.")
wrong("luajit before the script", "run luajit short.lua", 1,
      "there is no script 'luajit'; expected the script itself: 'luajit-sysprof run short.lua'")
wrong("the profile on standard output", "run --format=bin -o - short.lua", 2, "standard output is the script's")
wrong("an event to show that is not recorded", "run --clock=cpu,alloc --event=wall short.lua", 2,
      "--event=wall is not recorded; expected one of cpu, alloc, live")
wrong("a weight that the event lacks", "run -e cpu,alloc --weight=objects short.lua", 2,
      "--weight=objects: the event 'cpu' has no such weight")
wrong("CPU time of waits", "run -e offcpu --weight=cpu short.lua", 2,
      "--weight=cpu: the event 'offcpu' has no such weight")
wrong("full output of the help", "--help >/dev/full", 1, "cannot write standard output")
wrong("script and output", "run --format=top -o ./short.lua short.lua", 2,
      "script and output are the same file")
wrong("interval", "run -i 0 short.lua", 2, "option '-i': expected a number of milliseconds, or a time such as ")
wrong("hz", "run --hz=0 short.lua", 2, "option '--hz': expected a number of samples a second, 0.001 to 100000")
wrong("both", "run --hz=10 -i 1 short.lua", 2, "--interval and --hz both set the rate; remove one")
wrong("period", "run --period=1.5 short.lua", 2, "option '--period': expected a whole number such as 1000 or 64K, at least 1")
wrong("unit", "run -e alloc --period=512x short.lua", 2, "option '--period': expected a whole number such as 1000 or 64K, at least 1")
wrong("unit of time", "run -i 25h short.lua", 2, "option '-i': expected a number of milliseconds, or a time such as 500us, 20ms, 10s or 2m, 10us to 24h")
for _, spec in ipairs(require("sysprof.cli.runspecs").SPECS) do
  local values = spec.key == "interval" and { ["2"] = 2, ["1ms"] = 1, ["500us"] = 0.5, [".5s"] = 500 } or
		 spec.key == "period" and { ["7"] = 7, ["512k"] = 2^19, ["1.5KiB"] = 1536, ["2M"] = 2^21 } or {}
  for value, expected in pairs(values) do t.equal(spec.convert(value), expected, spec.key .. " " .. value) end
end
wrong("signal", "run --signal=' ' short.lua", 2, "option '--signal': expected a signal such as SIGUSR2")
wrong("no such signal", "run --signal=NONE -o new.bin short.lua", 2,
      "cannot profile: profiler misuse: option 'signal' is 'SIGNONE'; expected a signal such as SIGUSR2")
-- What the profiler says is passed on, in one sentence, and nothing else happens.
t.write_file("old.bin", "old")
t.write_file("says.lua", "print('it runs')")
for output, code in pairs { ["new.bin"] = 2, ["new.folded"] = 2, ["old.bin"] = 1 } do
  wrong("clock, " .. output, "run --clock=sun -o " .. output .. " says.lua", code, "cannot profile: ")
end
t.equal(t.read_file("old.bin"), "old", "an unknown clock: an old output")
t.equal(io.open("new.bin"), nil, "an unknown clock: a new output")
t.equal(io.open("new.folded"), nil, "an unknown clock: a new output of another format")
_, _, err = t.shell(RUN .. "run --clock=sun -o new.bin says.lua")
t.equal(select(2, err:gsub("\n", "")), 1, "an unknown clock: one line: " .. err)
wrong("no such module", "run -l no_such_module -o new.bin says.lua 2>&1 >/dev/null | " ..
      "tail -n 1 >&2; false", 1, "luajit ended before the script began")
wrong("output in no folder", "run -o /no/such/x.html short.lua", 1,
      "cannot write /no/such/x.html: there is no folder /no/such")
wrong("output in no folder, as it is", "run -o /no/such/x.bin short.lua", 1,
      "cannot profile: /no/such/x.bin: No such file or directory")
t.write_file("text.bin", "text")
t.write_file("one.lua", "print(1)")
wrong("a file that is no profile", "run -o text.bin one.lua", 1, "cannot profile: text.bin: not a profile")
t.equal(t.read_file("text.bin"), "text", "a file that is no profile: left alone")
status, out = t.shell(RUN .. "run --force -o text.bin one.lua")
t.equal(status .. out, "01\n", "--force")
t.equal(t.read_file("text.bin"):sub(1, 3), "ljs", "--force: overwritten")
t.equal(t.shell(RUN .. "run --follow -o text.bin one.lua"), 0, "--follow")
os.remove("new.bin")
t.equal(t.shell("umask 0; " .. RUN .. "run -o new.bin one.lua"), 0, "a new file")
t.equal(select(2, t.shell("stat -c %a new.bin")), "600\n", "a new profile is its owner's only")
os.remove("new.bin")
wrong("full output", "run --format=folded -o /dev/full spin.lua >/dev/null", 1, "cannot write /dev/full")
-- A profile that could not be written as asked for is kept. Nothing else stays.
for path in io.popen("ls luajit-sysprof-* 2>/dev/null"):lines() do
  t.equal(t.read_file(path):sub(1, 3), "ljs", "the profile that is kept")
  os.remove(path)
end
local got
got, _, err = t.shell(RUN .. "run -o out.folded no_such_script.lua")
t.equal(got, 1, "no such script")
t.contains(err, "no_such_script.lua", "no such script: message")
-- The summary tells the states of real time once.
_, _, err = t.shell(RUN .. "run -e wall -o out.bin spin.lua")
t.ok(err:find("^luajit%-sysprof: %d+ samples?, [%d.]+ s of real time in [%d.]+ s, written to out.bin\n"), "wall: " .. err)
t.ok(err:find("wall: [^\n]+ s on CPU, [^\n]+ runnable %(shown%)\n"), "wall: its states: " .. err)
-- The command is that of the user; what --gc leaves is what to read.
got, _, err = t.shell(RUN .. "run -e alloc --gc --period=256 -o out.bin spin.lua 'a b'")
t.equal(got, 0, "--gc: status: " .. err)
t.contains(err, "next: luajit-sysprof report -e live out.bin, annotate -e live out.bin, or flame -e live out.bin\n", "--gc")
t.contains(select(2, t.shell(RUN .. "info out.bin")), ("\ncommand              %s spin.lua a b\n"):format(t.luajit),
	   "the command as typed")
local man = t.read_file(t.source .. "/etc/man/luajit-sysprof.1"):gsub("\\", "")
for option in help:gmatch("%-%-[%l-]+") do
  t.contains(man, option, "option in the manual page")
end

t.finish()
