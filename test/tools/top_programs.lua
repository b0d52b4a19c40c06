-- top on real programs: its shares against those of a loop, and of record; a program in compiled code, one asleep, ones
-- that end; its screen on a terminal: keys, sizes, stops, ends. Programs that are broken or hostile.
-- TIMEOUT: 400
-- BASE: none, a command beside a program; tools/live_programs tries each LuaJIT
-- WAITS: most of its time
-- LONG: 58

local programs = require("live_programs")
local pty = require("pty")
local server = require("live_server")
local shell_status = require("shell_status")
local t = require("tools_test")

local start, try = programs.start, programs.try

os.execute("rm -rf ./*")

-- Three functions do the same in one, two and five parts of eight. A round takes less than a tenth of an interval.
local SHARES = "jit.off()\n" ..
  "local function one() local s = 0 for i = 1, 2000 do s = s + i % 7 end return s end\n" ..
  "local function two() local s = 0 for i = 1, 4000 do s = s + i % 7 end return s end\n" ..
  "local function five() local s = 0 for i = 1, 10000 do s = s + i % 7 end return s end\n" ..
  "while true do one() two() five() end\n"
-- Runs until the test says that it is enough.
local BRIEF = "local f repeat for _ = 1, 1e7 do end f = io.open('enough') until f\nos.exit(0)\n"
local TRUE_SHARES = { one = 1 / 8, two = 2 / 8, five = 5 / 8 }

-- -- Shares ----------------------------------------------------------------

-- Returns the shares of a table, and the number of samples.
local function table_of(out)
  local shares = {}
  for own, _, name in out:gmatch("\n *([%d.]+)%% +([%d.]+)%% +[%d.]+s +[%d.]+s  (%w+) %(") do shares[name] = own / 100 end
  return shares, tonumber(out:match("(%d+) samples") or 0)
end

local function shares_of_record(pid)
  os.remove("out.folded")
  try("record -F 200 -d " .. t.window(4) .. " -o out.folded " .. pid)
  local shares, sum = {}, 0
  for stack, n in t.read_file("out.folded"):gmatch("([^\n]*) (%d+)\n") do
    sum = sum + n
    for name in pairs(TRUE_SHARES) do
      if stack:find(";" .. name .. " (", 1, true) then shares[name] = (shares[name] or 0) + n end
    end
  end
  for name, n in pairs(shares) do shares[name] = n / sum end
  return shares, sum
end

-- The share t of n samples has the standard error sqrt(t (1 - t) / n): a round is shorter than the interval, so samples fall
-- on the functions like draws. The difference of two such shares has both variances. The kernel's tick rounds the weights
-- of top's samples to 4 or 8 ms around 5 ms: that makes its variance a fifth larger, at most. The table rounds to 0.1 %.
-- 3 standard errors leave one of 370 shares outside, and one of 60 attempts: it compares six. Three attempts fail together in
-- one test of 200,000.
local VARIANCE, ROUNDING, ATTEMPTS = 1.2, 0.0005, 3

local function compare(pid)
  local status, out, err = try("top --once -F 200 -d " .. t.window(4) .. " " .. pid)
  t.equal(status, 0, "shares: status: " .. err)
  local shares, n = table_of(out)
  local recorded, m = shares_of_record(pid)
  if n < 100 or m < 100 then return ("too few samples: %d, %d"):format(n, m) end
  for name, truth in pairs(TRUE_SHARES) do
    local variance = truth * (1 - truth)
    local of_top, of_record = VARIANCE * variance / n, variance / m
    if math.abs((shares[name] or 0) - truth) > 3 * math.sqrt(of_top) + ROUNDING then
      return ("%s: top shows %.3f of %d samples, built %.3f"):format(name, shares[name] or 0, n, truth)
    elseif math.abs((shares[name] or 0) - (recorded[name] or 0)) > 3 * math.sqrt(of_top + of_record) + ROUNDING then
      return ("%s: top shows %.3f, record %.3f"):format(name, shares[name] or 0, recorded[name] or 0)
    end
  end
end

local shares_lua, loop_lua = programs.unique("top_shares.lua"), programs.unique("top_loop.lua")
local shares = start(shares_lua, SHARES)
do
  local why
  for _ = 1, ATTEMPTS do
    why = compare(shares)
    if not why then break end
    print(why)
  end
  t.equal(why, nil, "shares")
end

-- -- Once ------------------------------------------------------------------

local loop, asleep = start(loop_lua, programs.LOOP), start("asleep.lua", programs.ASLEEP)

do
  local status, out, err = try("top --once -d " .. t.window(0.5) .. " " .. loop)
  t.equal(status, 0, "compiled code: status: " .. err)
  t.contains(out, ("%s, PID %d\nCPU "):format(loop_lua, loop), "compiled code: head")
  t.ok(out:find("\n100%.0%% +100%.0%% +[%d.]+s +[%d.]+s  never_left %(top_loop_%d+%.lua:1%)\n"), "compiled code: " .. out)
  t.ok(out:find("\nreal time: compiled [%d.]+%%[ \n]"), "compiled code: states: " .. out)
  status, out, err = try("top --once -d 500ms " .. asleep)
  t.equal(status, 0, "asleep: status: " .. err)
  t.ok(out:find("\nCPU 0%.%d%% of a processor  %d sample") and (out:find("no samples: the program sleeps or waits") or out:find(" 1 sample\n")),
       "asleep: " .. out)
  status, out = try("top --once -d 500ms -e wall " .. asleep)
  t.equal(status, 0, "asleep, wall: status")
  t.ok(out:find("\nwall: .*off CPU %d%d+%.%d%%\n"), "asleep, wall: its state: " .. out)
  t.contains(out, "asleep.lua:3", "asleep, wall")	-- Its name is in a table of the VM, which never answers.
  status, out, err = try("top --once -d 500ms -e alloc " .. asleep)
  t.equal(status, 0, "asleep, alloc: status")
  t.contains(out, "no samples of alloc\n", "asleep, alloc")
  t.contains(err, "alloc: nothing was recorded: the program waited, stayed in compiled code, or blocks or handles our signal", "asleep, alloc")
  programs.one_line(err, "asleep, alloc")
  status, out, err = try(("top --once -d %s --name=%s --name=%s --by=line"):format(t.window(0.5), loop_lua, shares_lua))
  t.equal(status, 0, "two: status: " .. err)
  t.contains(out, ".lua, 2 processes: ", "two: head")
  t.contains(out, ("never_left (%s:1)"):format(loop_lua), "two: the first")
  t.contains(out, ("five (%s:4)"):format(shares_lua), "two: the second")
  status, out = try("top -d " .. t.window(0.5) .. " --by=vmstate " .. loop)	-- No terminal.
  t.equal(status, 0, "no terminal: status")
  t.ok(out:find("\n100%.0%% .*  TRACE\n"), "no terminal: " .. out)
  local _
  status, _, err = try("top --once -e no_event " .. loop)
  t.equal(status, 2, "an unknown event: status")
  t.contains(err, ("process %d (%s): 'no_event' is not a clock or event"):format(loop, loop_lua), "an unknown event")
  programs.one_line(err, "an unknown event")
end

-- Another client records.
do
  programs.spawn(programs.COMMAND .. ("record -o other.bin %d >other.out 2>&1"):format(shares))
  t.wait_until("the other client records", function() return t.content("other.out"):find("press Ctrl-C", 1, true) end)
  local status, _, err = try("top --once " .. shares)
  t.equal(status, 1, "another client: status")
  t.contains(err, ("process %d (%s): another client records this process already; try again when that recording has ended"):format(
    shares, shares_lua), "another client")
  programs.one_line(err, "another client")
  try("stop " .. shares)
end
programs.stop { shares, asleep }	-- What spins takes the machine's time.
programs.halt(loop)

-- A program ends during the recording: what it has recorded counts.
do
  local brief = start("brief.lua", BRIEF)
  programs.spawn_for_status(("%s top --once -d 1h %d >brief.top 2>brief.err"):format(programs.COMMAND, brief))
  programs.wait_for_samples(brief, "main chunk (brief.lua)")
  t.write_file("enough", "")
  t.equal(programs.status(), 0, "ends: status: " .. t.content("brief.err"))
  t.contains(t.content("brief.top"), "main chunk (brief.lua)", "ends: samples")
  t.contains(t.content("brief.err"), ("process %d (brief.lua) has ended"):format(brief), "ends: said")
end

-- Broken programs: an end, and one sentence.
for behaviour, message in pairs {
  silent = "did not answer within", garbage = "sent an answer that this version of sysprof does not know",
  sentence = "this VM is ?[31mthe subject", endless = "xxx", refuses = "no perf events here", done_with_error = "the VM is being profiled already",
  done_at_once = "the recording ended at once", early_refusal = "another user owns it",
  another = "sent the recording of another process, expected PID ", garbage_file = "not a sysprof profile", empty_file = "a note at the end",
  closes = "process ",
} do
  local pid = server.start(behaviour)
  local status, _, err = try("top --once -d 300ms " .. pid)
  t.equal(status, 1, behaviour .. ": status: " .. err)
  t.contains(err, message, behaviour)
  t.ok(behaviour ~= "closes" or programs.tells_closing(err), "closes: " .. err)
  programs.one_line(err, behaviour)
  server.stop { pid }
end
for behaviour, message in pairs {
  good = "a note at the end", hangs_up = "closed the connection", two_answers = "sent a second answer", dies = "has ended",
} do
  local pid = server.start(behaviour)
  local status, out, err = try("top --once -d 300ms " .. pid)
  t.equal(status, 0, behaviour .. ": status: " .. err)
  t.contains(err, message, behaviour)
  -- The one that dies has no whole chunk.
  t.contains(out, behaviour == "dies" and "no samples" or "hot_in_" .. behaviour .. " (live.lua:2)", behaviour .. ": samples")
  server.stop { pid }
end

-- A damaged recording has a sentence.
do
  local pid = server.start("contents")
  t.write_file("live_server.profile", server.profile("hot_in_contents", 30, pid) .. ("\0"):rep(100000))
  local message = ("process %d: offset "):format(pid)
  local status, out, err = try("top --once -d 300ms " .. pid)
  t.equal(status, 3, "damaged: status: " .. err)
  t.contains(err, message, "damaged")
  programs.one_line(err, "damaged")
  t.contains(out, "hot_in_contents (live.lua:2)", "damaged: samples")
  local tty = pty.start({ t.luajit, programs.SCRIPT, "top", "-d", "200ms", tostring(pid) }, 80, 24)
  t.ok(tty.expect(message), "damaged: the screen: " .. tty.output)
  tty.press("q")
  t.equal(tty.finish(), 0, "damaged: the screen: status")
  status, out = try("dump " .. pid)
  t.equal(status, 0, "damaged: dump: status")
  t.contains(out, "\nthreads may lack samples: offset ", "damaged: dump")
  server.stop { pid }
end

programs.go_on(loop)

-- -- The screen on a terminal -----------------------------------------------

local SIGKILL, SIGTERM, SIGCONT, SIGSTOP = 9, 15, 18, 19
local ENTER, LEAVE = "\27[?1049h", "\27[?1049l"

local function top(arguments, width, height)
  local args = { t.luajit, programs.SCRIPT, "top" }
  for word in arguments:gmatch("%S+") do args[#args + 1] = word end
  return pty.start(args, width or 80, height or 24)
end

-- Checks that a program ended with a status, and left the terminal as it was.
local function ends(tty, code, what)
  t.equal(tty.wait(30, function() return tty.output:find(LEAVE, 1, true) ~= nil end), true, what .. ": the screen is left")
  t.equal(tty.wait(30, tty.is_usual), true, what .. ": the modes")
  t.equal(tty.finish(), code, what .. ": status")
  t.contains(tty.output, "\27[?25h", what .. ": the cursor")
end

do
  local tty = top("-d 200ms " .. loop)
  t.ok(tty.expect("never_left"), "a terminal: a table: " .. tty.output)
  t.contains(tty.output, ENTER, "a terminal: the screen is taken")
  t.equal(tty.is_usual(), false, "a terminal: the modes")
  tty.press("s")
  t.ok(tty.expect("TRACE"), "a terminal: states")
  tty.press("f/no such")
  t.ok(tty.expect("filter: no such_"), "a terminal: a filter")
  tty.press("\27")
  t.ok(tty.expect("never_left"), "a terminal: escape")
  tty.press("~")
  tty.press("b")
  t.ok(tty.expect("no sample has a label"), "a terminal: no labels")
  tty.press("f")
  tty.resize(200, 30)
  t.ok(tty.expect("\27[30;1Hq quit"), "a terminal: a larger size")
  tty.press("?")
  t.ok(tty.expect("Any key closes this."), "a terminal: help")
  -- Ctrl-Z, and back.
  tty.press("\26")
  t.ok(tty.stops(), "a terminal: Ctrl-Z stops")
  t.ok(tty.wait(30, tty.is_usual), "stopped: the modes")
  t.ok(tty.expect(LEAVE), "stopped: the screen is left")
  tty.output = ""
  tty.kill(SIGCONT)
  t.ok(tty.expect(ENTER) and tty.expect("Any key"), "goes on: the screen is taken")
  t.equal(tty.is_usual(), false, "goes on: the modes")
  tty.kill(SIGSTOP)
  t.ok(tty.stops(), "SIGSTOP stops")
  tty.output = ""
  tty.kill(SIGCONT)
  t.ok(tty.expect(ENTER), "goes on after SIGSTOP: the screen is taken")
  tty.press("x")
  t.ok(tty.expect("never_left"), "goes on: a table")
  tty.press("q")
  ends(tty, 0, "q")
end
do
  local tty = top("-d 200ms " .. loop)
  t.ok(tty.expect("never_left"), "Ctrl-C: a table")
  tty.press("\3")
  ends(tty, 0, "Ctrl-C")
  for signo, name in pairs { [SIGTERM] = "SIGTERM", [1] = "SIGHUP", [3] = "SIGQUIT" } do
    tty = top("-d 200ms " .. loop)
    t.ok(tty.expect("never_left"), name .. ": a table")
    tty.kill(signo)
    ends(tty, 128 + signo, name)
  end
  -- The recording ends with the command.
  tty = top("-d 1h " .. loop)
  t.ok(tty.expect("waiting for the first samples"), "killed: a screen")
  tty.kill(SIGKILL)
  t.equal(tty.finish(), 128 + SIGKILL, "killed: status")
  t.wait_until("the recording ends", function() return not programs.is_recorded(loop) end)
end
do	-- An error in this command.
  t.write_file("fails.lua", ([[
    package.path = "%s/tools/?.lua;" .. package.path
    local topscreen = require("sysprof.terminal.topscreen")
    topscreen.paint = function() error("no paint") end
    local verbs = require("sysprof.verbs.verbs")
    require("sysprof.cli.command").new("luajit-sysprof").run(verbs.main, { "top", "%d" })
  ]]):format(t.source, loop))
  local tty = pty.start({ t.luajit, "fails.lua" }, 80, 24)
  ends(tty, 1, "an error")
  t.contains(tty.output:match(".*\27%[%?1049l(.*)"), "internal error: ", "an error: said on the usual screen")
end
do	-- A terminal that takes nothing, and must not block: SIGTERM ends it all the same.
  t.write_file("full.lua", ([[
    package.path = "%s/tools/?.lua;" .. package.path
    local ffi = require("ffi")
    ffi.cdef "int fcntl(int, int, ...); long write(int, const void *, unsigned long); int getpid(void);"
    local F_SETFL, O_RDWR, O_NONBLOCK = 4, 2, 0x800
    ffi.C.fcntl(1, F_SETFL, ffi.cast("int", O_RDWR + O_NONBLOCK))
    while ffi.C.write(1, "x", 1) == 1 do end
    local file = io.open("full.pid", "w")
    file:write(ffi.C.getpid(), "\n")
    file:close()
    local verbs = require("sysprof.verbs.verbs")
    require("sysprof.cli.command").new("luajit-sysprof").run(verbs.main, { "top", "-d", "1h", "%d" })
  ]]):format(t.source, loop))
  local tty = pty.start({ t.luajit, "full.lua" }, 80, 24)
  t.wait_until("a full terminal: it records", function() return t.content("full.pid") ~= "" and programs.is_recorded(loop) end)
  local pid = t.content("full.pid"):match("%d+")
  t.wait_until("a full terminal: it ends", function() return shell_status("kill -TERM " .. pid .. " 2>kill.err") ~= 0 end)
  t.equal(tty.finish(), 128 + SIGTERM, "a full terminal: status")
end
do	-- All programs end.
  os.remove("enough")
  local brief = start("brief.lua", BRIEF)
  local tty = top("-d 200ms " .. brief)
  t.ok(tty.expect("main chunk (brief.lua)"), "the program ends: a table")
  t.write_file("enough", "")
  ends(tty, 0, "the program ends")
  local rest = tty.output:match(".*\27%[%?1049l(.*)") or ""
  t.contains(rest, "main chunk (brief.lua)", "the program ends: the sums stay")
  t.contains(rest, ("process %d (brief.lua) has ended"):format(brief), "the program ends: said")
end
do	-- A program that starts later.
  local tty = top(("-d 200ms --name=%s"):format(loop_lua))
  t.ok(tty.expect(("%s, PID %d "):format(loop_lua, loop)), "a later one: the first")
  local second = start(loop_lua, programs.LOOP)
  t.ok(tty.expect(("%s, 2 processes: %d %d "):format(loop_lua, loop, second)), "a later one: both")
  tty.press("t")
  t.ok(tty.expect(("(%d)"):format(second)), "a later one: its thread")
  os.execute("kill " .. second)
  tty.press("f")
  t.ok(tty.expect(("%s, PID %d "):format(loop_lua, loop)), "a later one: ends")
  tty.press("q")
  ends(tty, 0, "a later one: q")
end
do	-- A stopped program.
  local tty = top("-d 200ms " .. loop)
  t.ok(tty.expect("never_left"), "stopped: a table")
  programs.halt(loop)
  t.ok(tty.expect("is stopped by a signal"), "stopped: said: " .. tty.output)
  programs.go_on(loop)
  tty.press("r")
  t.ok(tty.expect("waiting for the first samples") and tty.expect("never_left"), "stopped: goes on")
  tty.press("q")
  ends(tty, 0, "stopped: q")
end

programs.finish()
