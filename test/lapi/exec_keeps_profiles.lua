-- exec() keeps the process and the value of LUAJIT_SYSPROF. The next program's profile stands beside the one before:
-- PATH.2, PATH.3. Another process replaces its own name as ever, and so does a later VM of the same program.
-- TIMEOUT: 300
-- BASE: none, files, sockets, signals, processes; the VM runs a loop, or none

local t = require("tools_test")

os.execute("rm -rf ./*")

-- Each program works in a function of its own, and calls exec with the next one.
local PROGRAM = [[
local ffi = require("ffi")
ffi.cdef "int execv(const char *, char *const *); int fork(void); int waitpid(int, int *, int);"
local function %s()
  local s, deadline = 0, os.time() + 200
  repeat
    for i = 1, 1e5 do s = s + i %% 3 end
    assert(os.time() < deadline, "too few samples in time")
  until misc.sysprof.report().samples >= 5
end
%s()
assert(misc.sysprof.dump()) -- exec() cuts off the last second.
if arg[1] == "fork" then
  table.remove(arg, 1)
  local pid = ffi.C.fork()
  if pid > 0 then ffi.C.waitpid(pid, nil, 0) return end
end
if arg[1] then
  local argv = ffi.new("const char *[?]", #arg + 3)
  argv[0], argv[1] = arg[-1], arg[1]
  for i = 2, #arg do argv[i] = arg[i] end
  ffi.C.execv(arg[-1], ffi.cast("char *const *", argv))
  os.exit(9)
end
]]
for _, name in ipairs { "first", "second", "third" } do
  t.write_file(name .. ".lua", PROGRAM:format(name, name))
end

-- Runs programs, each by exec of the one before. Returns the names of the files, sorted.
local function run(value, programs)
  local status, _, err = t.shell(("LUAJIT_SYSPROF=%s '%s' %s"):format(value, t.luajit, programs))
  t.equal(status, 0, value .. ": status: " .. err)
  t.equal(err, "", value .. ": messages")
  local _, out = t.shell("ls p.*")
  local list = {}
  for name in out:gmatch("[^\n]+") do list[#list + 1] = name end
  return list
end

-- Returns the names of the programs in a profile. That of a program before exec() has no end.
local function programs_in(path)
  local _, folded = t.parse("'" .. path .. "'")
  local list = {}
  for _, name in ipairs { "first", "second", "third" } do
    if folded:find(name .. " (", 1, true) then list[#list + 1] = name end
  end
  return table.concat(list, " ")
end

-- Each file has one program.
local function check(value, programs, expected)
  os.execute("rm -f p.*")
  local list, found = run(value, programs), {}
  for i, path in ipairs(list) do found[i] = programs_in(path) end
  table.sort(found)
  t.equal(table.concat(found, ", "), expected, value .. ": " .. table.concat(list, " "))
  return list
end

local THREE, EACH = "first.lua second.lua third.lua", "first, second, third"
local list = check("path=p.%p.%n.bin,hz=200", THREE, EACH)
t.ok(list[3] and list[2] == list[1] .. ".2" and list[3] == list[1] .. ".3", "endings: " .. table.concat(list, " "))
for _, options in ipairs { "force", "shared", "fork", "flush=vm", "control=SIGUSR2" } do
  check("path=p.bin,hz=200," .. options, THREE, EACH)
end

-- A program without a sample leaves no file that must stay: a chain of them takes one name.
os.execute("rm -f p.*")
t.write_file("chain.lua", [[
local ffi = require("ffi")
ffi.cdef "int execv(const char *, char *const *);"
local left = tonumber(arg[1])
if left > 0 then
  local argv = ffi.new("const char *[4]", arg[-1], arg[0], tostring(left - 1))
  ffi.C.execv(arg[-1], ffi.cast("char *const *", argv))
  os.exit(9)
end
]])
t.equal(table.concat(run("path=p.bin,hz=1", "chain.lua 120"), " "), "p.bin", "a chain of short programs")

-- A file of the user in the place of a later name stays.
os.execute("rm -f p.*")
t.write_file("p.bin.2", "a letter")
run("path=p.bin,hz=200", "first.lua second.lua")
t.equal(t.read_file("p.bin.2"), "a letter", "a letter")
t.equal(programs_in("p.bin") .. ", " .. programs_in("p.bin.3"), "first, second", "beside a letter")
os.execute("rm -f p.*")

-- Another process replaces the file of the one before.
check("path=p.bin,hz=200", "first.lua", "first")
t.equal(table.concat(run("path=p.bin,hz=200", "second.lua"), " "), "p.bin", "one file")
t.equal(programs_in("p.bin"), "second", "the later process")

-- A forked child has another number, and so has the program that it calls.
check("path=p.%p.%n.bin,hz=200", "first.lua fork second.lua", "first, second")

t.finish()
