-- Files at paths that others choose: only regular ones are opened, at once, and read by their descriptor.
-- BASE: none, a command beside a program; tools/live_programs tries each LuaJIT

local ffi = require("ffi")
local t = require("tools_test")
local elf = require("sysprof.names.elf")
local reader = require("sysprof.read.reader")
local regular = require("sysprof.base.regular")
local merge_files = require("sysprof.read.mergefiles")
local source = require("sysprof.show.source")

ffi.cdef [[
int open(const char *, int, ...);
int fcntl(int, int, ...);
int fork(void);
void _exit(int);
int waitpid(int, int *, int);
int kill(int, int);
int pause(void);
int pipe(int *);
ssize_t read(int, void *, size_t);
ssize_t write(int, const void *, size_t);
]]
local C = ffi.C
local F_SETLEASE, F_WRLCK, SIGKILL, SIGIO, SIG_IGN = 1024, 1, 9, 29, 1
ffi.cdef "void *signal(int, void *);"

t.shell("rm -rf *; mkdir folder; mkfifo pipe; ln -s pipe link; ln -s /dev/zero zero; ln -s /dev/tty tty; : >empty")
t.write_file("text", "0123456789")

for path, why in pairs { pipe = "it is no regular file", link = "it is no regular file", zero = "it is no regular file",
			 tty = "it is no regular file", folder = "Is a directory", none = "No such file or directory",
			 ["text\0x"] = "No such file or directory" } do
  local file, message = regular.open(path)
  t.equal(file, nil, path)
  t.equal(message, why, path .. ": message")
  t.equal(elf.open(path), nil, path .. ": as an ELF file")
  t.equal(reader.is_profile(path), false, path .. ": as a profile")
end
t.equal(regular.text("text", 4), "0123", "a beginning")
t.equal(regular.text("text", 100), "0123456789", "a whole file")
t.equal(regular.text("empty", 100), "", "an empty file")
t.equal(regular.text("/proc/self/maps", 100), "", "a file without a size is not read")

-- Another file takes the path: the opened one is read.
do
  local file = regular.open("text")
  t.shell("rm text; mkfifo text")
  t.equal(file:read(3, 4), "3456", "exchanged: content")
  t.equal(file:read(8, 100), "89", "exchanged: the end")
  t.equal(file:read(100, 100), "", "exchanged: behind the end")
  file:close()
end

-- A stream is any file: a pipe waits for its writer.
do
  t.write_file("plain", "some text")
  local file = regular.stream("plain")
  t.equal(file:read("*a"), "some text", "a stream")
  file:close()
  t.shell("(sleep 0.1; echo from a pipe >pipe) & true")
  file = regular.stream("pipe")
  t.equal(file:read("*a"), "from a pipe\n", "a stream of a pipe")
  file:close()
  t.equal(select(2, regular.stream("none")), "No such file or directory", "no stream")
  t.equal(select(2, regular.stream("plain\0x")), "No such file or directory", "no stream of a part of a path")
end

-- Holes are found, and take no time.
do
  t.shell("truncate -s 1T sparse && printf end | dd of=sparse bs=1 seek=1000000000000 conv=notrunc 2>/dev/null")
  local file = regular.open("sparse")
  local at = file:next_data(0)
  t.ok(at == 0 or at > 999999000000, "the first data: " .. at)
  t.ok(at == 0 or file:next_data(1000000001000000) == nil, "no more data")
  t.equal(file:read(1000000000000, 3), "end", "the data")
  file:close()
end

-- A lease of another process would hold an open for 45 s.
do
  t.write_file("leased", "text")
  t.write_file("nothing", "")
  local ends, byte = ffi.new("int[2]"), ffi.new("char[1]")
  C.pipe(ends)
  local pid = C.fork()
  if pid == 0 then
    C.signal(SIGIO, ffi.cast("void *", SIG_IGN))
    byte[0] = 1
    for _, path in ipairs { "leased", "nothing" } do
      local fd = C.open(path, 2)
      if C.fcntl(fd, F_SETLEASE, ffi.cast("int", F_WRLCK)) ~= 0 then byte[0] = 0 end
    end
    C.write(ends[1], byte, 1)
    C.pause()
    C._exit(0)
  end
  C.read(ends[0], byte, 1)
  if byte[0] == 1 then
    local function is_told(what, result, message)
      t.equal(result, nil, what)
      t.contains(message, " has a lease on it that keeps others from it; ", what)
    end
    for _, path in ipairs { "leased", "nothing" } do
      is_told(path .. ": as a profile", reader.read(path))
      is_told(path .. ": to serve", regular.stream(path))
    end
    is_told("a lease", regular.open("leased"))
    is_told("a lease: as a source", source.lines("leased", true))
    is_told("a lease: as an ELF file", elf.open("leased"))
    local message = merge_files({ "leased" }, function() end, {})
    is_told("a lease: merged", nil, message)
    t.equal(reader.is_profile("leased"), false, "a lease: not known as a profile")
  else
    print("skipped: a lease, which this file system does not give")
  end
  C.kill(pid, SIGKILL)
  C.waitpid(pid, nil, 0)
end

t.finish()
