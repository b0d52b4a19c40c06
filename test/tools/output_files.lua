-- Files that commands write: whole or not at all, with no other file left, on file systems without unnamed
-- files and in folders where this process may not make one.
-- BASE: none, it reads no profile of this LuaJIT
-- WAITS: for readers of a pipe
-- LONG: 12

local ffi = require("ffi")
local t = require("tools_test")

local EACCES, EOPNOTSUPP, ENOSPC = 13, 95, 28
local O_WRONLY, O_CREAT, O_TMPFILE = 1, 0x40, 0x400000

-- The C library for outfile: openat() for a new file fails where refuse(flags) gives an error. created(name) is called
-- when a file with a name has been made.
local refuse, created
local function has(flags, bit) return flags % (2 * bit) >= bit end
local function openat(folder, path, flags, mode)
  local is_new = has(flags, O_TMPFILE) or has(flags, O_CREAT)
  local errno = has(flags, O_WRONLY) and is_new and refuse(flags)
  if errno then
    ffi.errno(errno)
    return -1
  end
  local fd = ffi.C.openat(folder, path, flags, mode or 0)
  if created and has(flags, O_CREAT) then created(path) end
  return fd
end
local C = setmetatable({ openat = openat }, { __index = function(_, name) return ffi.C[name] end })
package.loaded.ffi = setmetatable({ C = C }, { __index = ffi })
local outfile = require("sysprof.formats.outfile")
local users = require("sysprof.base.users")
local own_user = users.own()

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
  if has(flags, O_TMPFILE) then return EOPNOTSUPP end
end
local stop_name = ("x.txt.%d.new"):format(ffi.C.getpid())
outfile.write("out/x.txt", function(write)
  write("part")
  names = left()
end)
t.contains(names, stop_name, "files with names: one of this process")
all("files with names")

-- Who may change the folder exchanges the new file for a link: nothing goes where it leads.
do
  t.shell("rm -rf out/* root; mkdir -p root/tmp")
  t.write_file("victim", "a letter")
  local now = true
  created = function(name) t.shell(("cd %s; rm -f '%s'; ln -s \"$OLDPWD/victim\" '%s'"):format(now and "out" or "root/tmp", name, name)) end
  outfile.write("out/x.txt", produce)
  now = false
  outfile.write_below("root", "tmp", "perf-1.map", own_user, true, produce, function() return true end)
  created = nil
  t.equal(t.read_file("victim"), "a letter", "a link in place of the new file")
  local ok, err = outfile.write_below("root", "tmp", "perf-2.map", own_user, true, produce, function() return false end)
  t.equal(ok, nil, "another process has its number")
  t.equal(err, "cannot write root/tmp/perf-2.map: the process has ended", "another process has its number: message")
  ok, err = outfile.write_below("root", "tmp", "perf-2.map", own_user + 1, false, produce, function() return true end)
  t.equal(ok, nil, "a folder of another user")
  t.equal(err, "cannot write root/tmp/perf-2.map: the folder is no temporary folder of the program's user",
	  "a folder of another user: message")
  t.shell("chmod 1777 root/tmp")
  t.equal(outfile.write_below("root", "tmp", "perf-2.map", own_user + 1, false, produce, function() return true end),
	  true, "a folder of all users")
  -- That file is ours now, and the next program is of another user.
  for _, is_own_name in ipairs { false, true } do
    local what = "a file of a third user, is_own_name " .. tostring(is_own_name)
    ok, err = outfile.write_below("root", "tmp", "perf-2.map", own_user + 1, is_own_name, produce,
				  function() return true end)
    if is_own_name and own_user == 0 then
      t.equal(ok, true, "root's own file")
    else
      t.equal(ok, nil, what)
      t.contains(err, " owns this file, and the program is of user ", what)
    end
  end
  t.shell("rm -rf out/* root/tmp; ln -s ../out root/tmp")
  ok = outfile.write_below("root", "tmp", "perf-3.map", own_user, true, produce, function() return true end)
  t.equal(ok, nil, "the folder is a link")
  t.equal(left(), "", "the folder is a link: where it leads")
end

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

-- Links and pipes of others, where all users may make names. A file of another user passes no right on.
if t.shell("setpriv --reuid=65534 --clear-groups true") == 0 then
  refuse = function() return nil end
  t.shell("rm -rf out; mkdir -m 1777 out; : >victim; mkfifo out/pipe.txt; ln -s ../victim out/link.txt; " ..
	  "ln -s ../none out/dangling.txt; echo 'samples 1' >out/x.txt; chmod 666 out/x.txt; chown -h 65534 out/*")
  for name, what in pairs { pipe = "a pipe", link = "a link", dangling = "a link" } do
    local path = ("out/%s.txt"):format(name)
    for _, call in ipairs { outfile.check, outfile.write } do
      local done, why = call(path, call == outfile.check and "top" or produce)
      t.equal(done, nil, name)
      t.contains(why, ("cannot write %s: it is %s of user "):format(path, what), name)
    end
  end
  t.equal(t.read_file("victim"), "", "a link: where it leads")
  t.equal(t.content("none"), "", "a dangling link: where it leads")
  -- A folder on the path, too, at each step.
  t.shell("rm -rf led out/led own plain; mkdir -p led/in; printf 'ljs\\3 profile' >led/in/p.bin; ln -s ../led out/led; chown -h 65534 out/led; " ..
	  "ln -s out/led own; ln -s out plain")
  for path, folder in pairs { ["out/led/in/x.txt"] = "out/led", ["own/in/x.txt"] = "out/led",
			      ["out/./led/x.txt"] = "out/./led" } do
    for _, call in ipairs { outfile.check, outfile.write } do
      local done, why = call(path, call == outfile.check and "top" or produce)
      t.equal(done, nil, path)
      t.equal(why, ("cannot write %s: folder %s is a link of user %s; expected one of your own, or no link")
		   :format(path, folder, users.name(65534)), path)
    end
  end
  t.equal(outfile.set_aside("out/led/in/p.bin"), false, "a profile where a link of another user leads")
  t.equal(outfile.set_back("out/led/in/p.bin"), false, "the old one")
  outfile.remove("out/led/in/p.bin")
  t.equal(select(2, t.shell("find led")), "led\nled/in\nled/in/p.bin\n", "where a link of another user leads")
  t.equal(outfile.set_aside("out/led/in/p.bin", true), true, "the user wants to follow")
  t.equal(outfile.set_back("out/led/in/p.bin", true), true, "the user wants to follow back")
  t.equal(outfile.write("plain/../plain//x.txt", produce), true, "a folder's link of one's own")
  t.equal(t.read_file("out/x.txt"), "new text", "a folder's link of one's own: where it leads")
  t.shell("echo 'samples 1' >out/x.txt; chmod 666 out/x.txt; chown 65534 out/x.txt")
  t.equal(outfile.write("out/x.txt", produce), true, "a file of another user")
  t.equal(select(2, t.shell("stat -c %u:%a out/x.txt")), "0:644\n", "a file of another user: the new one")
  t.shell("rm -rf out; mkdir out; ln -s ../victim out/link.txt")
  t.equal(outfile.write("out/link.txt", produce), true, "a link of one's own")
  t.equal(t.read_file("victim"), "new text", "a link of one's own: where it leads")
end

-- A pipe has its reader, or gets one within ten seconds.
t.shell("rm -rf out; mkdir out; mkfifo out/pipe.txt; (sleep 1; exec cat out/pipe.txt >got.txt) & true")
t.equal(outfile.write("out/pipe.txt", produce), true, "a pipe that is read later")
t.wait_until("the pipe's reader has all", function() return t.content("got.txt") == "new text" end)
t.equal(select(2, outfile.write("out/pipe.txt", produce)),
	"cannot write out/pipe.txt: nobody reads it; expected a reader within 10 s", "a pipe that nobody reads")

-- Known before any work.
if t.shell("setpriv --reuid=65534 --clear-groups true") == 0 then
  t.shell("rm -f out/*; chmod 755 . out; echo 'samples 1' >out/x.txt; chmod 644 out/x.txt")
  t.write_file("check.lua", ([[
package.path = %q
local outfile = require("sysprof.formats.outfile")
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
