----------------------------------------------------------------------------
-- Child processes of the benchmark suite, with their CPU time and memory.
--
-- A child gets no input; its output goes to files. wait4(2) reports the CPU time and
-- the peak memory of a child and of the children that it has waited for.
----------------------------------------------------------------------------

local ffi = require("ffi")
local C = ffi.C

ffi.cdef [[
int fork(void);
int execvp(const char *, char *const *);
void _exit(int);
int open(const char *, int, ...);
int dup2(int, int);
int setenv(const char *, const char *, int);
int unsetenv(const char *);
int wait4(int, int *, int, void *);
int kill(int, int);
int usleep(unsigned);
int clock_gettime(int, void *);
char *strerror(int);
]]

-- Constants of Linux, for x86-64 and arm64.
local O_RDONLY, O_WRITE_NEW = 0, 0x241	-- The second: write, create, truncate.
local EINTR = 4
local CLOCK_MONOTONIC = 1

local proc = {}

function proc.now()
  local ts = ffi.new("int64_t[2]")
  C.clock_gettime(CLOCK_MONOTONIC, ts)
  return tonumber(ts[0]) + tonumber(ts[1]) / 1e9
end

function proc.sleep(seconds)
  C.usleep(seconds * 1e6)
end

-- The text of a file, or nil.
function proc.read(path)
  local file = io.open(path, "rb")
  if not file then return nil end
  local s = file:read("*a")
  file:close()
  return s
end

function proc.size(path)
  local file = io.open(path, "rb")
  if not file then return nil end
  local n = file:seek("end")
  file:close()
  return n
end

function proc.write(path, text)
  local file = assert(io.open(path, "wb"))
  assert(file:write(text))
  assert(file:close())
end

local function redirect(fd, path, flags)
  local from = C.open(path, flags, ffi.new("int", 384))	-- rw for the owner.
  if from < 0 or C.dup2(from, fd) < 0 then C._exit(126) end
end

-- Starts a program by a list of its name and arguments. Options: out, err: files for
-- its output, else /dev/null. env: variables to set; false removes one. seconds: time
-- until it is killed.
function proc.start(args, options)
  options = options or {}
  local list = {}
  if options.seconds then
    list = { "timeout", "-k", "5", tostring(math.ceil(options.seconds)) }
  end
  for _, arg in ipairs(args) do list[#list + 1] = arg end
  local argv = ffi.new("const char *[?]", #list + 1)
  for i, arg in ipairs(list) do argv[i - 1] = arg end
  io.stdout:flush()
  io.stderr:flush()
  local began = proc.now()
  local pid = C.fork()
  if pid == 0 then
    redirect(0, "/dev/null", O_RDONLY)
    redirect(1, options.out or "/dev/null", O_WRITE_NEW)
    redirect(2, options.err or "/dev/null", O_WRITE_NEW)
    for name, value in pairs(options.env or {}) do
      if value then C.setenv(name, value, 1) else C.unsetenv(name) end
    end
    C.execvp(list[1], ffi.cast("char *const *", argv))
    C._exit(127)
  end
  if pid < 0 then error("fork: " .. ffi.string(C.strerror(ffi.errno())), 0) end
  return { pid = pid, began = began, name = args[1] }
end

function proc.signal(child, signo)
  C.kill(child.pid, signo)
end

-- Waits for the end of a child. Returns { status=, cpu=, wall=, peak_kib= }, times in
-- seconds. The status is 128 + the signal if a signal ended the child.
function proc.wait(child)
  local status, usage = ffi.new("int[1]"), ffi.new("int64_t[18]")
  while C.wait4(child.pid, status, 0, usage) < 0 do
    if ffi.errno() ~= EINTR then
      error("wait4: " .. ffi.string(C.strerror(ffi.errno())), 0)
    end
  end
  local signo = status[0] % 128
  local function seconds(i) return tonumber(usage[i]) + tonumber(usage[i + 1]) / 1e6 end
  return { wall = proc.now() - child.began, cpu = seconds(0) + seconds(2),
	   peak_kib = tonumber(usage[4]),
	   status = signo ~= 0 and 128 + signo or math.floor(status[0] / 256) % 256 }
end

-- Starts a program and waits for it. Returns the result of proc.wait if the status is
-- 0; else nil and why: the last line that the program wrote to options.err.
function proc.run(args, options)
  local result = proc.wait(proc.start(args, options))
  if result.status == 0 then return result end
  local said = options and options.err and proc.read(options.err) or ""
  local why = ("%s: %s %d"):format(args[1]:match("[^/]*$"),
    result.status > 128 and "ended by signal" or "status",
    result.status > 128 and result.status - 128 or result.status)
  if result.status == 124 then why = why .. ", it took too long" end
  if result.status == 127 then return nil, args[1] .. " is not installed" end
  local last = said:match("([^\n]+)%s*$")
  return nil, last and why .. ", " .. last or why
end

-- The path of a program on the PATH, or nil.
function proc.which(name)
  for folder in ((os.getenv("PATH") or "") .. ":/usr/sbin"):gmatch("[^:]+") do
    local path = folder .. "/" .. name
    if proc.size(path) then return path end
  end
end

return proc
