-- The summary and the report say what a profile lacks of a program: its children, and the time after its end.
-- BASE: none, it reads no profile of this LuaJIT

local programs = require("live_programs")
local t = require("tools_test")

local try = programs.try

os.execute("rm -rf ./*")

local FORKS = [[
local ffi = require("ffi")
ffi.cdef "int fork(void); int pause(void); int usleep(unsigned); int waitpid(int, int *, int);"
local function burn() local s, t0 = 0, os.clock() repeat for i = 1, 1e5 do s = s + i % 7 end until os.clock() - t0 > 0.2 end
for _ = 1, tonumber(arg[1]) do
  local pid = ffi.C.fork()
  if pid == 0 then
    burn()
    if arg[2] == "stay" then
      io.open("up", "w"):close()
      ffi.C.pause()
    end
    os.exit(0)
  end
  if arg[2] == "wait" then ffi.C.waitpid(pid, nil, 0) end
  while arg[2] == "stay" and not io.open("up") do ffi.C.usleep(1000) end
end
]]
t.write_file("forks.lua", FORKS)

-- -- run -------------------------------------------------------------------

local function run(arguments)
  local status, out, err = try("run " .. arguments)
  t.equal(status, 0, arguments .. ": status: " .. err)
  return err, out
end

local function report(arguments)
  local status, out, err = try("report " .. arguments)
  t.equal(status, 0, arguments .. ": status: " .. err)
  return (out:gsub("\n          ", " ")), err
end

local LACKS = "the program forked %s that this profile lacks; 'run --fork' or LUAJIT_SYSPROF=fork takes each, " ..
	      "'record --children' those that are there\n"
local err = run("-o alone.bin forks.lua 1 wait")
t.contains(err, LACKS:format("a child"), "one child")
t.ok(not err:find("--hz=1000", 1, true), "one child: more samples are no remedy: " .. err)
t.contains(report("alone.bin"), "\nforked    " .. LACKS:format("a child"), "one child: report")
err = run("-o three.bin forks.lua 3 wait")
t.contains(err, LACKS:format("3 children"), "three children")
err = run("-o none.bin forks.lua 0")
t.ok(not err:find("fork", 1, true) and not report("none.bin"):find("forked", 1, true), "no child: " .. err)

err = run("--fork -o own.bin forks.lua 2 wait")
t.ok(not err:find("lacks", 1, true) and not err:find("still run", 1, true), "own profiles: " .. err)
t.contains(err, " of 3 processes, written to own.bin\n", "own profiles: times of several processes")
t.contains(err, "burn (forks.lua:3)", "own profiles: their samples")
t.contains(err, "\nluajit-sysprof: with the profiles of 2 children: own.bin.", "own profiles: children")
local files = err:match("next: luajit%-sysprof report (own%.bin own%.bin%.%d+ own%.bin%.%d+), ")
t.ok(files, "own profiles: what to type: " .. err)
t.contains(report("own.bin"), "\nforked    2 children have profiles of their own, FILE.PID\n", "own profiles: the script's alone")
local whole = report(files or "")
t.contains(whole, "burn (forks.lua:3)", "own profiles: all")
t.ok(not whole:find("\nforked ", 1, true), "own profiles: all are there: " .. whole)
t.contains(report("own.bin $(ls own.bin.[0-9]* | head -n 1)"), "\nforked    a child has a profile of its own, FILE.PID\n",
	   "own profiles: one is missing")

-- Other programs in the same profile are no children.
t.contains(report("own.bin alone.bin none.bin"), "\nforked    " .. LACKS:format("a child"), "others: the first fact counts")
t.contains(report("own.bin none.bin"), "\nforked    2 children have profiles of their own, FILE.PID\n", "others")
err = run("--fork -o 'own one.bin' forks.lua 1 wait")
t.ok(err:find("next: luajit%-sysprof report 'own one%.bin' 'own one%.bin%.%d+', "), "a name with a space: " .. err)

-- Children that run on.
local function stays(output, what)
  os.remove("up")
  local message = run("--fork -o " .. output .. " forks.lua 1 stay")
  local pid = tonumber(message:match("child (%d+) still runs; "))
  t.ok(pid and t.is_alive(pid), "a child that runs on: " .. message)
  t.contains(message, " still runs; " .. what .. "\n", output)
  t.ok(not message:find("warning: ", 1, true), output .. ": nothing is damaged: " .. message)
  if pid then programs.adopt(pid) end
end
stays("stay.bin", "its profile is complete when it ends")
stays("stay.folded", "what follows is not recorded")

-- Files of others with such names.
t.write_file("plants.lua", "for _, name in ipairs { 'odd.bin.1', 'odd.bin.77' } do local f = io.open(name, 'w') f:write('a letter') f:close() end " ..
	     "io.open('odd.bin.2', 'w'):close() os.execute('mkfifo odd.bin.3') " .. FORKS)
err = run("--fork -o odd.bin plants.lua 1 wait")
t.contains(err, ": odd.bin.3, odd.bin.1, odd.bin.77 are no profiles of this user; they are left out\n", "foreign files")
t.contains(err, "with the profile of a child: odd.bin.", "foreign files: the child's")
t.ok(not err:find("still run", 1, true), "foreign files: an empty one is no running child: " .. err)
t.equal(t.read_file("odd.bin.1"), "a letter", "foreign files stay")

-- -- record ----------------------------------------------------------------

local BRIEF = "local f repeat for _ = 1, 1e6 do end f = io.open('enough') until f\n"
local brief = programs.start("brief.lua", BRIEF)
programs.spawn_for_status(("%s record -d 1h -o brief.bin %d >out 2>log"):format(programs.COMMAND, brief))
programs.wait_for_samples(brief, "main chunk (brief.lua)")
t.write_file("enough", "")
t.equal(programs.status(), 0, "the program ends: status")
t.ok(t.content("log"):find(("process %d %%(brief%%.lua%%) ended after %%d+%%.%%d of 3600 s\n"):format(brief)),
     "the program ends: " .. t.content("log"))

os.remove("enough")
brief = programs.start("brief.lua", BRIEF)
programs.spawn_for_status(("%s record -d 1h -o brief.bin %d >out 2>log"):format(programs.COMMAND, brief))
programs.wait_for_samples(brief, "main chunk (brief.lua)")
try("stop " .. brief)
t.equal(programs.status(), 0, "another client's stop: status")
t.ok(t.content("log"):find(("process %d %%(brief%%.lua%%) ended its recording after %%d+%%.%%d of 3600 s\n"):format(brief)),
     "another client's stop: " .. t.content("log"))
local _
_, _, err = try("record -d 300ms -o brief.bin " .. brief)
t.ok(not err:find("after", 1, true), "the whole time: " .. err)

programs.finish()
