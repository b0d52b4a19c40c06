----------------------------------------------------------------------------
-- Program whose seccomp filter answers one system call with an error:
--
--   luajit refused_call.lua NR ERRNO MODE PATH
--
-- MODE: "bare" works without the profiler; "threads" also starts a thread and handles a signal; "exec" sets the
-- filter and becomes luajit with the script at PATH; "live" and "later" become live behind and before the filter,
-- and write the result to PATH; others are the clocks of a profile. Prints results, at last "END".
----------------------------------------------------------------------------

local ffi = require("ffi")
local C = ffi.C
local nr, errno, mode, path = tonumber(arg[1]), tonumber(arg[2]), arg[3], arg[4]

ffi.cdef [[
struct sock_filter { uint16_t code; uint8_t jt, jf; uint32_t k; };
struct sock_fprog { unsigned short len; struct sock_filter *filter; };
int prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d);
long syscall(long nr, ...);
int execvp(const char *file, char *const argv[]);
int pthread_create(unsigned long *thread, void *attr, void *(*f)(void *), void *arg);
int pthread_join(unsigned long thread, void **result);
void free(void *); void srand(unsigned int);
void (*signal(int signo, void (*handler)(int)))(int);
int raise(int signo);
]]

local PR_SET_NO_NEW_PRIVS, SYS_SECCOMP, SET_MODE_FILTER, TSYNC = 38, 317, 1, 1	-- Of x86-64.
local LOAD, JUMP_IF_EQUAL, RETURN, REFUSE, ALLOW = 0x20, 0x15, 0x06, 0x00050000, 0x7fff0000
local SIGUSR1 = 10

local function install()
  local filter = ffi.new("struct sock_filter[4]", { { LOAD, 0, 0, 0 }, { JUMP_IF_EQUAL, 0, 1, nr },
						     { RETURN, 0, 0, REFUSE + errno }, { RETURN, 0, 0, ALLOW } })
  local program = ffi.new("struct sock_fprog[1]", { { 4, filter } })
  if C.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ~= 0 or
     C.syscall(SYS_SECCOMP, ffi.cast("long", SET_MODE_FILTER), ffi.cast("long", TSYNC), program) ~= 0 then
    os.exit(77)
  end
end

local function work()
  local t = {}
  for i = 1, 1000 do t[i] = { i } end
  return #t
end

io.stdout:setvbuf("no")
if mode == "exec" then
  local args = ffi.new("const char *[3]")
  args[0], args[1] = arg[-1], path
  install()
  C.execvp(args[0], ffi.cast("char *const *", args))
  os.exit(125)
elseif mode == "threads" then
  install()
  local thread = ffi.new("unsigned long[1]")
  if C.pthread_create(thread, nil, ffi.cast("void *(*)(void *)", C.free), nil) == 0 then
    C.pthread_join(thread[0], nil)
  end
  C.signal(SIGUSR1, ffi.cast("void (*)(int)", C.srand))
  C.raise(SIGUSR1)
elseif mode == "bare" then
  install()
  for _ = 1, 100 do work() end
elseif mode == "live" or mode == "later" then
  local file = assert(io.open(path, "w"))
  file:setvbuf("no")
  if mode == "live" then install() end
  local ok, why = misc.sysprof.live()
  if mode == "later" then install() end
  file:write(tostring(ok), " ", tostring(why), "\n")
  local till = os.time() + 60
  repeat for _ = 1, 100 do work() end until file:seek("end") > 1000 or os.time() > till
else
  install()
  local ok, why = misc.sysprof.start { mode = "C", clock = mode, path = path, hz = 1000 }
  print(ok, why)
  if ok then
    for _ = 1, 400 do work() end
    print(misc.sysprof.stop())
  end
end
print("END")
