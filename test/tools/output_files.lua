-- Files that commands write: whole or not at all, with no other file left, on file systems without unnamed
-- files and in folders where this process may not make one.

local ffi = require("ffi")
local t = require("tools_test")

local EACCES, EOPNOTSUPP, ENOSPC = 13, 95, 28
local O_CREAT = 0x40

-- The C library for outfile: open() fails where refuse(flags) gives an error.
local refuse
local function open(path, flags, mode)
  local errno = refuse(flags)
  if not errno then return ffi.C.open(path, flags, mode) end
  ffi.errno(errno)
  return -1
end
local C = setmetatable({ open = open }, { __index = function(_, name) return ffi.C[name] end })
package.loaded.ffi = setmetatable({ C = C }, { __index = ffi })
local outfile = require("sysprof.cli.outfile")

os.execute("rm -rf out; mkdir out")

local function left() return (select(2, t.shell("ls -A out"))) end
local function mode_of(path) return (select(2, t.shell("stat -c %a " .. path))) end
local function produce(write) write("new ") write("text") end
local function fail(write) write("part") return "it failed" end
local function raise(write) write("part") error("it raised", 0) end

local function all(what)
  local function says(path, how, message)
    local ok, err = outfile.write(path, how)
    t.equal(ok, nil, what .. ": refused")
    t.equal(err, ("cannot write %s: %s"):format(path, message), what .. ": message")
  end
  t.shell("rm -f out/*")
  says("out/x.txt", fail, "it failed")
  t.ok(not pcall(outfile.write, "out/x.txt", raise), what .. ": the error goes on")
  t.equal(left(), "", what .. ": nothing is left")
  t.equal(outfile.write("out/x.bin", produce), true, what .. ": a profile")
  t.equal(mode_of("out/x.bin"), "600\n", what .. ": a profile is its owner's only")
  t.write_file("out/x.txt", "old")
  t.shell("chmod 640 out/x.txt")
  says("out/x.txt", fail, "it failed")
  t.ok(not pcall(outfile.write, "out/x.txt", raise), what .. ": the error goes on")
  t.equal(t.read_file("out/x.txt"), "old", what .. ": a failure leaves the old file")
  t.equal(left(), "x.bin\nx.txt\n", what .. ": no other file")
  t.equal(outfile.write("out/x.txt", produce, true), true, what .. ": an old file")
  t.equal(t.read_file("out/x.txt"), "new text", what .. ": text")
  t.equal(t.read_file("out/x.txt.old"), "old", what .. ": the old file is kept")
  t.equal(mode_of("out/x.txt"), "640\n", what .. ": the mode stays")
  t.equal(left(), "x.bin\nx.txt\nx.txt.old\n", what .. ": no other file")
end

refuse = function() return nil end
all("files without names")
local names
refuse = function(flags)
  if flags % (2 * O_CREAT) < O_CREAT then return EOPNOTSUPP end
end
local stop_name = ("x.txt.%d.new"):format(ffi.C.getpid())
outfile.write("out/x.txt", function(write)
  write("part")
  names = left()
end)
t.contains(names, stop_name, "files with names: one of this process")
all("files with names")

-- A full disk: neither kind of file.
refuse = function() return ENOSPC end
t.write_file("out/x.txt", "old")
local ok, err = outfile.write("out/x.txt", produce)
t.equal(ok, nil, "a full disk")
t.equal(err, "cannot write out/x.txt: No space left on device", "a full disk: message")
t.equal(t.read_file("out/x.txt"), "old", "a full disk: the old file")

-- No new file in the folder: the old one is written when all is there.
refuse = function() return EACCES end
t.equal(select(2, outfile.write("out/x.txt", fail)), "cannot write out/x.txt: it failed", "no permission: a failure")
t.ok(not pcall(outfile.write, "out/x.txt", raise), "no permission: the error goes on")
t.equal(t.read_file("out/x.txt"), "old", "no permission: a failure leaves the old file")
t.equal(outfile.write("out/x.txt", produce), true, "no permission: an old file")
t.equal(t.read_file("out/x.txt"), "new text", "no permission: text")
t.equal(select(2, outfile.write("out/no.txt", produce)), "cannot write out/no.txt: Permission denied",
	"no permission: a new file")

-- Known before any work.
if t.shell("setpriv --reuid=65534 --clear-groups true") == 0 then
  t.shell("rm -f out/*; chmod 755 . out; echo 'samples 1' >out/x.txt; chmod 644 out/x.txt")
  t.write_file("check.lua", ([[
package.path = %q
local outfile = require("sysprof.cli.outfile")
print(outfile.check("out/no.txt", "top"))
print(outfile.check("out/x.txt", "top"))
]]):format(t.source .. "/tools/?.lua"))
  local _, out = t.shell(("setpriv --reuid=65534 --clear-groups '%s' - <check.lua"):format(t.luajit))
  if out == "" then
    print("skipped: a folder of another user, who cannot reach the source")
  else
    t.equal(out, "nil\tcannot write out/no.txt: folder out: Permission denied\n" ..
		 "nil\tcannot write out/x.txt: Permission denied\n", "a folder of another user")
  end
end

t.finish()
