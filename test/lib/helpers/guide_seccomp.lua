----------------------------------------------------------------------------
-- Seccomp filter for guides: runs a command without perf_event_open, like the default
-- filters of containers. With --no-threads, it forbids new threads instead:
--
--   luajit guide_seccomp.lua [--no-threads] COMMAND ARG...
--
-- Status 125: the kernel takes no filter.
----------------------------------------------------------------------------

local ffi = require("ffi")

ffi.cdef [[
struct sock_filter { uint16_t code; uint8_t jt, jf; uint32_t k; };
struct sock_fprog { unsigned short len; struct sock_filter *filter; };
int prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d);
int execvp(const char *file, char *const argv[]);
char *strerror(int err);
]]

local PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
local LOAD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06	-- BPF, words and constants.
local ALLOW, REFUSE = 0x7fff0000, 0x00050000		-- The latter with an errno.
local JUMP_IF_SET = 0x45
local PERF_EVENT_OPEN, CLONE, CLONE3, EPERM, ENOSYS = 298, 56, 435, 1, 38	-- Of x86-64.
local CLONE_THREAD, FIRST_ARG = 0x10000, 16

local perf = {
  { LOAD, 0, 0, 0 },					-- The number of the call.
  { JUMP_IF_EQUAL, 0, 1, PERF_EVENT_OPEN },
  { RETURN, 0, 0, REFUSE + EPERM },
  { RETURN, 0, 0, ALLOW },
}
-- A filter cannot read the flags of clone3, because they are in memory.
local threads = {
  { LOAD, 0, 0, 0 },
  { JUMP_IF_EQUAL, 0, 1, CLONE3 },
  { RETURN, 0, 0, REFUSE + ENOSYS },
  { JUMP_IF_EQUAL, 0, 3, CLONE },
  { LOAD, 0, 0, FIRST_ARG },
  { JUMP_IF_SET, 0, 1, CLONE_THREAD },
  { RETURN, 0, 0, REFUSE + EPERM },
  { RETURN, 0, 0, ALLOW },
}

local list = perf
if arg[1] == "--no-threads" then
  list = threads
  table.remove(arg, 1)
end
local filter = ffi.new("struct sock_filter[?]", #list, list)
local program = ffi.new("struct sock_fprog[1]", { { #list, filter } })

local function fail(what)
  io.stderr:write(what, ": ", ffi.string(ffi.C.strerror(ffi.errno())), "\n")
  os.exit(125)
end

if ffi.C.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ~= 0 or
   ffi.C.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER,
	       ffi.cast("unsigned long", ffi.cast("uintptr_t", program)), 0, 0) ~= 0 then
  fail("seccomp")
end
local argv = ffi.new("const char *[?]", #arg + 1)
for i, word in ipairs(arg) do argv[i - 1] = word end
ffi.C.execvp(arg[1], ffi.cast("char *const *", argv))
fail(arg[1])
