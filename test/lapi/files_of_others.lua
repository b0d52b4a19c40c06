-- Paths that a profile may and may not be written to: links, files and FIFOs of others,
-- in folders where other users may write; files that are not profiles.
-- BASE: none, files, sockets, signals, processes; the VM runs a loop, or none

local t = require("tools_test")
local ffi = require("ffi")
local sysprof = misc.sysprof
ffi.cdef "unsigned geteuid(void); int seteuid(unsigned);"

local EACCES, EEXIST, EINVAL, EISDIR, ELOOP, ENOENT = 13, 17, 22, 21, 40, 2
local SOMEBODY = 65534

-- Runs shell commands in an empty folder "all" where everybody may write; "mine" is
-- the tester's.
local function fresh(commands)
  local status, _, err = t.shell("rm -rf all mine && mkdir -m 1777 all && mkdir -m 755 mine && { "
				 .. (commands or ":") .. "; }")
  assert(status == 0, err)
end

-- Starts and stops a profile with some options. goes: its file may vanish. Returns the results of start.
local function try(options, goes)
  options.mode, options.hz = "C", 20
  local r = { sysprof.start(options) }
  if r[1] then
    local ok, _, err = sysprof.stop()
    t.ok(ok or (goes and err == ENOENT), options.path .. ": stop")
  end
  return unpack(r, 1, 3)
end

local function written(what, options, at)
  t.equal(select(2, try(options)), nil, what .. ": " .. options.path)
  t.equal(t.read_file(at or options.path):sub(1, 3), "ljs", what .. ": written")
end

local function refused(what, options, errno, part, kept)
  local there = select(2, t.shell("ls -lR --full-time --inode all mine"))
  local ok, message, code = try(options)
  t.equal(ok, nil, what .. ": refused")
  t.contains(message, options.path .. ": ", what .. ": names the path")
  t.contains(message, part, what)
  t.equal(code, errno, what .. ": errno")
  t.equal(select(2, t.shell("ls -lR --full-time --inode all mine")), there, what .. ": left alone")
end

-- -- No profile ------------------------------------------------------------

for what, text in pairs { text = "text of somebody", short = "lj", magic = "ljs",
			  words = "ljs is how a profile begins", bytecode = "\27LJ\2\0" } do
  fresh()
  t.write_file("mine/x", text)
  refused(what, { path = "mine/x" }, EEXIST, "not a profile; set the option force to "
	  .. "overwrite the file")
  t.equal(t.read_file("mine/x"), text, what .. ": its text")
  refused(what .. ", by a link", { path = "mine/x" }, EEXIST, "not a profile")
  written(what .. ", force", { path = "mine/x", force = true })
end
fresh(": >mine/empty; printf 'ljs\\001\\0\\0\\0' >mine/other; printf 'ljs\\001' >mine/begun")
written("empty", { path = "mine/empty" })
written("empty before", { path = "mine/empty" })
written("of Tarantool's format", { path = "mine/other" })
written("a beginning", { path = "mine/begun" })
local _, mode = t.shell("chmod 640 mine/empty && stat -c %a mine/empty")
written("its mode", { path = "mine/empty" })
t.equal(select(2, t.shell("stat -c %a mine/empty")), mode, "the mode of a file that was there")

-- -- Paths -----------------------------------------------------------------

local _, here = t.shell("pwd")
here = here:gsub("\n", "")
fresh("mkdir mine/d && ln -s d mine/link && ln -s ../x mine/d/up && ln -s loop mine/loop && "
      .. "ln -s " .. here .. "/mine/d/abs mine/abs && ln -s nowhere mine/new && ln -s d/ mine/slash")
for path, at in pairs {
  ["mine/y"] = "mine/y", ["./mine//./d/../y"] = "mine/y", [here .. "/mine/z"] = "mine/z",
  ["//" .. here .. "///mine/w"] = "mine/w", ["mine/link/a"] = "mine/d/a",
  ["mine/link/up"] = "mine/x", ["mine/abs"] = "mine/d/abs", ["mine/new"] = "mine/nowhere",
  ["mine/link/../v"] = "mine/v", ["mine/slash/b"] = "mine/d/b",
  ["/proc/self/cwd/mine/c"] = "mine/c",
} do
  written("a path", { path = path }, at)
end
for path, errno in pairs { ["mine/loop"] = ELOOP, ["mine/loop/x"] = ELOOP, ["mine/slash"] = EISDIR,
			   ["mine/"] = EISDIR, ["mine/.."] = EISDIR, ["/"] = EISDIR } do
  refused("a path", { path = path }, errno, "")
end
fresh("ln -s a mine/l0 && for i in $(seq 60); do ln -s l$((i-1)) mine/l$i; done")
written("40 links", { path = "mine/l39" }, "mine/a")
refused("41 links", { path = "mine/l40" }, ELOOP, "")

-- A failed start removes its own file, and no other.
fresh("ln -s made mine/link; : >mine/empty")
for _, path in ipairs { "mine/made", "mine/link", "mine/empty" } do
  local there = select(2, t.shell("ls -lR --full-time --inode mine"))
  local ok, message = try({ path = path, clock = "none" })
  t.equal(ok, nil, "no such clock")
  t.contains(message, "'none'", "no such clock")
  t.equal(select(2, t.shell("ls -lR --full-time --inode mine")):gsub("total %d+", ""),
	  there:gsub("total %d+", ""), "no such clock, " .. path .. ": left alone")
end

-- -- Our files in a folder of all users ------------------------------------

fresh("ln -s ../mine/x all/link && ln -s nowhere all/new && mkdir -m 777 all/d")
written("a new file", { path = "all/y" })
t.equal(select(2, t.shell("stat -c %a all/y")), "600\n", "mode of a new file")
written("a file that was there", { path = "all/y" })
written("a link of mine", { path = "all/link" }, "mine/x")
written("a link of mine to a new file", { path = "all/new" }, "all/nowhere")
fresh("ln -s ../mine all/link")
written("through a link of mine", { path = "all/link/x" }, "mine/x")

fresh(": >mine/x && ln mine/x all/x")
refused("a file of two names", { path = "all/x" }, EACCES, "the file has a second name (hard link), in "
	.. "a folder that other users may write to; set the option force to write it")
written("the same, not in the folder", { path = "mine/x" })
refused("a profile of two names", { path = "all/x" }, EACCES, "the file has a second name")
written("a file of two names, force", { path = "all/x", force = true })

-- -- Other kinds of files --------------------------------------------------

-- My own FIFO, with a reader; the writer never waits for one.
fresh("mkfifo all/fifo")
refused("a FIFO", { path = "all/fifo", regular = true }, EINVAL, "not a regular file")
refused("a FIFO, force", { path = "all/fifo", regular = true, force = true }, EINVAL,
	"not a regular file")
local reader = io.popen("timeout 300 cat all/fifo | head -c 3")
t.equal(try({ path = "all/fifo" }), true, "a FIFO with a reader")
t.equal(reader:read("*a"), "ljs", "a FIFO with a reader")
reader:close()
t.equal(try({ path = "/dev/null" }), true, "a device")
refused("a device", { path = "/dev/null", regular = true }, EINVAL, "not a regular file")
local _, out = t.shell(("'%s' -e 'misc.sysprof.start { mode = \"C\", path = \"/dev/stdout\" }' | head -c 3")
		       :format(t.luajit))
t.equal(out, "ljs", "standard output is a pipe")
t.shell(("'%s' -e 'misc.sysprof.start { mode = \"C\", path = \"/dev/stdout\" }' >mine/stdout")
	:format(t.luajit))
t.equal(t.read_file("mine/stdout"):sub(1, 3), "ljs", "standard output is a file")

-- -- Files of other users --------------------------------------------------

local function somebody()
  if ffi.C.geteuid() ~= 0 then return "only root can make files of another user" end
  fresh()
  local status = t.shell(": >mine/x && chown " .. SOMEBODY .. " mine/x && ln -s x mine/l && chown -h "
			 .. SOMEBODY .. " mine/l")
  return status ~= 0 and "this root cannot make files of another user"
end

local LINK = "another user owns a symbolic link of the path, in a folder that other users may "
	     .. "write to; set the option follow to follow it"
local OWNER = "another user owns the file, in a folder that other users may write to; set the option "
	      .. "force to write it"

local function others()
  for _, mode in ipairs { "1777", "777", "1733", "1775", "775", "730" } do
    fresh("chmod " .. mode .. " all; : >mine/x; ln -s ../mine/x all/x; ln -s ../mine/new all/new; "
	  .. "ln -s ../mine all/d; ln -s x all/two; chown -h 65534 all/x all/new all/d; "
	  .. "ln -s ../all/x mine/link")
    for _, path in ipairs { "all/x", "all/new", "all/d/x", "all/d/new", "all/two", "mine/link",
			    "all/d/link" } do
      refused("another user's link, " .. mode, { path = path }, EACCES, LINK)
      refused("another user's link, force, " .. mode, { path = path, force = true }, EACCES, LINK)
    end
    written("another user's link, follow", { path = "all/new", follow = true }, "mine/new")
    written("through another user's link, follow", { path = "all/d/x", follow = true }, "mine/x")
  end
  -- Its owner may write into any folder, whatever its mode.
  for _, mode in ipairs { "755", "700", "555" } do
    fresh("chmod " .. mode .. " all; : >mine/x; ln -s ../mine/x all/x; ln -s ../mine/new all/new; "
	  .. "ln -s ../mine all/d; chown -h 65534 all all/x all/new all/d; mkdir mine/sub; "
	  .. "ln -s ../../mine/x mine/sub/x; chown -h 65534 mine/sub mine/sub/x; ln -s sub/x mine/two")
    for _, path in ipairs { "all/x", "all/new", "all/d/x", "all/d/new", "all/d/sub/x", "mine/sub/x",
			    "mine/two" } do
      refused("another user's link in a folder of his own, " .. mode, { path = path }, EACCES, LINK)
    end
    written("another user's link in a folder of his own, follow", { path = "all/x", follow = true }, "mine/x")
    written("a new file in another user's folder", { path = "all/y" })
    written("my file in another user's folder", { path = "all/y" })
  end
  fresh("ln -s ../mine/x all/x && chown 65534 all")
  written("my link in another user's folder", { path = "all/x" }, "mine/x")

  for what, make in pairs { empty = ": >", profile = "printf 'ljs\\001' >", fifo = "mkfifo ",
			    text = "echo text >" } do
    fresh(make .. "all/x && chmod 666 all/x && chown 65534 all/x")
    refused("another user's " .. what, { path = "all/x" }, EACCES, OWNER)
    refused("another user's " .. what .. ", follow", { path = "all/x", follow = true }, EACCES, OWNER)
    if what ~= "fifo" then written("another user's, force", { path = "all/x", force = true }) end
  end
  fresh(": >mine/x && chown 65534 mine/x mine")
  refused("another user's file in a folder of his own", { path = "mine/x" }, EACCES, OWNER)
  written("another user's file in a folder of his own, force", { path = "mine/x", force = true })
  fresh(": >mine/x && chown 65534 mine/x")
  written("another user's file in a folder of mine", { path = "mine/x" })
  fresh("chmod 775 mine; : >mine/x && chown 65534 mine/x")
  written("another user's file in a folder of a group", { path = "mine/x" })
  fresh("chmod 755 all; ln -s ../mine/x all/x && chown -h 65534 all/x")
  written("another user's link in a folder that only I may write to", { path = "all/x" }, "mine/x")

  -- With another effective user, only that user's files and root's are trusted.
  fresh("ln -s ../mine/x all/his; ln -s ../mine/y all/roots; ln -s ../mine/z all/others; : >all/file; "
	.. ": >all/foreign; chmod 666 all/foreign; chown -h 65534 all/his all/file mine; "
	.. "chown -h 65533 all/others all/foreign")
  ffi.C.seteuid(SOMEBODY)
  local may = io.open("all/probe", "w")
  if may then
    may:close()
    local r = {}
    for _, path in ipairs { "his", "roots", "file", "others", "foreign" } do
      r[path] = { try({ path = "all/" .. path }) }
    end
    ffi.C.seteuid(0)
    for _, path in ipairs { "his", "roots", "file" } do
      t.equal(r[path][2], nil, "another effective user: " .. path)
    end
    t.contains(r.others[2] or "", LINK, "another effective user: others")
    t.contains(r.foreign[2] or "", OWNER, "another effective user: foreign")
  else
    ffi.C.seteuid(0)
    print("another effective user not tested: the folder is closed to others")
  end

  -- The file of a child.
  fresh()
  t.write_file("mine/fork.lua", [[
    local ffi = require("ffi")
    ffi.cdef "int fork(void); int waitpid(int, int *, int); int getpid(void);\
    int symlink(const char *, const char *); int lchown(const char *, unsigned, unsigned);"
    assert(misc.sysprof.start { mode = "C", path = "all/p", fork = true })
    for pid = ffi.C.getpid() + 1, ffi.C.getpid() + 2000 do
      local link = ("all/p.%d"):format(pid)
      assert(ffi.C.symlink("../mine/caught", link) == 0 and ffi.C.lchown(link, 65534, 65534) == 0)
    end
    local child = ffi.C.fork()
    if child == 0 then os.exit(misc.sysprof.stop() and 1 or 7) end
    local status = ffi.new("int[1]")
    while ffi.C.waitpid(child, status, 0) < 0 do end
    print(status[0] / 256, child)
  ]])
  local status, printed, err = t.shell(("'%s' mine/fork.lua"):format(t.luajit))
  t.equal(status, 0, "the file of a child: " .. err)
  local code, child = printed:match("(%d+)%s(%d+)")
  if t.shell("test -L all/p." .. tostring(child)) == 0 then
    t.equal(code, "7", "the file of a child: not profiled")
  else
    print("the child's number was not foreseen")
  end
  t.equal(io.open("mine/caught"), nil, "the file of a child: no link is followed")

  -- Another process exchanges the file all the time.
  fresh(": >mine/caught")
  t.write_file("mine/exchange.lua", [[
    local ffi = require("ffi")
    ffi.cdef "int symlink(const char *, const char *); int lchown(const char *, unsigned, unsigned);\
    int rename(const char *, const char *); int unlink(const char *); int creat(const char *, unsigned);\
    int mkfifo(const char *, unsigned); int close(int); unsigned alarm(unsigned);"
    local C = ffi.C
    C.alarm(200)
    while C.unlink("mine/stop") ~= 0 do
      C.symlink("../mine/caught", "all/l")
      C.lchown("all/l", 65534, 65534)
      C.rename("all/l", "all/x")
      C.close(C.creat("all/f", 384))
      C.rename("all/f", "all/x")
      C.unlink("all/x")
      C.mkfifo("all/p", 384)
      C.rename("all/p", "all/x")
      C.unlink("all/x")
    end
  ]])
  os.execute(("'%s' mine/exchange.lua &"):format(t.luajit))
  local seen, started = {}, os.time()
  repeat
    local ok, message = try({ path = "all/x", regular = true }, true)
    local kind = ok and "written" or message:match(": (.*)")
    seen[kind] = (seen[kind] or 0) + 1
  until (os.time() >= started + 2 and seen[LINK]) or os.time() >= started + 40
  t.ok(seen[LINK], "exchanged")
  t.write_file("mine/stop", "")
  repeat until t.shell("test -e mine/stop") ~= 0 or os.time() >= started + 60
  for kind, n in pairs(seen) do print("exchanged: " .. kind, n) end
  t.equal(t.read_file("mine/caught"), "", "exchanged: no link is followed")
end

local why = somebody()
if why then print("skipped: files of another user: " .. why) else others() end
fresh()
t.finish()
