----------------------------------------------------------------------------
-- A file system that never answers, for tests as root.
--
-- 'luajit hung_files.lua FOLDER READY PROGRAM ARG...' runs PROGRAM in a mount namespace of its own, where each access to
-- FOLDER waits until this process ends.
----------------------------------------------------------------------------

local ffi = require("ffi")

ffi.cdef [[
int open(const char *, int, ...);
ssize_t read(int, void *, size_t);
ssize_t write(int, const void *, size_t);
int unshare(int);
int mount(const char *, const char *, const char *, unsigned long, const void *);
int fork(void);
int getpid(void);
int waitpid(int, int *, int);
int execv(const char *, char *const *);
void _exit(int);
int prctl(int, unsigned long, unsigned long, unsigned long, unsigned long);
]]
local C = ffi.C
local CLONE_NEWNS, MS_REC, MS_PRIVATE, O_RDWR, O_CLOEXEC = 0x20000, 0x4000, 0x40000, 2, 0x80000
local FUSE_INIT, BUFFER = 26, 2^17
local PR_SET_PDEATHSIG, SIGKILL = 1, 9

local folder, ready, program = arg[1], arg[2], arg[3]
assert(C.unshare(CLONE_NEWNS) == 0, "unshare")
assert(C.mount("none", "/", nil, MS_REC + MS_PRIVATE, nil) == 0, "mount --make-private")
local fd = C.open("/dev/fuse", O_RDWR + O_CLOEXEC)
assert(fd >= 0, "open /dev/fuse")
local file = assert(io.open(ready, "w"))	-- It may be below the folder.
local options = ("fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other"):format(fd)
assert(C.mount("hung", folder, "fuse", 0, ffi.cast("const void *", options)) == 0, "mount fuse")

local pid = C.fork()
if pid == 0 then
  C.prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0)
  local argv = ffi.new("const char *[?]", #arg - 1)
  for i = 3, #arg do argv[i - 3] = arg[i] end
  C.execv(program, ffi.cast("char *const *", argv))
  C._exit(127)
end

-- It takes all requests, and answers only the first one, by which the kernel agrees with it on a version.
local buf = ffi.new("uint32_t[?]", BUFFER / 4)
while C.read(fd, buf, BUFFER) > 0 do
  if buf[1] == FUSE_INIT then
    local answer = ffi.new("uint32_t[20]", 80, 0, buf[2], buf[3], 7, 31)	-- fuse_out_header, fuse_init_out.
    answer[9] = 4096	-- max_write.
    C.write(fd, answer, 80)
    file:write(pid)
    file:close()
  end
end
