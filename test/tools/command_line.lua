-- luajit-parse-sysprof as a command: options, messages, exit status, output.
-- BASE: none, it reads no profile of this LuaJIT

local t = require("tools_test")
local B = require("stream_builder")
local G = require("sysprof.base.grammar")
local F = B.F

local function profile(lost)
  local b = B.new():context()
  b:lfunc(1, 0, "@x.lua"):lfunc(2, 5, "@x.lua", "f")
  b:stack(1, { F.cbound, F.lfunc(1, 3), F.lfunc(2, 6) })
  b:stack(2, { F.host(0x1010), F.vm, F.host(0x2020) })
  b:hsym(0x1010, 0x1000, "main"):hsym(0x2020, 0x2000, "malloc")
  b:sample(1, 2, 2):sample(1, 0, 1, G.SPF_VMST_LFUNC, 2500)
  if lost then b:counters { { G.SPF_COUNTER_LOST_WRITER, 3 } } end
  return b:finish()
end

local FOLDED = "main chunk (x.lua);f (x.lua:5) 1\n" ..
	       "main;main chunk (x.lua);f (x.lua:5);malloc 2\n"

-- One clear line that names the program, and no more.
local function one_line(err, what)
  t.ok(err:find("^luajit%-parse%-sysprof: [^\n]+\n$"), what .. ": one line: " .. err)
  t.ok(not err:find("traceback") and not err:find("%.lua:%d+:"),
       what .. ": no place in the reader's source: " .. err)
end

local function check(what, arguments, status, out, err)
  local got_status, got_out, got_err = t.parse(arguments)
  t.equal(got_status, status, what .. ": status (" .. got_err .. ")")
  if out then t.equal(got_out, out, what .. ": output") end
  if err then
    one_line(got_err, what)
    t.contains(got_err, err, what .. ": message")
  else
    t.equal(got_err, "", what .. ": no message")
  end
  return got_out
end

t.with_file(profile(), function(path)
  -- Output.
  check("folded", path, 0, FOLDED)
  check("folded by name", "--format=folded " .. path, 0, FOLDED)
  check("value apart", "--format folded " .. path, 0, FOLDED)
  check("standard input", "- <" .. path, 0, FOLDED)
  check("after --", "-- " .. path, 0, FOLDED)
  check("twice", path .. " " .. path, 0, (FOLDED:gsub("1\n", "2\n"):gsub("malloc 2", "malloc 4")))
  local _, piped = t.shell(("cat %s | %s -"):format(path, t.parser))
  t.equal(piped, FOLDED, "pipe")
  check("cpu", "--weight=cpu " .. path, 0, (FOLDED:gsub(" 2\n", " 2000\n")
						 :gsub(" 1\n", " 2500\n")))
  check("lines", "--lines " .. path, 0,
	"main chunk (x.lua:3);f (x.lua:6) 1\n" ..
	"main;main chunk (x.lua:3);f (x.lua:6);malloc 2\n")
  check("traces, none there", "--traces " .. path, 0, FOLDED)
  check("coroutine, none there", "--coroutine " .. path, 0, FOLDED)
  check("no host", "--no-host " .. path, 0, "main chunk (x.lua);f (x.lua:5) 3\n")
  check("no Lua", "--no-lua " .. path, 0, "[no host stack] 1\nmain;malloc 2\n")
  t.contains(check("top", "--format=top " .. path, 0), "f (x.lua:5)", "top")
  t.contains(check("top, cpu", "--format=top --weight=cpu " .. path, 0),
	     "2.000", "top, cpu")
  t.contains(check("flame graph", "--format=flamegraph --title='a<b' " .. path, 0),
	     "<title>a&lt;b</title>", "title")
  t.contains(check("top, lines", "--format=top --lines " .. path, 0),
	     "f (x.lua:6)", "top, lines")
  t.contains(check("help", "--help", 0), "Usage: luajit-parse-sysprof", "help")
  local man = t.read_file(t.source .. "/etc/man/luajit-parse-sysprof.1"):gsub("\\", "")
  for option in select(2, t.parse("--help")):gmatch("%-%-[%l-]+") do
    t.contains(man, option, "option in the manual page")
  end
  t.contains(check("version", "--version", 0), "stream version " .. G.SPF_VERSION,
	     "version")
  t.equal(check("sorted", path .. " | LC_ALL=C sort -c", 0), "", "sorted")

  -- To a file.
  local out = os.tmpname()
  check("-o", ("-o %s %s"):format(out, path), 0, "")
  t.equal(t.read_file(out), FOLDED, "-o FILE")
  check("-oFILE", ("-o%s %s"):format(out, path), 0, "")
  check("--output", ("--output=%s %s"):format(out, path), 0, "")
  os.remove(out)
  check("-o in no folder", ("-o %s/none/x %s"):format(out, path), 1, "",
	("cannot write %s/none/x: there is no folder %s/none"):format(out, out))
  check("-o is the input", ("-o %s %s"):format(path, path), 2, "", "same file")
  local link = os.tmpname()
  t.shell(("ln -sf %s %s"):format(path, link))
  check("-o is a link to the input", ("-o %s %s"):format(link, path), 2, "", "same file")
  check("-o is the input by another way", ("-o /.%s %s"):format(path, path), 2, "", "same file")
  check("-o is the base by a link", ("--diff=%s --format=top -o %s /dev/null"):format(link, path),
	2, "", "same file")
  os.remove(link)

  -- Output that fails.
  check("full output", path .. " >/dev/full", 1, "", "cannot write standard output")
  check("closed output", path .. " >&-", 1, "", "cannot write standard output")
  check("full -o", "-o /dev/full " .. path, 1, "", "cannot write /dev/full")
  check("full output of the help", "--help >/dev/full", 1, "", "cannot write")
  check("full output, other formats", "--format=flamegraph " .. path .. " >/dev/full",
	1, "", "cannot write")

  -- Wrong command lines.
  local SEE = "see 'luajit-parse-sysprof --help'"
  check("no file", "", 2, "", "expected a FILE; " .. SEE)
  check("a name that a terminal would obey", "'/no/\27[31m\nx'", 1, "",
	"luajit-parse-sysprof: /no/?[31m?x: No such file")
  check("two files, one is none", path .. " /no/such/file", 1, "",
	"luajit-parse-sysprof: /no/such/file: No such file")
  check("-o is the second input", ("-o %s /dev/null %s"):format(path, path), 2, "",
	"same file")
  check("unknown option", "--wrong " .. path, 2, "", "unknown option '--wrong'; " .. SEE)
  check("unknown letter", "-x " .. path, 2, "", "unknown option '-x'")
  check("an option 500 times", ("--include=f "):rep(500) .. "--format=folded " .. path, 0, FOLDED)
  check("an option 501 times", ("--include=f "):rep(501) .. path, 2, "",
	"option '--include': expected at most 500 of them on a command line; " .. SEE)
  check("odd option", "--=x " .. path, 2, "", "unknown option '--=x'")
  check("unknown format", "--format=x " .. path, 2, "", "expected folded or")
  check("format of nothing", "--format= " .. path, 2, "", "'--format'")
  check("format at the end", path .. " --format", 2, "", "expected FORMAT")
  check("value of a switch", "--lines=1 " .. path, 2, "", "takes no value")
  check("letter with a value", "-hx " .. path, 2, "", "takes no value")
  check("no number", "--limit=x " .. path, 2, "", "expected a whole number")
  check("no number either", "--limit=-1 " .. path, 2, "", "expected a whole number")
  check("huge number", "--limit=99999999999999999999 " .. path, 2, "", "expected a whole number")
  check("unknown weight", "--weight=time " .. path, 1, "",
	"has no weight 'time', its weights are: samples, event, cpu\n")
  check("nothing left", "--no-lua --no-host " .. path, 2, "", "leave nothing")
  check("no Lua frames for coroutines", "--no-lua --coroutine " .. path, 2, "",
	"--coroutine needs the Lua frames")
  check("no Lua frames to annotate", "--no-lua --annotate=x " .. path, 2, "",
	"--annotate needs the Lua frames")
  check("a loop without waits", "--loop=uv_run " .. path, 2, "", "--loop needs --blocking; " .. SEE)
  check("a loop, other waits", "--loop=uv_run --format=top --by=syscall " .. path, 2, "", "--loop needs --blocking")
  check("a loop of nothing", "--blocking --loop= " .. path, 2, "", "'--loop': expected NAME, got nothing")
  check("a loop at the end", path .. " --blocking --loop", 2, "", "expected NAME")
  check("waits by system call, no table", "--by=syscall " .. path, 2, "", "--by needs --format=top")
  check("blocking waits, no table", "--blocking --format=tree --by=line " .. path, 2, "", "--by needs --format=top")
  check("blocking waits of a file, a table", "--blocking --annotate=x --by=line " .. path, 2, "", "--by needs --format=top")
  check("blocking waits, two outputs", "--blocking --format=top --annotate=x " .. path, 2, "", "remove one")
  check("blocking waits, two rows", "--blocking --lines --by=syscall " .. path, 2, "",
	"--lines means --by=line; remove it or --by=syscall")
  check("blocking waits compared", "--blocking --format=tree --diff=x " .. path, 2, "", "--diff needs")
  check("blocking waits of a file, compared", "--blocking --annotate=x --diff=x " .. path, 2, "", "--diff needs")
  check("value of --blocking", "--blocking=x " .. path, 2, "", "takes no value")
  for _, option in ipairs { "--blocking", "--blocking --format=folded", "--blocking --annotate=x.lua", "--format=top --by=syscall",
			    "--blocking --event=cpu" } do
    check("no waits: " .. option, option .. " " .. path, 1, "",
	  path .. ": the event 'cpu' has no waits; record a profile with the clock offcpu or wall\n")
  end
  check("two outputs", "--format=top --annotate=x " .. path, 2, "", "remove one")
  check("annotated file as output", "-o x --annotate=x " .. path, 2, "",
	"--annotate and output")
  check("annotate what has no end", "--annotate=/dev/zero " .. path, 1, "",
	"cannot read /dev/zero: it is no regular file")
  check("annotate nothing", "--annotate= " .. path, 2, "", "expected FILE")
  check("-o of nothing", "-o '' " .. path, 2, "", "expected FILE")
  check("file like an option", "-- --wrong", 1, "", "--wrong: No such file")

  -- Cut.
  local cut = path .. ".cut"
  t.write_file(cut, t.read_file(path):sub(1, -3))
  check("cut", cut, 3, "", cut .. ": offset " .. G.SPF_PROLOGUE_SIZE)
  check("cut, table", "--format=top " .. cut, 3, nil, "2 of the")
  os.remove(cut)

  -- Without the JIT.
  local status, stdout = t.shell(("'%s' -joff '%s/tools/luajit-parse-sysprof.lua' %s")
				 :format(t.luajit, t.source, path))
  t.equal(status, 0, "JIT off: status")
  t.equal(stdout, FOLDED, "JIT off: output")

  -- From another folder, and as modules of another program.
  status, stdout = t.shell(("cd / && '%s' '%s/tools/luajit-parse-sysprof.lua' %s")
			   :format(t.luajit, t.source, path))
  t.equal(stdout, FOLDED, "from another folder")
  t.equal(status, 0, "from another folder: status")
  for folder, program in pairs { ["/"] = t.source .. "/tools/", [t.source .. "/tools"] = "" } do
    status, stdout = t.shell(("export LUA_PATH=none; cd '%s' && '%s' '%sluajit-parse-sysprof.lua' %s")
			     :format(folder, t.luajit, program, path))
    t.equal(status .. stdout, 0 .. FOLDED, "modules beside the program, from " .. folder)
  end
end)

t.with_file(profile(true), function(path)
  check("lost samples", path, 0, FOLDED, path .. ": warning: samples lost: 3")
  t.contains(check("lost samples, table", "--format=top " .. path, 0),
	     "3 (3 the writer failed)", "lost samples in the table")
end)

-- Invalid input.
check("no such file", "/no/such/file", 1, "", "/no/such/file: No such file")
check("a folder", "/", 1, "", "/: Is a directory")
check("empty", "/dev/null", 1, "", "/dev/null: empty file")
check("endless", "/dev/zero", 1, "", "/dev/zero: not a sysprof profile")
check("closed input", "- <&-", 1, "", "standard input: ")
check("itself", "'" .. t.source .. "/tools/luajit-parse-sysprof.lua'", 1, "", "not a sysprof profile")

-- A repeated option: values are kept or joined, else the last one counts.
t.with_file(profile(), function(path)
  check("two formats", "--format=top --format=folded " .. path, 0, FOLDED)
end)
local options, specs = require("sysprof.cli.options"), require("sysprof.cli.runspecs").SPECS
local function key_of(key, ...)
  local values, message = options.parse(specs, { ... })
  return values and values[key] or message
end
t.equal(key_of("event", "-e", "cpu", "--event=alloc", "-eoffcpu"), "cpu,alloc,offcpu", "joined events")
t.equal(key_of("clock", "--clock=cpu,offcpu", "--clock", "alloc"), "cpu,offcpu,alloc", "joined clocks")
t.equal(table.concat(key_of("O", "-O3", "-O", "hotloop=5"), " "), "3 hotloop=5", "a list")
t.equal(key_of("interval", "-i", "1", "--interval=2"), 2, "two intervals")

-- An error of the program itself is one line, too.
local status, stdout, stderr = t.shell(("'%s' -e 'require(\"sysprof.cli.command\").new(\"it\").run(function() " ..
  "error(\"a\\nb\", 0) end)'"):format(t.luajit))
t.equal(status .. stdout .. stderr, "1it: internal error: a b\n", "an internal error")

t.finish()
