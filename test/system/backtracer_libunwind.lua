-- Code with .debug_frame only: the profiler's own tables have no step there. The module of libunwind
-- has one: then each stack is whole, from the first sample on.
-- TIMEOUT: 300
-- BASE: none, linker, libraries, C stacks; unit/host_stack_at_each_instruction tries each LuaJIT

local t = require("tools_test")
local build = os.getenv("SYSPROF_BUILD")
local MODULE = "libluajit-sysprof-libunwind.so"
local LEAST = 20	-- Samples in the chain.

if not io.open(build .. "/lib/" .. MODULE) then
  print("skipped: no libunwind, so no module; install the Debian package 'libunwind-dev'")
  os.exit(77)
end

local CHAIN = "chain;chain_aligned;chain_alloca;chain_saved;chain_large;chain_last"
local BEGIN = "main;[^%[]*main chunk [^;]*;"
local WHOLE = BEGIN .. "outer [^;]*;" .. CHAIN .. ";inner [^;]*;" .. CHAIN .. ";chain_spin$"
local PROGRAM = [[
local chain = require("debug_frame_only")
local function inner() chain(function() end, 10) end
local function outer() chain(inner, 0) end
]]

-- Lua's name of a C function stands above its symbol, if the function was found by the end.
local function without_name(stack)
  return (stack:gsub(";debug_frame_only;chain;", ";chain;"))
end

-- Samples in the leaf of the inner chain: of all, and with whole stacks.
local function judge(path, pattern)
  local status, out, err = t.parse(path)
  t.equal(status, 0, path .. ": status; " .. err)
  local all, whole = 0, 0
  for stack, count in out:gmatch("([^\n]+) (%d+)\n") do
    if stack:find(";chain_spin$") then
      stack, all = without_name(stack), all + count
      if stack:find(pattern or WHOLE) then whole = whole + count
      else t.ok(stack:find("[", 1, true), "a stack is wrong and does not say so: " .. stack) end
    end
  end
  t.ok(all >= LEAST, ("%s: %d samples in the chain:\n%s"):format(path, all, out))
  return all, whole, out
end

-- Runs a program, of which the options of start are a part.
local function run(path, options, program, environment)
  t.write_file("program.lua", PROGRAM .. ([[
local options = { mode = "C", hz = 1000, path = %q, force = true, clock = "wall-signal" %s }
local function samples() return misc.sysprof.report().samples end
]]):format(path, options) .. program)
  local status, out, err = t.shell((environment or "") .. " '" .. t.luajit .. "' program.lua")
  t.equal(status, 0, path .. ": " .. out .. err)
  return out, err
end

local SIMPLE = [[
assert(misc.sysprof.start(options))
repeat outer() until samples() > 300
local r = misc.sysprof.report()
assert(misc.sysprof.stop())
]]

-- Our own walk: no stack is whole, and each says so.
run("own.bin", "", SIMPLE)
local _, whole = judge("own.bin")
t.equal(whole, 0, "own tables: whole stacks")
t.ok(not t.read_file("own.bin"):find("libunwind", 1, true), "own tables: no record of libunwind")
run("own.bin", ', backtracer = "own"', SIMPLE)
_, whole = judge("own.bin")
t.equal(whole, 0, "own tables by name: whole stacks")

-- With the module, all of them are.
for _, more in ipairs { "", ', flush = "thread"', ', threads = "all"' } do
  run("all.bin", ', backtracer = "libunwind"' .. more, SIMPLE)
  local all, rest
  all, whole, rest = judge("all.bin")
  t.equal(whole, all, "libunwind" .. more .. ": whole stacks:\n" .. rest)
  t.contains(t.read_file("all.bin"), "\10backtracer\9libunwind", "record of the backtracer")
end

-- By the variable. The library is there from the start.
t.write_file("program.lua", PROGRAM .. "for _ = 1, 300 do outer() end")
local status, out, err = t.shell(("LUAJIT_SYSPROF=path=env.bin,force,hz=1000,backtracer=libunwind " ..
				  "LD_PRELOAD='%s/test/debug_frame_only.so' '%s' program.lua")
				 :format(build, t.luajit))
t.equal(status, 0, "by the variable: " .. out .. err)
local all, rest
all, whole, rest = judge("env.bin")
t.equal(whole, all, "by the variable: whole stacks:\n" .. rest)

-- The library comes after the start: whole as soon as the background thread has seen it.
t.write_file("late.lua", ([[
local options = { mode = "C", hz = 1000, path = "late.bin", force = true, clock = "wall-signal", backtracer = "libunwind" }
assert(misc.sysprof.start(options))
local chain = require("debug_frame_only")
local function early() chain(function() end, 10) end
local function later() chain(function() end, 10) end
local function samples() return misc.sysprof.report().samples end
repeat early() until samples() > 1000
repeat later() until samples() > 1300
misc.sysprof.stop()
]]))
status, out, err = t.shell("'" .. t.luajit .. "' late.lua")
t.equal(status, 0, "late: " .. out .. err)
status, out = t.parse("late.bin")
all, whole = 0, 0
for stack, count in out:gmatch("([^\n]+) (%d+)\n") do
  if stack:find(";chain_spin$") and stack:find(";later ", 1, true) then
    stack, all = without_name(stack), all + count
    if stack:find(BEGIN .. "later [^;]*;" .. CHAIN .. ";chain_spin$") then whole = whole + count end
  end
end
t.ok(all >= LEAST, "late: samples\n" .. out)
t.equal(whole, all, "late: whole stacks\n" .. out)

-- Libraries that come and go, one at the addresses of the other. Both have .debug_frame only, with
-- frames of other sizes. Each stack in them is whole, or says that it is not.
local function compile(command)
  local s, o, e = t.shell(("cc %s -O1 -I%s/include/luajit-2.1 %s"):format(os.getenv("CFLAGS") or "", build, command))
  t.equal(s, 0, command .. ": " .. o .. e)
end
compile(("-o plugin_host '%s/test/lib/hosts/plugin_host.c' -L%s/lib -Wl,-rpath,%s/lib -lluajit-5.1 -lm -ldl -lpthread")
	:format(t.source, build, build))
for name, flags in pairs { one = "-DFACTOR=31", two = "-DFACTOR=33 -fno-omit-frame-pointer" } do
  compile(("-g1 -fPIC -shared -Wl,--build-id=sha1 -fno-asynchronous-unwind-tables -DINNER=inner_%s %s -o %s.so '%s/test/lib/hosts/plugin.c'")
	  :format(name, flags, name, t.source))
end
compile("-o three.so -shared -x c /dev/null")
local function come_and_go(ending, libraries)
  local s, o, e = t.shell("LIBUNWIND=1 ./plugin_host p.bin " .. ending .. " " .. libraries)
  t.equal(s, 0, libraries .. ": " .. o:sub(-200) .. e)
  s, o, e = t.parse("p.bin")
  t.equal(s, 0, libraries .. ": " .. e)
  local right, broken = { one = 0, two = 0 }, 0
  for stack, count in o:gmatch("([^\n]+) (%d+)\n") do
    local name = stack:match("inner_(%a+)")
    if stack:find("[host frames missing", 1, true) then broken = broken + count
    elseif name then
      stack = stack:gsub(";plugin_run;plugin_run;", ";plugin_run;")	-- Lua's name, and the symbol.
      t.ok(stack:find("^[^%[]*;main;run;[^%[]*;main chunk [^;]*;plugin_run;inner_%a+"), "a wrong stack: " .. stack)
      right[name] = right[name] + count
    end
  end
  t.ok(right.one > broken and right.two > broken, ("%s: %d and %d whole stacks, %d broken\n%s")
						  :format(libraries, right.one, right.two, broken, o))
end
come_and_go("stop", ("./one.so ./two.so "):rep(8))
come_and_go("cycles", "./one.so ./two.so ./one.so ./two.so thread:./three.so")

-- Without the module: one sentence with the file and the package, no profile, no file.
local function refuse(program, environment)
  t.write_file("refuse.lua", program)
  return t.shell(environment .. " ./alone/bin/luajit refuse.lua")
end
t.shell("rm -rf alone && mkdir -p alone/bin && cp '" .. t.luajit .. "' alone/bin/luajit")
local PACKAGE = "install the Debian package 'libluajit-sysprof-libunwind'"
status, out, err = refuse([[
local ok, message, number = misc.sysprof.start { mode = "C", path = "refused.bin", backtracer = "libunwind" }
print(ok, message, number, io.open("refused.bin"), misc.sysprof.stop())
]], "")
t.equal(status, 0, "without the module: status; " .. err)
t.equal(out, "nil\tthe module of the backtracer libunwind did not load: " .. MODULE ..
	     ": cannot open shared object file: No such file or directory; " .. PACKAGE ..
	     "\t2\tnil\tnil\tprofiler is not running\t22\n", "without the module")
status, out, err = refuse("print('runs')", "LUAJIT_SYSPROF=path=refused.bin,backtracer=libunwind")
t.equal(status, 0, "without the module, by the variable: status")
t.equal(out, "runs\n", "without the module, by the variable: the program")
t.contains(err, PACKAGE, "without the module, by the variable: the message")
t.ok(not io.open("refused.bin"), "without the module, by the variable: no file")

-- A file that is not a module of this version.
t.shell("mkdir -p alone/lib && cp '" .. build .. "/test/nameless.so' alone/lib/" .. MODULE ..
	" || cp '" .. build .. "/test/libnameless.so' alone/lib/" .. MODULE)
status, out = refuse([[print(select(2, misc.sysprof.start { mode = "C", path = "refused.bin", backtracer = "libunwind" }))]], "")
t.equal(status, 0, "another module: status")
t.contains(out, PACKAGE, "another module")

-- Beside the program's own module.
t.shell("cp '" .. build .. "/lib/" .. MODULE .. "' alone/lib/")
status, out = refuse([[print(misc.sysprof.start { mode = "C", path = "found.bin", force = true, backtracer = "libunwind" })]], "")
t.equal(out, "true\n", "the module in lib beside bin")

-- A wrong name.
status, out = refuse([[print((select(2, misc.sysprof.start { mode = "C", path = "refused.bin", backtracer = "gdb" })))]], "")
t.equal(out, "profiler misuse: option 'backtracer' is 'gdb'; expected own or libunwind\n", "a wrong name")

t.finish()
