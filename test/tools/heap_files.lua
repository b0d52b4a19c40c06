-- Files of heap snapshots: whole or not there, nothing else is replaced, no process stays; and files that are
-- damaged or hostile.

local ffi = require("ffi")
local heapfile = require("sysprof.read.heapfile")
local heapgrammar = require("sysprof.base.heapgrammar")
local heapview = require("sysprof.show.heapview")
local t = require("tools_test")

ffi.cdef [[
int waitid(int, unsigned, void *, int);
int kill(int, int);
]]

local P_ALL, WNOHANG, WEXITED, WNOWAIT, ALL_CHILDREN = 0, 1, 4, 0x1000000, 0x40000000
local ECHILD, KILL, STOP = 10, 9, 19
local LUAJIT = os.getenv("LUAJIT")
local snapshot = misc.memprof.snapshot

os.execute("rm -rf ./*")

-- Returns what a command prints.
local function output(command)
  local pipe = io.popen(command)
  local s = pipe:read("*a")
  pipe:close()
  return s
end

local function names()
  return (output("ls -A"):gsub("%s+", " "):gsub(" $", ""))
end

-- Is there a child that the host's wait sees? options: more of them.
local function has_child(options)
  local info = ffi.new("char[128]")
  local status = ffi.C.waitid(P_ALL, 0, info, WEXITED + WNOHANG + WNOWAIT + options)
  return not (status ~= 0 and ffi.errno() == ECHILD)
end

local function pid_of_child()
  return tonumber(output([[for f in /proc/[0-9]*/stat; do
    read -r pid name state parent rest 2>/dev/null <$f
    [ "$name $parent" = "(sysprof-heap) $(awk '{ print $4 }' /proc/self/stat)" ] && echo $pid
  done 2>/dev/null]]):match("%d+"))
end

-- -- Files -----------------------------------------------------------------

t.ok(snapshot("a.heap"))
t.equal(names(), "a.heap", "only the file is there")
t.ok(output("ls -l a.heap"):find("^%-rw%-%-%-%-%-%-%-"), "mode")
t.ok(snapshot("a.heap"), "an older snapshot is replaced")

t.write_file("other", "text of the user")
local ok, why = snapshot("other")
t.equal(ok, nil, "another file")
t.contains(why, "there is another file", "reason")
t.equal(t.content("other"), "text of the user", "it is as it was")
os.execute("ln -s other link")
t.equal(snapshot("link"), nil, "a link is not followed")
t.equal(select(3, snapshot("none/a.heap")), 2, "no folder: ENOENT")
t.equal(snapshot(""), nil, "no name")
for _, options in ipairs { { wait = 1 }, { what = true }, { "wait" } } do
  t.ok(not pcall(snapshot, "b.heap", options), "a wrong option")
end
os.execute("rm other link")

if tonumber(output("id -u")) == 0 then
  os.execute("mkdir public; chmod 1777 public; touch public/a.heap; chown 1234 public/a.heap; chmod 755 .")
  t.contains(select(2, snapshot("public/a.heap")), "another user owns the file, in a folder that other users may write to; " ..
    "choose another path", "a file of another user")
  os.execute("rm -r public")
else
  print("not root: no file of another user was tried")
end
os.execute("mkfifo pipe; mkdir folder")
for _, path in ipairs { "pipe", "folder", "/dev/zero" } do
  t.equal(heapfile.read(path), nil, "no regular file: " .. path)
  t.contains(select(2, heapfile.read(path)), "regular file", "no regular file: " .. path)
end
t.equal(select(2, heapfile.read("none.heap")), "No such file or directory", "no file")
os.execute("rm -r pipe folder")

-- -- Texts -----------------------------------------------------------------

local secret = "secret " .. 12345	-- luacheck: ignore
_G[secret .. " key"] = true
t.ok(snapshot("b.heap"))
t.ok(t.content("b.heap"):find("secret 12345", 1, true), "texts are there")
t.ok(snapshot("b.heap", { no_strings = true }))
t.ok(not t.content("b.heap"):find("12345", 1, true), "no_strings leaves them out")
t.ok(heapview.of(assert(heapfile.read("b.heap")), 5), "it has a view")
os.remove("b.heap")

-- -- The child -------------------------------------------------------------

local many = {}
for i = 1, 300000 do many[i] = { i } end

t.ok(snapshot("c.heap", { wait = false }))
t.ok(not has_child(0), "the host's wait does not see the child")
local busy, reason = snapshot("d.heap")
if not busy then t.contains(reason, "another snapshot", "two at a time") end
t.wait_until("the file is there", function() return io.open("c.heap") end)
t.wait_until("no child stays, not even a dead one", function() return not has_child(ALL_CHILDREN) end)
os.remove("d.heap")
t.wait_until("d.heap has ended", function() return not has_child(ALL_CHILDREN) end)
os.execute("rm -f ./*.heap")

for _ = 1, 20 do
  t.ok(snapshot("e.heap", { wait = false }))
  local pid = pid_of_child()
  if pid and ffi.C.kill(pid, STOP) == 0 and not io.open("e.heap") then
    ffi.C.kill(pid, KILL)
    t.wait_until("the killed child is gone", function() return not has_child(ALL_CHILDREN) end)
    break
  elseif pid then
    ffi.C.kill(pid, KILL)
  end
  t.wait_until("the child is gone", function() return not has_child(ALL_CHILDREN) end)
  os.remove("e.heap")
end
t.equal(names(), "", "a killed child leaves no file")
t.equal(#many, 300000, "the heap was large")
many = nil	-- luacheck: ignore

-- The program ends at once: exit() waits, and after a kill the child writes on.
for _, ending in ipairs { "", "os.exit(0)", "ffi.C.kill(ffi.C.getpid(), 9)" } do
  t.write_file("end.lua", [[
    local ffi = require("ffi")
    ffi.cdef("int getpid(void); int kill(int, int);")
    many = {}
    for i = 1, 100000 do many[i] = { i } end
    print(ffi.C.getpid())
    io.stdout:flush()
    assert(misc.memprof.snapshot("i.heap", { wait = false }))
    ]] .. ending)
  local pid = tonumber(output(LUAJIT .. " end.lua"))
  if ending:find("kill") then t.wait_until("the file is there", function() return io.open("i.heap") end) end
  local snap = heapfile.read("i.heap")
  t.equal(snap and snap.pid, pid, "the program's end by '" .. ending .. "'")
  os.execute("rm -f i.heap end.lua")
end

-- -- No room ---------------------------------------------------------------

local full = output(("(ulimit -f 8; %s -e '%s') 2>&1"):format(LUAJIT,
  'print(misc.memprof.snapshot("f.heap"))'))
t.contains(full, "could not be written: File too large", "a full disk")
t.equal(names(), "", "it leaves no file")

-- -- Damaged and hostile files ---------------------------------------------

collectgarbage()
t.ok(snapshot("g.heap"))
local whole = t.content("g.heap")

-- Returns a file with the right sum.
local function summed(s)
  s = s:sub(1, -9)
  s = s .. ("\0"):rep(-#s % 8)
  local words, sum = ffi.cast("const uint64_t *", s), heapgrammar.HPF_SUM
  for i = 0, #s / 8 - 1 do sum = require("bit").bxor(sum, words[i]) * heapgrammar.HPF_PRIME end
  return s .. ffi.string(ffi.new("uint64_t[1]", sum), 8)
end
t.equal(summed(whole), whole, "the sum")

local function read(s)
  t.write_file("h.heap", s)
  return heapfile.read("h.heap")
end

for _, n in ipairs { 0, 3, 4, 8, 24, #whole - 8, #whole - 1 } do
  t.equal(read(whole:sub(1, n)), nil, "cut behind byte " .. n)
end
for n = 8, 4000, 56 do t.equal(read(summed(whole:sub(1, n) .. ("x"):rep(8))), nil, "cut, with a right sum: " .. n) end
t.equal(read(whole:sub(1, 99) .. "?" .. whole:sub(101)), nil, "a wrong byte")
t.contains(select(2, read("ljh\2" .. ("x"):rep(28))), "version 2", "another version")

math.randomseed(7)
for _ = 1, 60 do
  local at, s = math.random(5, 3000), whole
  for _ = 1, math.random(3) do
    s = s:sub(1, at - 1) .. string.char(math.random(0, 255)) .. s:sub(at + 1)
    at = math.random(5, 3000)
  end
  local snap, problem = read(summed(s))
  t.ok(snap or type(problem) == "string", "a mutated file")
  if snap then
    local is_ok, err = pcall(heapview.of, snap, 3)
    t.ok(is_ok, "the view of a mutated file: " .. tostring(err))
  end
end

-- -- The command -----------------------------------------------------------

local heap = LUAJIT:gsub("luajit$", "luajit-sysprof") .. " heap "
local text = output(heap .. "g.heap")
t.contains(text, "biggest holders", "the text")
local address = text:match("table (0x%x+)")
t.contains(output(heap .. "path g.heap " .. address), address, "a path")
t.contains(output(heap .. "--format=json g.heap"), '"format":"sysprof heap"', "JSON")
t.contains(output(heap .. "path g.heap 0x10 2>&1"), "no object at 0x10", "no such object")
t.contains(output(heap .. "g.heap g.heap 2>&1"), "expected a FILE", "two files")
t.contains(output(heap .. "/dev/null 2>&1"), "a snapshot is a regular file", "no snapshot")

t.finish()
