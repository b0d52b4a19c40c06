-- Children in several pid namespaces have the same number. Each writes a profile of its own,
-- while another one runs and after it has ended. A file of an older run is overwritten, unless
-- another process holds its lock.

local ffi = require("ffi")
local t = require("tools_test")
local parse = "'" .. os.getenv("SYSPROF_BUILD") .. "/bin/luajit-parse-sysprof' "

ffi.cdef "int open(const char *, int, ...); int flock(int, int); int close(int);"
local O_CLOEXEC, LOCK_EX = 0x80000, 2

-- A profiled program. Each of its children goes to a namespace of its own, and its child has
-- the number 1 there. These run one after the other, or all at the same time: then each
-- waits for the end of a pipe.
t.write_file("program.lua", [[
local ffi = require("ffi")
ffi.cdef "int fork(void); int waitpid(int, int *, int); int getpid(void); int unshare(int);"
ffi.cdef "int pipe(int *); long read(int, void *, size_t); int close(int); void _exit(int);"
local C, AT_ONCE = ffi.C, arg[1] == "at once"
local CLONE_NEWPID, SKIP, DONE = 0x20000000, 77, 7
local ends, byte = ffi.new("int[2]"), ffi.new("char[1]")

local function wait(pid)
  local status = ffi.new("int[1]")
  while C.waitpid(pid, status, 0) < 0 do assert(ffi.errno() == 4) end
  return math.floor(status[0] / 256)
end

local function work()
  local s, deadline = 0, os.time() + 200
  repeat
    for i = 1, 1e5 do s = s + i % 3 end
    assert(os.time() < deadline, "too few samples in time")
  until misc.sysprof.report().samples >= 30
end

local function first_of_namespace()
  assert(C.getpid() == 1)
  work()
  if AT_ONCE then
    C.close(ends[1])
    while C.read(ends[0], byte, 1) < 0 do assert(ffi.errno() == 4) end
  end
  os.exit(DONE)
end

assert(misc.sysprof.start({ mode = "C", interval = 1, clock = "wall-signal", path = "p.bin",
			    fork = true }))
assert(C.pipe(ends) == 0)
local pids, result = {}, DONE
for i = 1, 3 do
  pids[i] = C.fork()
  if pids[i] == 0 then
    if C.unshare(CLONE_NEWPID) ~= 0 then C._exit(SKIP) end
    local pid = C.fork()
    if pid == 0 then first_of_namespace() end
    C.close(ends[1]) -- Else no child would see the end of the pipe.
    C._exit(wait(pid))
  end
  if not AT_ONCE then result = wait(pids[i]) end
end
C.close(ends[1])
if AT_ONCE then
  for i = 1, 3 do result = wait(pids[i]) end
end
assert(misc.sysprof.stop())
os.exit(result)
]])

-- A profile of an older run.
t.write_file("old.lua", [[
local function old_function()
  local s = 0
  for i = 1, 1e5 do s = s + i % 3 end
  return s
end
assert(misc.sysprof.start({ mode = "C", interval = 1, path = "old.bin" }))
repeat old_function() until misc.sysprof.report().samples >= 10
assert(misc.sysprof.stop())
]])
local status, _, problem = t.shell(("'%s' old.lua"):format(t.luajit))
t.equal(status, 0, "the old profile: " .. problem)

local NAMES = { "p.bin.1", "p.bin.1.2", "p.bin.1.3", "p.bin.1.4", "p.bin.1.5" }

-- first: index of the first name that the children take.
local function check(how, first)
  for _, name in ipairs(NAMES) do os.remove(name) end
  t.write_file(NAMES[1], t.read_file("old.bin"))
  t.shell("touch -d '1 minute ago' " .. NAMES[1])
  local lock = first > 1 and ffi.C.open(NAMES[1], O_CLOEXEC)
  if lock then assert(ffi.C.flock(lock, LOCK_EX) == 0) end
  local ended, _, err = t.shell(("'%s' program.lua '%s'"):format(t.luajit, how))
  if lock then ffi.C.close(lock) end
  if ended == 77 then
    print("skipped: unshare(CLONE_NEWPID) is not allowed; root may do it")
    os.exit(77)
  end
  t.equal(ended, 7, how .. ": " .. err)
  for i = first, first + 2 do
    local name = NAMES[i]
    local read, text, message = t.shell(parse .. name)
    t.equal(read, 0, ("%s: %s is whole: %s"):format(how, name, message))
    t.contains(text, "work", ("%s: %s"):format(how, name))
    t.ok(not text:find("old_function", 1, true), ("%s: %s is new"):format(how, name))
    local samples = 0
    for n in text:gmatch(" (%d+)\n") do samples = samples + n end
    t.ok(samples >= 30, ("%s: %d samples in %s"):format(how, samples, name))
  end
  t.ok(not io.open(NAMES[first + 3]), how .. ": three files for three children")
  if lock then t.equal(t.read_file(NAMES[1]), t.read_file("old.bin"), "the locked file") end
end

check("one by one", 1)
check("at once", 1)
check("one by one", 2) -- Another process is about to write the first file.
t.finish()
