-- A live program blocks all signals and reads them by signalfd(). Commands beside it record and dump it, and it reads no signal
-- of ours: neither a tick nor one that wakes the VM.
-- TIMEOUT: 300
-- BASE: none, a command beside a program; tools/live_programs tries each LuaJIT
-- WAITS: half of its time

local programs = require("live_programs")
local t = require("tools_test")

os.execute("rm -rf ./*")

local BLOCKS = [[
  local ffi = require("ffi")
  local C = ffi.C
  ffi.cdef "int sigfillset(void *); int pthread_sigmask(int, const void *, void *); int signalfd(int, const void *, int);"
  ffi.cdef "long read(int, void *, size_t); long syscall(long, ...);"
  local SIG_SETMASK, NONBLOCK, RT_SIGPROCMASK = 2, 2048, 14
  local set, info = ffi.new("unsigned char[128]"), ffi.new("int[32]")
  C.sigfillset(set)
  local fd = C.signalfd(-1, set, NONBLOCK)
  assert(fd >= 0)
  if arg[1] == "bare" then	-- The C library's own signals, too.
    ffi.fill(set, 128, 255)
    assert(C.syscall(RT_SIGPROCMASK, ffi.cast("int", SIG_SETMASK), set, nil, ffi.cast("size_t", 8)) == 0)
  else
    assert(C.pthread_sigmask(SIG_SETMASK, set, nil) == 0)
  end
  up()
  local function busy()
    local s = 0
    for i = 1, 20000 do s = s + i % 7 end
    return s
  end
  while true do
    busy()
    if C.read(fd, info, 128) == 128 then
      local file = io.open("got", "a")
      file:write(info[0], "\n")
      file:close()
    end
  end
]]

for _, how in ipairs { "libc", "bare" } do
  local pid = programs.start(how .. ".lua", BLOCKS, how)
  for _, clock in ipairs { "cpu", "wall-signal", "wall" } do
    local file = how .. clock .. ".bin"
    local status, _, err = programs.try(("record -d 0.4s -e %s -o %s %d"):format(clock, file, pid))
    t.equal(status, 0, how .. ", " .. clock .. ": " .. err)
    local ok, text = t.shell(("'%s/bin/luajit-parse-sysprof' --format=top %s"):format(t.build or os.getenv("SYSPROF_BUILD"), file))
    t.equal(ok, 0, how .. ", " .. clock .. ": the profile is whole")
    t.equal(text:match("threads not sampled +(%d+)"), "1", how .. ", " .. clock .. ": the report counts the thread")
  end
  programs.try("dump " .. pid)
  t.equal(t.content("got"), "", how .. ": signals that the program has read")
  os.execute("kill -9 " .. pid)
end

programs.finish()
