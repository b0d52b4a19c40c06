-- The profile's file in programs that manage descriptors themselves: they close all,
-- leave the standard ones closed, or may not have more.

local t = require("tools_test")
local ffi = require("ffi")
local sysprof = misc.sysprof
local parse = "'" .. os.getenv("SYSPROF_BUILD") .. "/bin/luajit-parse-sysprof' "
ffi.cdef [[
int close(int);
ssize_t readlink(const char *, char *, size_t);
struct rlimit_ { unsigned long cur, max; };
int setrlimit(int, const void *);
int getrlimit(int, void *);
]]
local EBADF, EMFILE, RLIMIT_NOFILE = 9, 24, 7

-- Number of the descriptor of a file.
local function descriptor_of(name)
  local buf = ffi.new("char[4096]")
  for fd = 0, 200 do
    local n = ffi.C.readlink("/proc/self/fd/" .. fd, buf, 4096)
    if n > 0 and ffi.string(buf, n):sub(-#name) == name then return fd end
  end
end

-- The program closes the descriptor, and another file gets its number.
t.write_file("other.txt", "")
assert(sysprof.start({ mode = "C", interval = 1, clock = "wall-signal", path = "closed.bin" }))
local fd = descriptor_of("/closed.bin")
t.ok(fd and fd > 2, "the profile has a descriptor of its own")
t.equal(ffi.C.close(fd), 0, "close")
local other = assert(io.open("other.txt", "wb"))
t.equal(descriptor_of("/other.txt"), fd, "the number is used again")
t.work_until(20)
local ok, message, code = sysprof.stop()
t.equal(ok, nil, "stop says that the profile is not complete")
t.contains(message, "closed.bin", "the message names the file")
t.equal(code, EBADF, "errno of a closed descriptor")
t.equal(descriptor_of("/other.txt"), fd, "the other file stays open")
other:write("mine")
other:close()
t.equal(t.read_file("other.txt"), "mine", "nothing is written into another file")
t.equal((t.shell(parse .. "closed.bin")), 3, "what was written before can be read")

-- The program closes a clock's descriptor, if the clock has one. No more samples come, and
-- the other file stays unchanged.
if sysprof.start({ mode = "C", clock = "task-clock", interval = 1, path = "clock.bin" }) then
  fd = descriptor_of("anon_inode:[perf_event]")
  t.ok(fd, "the clock has a descriptor")
  t.equal(ffi.C.close(fd), 0, "close")
  other = assert(io.open("other.txt", "wb"))
  t.equal(descriptor_of("/other.txt"), fd, "the number is used again")
  t.equal(sysprof.stop(), true, "stop without the clock's descriptor")
  t.equal(descriptor_of("/other.txt"), fd, "the other file stays open")
  t.ok(other:write("mine") and other:close(), "and can be written")
  t.equal(t.read_file("other.txt"), "mine", "nothing else is in it")
else
  print("without perf: no descriptor of a clock")
end

-- A program that starts without standard files prints into no file of ours.
t.write_file("daemon.lua", [[
assert(misc.sysprof.start({ mode = "C", interval = 1, clock = "wall-signal", path = "no_std.bin" }))
local s = 0
repeat
  for i = 1, 1e5 do s = s + i % 3 end
  print("to nowhere")
  io.stderr:write("to nowhere, too\n")
until misc.sysprof.report().samples >= 20
assert(misc.sysprof.stop())
]])
os.remove("no_std.bin")
t.equal((t.shell(("'%s' daemon.lua <&- >&- 2>&-"):format(t.luajit))), 0, "no standard files")
t.equal((t.shell(parse .. "no_std.bin")), 0, "their profile is whole")
t.equal(t.read_file("no_std.bin"):find("nowhere", 1, true), nil, "nothing printed is in it")

-- Without a free descriptor, start fails with one sentence. The mode without a file needs
-- no descriptor.
local limit, few = ffi.new("struct rlimit_"), ffi.new("struct rlimit_")
t.equal(ffi.C.getrlimit(RLIMIT_NOFILE, limit), 0, "getrlimit")
few.cur, few.max = 3, limit.max
t.equal(ffi.C.setrlimit(RLIMIT_NOFILE, few), 0, "setrlimit")
local refused = { sysprof.start({ mode = "C", path = "few.bin" }) }
local counters = { sysprof.start({ mode = "D" }) }
local stopped = { sysprof.stop() }
t.equal(ffi.C.setrlimit(RLIMIT_NOFILE, limit), 0, "setrlimit back")
t.equal(refused[1], nil, "no descriptor")
t.contains(refused[2], "few.bin: ", "no descriptor: the message names the file")
t.equal(refused[3], EMFILE, "no descriptor: errno")
t.equal(counters[1], true, "mode D without a descriptor")
t.equal(stopped[1], true, "mode D without a descriptor")
t.equal(sysprof.start({ mode = "C", path = "few.bin" }), true, "and with one again")
t.equal(sysprof.stop(), true, "stop")

-- The same where only a number below that of a standard file is free.
t.write_file("standard.lua", [[
local ffi = require("ffi")
ffi.cdef "int close(int); struct rlimit_ { unsigned long cur, max; }; int setrlimit(int, const void *);"
assert(ffi.C.close(0) == 0 and ffi.C.setrlimit(7, ffi.new("struct rlimit_", 3, 3)) == 0)
print(misc.sysprof.start({ mode = "C", path = "standard.bin", clock = "wall-signal", flush = "vm" }))
]])
local _, said = t.shell(("'%s' standard.lua"):format(t.luajit))
t.equal(said, "nil\tstandard.bin: Too many open files\t" .. EMFILE .. "\n", "no descriptor above the standard ones")

-- Nothing is left open.
local before, after = descriptor_of("/few.bin"), descriptor_of(".bin")
t.equal(before, nil, "few.bin is closed")
t.equal(after, nil, "all are closed")
t.finish()
