-- --annotate: the cost of each line of a Lua file, and which functions count.
-- BASE: none, it reads no profile of this LuaJIT

local t = require("tools_test")
local B = require("stream_builder")
local G = require("sysprof.base.grammar")
local hotlines = require("sysprof.formats.hotlines")
local reader = require("sysprof.read.reader")
local view = require("sysprof.show.view")
local F = B.F
local bytes

local SOURCE = "local function f(n)\r\n\treturn g(n) * 2\n\nend\n" ..
	       "x \tcall\27(f)\255\nlast"

-- main chunk 1, f 2, and g 3 of another file. host: main, VM, and leaf.
local function stream(chunk, more)
  local b = B.new():context()
  b:lfunc(1, 0, chunk):lfunc(2, 1, chunk, "f"):lfunc(3, 2, "@other.lua", "g")
  b:hsym(0x10, 0x10, "main"):hsym(0x20, 0x20, "leaf"):ffunc(1, "string.rep")
  b:stack(100, { F.host(0x10), F.vm }):stack(101, { F.host(0x10), F.vm, F.host(0x20) })
  -- In f itself, called by line 5; twice while f is recursive in line 2.
  b:stack(1, { F.cbound, F.lfunc(1, 5), F.lfunc(2, 2) })
  b:stack(2, { F.cbound, F.lfunc(1, 5), F.lfunc(2, 2), F.lfunc(2, 2) })
  -- In C, a builtin, another file, a collection of garbage; all called by f.
  b:stack(3, { F.cbound, F.lfunc(1, 5), F.lfunc(2, 2), F.ffunc(1) })
  b:stack(4, { F.cbound, F.lfunc(1, 5), F.lfunc(2, 2), F.lfunc(3, 2) })
  b:stack(5, { F.cbound, F.lfunc(1, 5), F.lfunc(2, 4), F.trace(1, 1), F.work(0, 4) })
  -- Compiled; in no line; elsewhere.
  b:stack(6, { F.cbound, F.lfunc(1, 5), F.lfunc(2, 4), F.trace(1, 2) })
  b:stack(7, { F.cbound, F.lfunc(3, 2) })
  b:sample(1, 100, 10):sample(2, 100, 2):sample(1, 101, 4):sample(3, 100, 1)
  b:sample(4, 100, 1):sample(5, 100, 1):sample(6, 100, 1):sample(7, 100, 80)
  if more then more(b) end
  return b:finish()
end

local function run(s, arguments)
  local status, out, err
  t.with_file(s, function(path)
    status, out, err = t.parse(arguments .. " " .. path)
    err = err:gsub(path:gsub("%p", "%%%0"), "PROFILE")
  end)
  return t.without_errors(out), status, err, out
end

t.write_file("app.lua", SOURCE)
t.shell("mkdir -p lib")
t.write_file("lib/app.lua", SOURCE)
t.shell("rm -f none.lua")

local HEAD = "        self   self%        total  total%    line  text\n"
local TABLE = HEAD .. [[
                                                1  local function f(n)
          12    12.0           18    18.0       2          return g(n) * 2
                                                3
           1     1.0            2     2.0       4  end
                               20    20.0       5  x       call?(f)\xff
                                                6  last
]]
local TOP = [[
file               app.lua
counted as         app.lua
self               13 of 100 samples, 13.0%
total              20 of 100 samples, 20.0%

]]

local out, status, err, whole = run(stream("@app.lua"), "--annotate app.lua")
t.contains(whole, "        self       +-   self%        total  total%    line  text\n", "head of errors")
t.contains(whole, "\n          12        3    12.0           18    18.0       2  ", "half of an interval")
t.contains(whole, "\n           1   0 .. 6     1.0            2     2.0       4  end\n", "an interval")
t.equal(out, TOP .. TABLE, "listing")
t.equal(status, 0, "status")
t.equal(err, "", "no message")

-- Other units and options.
out = run(stream("@app.lua"), "--annotate=app.lua --weight=cpu")
t.contains(out, "self               13.000 of 100.000 ms, 13.0%\n", "CPU time")
t.contains(out, "     self ms   self%     total ms  total%    line  text\n", "its unit")
t.contains(out, "      12.000    12.0       18.000    18.0       2 ", "its values")
out = run(stream("@app.lua"), "--annotate=app.lua --no-host")
t.contains(out, "          16    16.0           18    18.0       2 ",
	   "C code is part of the line when it is left out")
local same = run(stream("@app.lua"), "--annotate=app.lua --traces --lines --coroutine")
t.equal(same, TOP .. TABLE, "options that change no line")
out = run(stream("@app.lua"), "--annotate=app.lua -o out.txt")
t.equal(out, "", "to a file")
t.equal(t.without_errors(t.read_file("out.txt")), TOP .. TABLE, "the file")

-- Which chunks are the file: its path, or one path is the end of the other.
local function counted(chunk, path)
  local got = run(stream(chunk), ("--annotate='%s'"):format(path))
  return got:match("counted as +(.-)\n")
end
local here = select(2, t.shell("pwd")):gsub("\n", "")
t.equal(counted("@./app.lua", "app.lua"), "./app.lua", "chunk with a dot")
t.equal(counted("@app.lua", "./app.lua"), "app.lua", "path with a dot")
t.equal(counted("@/srv/lib/app.lua", "lib/app.lua"), "/srv/lib/app.lua", "longer chunk")
t.equal(counted("@lib/app.lua", here .. "/lib/app.lua"), "lib/app.lua", "longer path")
t.equal(counted("@../x/lib/app.lua", "./lib/app.lua"), "../x/lib/app.lua", "parent")
for _, chunk in ipairs { "@xapp.lua", "@app.luax", "=app.lua", "app.lua", "@lib/app",
			 "@", "@/", "@app.lua/", "@." } do
  t.equal(counted(chunk, "app.lua"), nil, "another file: " .. chunk)
end
t.equal(counted("@srv/app.lua", "lib/app.lua"), nil, "another folder")

local function two(first, second)
  local b = B.new():context():lfunc(1, 1, first):lfunc(2, 1, second)
  b:stack(1, { F.cbound, F.lfunc(1, 1) }):stack(2, { F.cbound, F.lfunc(2, 1) })
  return run(b:sample(1, 0, 3):sample(2, 0):finish(), "--annotate app.lua")
end
out = two("@b/app.lua", "@a/app.lua")
t.contains(out, "counted as         a/app.lua\n" ..
		"                   b/app.lua\nself               4 of 4", "two chunks")
out = two("@b/app.lua", "@app.lua")
t.contains(out, "counted as         app.lua\nself               1 of 4",
	   "the path itself is more than its end")

-- Lines that are not there, or not known.
out = run(stream("@app.lua", function(b)
  b:stack(8, { F.cbound, F.lfunc(2, 900) }):stack(9, { F.cbound, F.lfunc(2, 0) })
  b:stack(10, { F.cbound, F.lfunc(2, 7) })
  b:sample(8, 100, 50):sample(9, 100, 30):sample(10, 100, 20)
end), "--annotate app.lua")
t.contains(out, [[
                                                6  last
          20    10.0           20    10.0       7  [not in this file]
          50    25.0           50    25.0     900  [not in this file]
          30    15.0           30    15.0       ?  [line not known]
]], "lines that the file has not")

-- A file without text.
t.write_file("empty.lua", "")
out = run(stream("@empty.lua"), "--annotate empty.lua")
t.contains(out, HEAD .. "                                                1\n" ..
		"          12    12.0           18    18.0       2  [not in this file]\n",
	   "empty file")

-- Other events and second weights stand beside the first event, as totals.
local function several(first, unit, second)
  local b = B.new():context():meta("clock", first .. "," .. second)
  local alloc = first == "alloc" and 0 or 1
  b:event(alloc, "alloc", G.SPF_UNIT_BYTES, 4096, { { G.SPF_FIELD_COUNT, "objects" } })
  b:event(1 - alloc, "cpu", unit, 1000000)
  b:lfunc(1, 1, "@app.lua"):lfunc(2, 2, "@app.lua", "f")
  b:stack(1, { F.lfunc(1, 5) }):stack(2, { F.lfunc(1, 5), F.lfunc(2, 2) })
  b:stack(3, { F.lfunc(1, 5), F.lfunc(2, 9) })
  b:sample(1, 0, 3, nil, 100, 1 - alloc)
  b:sample(2, 0, 2, nil, 2048, alloc, { 7 }):sample(3, 0, 1, nil, 1024, alloc, { 3 })
  return b:finish()
end
out = run(several("cpu", G.SPF_UNIT_US, "alloc"), "--annotate app.lua")
t.equal(out, [[
file               app.lua
counted as         app.lua
self               3 of 3 samples, 100.0%
total              3 of 3 samples, 100.0%
total alloc        5 KiB
total objects      17 objects

        self   self%        total  total%        alloc      objects    line  text
                                                                          1  local function f(n)
                                                 4 KiB           14       2          return g(n) * 2
                                                                          3
                                                                          4  end
           3   100.0            3   100.0        5 KiB           17       5  x       call?(f)\xff
                                                                          6  last
                                                 1 KiB            3       9  [not in this file]
]], "bytes and objects beside CPU time")
out = run(several("alloc", G.SPF_UNIT_US, "cpu"), "--annotate app.lua")
t.contains(out, "        self   self%        total  total%      objects          cpu    line  text\n",
	   "objects and CPU time beside bytes")
t.contains(out, "                            5 KiB   100.0           17            3       5  x",
	   "their values")
for _, chosen in ipairs { "--event=alloc", "--weight=samples", "--event=alloc --weight=objects" } do
  out = run(several("cpu", G.SPF_UNIT_US, "alloc"), "--annotate app.lua " .. chosen)
  t.contains(out, HEAD, chosen .. ": one event alone")
end

-- Messages.
local function refused(what, s, arguments, expected)
  local got, code, message = run(s, arguments)
  t.equal(got, "", what .. ": no output")
  t.equal(code, 1, what .. ": status")
  t.equal(message, "luajit-parse-sysprof: PROFILE: " .. expected .. "\n", what)
end
refused("no function in it", stream("@x.lua"), "--annotate app.lua",
	"the profile has no samples in 'app.lua'")
refused("no sample in it", B.new():context():lfunc(1, 1, "@app.lua"):finish(), "--annotate app.lua", "no samples")
refused("no sample passes", stream("@app.lua"), "--annotate app.lua --thread=99", "no sample passes the filters: " ..
	"no sample has the thread '99'; threads: 1")
refused("no such file", stream("@none.lua"), "--annotate none.lua",
	"cannot read none.lua: No such file or directory")
refused("a folder", stream("@lib"), "--annotate lib", "cannot read lib: Is a directory")

-- The hot lines of a block in nginx's configuration say where its text stands.
local lines = {}
local its_view = view.new(assert(reader.parse_string(stream("=content_by_lua(conf/nginx.conf:15)"))))
assert(hotlines.new(its_view)):render(function(s) lines[#lines + 1] = s end)
t.contains(table.concat(lines), "\n[no source: line 1 is line 15 of conf/nginx.conf]\n", "a block of nginx")

-- Long labels of the head widen all.
bytes = B.new():context():event(0, "context-switches", G.SPF_UNIT_COUNT, 1):meta("clock", "context-switches")
	:lfunc(1, 1, "@app.lua", "f"):stack(1, { F.lfunc(1, 2) }):sample(1, 0, 5, 0, 1):finish()
lines = {}
assert(hotlines.new(assert(view.new(reader.parse_string(bytes), { title = "x.bin" })))):render(function(s) lines[#lines + 1] = s end)
t.ok(table.concat(lines):find("^profile          x%.bin[^\n]*\ncontext%-switches 5 samples"), "labels: " .. table.concat(lines))

-- Broken stacks are counted for all of the time.
for to, told in pairs { [false] = "2 with a broken C stack\n", [1e6] = "2 with a broken C stack, in all of the time\n" } do
  local b = B.new():context():lfunc(1, 1, "@app.lua", "f"):stack(1, { F.lfunc(1, 2) }):sample(1, 0, 5)
  lines, bytes = {}, b:counters({ { G.SPF_COUNTER_HOST_BROKEN, 2 } }):finish()
  local p = assert(reader.parse_string(bytes, { to = to or nil }))
  assert(hotlines.new(assert(view.new(p, { title = "x.bin" })))):render(function(s) lines[#lines + 1] = s end)
  t.contains(table.concat(lines), "\nsamples   " .. told, "broken stacks")
end

-- Incomplete: the listing and the message.
local cut = stream("@app.lua", function(b) b:flush() end):sub(1, -3)
out, status, err = run(cut, "--annotate app.lua")
t.equal(out, TOP .. TABLE, "cut profile")
t.equal(status, 3, "cut profile: status")
t.contains(err, "the file is cut", "cut profile: message")

t.finish()
