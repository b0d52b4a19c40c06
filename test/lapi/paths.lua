-- The path of a profile, and the messages of a wrong path.

local t = require("tools_test")
local ffi = require("ffi")
local sysprof = misc.sysprof
ffi.cdef("unsigned geteuid(void); unsigned umask(unsigned);")

local ENOENT, EISDIR, EACCES, ENOTDIR, EINVAL, ENOSPC = 2, 21, 13, 20, 22, 28

local function refused(path, errno, what)
  for _, mode in ipairs({ "L", "C" }) do
    local r = { sysprof.start({ mode = mode, path = path }) }
    t.equal(r[1], nil, what)
    t.equal(r[3], errno, what .. ": errno")
    t.contains(r[2], path, what .. ": the message names the path")
    t.equal(select(2, sysprof.stop()), "profiler is not running", what)
  end
  -- Mode D ignores it.
  t.equal(sysprof.start({ mode = "D", path = path }), true, what .. ", mode D")
  t.equal(sysprof.stop(), true, what .. ", mode D")
end

refused(".", EISDIR, "a folder")
refused("no/such/folder/x.bin", ENOENT, "no such folder")
refused("", EINVAL, "an empty path")
t.write_file("plain", "text")
refused("plain/x.bin", ENOTDIR, "below a file")
if ffi.C.geteuid() ~= 0 then
  os.remove("readonly")	-- Of the last run.
  t.write_file("readonly", "text")
  t.shell("chmod 400 readonly")
  refused("readonly", EACCES, "not writable")
  t.equal(t.read_file("readonly"), "text", "left alone")
end
refused(("x"):rep(300), 36, "a name too long")

-- The default.
os.remove("sysprof.bin")
t.equal(sysprof.start({ mode = "C" }), true, "default path")
t.equal(sysprof.stop(), true, "default path")
t.equal(t.read_file("sysprof.bin"):sub(1, 3), "ljs", "sysprof.bin is here")

-- Only its owner may read it; nothing of an old file stays.
ffi.C.umask(0)
os.remove("new.bin")
t.equal(sysprof.start({ mode = "C", path = "new.bin" }), true, "new file")
t.equal(sysprof.stop(), true, "new file")
local _, mode = t.shell("stat -c %a new.bin")
t.equal(mode, "600\n", "mode of a new file")
t.write_file("old.bin", ("old "):rep(1e6))
t.equal(sysprof.start({ mode = "C", path = "old.bin", force = true }), true, "old file")
t.equal(sysprof.stop(), true, "old file")
t.equal(t.read_file("old.bin"):find("old old", 1, true), nil, "the old file is gone")

-- A full disk: already the start says it.
local r = { sysprof.start({ mode = "C", interval = 1, path = "/dev/full" }) }
t.equal(r[1], nil, "/dev/full")
t.contains(r[2], "/dev/full", "/dev/full: the message names the path")
t.equal(r[3], ENOSPC, "/dev/full: errno")
t.equal(select(2, sysprof.stop()), "profiler is not running", "/dev/full: not started")
t.equal(sysprof.report().samples, 0, "/dev/full: no samples")

-- A new file into which nothing could be written goes.
t.shell("rm -f grows.bin")
local _, out = t.shell(("(ulimit -f 0; '%s' -e \"local _, why = misc.sysprof.start { mode = 'C', path = 'grows.bin' } " ..
  "io.stdout:write(why) \") | cat"):format(t.luajit))
t.contains(out, "grows.bin: File too large", "a file that may not grow")
t.ok(not io.open("grows.bin"), "a file that may not grow: it goes")

-- A start that is refused does not touch the file.
t.write_file("kept.bin", "kept")
t.equal(sysprof.start({ mode = "D" }), true, "start")
t.equal(sysprof.start({ mode = "C", path = "kept.bin" }), nil, "start twice")
t.equal(sysprof.stop(), true, "stop")
t.equal(t.read_file("kept.bin"), "kept", "left alone by a start while running")
t.equal(sysprof.start({ mode = "C", interval = 0, path = "kept.bin" }), nil, "misuse")
t.equal(t.read_file("kept.bin"), "kept", "left alone by misuse")
t.finish()
