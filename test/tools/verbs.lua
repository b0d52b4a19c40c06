-- luajit-sysprof's verbs: words that people type, default files, outputs that lose nothing.
-- TIMEOUT: 300
-- BASE: none, a command beside a program; tools/live_programs tries each LuaJIT

local pty = require("pty")
local t = require("tools_test")
local B = require("stream_builder")
local G = require("sysprof.base.grammar")
local F = B.F

local COMMAND = ("TMPDIR=. '%s' '%s/tools/luajit-sysprof.lua' "):format(t.luajit, t.source)

os.execute("rm -rf verbs; mkdir verbs")
local IN = "cd verbs && "

-- Samples of a function f, of what it calls in C, and of main.
local function profile(name, n, start, path)
  local chunk = "@" .. (path or "x.lua")
  local b = B.new(3):context(7)
  b:meta("pid", "11"):meta("start_time", tostring(start or 2000000000))
  b:lfunc(1, 0, chunk):lfunc(2, 2, chunk, name)
  b:stack(1, { F.cbound, F.lfunc(1, 5), F.lfunc(2, 3) }):stack(2, { F.host(0x1010), F.vm, F.host(0x2020) })
  b:stack(3, { F.cbound, F.lfunc(1, 5) })
  b:hsym(0x1010, 0x1000, "main"):hsym(0x2020, 0x2000, "malloc")
  for _ = 1, n do b:sample(1, 2, 1) end
  b:sample(3, 0, 1)
  return b:finish()
end

local function try(arguments)
  local status, out, err = t.shell(IN .. COMMAND .. arguments)
  t.ok(not err:find("traceback") and not err:find("internal error"), arguments .. ": " .. err)
  return status, out, err
end

-- Checks status and message of a command line that prints nothing else.
local function says(arguments, code, message)
  local status, out, err = try(arguments)
  t.equal(status, code, arguments .. ": status")
  t.equal(out, "", arguments .. ": output")
  t.contains(err, message, arguments .. ": message")
  t.equal(select(2, err:gsub("\n", "")), 1, arguments .. ": one line: " .. err)
end

local function prints(arguments, part, code)
  local status, out, err = try(arguments)
  t.equal(status, code or 0, arguments .. ": status: " .. err)
  t.contains(out, part, arguments .. ": output")
  return out, err
end

local function file(name) return t.read_file("verbs/" .. name) end
local function exists(name)
  local f = io.open("verbs/" .. name, "rb")
  if f then f:close() end
  return f ~= nil
end

t.write_file("verbs/a.bin", profile("f", 3))
t.write_file("verbs/b.bin", profile("g", 1))
t.write_file("verbs/x.lua", "local function f()\n  local s = 0\n  s = s + 1\nend\nf()\n")
-- Beside others, ticks come late: it runs until it has samples.
t.write_file("verbs/short.lua", "local s, limit = 0, os.time() + 60 " ..
	     "repeat for i = 1, 1e6 do s = s + i % 7 end until misc.sysprof.report().samples >= 2 or os.time() > limit")

-- -- What people type ------------------------------------------------------

for word, meant in pairs {
  script = "run x.lua", flamegraph = "flame x.lua", list = "annotate x.lua",
  bench = "compare x.lua", convert = "export x.lua",
} do
  says(word .. " x.lua", 2, ("expected a verb, got '%s'; did you mean 'luajit-sysprof %s'?"):format(word, meant))
end
says("script a.bin", 2, "got 'script'; did you mean 'luajit-sysprof report a.bin'?")
says("profile a.bin --lines", 2, "did you mean 'luajit-sysprof report a.bin --lines'?")
says("run a.bin", 1, "a.bin is a profile; expected a Lua script. 'luajit-sysprof report a.bin' shows it\n")
says("tree a.bin", 2, "got 'tree'; did you mean 'luajit-sysprof report --format=tree a.bin'?")
says("peek a.bin", 2, "got 'peek'; did you mean 'luajit-sysprof report --format=tree a.bin'?")
-- Each wrong command line ends with status 2, and so do events and signals that the profiler does not know.
for _, verb in ipairs { "run", "record", "top", "dump", "serve", "ps", "stop", "perf-map", "report", "flame", "annotate",
			"diff", "merge", "export", "info", "compare", "doctor" } do
  says(verb .. " --frob", 2, "unknown option '--frob'")
  says(verb .. " -Q", 2, "unknown option '-Q'")
  says(verb .. " --help=1", 2, "option '--help' takes no value")
end
for _, arguments in ipairs {
  "frob", "--frob", "help frob", "help run x", "--version x", "--completion=zsh", "run", "record", "top", "dump", "serve", "stop", "perf-map",
  "record x", "top x", "dump x", "stop x", "perf-map x", "ps x", "doctor a b", "diff a.bin", "merge a.bin", "merge -o m.bin",
  "export a.bin", "export -o x.frob a.bin", "flame -o x.frob a.bin", "info -o x.html a.bin", "report --by=frob a.bin",
  "report --format=frob a.bin", "report --limit=x a.bin", "report --from=2 --to=1 a.bin", "report --depth=0 a.bin",
  "report -o a.bin a.bin", "annotate a.bin x.lua x.lua", "diff --format=json a.bin a.bin", "serve --listen=frob a.bin",
  "compare", "compare x.lua", "compare -- x.lua --", "compare -n 1 -- x.lua -- x.lua", "compare --fail-if=x -- x.lua -- x.lua",
  "compare a.bin -- b.bin", "compare a.bin a.bin -- b.bin", "compare -- x.lua -- none.lua", "dump -o x.html 1", "record -d 0 1", "top -d 0 1", "run -F 0 x.lua", "run -i 1 -F 2 x.lua", "run --mode=X x.lua",
  "run -o x.frob x.lua", "run --max-size=1 x.lua", "run -e alloc --weight=cpu x.lua", "run -o - --format=bin x.lua",
  "run -e frob -o new.bin x.lua", "run -e cpu:frob -o new.bin x.lua", "run -e ,, -o new.bin x.lua",
  "run -e wall/threshold=x/ -o new.bin x.lua", "run --signal=SIGKILL -o new.bin x.lua", "run --signal=NONE -o new.bin x.lua",
} do
  local status, out = try(arguments .. " 2>&1")
  t.equal(status, 2, arguments .. ": status: " .. out)
end
t.ok(not exists("new.bin"), "a wrong command line leaves no profile")

says("ps aux", 2, "luajit-sysprof: expected no argument, got 'aux'; see 'luajit-sysprof ps --help'\n")
says("ps 7", 2, "got '7'; did you mean 'luajit-sysprof record 7'?")
t.write_file("verbs/srv.pid", " 4711\n")
t.write_file("verbs/two.pid", "4711 4712\n")
for _, verb in ipairs { "record", "top", "dump", "stop", "perf-map", "serve" } do
  says(verb .. " srv.pid", 2, ("expected a PID, got 'srv.pid', which holds 4711; did you mean 'luajit-sysprof %s 4711'?")
			      :format(verb))
end
says("record two.pid", 2, "expected a PID, got 'two.pid'; no process has the name 'two.pid'; ")
says("serve --port=80 7", 2, "unknown option '--port=80'; did you mean '--listen=:PORT'? See")
says("flame --reverse a.bin", 2, "unknown option '--reverse'; the key r of the page merges stacks from their leaves; see")
for _, option in ipairs { "--inverted", "--icicle" } do
  says("flame " .. option .. " a.bin", 2, option .. "'; the key i of the page puts the root at the top; see")
end
says("dump --reverse 7", 2, "unknown option '--reverse'; see")
says("-d 10 -f out.html 1234", 2, "did you mean 'luajit-sysprof record -d 10 -o out.html 1234'?")
says("-F 1000", 2, "did you mean 'luajit-sysprof run -F 1000'?")
says("record -- luajit x.lua 7 'a b'", 2, "got 'luajit'; did you mean 'luajit-sysprof run x.lua 7 'a b''?")
says("record luajit", 2, "did you mean 'luajit-sysprof record --name=luajit'?")
says("report --sort=total", 2, "unknown option '--sort=total'; tables are sorted by self")
says("top -n 1 7", 2, "unknown option '-n'; did you mean '--once'?")
says("report -n 1", 2, "unknown option '-n'; did you mean '--limit'?")
says("reprot a.bin", 2, "expected a verb, got 'reprot'; did you mean 'report'?")
says("hlep", 2, "expected a verb, got 'hlep'; did you mean 'help'? See 'luajit-sysprof --help'")
for word, meant in pairs {
  list = "ps", ls = "ps", status = "ps", ["detach 7"] = "stop 7", ["flamgraph a.bin"] = "flame a.bin",
  ["stackcollapse a.bin"] = "report --format=folded a.bin", collapse = "report --format=folded",
} do
  says(word, 2, ("did you mean 'luajit-sysprof %s'?"):format(meant))
end
for option, meant in pairs { ["run --wall"] = "event=wall", ["record --alloc"] = "event=alloc", ["report --offcpu"] = "event=offcpu" } do
  says(option, 2, ("; did you mean '--%s'?"):format(meant))
end
says("record --pidfile srv.pid", 2, "unknown option '--pidfile'; 'luajit-sysprof record $(cat FILE)' takes the PID from a file; see")
says("zzz", 2, "expected a verb, got 'zzz'; see 'luajit-sysprof --help'")
says("x.lua 'a b'", 2, "did you mean 'luajit-sysprof run x.lua 'a b''?")
says("a.bin", 2, "did you mean 'luajit-sysprof report a.bin'?")
says("--blocking a.bin", 2, "did you mean 'luajit-sysprof report --blocking a.bin'?")
for _, word in ipairs { "attach 7", "profile 7", "-p 7", "--pid 7", "--pid=7", "-p7", "7" } do
  says(word, 2, ("expected a verb, got '%s'; did you mean 'luajit-sysprof record 7'?"):format(word:match("^%S+")))
end
says("attach", 2, "did you mean 'luajit-sysprof record PID'?")
says("7 8 -d 3s", 2, "did you mean 'luajit-sysprof record 7 8 -d 3s'?")
says("stack 7", 2, "did you mean 'luajit-sysprof dump 7'?")
says("http 7", 2, "did you mean 'luajit-sysprof serve 7'?")
says("run -p 7", 2, "unknown option '-p'; 'luajit-sysprof record PID' profiles a program that runs")
says("run --formt=html x.lua", 2, "unknown option '--formt=html'; did you mean '--format'?")
says("report --frmat=html a.bin", 2, "did you mean '--format'?")
says("report --top 5 a.bin", 2, "unknown option '--top'; did you mean '--limit'? See 'luajit-sysprof report --help'")
says("report -n5 a.bin", 2, "unknown option '-n5'; did you mean '--limit'? See")
says("run --rate=99 x.lua", 2, "unknown option '--rate=99'; did you mean '--hz'? See")
says("run -q 5 x.lua", 2, "unknown option '-q'; see")
says("flame a.bin pages.html", 1, "pages.html: No such file or directory; -o pages.html writes it\n")
says("report -o c.bin a.bin", 2, "'c.bin' is a name for a profile; expected .html ")
says("annotate --no-lua a.bin", 2, "annotate needs the Lua frames that --no-lua leaves out")
says("report --by=lines a.bin", 2, "got 'lines'; did you mean 'line'?")
says("run luajit short.lua", 1, "'luajit-sysprof run short.lua'")
-- A terminal gets no bytes that it cannot show; a pipe does.
for _, case in ipairs { { { "export", "--format=pprof", "verbs/a.bin" }, "pprof", ".pb.gz" },
			{ { "merge", "-o", "-", "verbs/a.bin" }, "a profile", ".bin" } } do
  local what = table.concat(case[1], " ")
  local tty = pty.start({ t.luajit, t.source .. "/tools/luajit-sysprof.lua", unpack(case[1]) }, 200, 24)
  t.ok(tty.expect(("cannot write %s to a terminal: it is binary; expected -o FILE%s or a pipe"):format(case[2], case[3])),
       what .. ": " .. tty.output)
  t.equal(tty.finish(), 1, what .. ": status")
end
t.equal(prints("export --format=pprof a.bin", "\31\139"):sub(1, 2), "\31\139", "pprof in a pipe")
says("export a.bin", 2, "expected --format=FORMAT, or -o FILE with an ending such as .pb.gz")
says("diff a.bin", 2, "expected two profiles, BASE and FILE, got 1")
says("merge a.bin", 2, "expected -o FILE.bin")
says("merge -o all.html a.bin b.bin", 2,
     "'all.html' is no name of a profile; expected the ending .bin; 'luajit-sysprof flame -o all.html a.bin b.bin' adds files up, too")
says("merge -o all.pb.gz a.bin b.bin", 2, "; 'luajit-sysprof export -o all.pb.gz a.bin b.bin' adds files up, too")
says("merge -o all.png a.bin", 2, "'all.png' is no name of a profile; expected the ending .bin; see")
says("doctor now then", 2, "expected at most one program, got 'now' and 'then'")
says("report", 2, "expected a FILE; there is no sysprof.bin here, which 'luajit-sysprof run' writes")
says("report no.bin", 1, "no.bin: No such file or directory")
says("report x.lua", 1, "x.lua: not a sysprof profile")
-- The number of a process that runs: of this test.
local own = require("sysprof.live.processes").own_pid()
for _, arguments in ipairs { "report", "flame", "info", "annotate", "export -o x.svg", "diff a.bin", "doctor", "run" } do
  says(("%s %d"):format(arguments, own), 1,
       ("; process %d runs; did you mean 'luajit-sysprof record %d'?\n"):format(own, own))
end
says("report 99999999", 1, "99999999: No such file or directory\n")
says("doctor x.lua", 1, "x.lua is no ELF file; expected a program or a library; 'luajit-sysprof run x.lua' profiles a script\n")
prints("help", "Usage: luajit-sysprof VERB")
prints("--help", "Usage: luajit-sysprof VERB")
prints("help flame", "Usage: luajit-sysprof flame")
prints("flame --help", "--no-host")
prints("flame -h", "Example: luajit-sysprof flame -o app.html app.bin")
prints("--version", "stream version " .. G.SPF_VERSION)
local status, out, err = try("")
t.equal(status .. out, "2", "nothing: status")
t.contains(err, "Usage: luajit-sysprof VERB", "nothing: message")

-- -- Tables ----------------------------------------------------------------

-- C code counts for the Lua function that called it.
local table_text = prints("report a.bin", "           3   1 .. 4    75.0            3    75.0  f (x.lua:2)\n")
t.contains(table_text, "~          1   0 .. 3    25.0            4   100.0  main chunk (x.lua)\n", "report")
t.ok(not table_text:find("malloc"), "report: no C function")
t.contains(table_text, "\n3 samples +- 2; a longer run tells more.\n", "report: few samples")
prints("report --by=function a.bin", "malloc")
prints("report --lines --by=lua a.bin", "f (x.lua:3)")
-- Functions of one place whose names differ are kept apart.
local both = prints("report a.bin b.bin", "           3        2    50.0            3    50.0  f (x.lua:2)\n")
t.contains(both, "~          1   0 .. 4    16.7            1    16.7  g (x.lua:2)\n", "two names")
prints("report --format=txt -o - a.bin", "f (x.lua:2)")
prints("report --format=collapsed a.bin", "main chunk (x.lua);f (x.lua:2)")
prints("info a.bin", "vm states")
t.ok(not prints("info a.bin", "samples"):find("f %(x%.lua"), "info has no table")
local changes = prints("diff b.bin a.bin", "\ngone      g (x.lua:2) 1.000 ms\nnew       f (x.lua:2) 3.000 ms\n")
t.contains(changes, "base      b.bin", "diff: base")

-- What was recorded in another way, and what is added up though it is older.
local function recorded(period, mode, events)
  local b = B.new(4):context(7):meta("pid", "11"):meta("mode", mode):meta("clock", events)
  b:event(0, "cpu", G.SPF_UNIT_US, period):lfunc(1, 0, "@x.lua"):stack(1, { F.lfunc(1, 5) })
  if events ~= "cpu" then b:event(1, "page-faults", G.SPF_UNIT_COUNT, 1) end
  return b:sample(1, 0, 1, G.SPF_VMST_LFUNC, 1000, 0):finish()
end
t.write_file("verbs/ms1.bin", recorded(1e6, "callgraph", "cpu"))
t.write_file("verbs/ms10.bin", recorded(1e7, "callgraph", "cpu"))
t.write_file("verbs/other.bin", recorded(1e6, "leaf", "cpu,page-faults"))
t.write_file("verbs/ms1.bin.old", recorded(1e6, "callgraph", "cpu"))
local OTHER_WAY = "luajit-sysprof: ms1.bin: recorded in another way, so not all differences are the program's: "
for name, sentence in pairs { ms1 = "", ms10 = OTHER_WAY .. "one sample in 1 ms and 10 ms\n",
			      other = OTHER_WAY .. "mode callgraph and leaf; events cpu and cpu,page-faults\n" } do
  local _, _, err = try(("diff ms1.bin %s.bin"):format(name))
  t.equal(err, sentence, "diff of ms1 and " .. name)
end
for arguments, sentence in pairs { ["ms1.bin ms10.bin"] = "", ["ms1.bin.old"] = "", ["ms1.bin ms1.bin.old"] =
				   "luajit-sysprof: ms1.bin.old is added to ms1.bin: it is the profile of an earlier run\n" } do
  local _, _, err = try("report " .. arguments)
  t.equal(err, sentence, "report " .. arguments)
end
os.remove("verbs/ms1.bin.old")

-- A profile is one whatever its ending, as misc.sysprof.start writes it.
t.write_file("verbs/page.html", profile("f", 3))
prints("report page.html", "profile   page.html, ")
says("run page.html", 1, "page.html is a profile; expected a Lua script.")
os.remove("verbs/page.html")
t.contains(changes, "\nprofile   a.bin", "diff: profile")
t.contains(changes, "\nevent     cpu\nsampled   2.000 ms before, 4.000 ms after: 100.0% more\n", "diff: sums")
t.contains(changes, "     +3.000 +0.009 .. +3.992       0.000       3.000      0.0     75.0  f (x.lua:2)\n", "diff: a new function")
t.contains(changes, "~    -1.000 -1.999 .. +1.608       1.000       0.000     50.0      0.0  g (x.lua:2)\n", "diff: a gone one")
t.contains(changes, "\n~: the samples do not tell it from no change.\n", "diff: chance")
t.contains(changes, "\n+-: of the samples; runs differ by themselves, too: 'luajit-sysprof compare' measures that.\n",
	   "diff: chance of runs")
prints("diff --weight=samples a.bin a.bin", "\nsampled   4 samples before, 4 samples after: the same\n")
prints("annotate a.bin", "   75.0 13.2 .. 99.8    75.0         0       3    s = s + 1\n")
prints("annotate x.lua a.bin", "   25.0  0.2 .. 86.8   100.0         0       5  f()\n")
prints("annotate a.bin", "line called; 'annotate FILE SOURCE.lua' shows a whole file.\n")
prints("annotate x.lua a.bin", "\nSelf has C code and VM work that the line called.\n")
t.equal(prints("annotate a.bin x.lua", "local s = 0"), (prints("annotate x.lua a.bin", "x.lua")), "in any order")
t.write_file("verbs/new.bin", profile("f", 1, 1000000000))
prints("annotate new.bin", "[x.lua is newer than the profile: costs may stand beside other lines]")
prints("report --annotate=x.lua new.bin", "warning            x.lua is newer than the profile")
t.ok(not prints("annotate a.bin", "x.lua"):find("newer"), "an older source")
says("annotate x.lua y.lua a.bin", 2, "expected one source file, got 'x.lua' and 'y.lua'")
prints("doctor", "kernel tick")

-- -- Outputs ---------------------------------------------------------------

says("flame a.bin", 0, "luajit-sysprof: written to a.html\n")
t.contains(file("a.html"), "<!DOCTYPE html>", "flame: default output")
says("flame --format=svg a.bin", 0, "luajit-sysprof: written to a.svg\n")
says("flame --format=json a.bin", 0, "luajit-sysprof: written to a.json\n")
prints("flame -o - a.bin", "<!DOCTYPE html>")
for _, ending in ipairs { "html", "svg", "txt", "folded", "tree", "pb.gz", "pprof", "json", "speedscope.json",
			  "gecko.json", "collapsed" } do
  local name = "out." .. ending
  for round = 1, 2 do	-- Our own file is overwritten.
    status, out, err = try(("export -o %s a.bin"):format(name))
    t.equal(status .. out .. err, "0", ("%s, %d"):format(name, round))
  end
  t.equal(t.shell(("%s%s -o %s a.bin"):format(IN, t.parser, name)), 0, name .. ": the old command")
  -- A file of the user's is not.
  for _, text in ipairs { "local x = {}\n", '{"key": 1}\n', "<html>", "\31\139\8\0", "x 1\ny\n" } do
    t.write_file("verbs/" .. name, text)
    says(("export -o %s a.bin"):format(name), 1,
	 ("cannot overwrite %s: sysprof did not write this file; --force overwrites it"):format(name))
    t.equal(t.shell(("%s%s -o %s a.bin 2>&1"):format(IN, t.parser, name)), 1, name .. ": the old command refuses")
    t.equal(file(name), text, name .. ": left alone")
  end
  status = try(("export --force -o %s a.bin"):format(name))
  t.equal(status, 0, name .. ": --force")
  t.ok(#file(name) > 20, name .. ": --force writes")
end
says("report -o a.doc a.bin", 2, "'a.doc' has no known ending; expected .html ")
t.equal(t.shell(("%s%s -o victim.lua a.bin 2>&1"):format(IN, t.parser)), 2, "the old command: an unknown ending")
t.equal(t.shell(("%s%s -o plain a.bin"):format(IN, t.parser)), 0, "the old command: no ending")
t.contains(file("plain"), "main chunk (x.lua) 1\n", "the old command: no ending: folded")
-- One name for all formats.
for _, format in ipairs { "folded", "top", "json", "pprof", "svg", "flamegraph", "gecko", "speedscope", "tree", "folded" } do
  t.equal(t.shell(("%s%s --format=%s -o plain a.bin"):format(IN, t.parser, format)), 0, "our file, other format: " .. format)
end
t.write_file("verbs/precious.bin", file("b.bin"))
says("report --format=txt -o precious.bin a.bin", 1, "cannot overwrite precious.bin: it is a profile; --force overwrites it")
t.equal(file("precious.bin"), file("b.bin"), "a profile is not overwritten by another format")
-- annotate and info print texts, and never over a source.
for _, verb in ipairs { "annotate", "info", "report --annotate=x.lua" } do
  for _, name in ipairs { "x.lua", "conf.json", "a.html" } do
    says(("%s --force -o %s a.bin"):format(verb, name), 2, ("'%s' is no name of a text; expected the ending .txt"):format(name))
  end
  t.equal(try(("%s -o shown.txt a.bin"):format(verb)), 0, verb .. " into a file")
  t.equal(try(("%s -o shown.txt a.bin"):format(verb)), 0, verb .. " again")
end
-- Another process has a lease on our own file. The message says so, as nobody looks into the file.
do
  local ffi = require("ffi")
  ffi.cdef [[
  int open(const char *, int, ...);
  int fcntl(int, int, ...);
  int close(int);
  void (*signal(int, void (*)(int)))(int);
  ]]
  local SIGIO, F_SETLEASE, F_WRLCK, O_RDWR = 29, 1024, 1, 2
  ffi.C.signal(SIGIO, ffi.cast("void (*)(int)", 1))	-- The kernel asks for the lease by this signal.
  t.equal(try("export -o leased.html a.bin"), 0, "a file to be leased")
  local fd = ffi.C.open("verbs/leased.html", O_RDWR)
  if ffi.C.fcntl(fd, F_SETLEASE, ffi.cast("int", F_WRLCK)) == 0 then
    for _, verb in ipairs { "export", "merge" } do
      local name = verb == "merge" and "leased.bin" or "leased.html"
      if verb == "merge" then os.execute("ln -f verbs/leased.html verbs/leased.bin") end
      local _, _, err = try(("%s -o %s a.bin"):format(verb, name))
      t.contains(err, ("cannot overwrite %s: user "):format(name), verb .. ": a lease")
      t.contains(err, " has a lease on it that keeps others from it", verb .. ": a lease: " .. err)
    end
  else
    print("skipped: a lease on the output, which this file system has not")
  end
  ffi.C.close(fd)
end
t.write_file("verbs/notes.txt", "mine")
says("annotate -o notes.txt a.bin", 1, "cannot overwrite notes.txt: sysprof did not write this file; --force overwrites it")
t.write_file("verbs/text.bin", profile("f", 3, nil, "code.txt"))
t.write_file("verbs/code.txt", file("x.lua"))
says("annotate --force -o ./code.txt text.bin", 1, "text.bin: the output ./code.txt is a source of the profile")
says("annotate --force -o ./code.txt text.bin code.txt", 2, "source and output are the same file")
t.equal(file("code.txt"), file("x.lua"), "a source is left alone")
-- Profiles without samples.
t.write_file("verbs/zero.bin", B.new(3):context(7):event(0, "cpu", G.SPF_UNIT_US, 1e7)
	     :counters({ { G.SPF_COUNTER_EVENT + G.SPF_EVENT_TOTAL, 41 } }):finish())
local ZERO = "zero.bin: warning: no samples: cpu counted 0.041 ms, one in 10 ms has a sample\n"
for _, arguments in ipairs { "report zero.bin", "annotate zero.bin", "annotate zero.bin x.lua", "info zero.bin", "flame zero.bin",
			     "export --format=folded zero.bin", "export -o zero.pb.gz zero.bin", "diff a.bin zero.bin",
			     "diff zero.bin a.bin", "diff zero.bin zero.bin" } do
  status, out, err = try(arguments)
  t.equal(status, 0, arguments .. ": status")
  t.contains(err, ZERO, arguments .. ": why")
  t.ok(not out:find("self%%"), arguments .. ": no table")
end
says("merge -o merged.bin zero.bin zero.bin", 0, "merged.bin: warning: no samples: cpu counted 0.082 ms")
prints("annotate --thread=9 a.bin", "profile   a.bin")
t.contains(select(3, try("annotate --thread=9 a.bin")), "no sample has the thread '9'", "annotate: no sample passes")
-- A failure leaves the old file, and no other one.
t.write_file("verbs/keep.html", file("a.html"))
says("flame -o keep.html no.bin", 1, "no.bin: No such file or directory")
t.equal(file("keep.html"), file("a.html"), "a failure leaves the old file")
t.shell(IN .. "chmod 640 keep.html")
try("flame -o keep.html a.bin")
t.equal(select(2, t.shell(IN .. "stat -c %a keep.html")), "640\n", "the mode stays")
t.shell(IN .. "ln -s keep.html link.html")
try("flame -o link.html b.bin")
t.contains(select(2, t.shell(IN .. "readlink link.html")), "keep.html", "a link stays")
t.equal(select(2, t.shell(IN .. "ls *.new *.old 2>/dev/null; ls -a | grep '^\\.[a-z]'")), "", "nothing else is left")

-- -- Merged profiles -------------------------------------------------------

says("merge -o a.bin a.bin b.bin", 2, "input and output are the same file")
t.equal(try("merge -o all.bin a.bin b.bin a.bin"), 0, "merge")
for _, format in ipairs { "folded", "json", "tree", "pprof" } do
  local a = select(2, t.shell(("%s%s --format=%s --title=t all.bin"):format(IN, t.parser, format)))
  local b = select(2, t.shell(("%s%s --format=%s --title=t a.bin b.bin a.bin"):format(IN, t.parser, format)))
  if format == "json" then a, b = a:gsub('"pid":%d+', ""), b:gsub('"pid":%d+', "") end
  t.equal(a, b, "a merged profile, " .. format)
end
t.equal(try("merge -o twice.bin all.bin b.bin"), 0, "merge what is merged")
t.equal(select(2, t.shell(IN .. "stat -c %a all.bin")), "600\n", "a merged profile is its owner's only")
t.write_file("verbs/cut.bin", file("a.bin"):sub(1, -9))
status, out, err = try("merge -o some.bin cut.bin b.bin")
t.equal(status, 3, "merge: a cut profile")
t.contains(err, "warning: cut.bin: offset ", "merge: a cut profile: message")
prints("report some.bin", "g (x.lua:2)")
says("merge -o none.bin a.bin x.lua", 1, "x.lua: not a sysprof profile")
t.ok(not exists("none.bin"), "a failed merge writes nothing")

-- -- Standard input and output ---------------------------------------------

local listing = file("x.lua"):match("[^\n]*")
for arguments, part in pairs {
  ["report -"] = "profile   standard input, 2", ["info -"] = "vm states", ["annotate -"] = "s = s + 1",
  ["annotate - x.lua"] = listing, ["annotate b.bin - x.lua"] = listing, ["flame -"] = "<!DOCTYPE html>",
  ["flame -o - -"] = "<!DOCTYPE html>", ["export --format=folded -o - -"] = "f (x.lua:2);malloc 3\n",
  ["diff - b.bin"] = "base      standard input, 2", ["diff b.bin -"] = "profile   standard input, 2",
} do
  prints(arguments .. " <a.bin", part)
end
status, out = try("merge -o - - b.bin <a.bin")
t.equal(status, 0, "merge of standard input")
t.write_file("verbs/piped.bin", out)
prints("report piped.bin", "g (x.lua:2)")
t.equal(try("merge -o piped.bin - <a.bin"), 0, "merge of standard input into a file")
prints("report piped.bin", "f (x.lua:2)")
prints("annotate /dev/stdin <a.bin", "s = s + 1")
for _, arguments in ipairs { "report - -", "annotate - -", "diff - -", "merge -o fresh.bin - -" } do
  says(arguments .. " <a.bin", 2, "standard input can be read once, and '-' names it twice")
end
says("merge -o fresh.bin - </dev/null", 1, "luajit-sysprof: standard input: empty file, expected a sysprof profile")
says("merge -o fresh.bin no.bin", 1, "luajit-sysprof: no.bin: No such file or directory")
t.ok(not exists("fresh.bin"), "a failed merge writes nothing")
t.write_file("verbs/noise.bin", "noise")
says("annotate noise.bin", 1, "noise.bin: not a sysprof profile")
t.write_file("verbs/noise", "noise")
says("annotate noise", 1, "noise: not a sysprof profile")

-- -- Runs ------------------------------------------------------------------

t.equal(try("run short.lua"), 0, "run")
local first = file("sysprof.bin")
t.equal(try("run short.lua"), 0, "run again")
t.equal(file("sysprof.bin.old"), first, "the old profile is kept")
local second = file("sysprof.bin")
says("run no_such.lua", 1, "cannot open no_such.lua: No such file or directory")
t.write_file("verbs/wrong.lua", "local x = = 1")
status, out, err = try("run wrong.lua")
t.equal(status, 1, "a script that is not Lua")
t.contains(err, "\nluajit-sysprof: the script ended with an error before the first sample\n" ..
	   "luajit-sysprof: sysprof.bin is still the profile of an earlier run\n", "a script that is not Lua")
t.ok(not err:find("written to", 1, true), "a script that is not Lua: nothing is written: " .. err)
t.equal(file("sysprof.bin"), second, "a failed run keeps the profile of the run before")
status, out, err = try("run -e sun short.lua")
t.equal(status, 2, "an unknown event: " .. err)
t.equal(file("sysprof.bin"), second, "an unknown event keeps the profile of the run before")

-- Programs that the script runs.
t.write_file("verbs/busy.lua", "local limit = os.clock() + (tonumber((...)) or 0.4) repeat until os.clock() > limit")
t.write_file("verbs/executes.lua", ("os.execute([['%s' busy.lua]])"):format(t.luajit))
local LACKS = "luajit%-sysprof: children([^\n]*) took 0%.%d s of CPU time that this profile lacks\n"
for arguments, who in pairs { ["executes.lua"] = ", or threads that are not sampled,", ["--threads executes.lua"] = "",
			      ["busy.lua 0.3"] = false, ["-d 1s executes.lua"] = false } do
  status, out, err = try("run -o one.bin " .. arguments)
  t.equal(err:match(LACKS) or err:find("children", 1, true) or false, who, arguments .. ": " .. err)
end

-- Options without an effect, and the code that starts the profiler.
t.write_file("verbs/one.lua", "local s = ('x'):rep(10)")
for arguments, sentence in pairs {
  ["--period=1000"] = "--period has no effect on cpu; --hz sets its rate", ["-F 100 -e offcpu"] = "--hz has no effect on offcpu",
  ["-i 5 -e alloc"] = "--interval has no effect on alloc; --period sets how often it is sampled", ["-F 100"] = false,
  ["--period=9 -e wall,alloc -F 100"] = false, ["--period=1 -e alloc"] = false,
} do
  status, out, err = try(("run %s -o one.bin one.lua"):format(arguments))
  t.equal(err:match("luajit%-sysprof: ([^\n]* has no effect [^\n]*)\n") or false, sentence, arguments)
end
try("run -e alloc --period=1 -o one.bin one.lua")
status, out = try("export --format=folded one.bin")
t.equal(status, 0, "the script's allocations: status")
t.contains(out, "main chunk (one.lua)", "the script's allocations")
t.ok(not out:find("command line", 1, true) and not out:find("/proc/", 1, true), "the start has no file: " .. out)
for _, name in ipairs { "one.bin", "one.bin.old" } do os.remove("verbs/" .. name) end
local headline = select(2, try("report"))
t.ok(headline:find("^profile   sysprof%.bin, 20%d%d%-%d%d%-%d%d %d%d:%d%d:%d%d: [%d.]+ s, "), "file and date: " .. headline)
try("run -o page.html short.lua")
local page = file("page.html")
try("run -o page.html short.lua")
t.equal(file("page.html.old"), page, "the old page is kept")
local _, said = prints("run -F 500 -e cpu -o - short.lua", "500 a second asked")
t.contains(said, ", written to standard output\n", "standard output")
-- Without a sample, or without Lua frames.
t.write_file("verbs/none.lua", "return 1")
t.contains(select(3, try("run -o none.bin none.lua")), "luajit-sysprof: no samples: cpu counted ", "no samples")
-- Returns the summary of a stream.
local function told(b)
  local view = require("sysprof.show.view").new(assert(require("sysprof.read.reader").parse_string(b:finish())))
  local lines = {}
  require("sysprof.verbs.summary").print(function(...) lines[#lines + 1] = table.concat { ... } end, view, { "x.bin" },
    { output = "-", format = "top" })
  return table.concat(lines, "\n")
end
-- A remedy that cannot help is not named: the rate is high, limited, or the CPU time too short for any rate.
local function advised(hz, samples, cpu_us, real_us, limit, with, wall)
  local b = B.new():context(7):meta("clock", "cpu" .. (with or "")):event(0, "cpu", G.SPF_UNIT_US, 1e9 / hz)
  if limit then b:meta("limit", limit) end
  if wall then b:meta("wall", "cpu,offcpu") end
  if with then b:event(1, "switch-records", G.SPF_UNIT_NS, 0) end
  b:lfunc(1, 2, "@x.lua", "f"):stack(1, { F.lfunc(1, 3) })
  if samples > 0 then b:sample(1, 0, samples) end
  b:counters { { G.SPF_COUNTER_WALL_US, real_us }, { G.SPF_COUNTER_EVENT + G.SPF_EVENT_TOTAL, cpu_us } }
  return told(b)
end
local MORE = "; --hz=1000 takes more"
t.contains(advised(100, 9, 90000, 90000), "\nthese are few samples" .. MORE, "few samples")
t.contains(advised(100, 0, 4000, 4000), "no samples: cpu counted 4 ms, one in 10 ms has a sample" .. MORE, "none")
for _, case in ipairs { { 1000, 9, 9000, 9000 }, { 5000, 9, 9000, 9000 }, { 1000, 0, 40, 40 }, { 100, 0, 40, 40 },
			{ 500, 9, 40000, 40000, "the kernel's tick" } } do
  said = advised(unpack(case))
  t.ok(said:find(case[2] > 0 and "these are few samples" or "no samples: cpu") and not said:find("takes more"),
       "no remedy: " .. said)
end
t.contains(advised(100, 9, 90000, 900000), "waited or had no processor for 0.8 of 0.9 s; --event=wall shows which\n" ..
	   "these are few samples" .. MORE, "it waits")
t.ok(not advised(100, 90, 900000, 9000000):find("few samples", 1, true), "it waits, and has many samples")
t.contains(advised(100, 9, 90000, 900000, nil, ",offcpu", true), "these are few samples\n", "wall has few samples")
for period, is_few in pairs { false, true } do
  local b = B.new():context(7):meta("clock", "page-faults"):event(0, "page-faults", G.SPF_UNIT_COUNT, period)
  b:lfunc(1, 2, "@x.lua", "f"):stack(1, { F.lfunc(1, 3) }):sample(1, 0, 9, 0, period)
  t.equal(told(b):find("few samples", 1, true) ~= nil, is_few, "few samples of occurrences, one in " .. period)
end
t.contains(advised(100, 9, 90000, 900000, nil, ",offcpu"), "; 'report --event=offcpu' shows which", "its waits are there")
do	-- What the compiler does takes no sample of CPU time.
  local b = B.new():context(7):meta("clock", "cpu,trace-stop"):event(0, "cpu", G.SPF_UNIT_US, 10000000)
  b:event(1, "trace-stop", G.SPF_UNIT_COUNT, 1):lfunc(1, 2, "@x.lua", "f"):stack(1, { F.lfunc(1, 3) })
  b:sample(1, 0, 3, 0, 10000):sample(1, 0, 9, 0, 1, 1)
  t.contains(told(b), "3 samples, 0.030 s of CPU time, 9 compiler events", "events of the compiler")
end
_, said = prints("run -F 1000 --no-lua -o c.txt short.lua", "")
t.contains(said, "hottest C functions:\n", "--no-lua")
t.ok(not said:find("Lua function", 1, true) and not said:find("Lua line", 1, true), "--no-lua: no Lua functions: " .. said)
t.contains(file("c.txt"), "total%  function\n", "--no-lua: the table")
t.write_file("verbs/late.bin", file("sysprof.bin"))
for _, output in ipairs { "late.bin", "late.html" } do
  status, out, err = try("run --delay=100 -o " .. output .. " none.lua")
  t.equal(status, 1, "a delay that does not end")
  t.equal(err, "luajit-sysprof: no profile: the script ended before the delay of 100 s\n" ..
	  (output == "late.bin" and "luajit-sysprof: late.bin is still the profile of an earlier run\n" or ""),
	  "a delay that does not end: message")
end
t.equal(file("late.bin"), file("sysprof.bin"), "a delay that does not end: the profile of the run before")
t.ok(not exists("late.html") and not exists("late.html.bin"), "a delay that does not end: no other file")
t.contains(select(3, try("run --format=html short.lua")), ", written to sysprof.html\n", "the ending of a format")
t.contains(file("sysprof.html"), "<!DOCTYPE html>", "the ending of a format")
-- Devices and pipes get the whole profile.
t.contains(select(3, try("run -o /dev/null short.lua")), ", written to /dev/null\n", "a device")
prints("run -o /dev/stdout short.lua 2>/dev/null | cat", "ljs")
-- A script that profiles itself.
t.write_file("verbs/own.lua", [[
print(misc.sysprof.start { mode = "C", path = "own.bin", interval = 1 })
local s = 0 for i = 1, 1e7 do s = s + i % 7 end
print(misc.sysprof.stop())
]])
status, out, err = try("run -F 1000 own.lua")
t.equal(status .. out, "0true\ntrue\n", "a script that profiles itself")
t.equal(select(2, err:gsub("the script profiles itself; this command keeps one profile of everything", "")), 1,
	"a script that profiles itself is told once: " .. err)
t.ok(not exists("own.bin"), "a script that profiles itself: one profile")
-- Nothing of the launcher is in the profile.
local folded = select(2, t.shell(IN .. t.parser .. "sysprof.bin"))
t.ok(not folded:find("os.remove", 1, true) and not folded:find("unlink", 1, true), "frames of the launcher: " .. folded)
-- In a PID namespace, with the procfs of another one: there, the command's number is another process.
if t.shell("unshare --pid --fork true 2>&1") == 0 then
  status, out, err = t.shell(IN .. COMMAND:gsub("^TMPDIR=%. ", "%0unshare --pid --fork ") .. "run -o space.folded short.lua")
  t.equal(status .. out, "0", "PID namespace: " .. err)
  t.contains(err, ", written to space.folded\n", "PID namespace")
else
  print("no PID namespace: not allowed here")
end
-- Nor does it stay if who reads the output leaves.
for _, how in ipairs { "-o - --format=json", "-o x.html" } do
  t.shell(IN .. COMMAND .. "run --fork " .. how .. " short.lua 2>&1 | head -c 1")
  t.equal(select(2, t.shell(IN .. "ls luajit-sysprof-* 2>/dev/null")), "", "nobody reads the output, " .. how)
end
-- The script ends with its command, and no temporary file stays.
t.write_file("verbs/forever.lua", "io.stdout:write('ready\\n') io.stdout:flush() while true do os.time() end")
t.shell(IN .. "rm -f luajit-sysprof-*")
for _, signal in ipairs { "KILL", "TERM", "PIPE" } do
  local _, left = t.shell(IN .. ([[
rm -f said; %s run -o forever.html forever.lua >said 2>/dev/null & pid=$!
i=0; until grep -q ready said || [ $i -gt 600 ]; do sleep 0.05; i=$((i + 1)); done
script=$(ps -o pid= --ppid $pid); kill -%s $pid; wait $pid 2>/dev/null
i=0; while kill -0 $script 2>/dev/null && [ $i -lt 600 ]; do sleep 0.05; i=$((i + 1)); done
kill -0 $script 2>/dev/null && echo "the script runs" && kill -9 $script
ls luajit-sysprof-* 2>/dev/null]]):format(COMMAND, signal))
  t.equal(left, "", "after SIG" .. signal)
end

-- The rate of the only event stands behind what has it.
local function rated(clock, unit, period, fields, ...)
  local b = B.new():context(7):meta("clock", clock):event(0, clock, unit, period, fields)
  b:lfunc(1, 2, "@x.lua", "f"):stack(1, { F.lfunc(1, 3) }):sample(1, 0, 2, nil, 5e6, 0, { ... })
  local view = require("sysprof.show.view").new(assert(require("sysprof.read.reader").parse_string(b:finish())))
  local lines = {}
  require("sysprof.verbs.summary").print(function(...) lines[#lines + 1] = table.concat { ... } end, view, { "x.bin" },
    { output = "-", format = "top", no_lua = true })
  return lines[2]
end
local WAITS = { { G.SPF_FIELD_COUNT, "waits" } }
t.equal(rated("coroutine-wait", G.SPF_UNIT_NS, 0, WAITS, 4), "8 waits, 1.250 ms each", "waits of coroutines")
t.equal(rated("offcpu", G.SPF_UNIT_NS, 0, WAITS, 4), "2 samples, one in 5.000 ms got", "waits of threads")
t.equal(rated("page-faults", G.SPF_UNIT_COUNT, 100), "2 samples, one in 100 asked, one in 5000000.0 got", "occurrences")
t.ok(rated("cpu", G.SPF_UNIT_US, 1e7):find("^100 samples a second asked"), "CPU time")
t.ok(rated("cpu", G.SPF_UNIT_US, 0):find("^[%d.]+ samples a second got$"), "CPU time, no rate asked")

-- -- Help ------------------------------------------------------------------

-- The help names each value of an option as it is typed.
local documented = 0
local list = { require("sysprof.verbs.run"), require("sysprof.verbs.record"), require("sysprof.verbs.livetop"),
	       require("sysprof.verbs.dump"), require("sysprof.verbs.serve"), unpack(require("sysprof.verbs.readverbs")) }
for _, verb in ipairs(list) do
  for _, spec in ipairs(verb.specs) do
    local words = {}
    for word in table.concat(spec.help, " "):gmatch("[%w-]+") do words[word] = true end
    for _, value in ipairs(spec.choice or {}) do
      t.ok(words[value], ("%s --help: --%s names the value %s"):format(verb.name, spec.name, value))
      documented = documented + 1
    end
  end
end
t.ok(documented > 100, "values in the help: " .. documented)
prints("report --help", "what the rows are (default: lua)")
prints("annotate --help", "\nWithout FILE, it reads the last recording from this folder, or sysprof.bin.\n")
prints("report --help", "at most N rows (default 25, 0: all)")
prints("diff --help", "Default: event")
prints("report --help", "Default: event for bytes and real time, and for CPU time")
prints("run --help", "Default: event for bytes and real time, and for CPU time")

t.finish()
