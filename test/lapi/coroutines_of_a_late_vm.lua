-- A VM that does not serve a dump of coroutines within a second: a file tells its running stack,
-- where coroutines wait as far as known, and what is missing. The dump follows when the VM answers.
-- TIMEOUT: 900
-- BASE: none, files, sockets, signals, processes; the VM runs a loop, or none
-- WAITS: most of its time
-- LONG: 22

local t = require("tools_test")
local box = require("box")
local ffi = require("ffi")
ffi.cdef("int kill(int, int);")

local SIGUSR1, SIGTERM = 10, 15

local fresh, exists, contents, put, wait = box.fresh, box.exists, box.contents, box.put, box.wait

-- Three coroutines yield at line 10, and three at line 11, twice. One of each is collected.
local HEAD = [[
local ffi = require("ffi")
local C = ffi.C
ffi.cdef "int getpid(void); int pause(void); int raise(int); unsigned sleep(unsigned);\
int pthread_sigmask(int, const unsigned long *, unsigned long *);"
kept = {}
function start(f)
  for i = 1, 3 do
    kept[#kept + 1] = coroutine.create(f) coroutine.resume(kept[#kept]) end
end
start(function() while true do coroutine.yield() end end)
start(function() local function deeper() pcall(coroutine.yield) coroutine.yield(1) end
  while true do deeper() end end)
for i = 4, 6 do coroutine.resume(kept[i]) end
coroutine.resume(kept[1])
kept[3], kept[6] = nil, nil
collectgarbage()
collectgarbage()
function is_over()
  local file = io.open("end")
  if file then file:close() end
  return file ~= nil
end
function say_pid()
  local file = io.open("pid.tmp", "w")
  file:write(C.getpid())
  file:close()
  os.rename("pid.tmp", "pid")
end
]]

-- Each begins with a call of busy in a coroutine. From say_pid() on, it does not answer until the test lets it go on. The
-- call that looks at nothing ends by itself.
local BODIES = {
  loop = { [[
ffi.cdef "int open(const char *, int, int); int ftruncate(int, long); void *mmap(void *, size_t, int, int, int, long);"
local fd = C.open("go_on", 66, 384)	-- O_RDWR | O_CREAT.
C.ftruncate(fd, 8)
local go_on, turns = ffi.cast("int *", C.mmap(nil, 8, 3, 1, fd, 0)), ffi.cast("int *", C.mmap(nil, 8, 3, 34, -1, 0))
local function spin() while go_on[0] == 0 do turns[0] = turns[0] + 1 end return 1 end	-- The store forces the load.
function busy() say_pid() return (spin()) end]],
    "    spin (../box.lua:33)\n    busy (../box.lua:34)\n", "    [compiled code]\n" },
  match = { [[
local function try(length) return ((("a"):rep(length)):find(("a-"):rep(4) .. "b")) end
local t0 = os.clock()
try(60)
local n = 60 * (3 / (os.clock() - t0)) ^ (1 / 5)	-- Three seconds of five nested loops.
function busy() say_pid() return (try(n)) end]],
    "    string.find\n    try (../box.lua:29)\n    busy (../box.lua:33)\n", "str_find_aux" },
  read = { [[
function busy()
  local pipe = io.popen("until test -e go_on; do sleep 0.02; done")
  say_pid()
  local s = pipe:read("*a")
  pipe:close()
  return s
end]],
    "    file:read\n    busy (../box.lua:32)\n", "read\n    _IO_" },	-- Or __read, as the C library names it.
}

local function let_go_on()
  local file = io.open("box/go_on", "r+b") or assert(io.open("box/go_on", "wb"))	-- A program may have mapped it.
  file:write(("x"):rep(8))
  file:close()
end

local RUN = [[

local co = coroutine.wrap(function() local r = busy() return r end)
co()
while not is_over() do C.sleep(0) coroutine.resume(kept[1]) end
]]

-- Starts a program; it is busy then.
local function start_program(value, code)
  fresh()
  box.start(value, HEAD .. code .. RUN)
  return tonumber(wait("the program", function() return exists("pid") and contents("pid") end))
end

local function wait_file(path, what, last)
  wait(what .. ": " .. path, function() return contents(path):find(last, 1, true) end)
  return contents(path)
end

local KNOWN = "\nwaiting coroutines that have yielded since coroutine-wait is recorded\n"
local UNKNOWN = "\nWhere coroutines wait is known only while coroutine-wait is recorded.\n"

for name, body in pairs(BODIES) do
  for _, event in ipairs { "", "coroutine-wait" } do
    local what = name .. " " .. event
    local pid = start_program("coroutines=SIGUSR1,path=r%r.bin" .. (event == "" and ",paused" or ",clock=" .. event), body[1])
    t.equal(ffi.C.kill(pid, SIGUSR1), 0, "kill")
    local text = wait_file("r1.bin.coroutines", what, event == "" and UNKNOWN or KNOWN)
    t.equal(text:find(("VM 1 of process %d has not answered for a second: it runs compiled or C code.\n" ..
      "The list of its coroutines is missing. It follows in the next file when the VM answers.\n"):format(pid), 1, true), 1,
      what .. ": the head: " .. text)
    t.contains(text, "\nrunning\n", what)
    t.contains(text, body[2] .. "    ../box.lua:", what .. ": the running stack")
    t.contains(text, "    [coroutine]\n    coroutine.wrap.iterator\n    main chunk (../box.lua:", what .. ": the resumer")
    t.contains(text, body[3], what .. ": " .. text)
    t.contains(text, "\nC stack\n", what)
    t.contains(text, "    main\n", what .. ": the C stack")
    if event ~= "" then
      t.contains(text, "    2 at ../box.lua:10\n", what .. ": places: " .. text)
      t.contains(text, "    2 at ../box.lua:11\n", what .. ": places")
      local n = 0
      for count in text:sub((text:find(KNOWN, 1, true))):gmatch("    (%d+) at ") do n = n + tonumber(count) end
      t.equal(n, 4, what .. ": all that wait")
    end
    -- The program answers at last.
    let_go_on()
    local dump = wait_file("r2.bin.coroutines", what, "running\n    ")
    t.ok(dump:find("^%d+ coroutines? of process " .. pid .. ": 1 running"), what .. ": the dump: " .. dump)
    t.contains(dump, "2 suspended", what .. ": the dump")
    box.stop(what)
    t.equal(contents("err"), "", what .. ": messages")
    t.equal(box.files("*coroutines"), "r1.bin.coroutines\nr2.bin.coroutines\n", what .. ": one file each")
  end
end

-- By a control file. A second request while the first one waits makes no second file.
local pid = start_program("control=" .. select(2, t.shell("pwd")):gsub("\n", "") .. "/box/control,paused,path=r%r.bin",
			  BODIES.loop[1])
put("control", "coroutines")
wait_file("r1.bin.coroutines", "by a file", UNKNOWN)
put("control", "coroutines again")
t.nap(1500)
t.equal(box.files("*coroutines"), "r1.bin.coroutines\n", "by a file: one file")
let_go_on()
wait_file("r2.bin.coroutines", "by a file", "running\n    ")
box.stop("by a file")
t.ok(pid > 0)

-- A path that no file can have.
pid = start_program("coroutines=SIGUSR1,paused,path=" .. ("x"):rep(9000), BODIES.read[1])
t.equal(ffi.C.kill(pid, SIGUSR1), 0, "kill")
wait("a long path", function() return contents("err"):find("\n", 1, true) end)
t.contains(contents("err"), "LUAJIT_SYSPROF: dump of the coroutines of VM 1: x", "a long path")
t.contains(contents("err"), "File name too long", "a long path")
let_go_on()
box.stop("a long path")

-- A thread that blocks the signal, and waits.
fresh()
box.start("coroutines=SIGUSR1,paused,path=r%r.bin", HEAD .. [[
local mask = ffi.new("unsigned long[16]", -1ULL)
C.raise(10)
C.pthread_sigmask(0, mask, nil)
say_pid()
while not is_over() do C.sleep(1) end
]])
pid = tonumber(wait("a blocked signal", function() return exists("pid") and contents("pid") end))
wait_file("r1.bin.coroutines", "a blocked signal: before", "running\n    ")
t.equal(ffi.C.kill(pid, SIGUSR1), 0, "kill")
t.nap(2000)
t.equal(box.files("*coroutines"), "r1.bin.coroutines\n",
	"a blocked signal: it is pending, so nobody knows of the request")
box.stop("a blocked signal")

-- The program ends while its stack is wanted.
pid = start_program("coroutines=SIGUSR1,paused,path=r%r.bin", BODIES.read[1])
t.equal(ffi.C.kill(pid, SIGUSR1), 0, "kill")
t.nap(1020)
t.equal(ffi.C.kill(pid, SIGTERM), 0, "kill")
wait("an end meanwhile", function() return exists("status") end)
t.equal(contents("status"), "143\n", "an end meanwhile: status")
let_go_on()
t.finish()
