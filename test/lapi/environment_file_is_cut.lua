-- A profile of LUAJIT_SYSPROF whose file is cut short, in a program that does not check.
-- Standard error gets one line, once.

local t = require("tools_test")
local fresh = require("box").fresh

local HEAD = [[
local ffi = require("ffi")
ffi.cdef "struct rlimit { unsigned long cur, max; };\
int getrlimit(int, struct rlimit *); int setrlimit(int, const struct rlimit *);\
int truncate(const char *, long); int fork(void); int waitpid(int, int *, int); int getpid(void);\
int kill(int, int); int open(const char *, int, int); int dup2(int, int); int close(int);\
long write(int, const void *, size_t); int fcntl(int, int, ...);\
typedef struct lua_State lua_State; lua_State *luaL_newstate(void);\
void luaL_openlibs(lua_State *); void lua_close(lua_State *); void lua_settop(lua_State *, int);"
local C = ffi.C
-- No file of this process grows from now on.
function limit()
  local r = ffi.new("struct rlimit[1]")
  C.getrlimit(1, r)
  r[0].cur = 1
  assert(C.setrlimit(1, r) == 0)
end
function work(samples)
  local s, deadline = 0, os.time() + 200
  repeat
    for i = 1, 1e4 do s = s + #tostring(i) end
    assert(os.time() < deadline, "too few samples in time")
  until misc.sysprof.report().samples >= samples
end
work(3)
]]

-- Runs code with a value of the variable. Returns status, output and messages. These go
-- through pipes, because files may not grow here.
local PIPES = "{ { { LUAJIT_SYSPROF='clock=wall-signal,hz=500,%s' timeout 300 '%s' ../box.lua; echo $? >status; } " ..
  "2>&1 >&3 3>&- | cat >&2; } 3>&1 | cat; }"
local function run(value, code)
  t.write_file("box.lua", HEAD .. code)
  local _, out, err = t.shell("cd box && " .. PIPES:format(value, t.luajit))
  return tonumber(t.read_file("box/status")), out, err
end

local function message(path, reason)
  return ("LUAJIT_SYSPROF: %s: %s; the profile is incomplete\n"):format(path, reason)
end

-- With fork the path begins at the root.
local function without_folder(err)
  return (err:gsub(": /[^\n]*/box/", ": "))
end
local LARGE, GONE, CUT = "File too large", "No such file or directory", "No data available"

-- -- All failures and all ends ---------------------------------------------

local faults = {
  { "limit()", LARGE },
  { "os.remove('x.bin')", GONE },
  { "C.truncate('x.bin', 0)", CUT },
}
local ends = {
  { "", 0 }, { "os.exit(7)", 7 }, { "os.exit(7, true)", 7 },
  { "error('')", 1 }, { "coroutine.wrap(function() os.exit(7) end)()", 7 },
}
for i, fault in ipairs(faults) do
  for k, e in ipairs(ends) do
    local value = "path=x.bin" .. ({ "", ",threads=all", ",flush=thread", ",fork", ",shared" })[(i + k) % 5 + 1]
    local what = ("%s, %s %s"):format(value, fault[1], e[1])
    fresh()
    local status, _, err = run(value, fault[1] .. " work(6) " .. e[1])
    t.equal(status, e[2], what .. ": status")
    local said = without_folder(err):match("LUAJIT_SYSPROF.*")
    t.equal(said, message("x.bin", fault[2]), what)
  end
end

-- Who stops it hears it, and nobody else.
fresh()
local status, out, err = run("path=x.bin", "limit() work(6) print(misc.sysprof.stop())")
t.equal(status .. out, "0nil\tx.bin: File too large\t27\n", "stop()")
t.equal(err, "", "stop(): said once")

-- A profile of the program's own is the program's.
fresh()
status, out, err = run("path=x.bin", "misc.sysprof.stop() assert(misc.sysprof.start{ mode = 'C', path = 'y.bin' })" ..
		     "work(3) limit()")
t.equal(status .. err, "0", "a profile that the program has started")

-- -- Children, several VMs, control ----------------------------------------

fresh()
status, out, err = run("path=x.bin,fork", [[
io.stdout:flush()
local pid = C.fork()
if pid == 0 then work(3) limit() os.exit(7) end
local status = ffi.new("int[1]")
while C.waitpid(pid, status, 0) ~= pid do end
print(pid, status[0])
]])
local child, code = out:match("(%d+)\t(%d+)")
t.equal(status .. " " .. tostring(code), "0 1792", "a child")
t.equal(without_folder(err), message(("x.bin.%s"):format(child), LARGE), "a child: its file alone")

fresh()
status, out, err = run("path=x%n.bin", [[
for i = 1, 20 do
  local L = C.luaL_newstate()
  C.luaL_openlibs(L)
  C.lua_settop(L, 0)
  os.remove(("x%d.bin"):format(i + 1))
  C.lua_close(L)
end
]])
t.equal(status, 0, "many VMs")
t.equal(select(2, err:gsub("LUAJIT_SYSPROF: x%d+%.bin: [^\n]*\n", "")), 10, "many VMs: not for ever, " .. err)

fresh()
status, out, err = run("control=SIGUSR2,path=x%r.bin", [[
C.kill(C.getpid(), 12)
C.kill(C.getpid(), 12)
work(3)
limit()
]])
t.equal(status, 0, "a run by control")
t.equal(err, message("x2.bin", LARGE), "a run by control")

-- -- What standard error is ------------------------------------------------

-- The program has closed the descriptor, and its own data file has the same number.
fresh()
status = run("path=x.bin", [[
os.remove("x.bin")
C.close(2)
assert(C.open("data", 577, 384) == 2)
C.write(2, "data", 4)
]])
t.equal(status, 0, "closed")
t.equal(t.read_file("box/data"), "data", "closed: another file has nothing that is not the program's")
-- One that is appended to is a log.
fresh()
run("path=x.bin", "os.remove('x.bin') assert(C.dup2(C.open('log', 1025 + 64, 384), 2) == 2)")
t.equal(t.read_file("box/log"), message("x.bin", GONE), "a log")

-- Closed from the beginning, not readable by anybody, full, and as large as may be.
for redirect, before in pairs {
  ["2>&-"] = "",
  ["2>&4 4>&-"] = "mkfifo box/pipe && exec 3<>box/pipe 4>box/pipe 3>&- && ",
  ["2>&3"] = "mkfifo box/pipe && exec 3<>box/pipe && ",
  ["2>full"] = "echo full >box/full && ",
} do
  fresh()
  t.write_file("box.lua", HEAD .. [[
if arg[1] == "2>&3" then  -- Fills the pipe.
  local flags = C.fcntl(2, 3)
  C.fcntl(2, 4, ffi.cast("int", flags + 2048))
  local page = ("x"):rep(4096)
  while C.write(2, page, 4096) > 0 do end
  C.fcntl(2, 4, ffi.cast("int", flags))
end
if arg[1] == "2>full" then C.dup2(C.open("full", 1025, 0), 2) end
work(6)
limit()
os.exit(7)
]])
  status = t.shell(("%scd box && LUAJIT_SYSPROF=clock=wall-signal,hz=500,path=x.bin timeout 300 '%s' ../box.lua '%s' %s")
    :format(before, t.luajit, redirect, redirect ~= "2>full" and redirect or ""))
  t.equal(status, 7, redirect .. ": status")
end
t.finish()
