-- Libraries that are loaded and unloaded during a profile, one at the addresses of the
-- other. Each sample has the names of the library that was loaded then.
-- TIMEOUT: 600
-- BASE: none, linker, libraries, C stacks; unit/host_stack_at_each_instruction tries each LuaJIT

local t = require("tools_test")
local build, source = os.getenv("SYSPROF_BUILD"), os.getenv("SYSPROF_SOURCE")
local cflags = (os.getenv("CFLAGS") or "") .. " -I" .. build .. "/include/luajit-2.1"
local LEAST = 40	-- Samples in a library, of 60. A few come around the calls.
local FEW = 20

local function run(command)
  local status, out, err = t.shell(command)
  if status ~= 0 then error(command .. ": " .. out .. err) end
  return out
end

local function compile(name, flags)
  run(("cc %s -O1 -fPIC -shared -Wl,--build-id=sha1 %s -o %s.so '%s/test/lib/hosts/plugin.c'")
      :format(cflags, flags, name, source))
end

-- All addresses are the same in both.
local function make_libraries(flags)
  compile("one", "-DINNER=inner_one -DFACTOR=31 " .. flags)
  compile("two", "-DINNER=inner_two -DFACTOR=33 " .. flags)
end

-- Runs the host program with libraries that have to be at the same address, which
-- the kernel chooses.
local function profile(what, ending, libraries, program)
  local place, other
  for _ = 1, 5 do
    local command = ("./%s p.bin %s %s"):format(program or "plugin_host", ending, libraries)
    local status, out = t.shell(command)
    t.equal(status, ending == "kill" and 137 or 0, what .. ": status; " .. out)
    place, other = nil, nil
    for at in out:gmatch(" (0x%x+)\n") do
      if place and at ~= place then other = at end
      place = place or at
    end
    t.ok(place, what .. ": " .. out)
    if not other then return end
  end
  print(("skipped: %s: libraries are at %s and %s, expected the same address")
	:format(what, place, other))
  os.exit(77)
end

-- Compares the samples of each name with the expected value: true for samples in a
-- library, false for no samples, "few" for places without a symbol, such as the procedure
-- linkage table. The stacks of nearly all samples go through the right functions.
local function check(what, expected, options)
  local status, out, err = t.parse((options or "") .. " p.bin")
  t.equal(status, what == "killed" and 3 or 0, what .. ": " .. err)
  local n, inner, right = {}, 0, 0
  if expected.inner_one and expected.inner_two then
    t.ok(not out:find("kept_run;plugin_run;inner_one", 1, true), what .. ": Lua's name of the first one")
  end
  for stack, count in out:gmatch("([^\n]+) (%d+)\n") do
    for name in pairs(expected) do
      if stack:find(name, 1, true) then n[name] = (n[name] or 0) + count end
    end
    if stack:find("inner_", 1, true) then
      -- Lua's name of the function, if its library stays at its place.
      stack = stack:gsub(";kept_run;plugin_run;", ";plugin_run;"):gsub(";plugin_run;plugin_run;", ";plugin_run;")
      inner = inner + count
      if stack:find("^[^%[]*;main;run;[^%[]*;main chunk [^;]*;plugin_run;inner_%a+") then
	right = right + count
      end
    end
  end
  for name, there in pairs(expected) do
    local got = n[name] or 0
    t.ok(there == true and got >= LEAST or there == "few" and got <= FEW or
	 there == false and got == 0, ("%s: %d samples of %s"):format(what, got, name))
  end
  t.ok(right >= inner * 0.9, ("%s: %d of %d samples have the right stack:\n%s")
			     :format(what, right, inner, out))
end

local BOTH = { inner_one = true, inner_two = true, [".so+"] = "few" }

run(("cc %s -O1 -o plugin_host '%s/test/lib/hosts/plugin_host.c' '-L%s/lib' '-Wl,-rpath,%s/lib' " ..
     "-lluajit-5.1 -lm -ldl -lpthread"):format(cflags, source, build, build))
make_libraries("")

profile("one after the other", "stop", "./one.so ./two.so")
check("one after the other", BOTH)
profile("the second one stays", "stop", "./one.so keep:./two.so")
check("the second one stays", { inner_one = true, inner_two = true, [".so+"] = "few",
				["kept_run;plugin_run;inner_two"] = true })
run("mv one.so gone.so")
check("file of the first one is gone", { inner_one = false, inner_two = true, ["one.so+0x"] = true })
run("mkdir -p names && cp gone.so names/one.so")
check("its file is in a folder", BOTH, "--symbols=names")
run("cp two.so one.so")
check("its file is another one", { inner_one = false, inner_two = true, ["one.so+0x"] = true })
check("--symbols has another one, too", { inner_one = false, ["one.so+0x"] = true }, "--symbols=.")
run("mv gone.so one.so")

profile("ends by exit", "exit", "./one.so keep:./two.so")
check("ends by exit", BOTH)
profile("killed", "kill", "./one.so ./two.so")
check("killed", BOTH)

profile("one again", "stop", "./one.so ./two.so ./one.so keep:./two.so")
check("one again", BOTH)

-- In and out, as fast as it goes; then the same beside a thread that does it, too.
local status, out
run("cp two.so three.so")
for _, beside in ipairs { "", " thread:./three.so" } do
  status, out = t.shell("./plugin_host p.bin cycles ./one.so ./two.so" .. beside)
  t.equal(status, 0, "cycles: status; " .. out:sub(-200))
  check("cycles" .. beside, { inner_one = true, inner_two = true, [".so+"] = "few" })
end

-- A new version takes the place of the file, and is loaded by the same path.
run("cp one.so lib.so && cp two.so new.so")
profile("new version", "stop", "keep:./lib.so")
check("one version", { inner_one = true, inner_two = false })
profile("new version", "stop", "./lib.so move:./new.so")
check("new version", { inner_one = false, inner_two = true, ["lib.so+0x"] = true })

-- Deleted files: all names of the program are known, of a library the exported ones.
for _, style in ipairs { "gnu", "sysv" } do
  local what = "deleted, hash table " .. style
  make_libraries("-Wl,--hash-style=" .. style)
  run("cp plugin_host gone_host")
  profile(what, "stop", "gone:./one.so", "gone_host")
  check(what, { plugin_run = true, ["one.so+0x"] = true, inner_one = false, [";main;run;"] = true })
  status, out = t.parse("--format=json p.bin")
  t.equal(status, 0, what .. ": json")
  local here = run("pwd"):match("[^\n]+")
  t.contains(out, ('"path":"%s/one.so"'):format(here), what .. ": path of the library")
  t.contains(out, ('"path":"%s/gone_host"'):format(here), what .. ": path of the program")
end

make_libraries("-Wl,--build-id=none")
profile("no build-ids", "stop", "./one.so keep:./two.so")
check("no build-ids", { inner_one = false, inner_two = true, ["one.so+0x"] = true })

t.finish()
