-- Several files become one profile. Equal things get the same name and row, whatever
-- their numbers and addresses in each run. Different things stay separate.
-- BASE: none, it reads no profile of this LuaJIT

local t = require("tools_test")
local B = require("stream_builder")
local G = require("sysprof.base.grammar")
local merge = require("sysprof.model.merge")
local reader = require("sysprof.read.reader")
local view = require("sysprof.show.view")
local F = B.F

-- Writes the streams, reads them as one; returns folded output and the profile.
local function merged(streams, options)
  local out, paths = {}, nil
  local p, err, bad = t.with_files(streams, function(list)
    paths = list
    return reader.read_all(list, options)
  end)
  if p then
    require("sysprof.formats.folded").render(view.new(p), function(s) out[#out + 1] = s end)
  end
  return table.concat(out), p, paths, err, bad
end

-- A run with other function numbers and addresses.
local function run(fid, base, tid, extra)
  local b = B.new():meta("clock", "cpu"):meta("pid", tostring(tid))
  b:module(base, base + 0x10000, base, "/lib/libx.so", "\1\2\3")
  b:context(tid)
  b:lfunc(fid, 0, "@x.lua", "", 90):lfunc(fid + 1, 5, "@x.lua", "f", 8)
  b:lfunc(fid + 2, 5, "@x.lua", "g", 8)
  b:stack(1, { F.cbound, F.lfunc(fid, 3), F.lfunc(fid + 1, 6), F.ffunc(fid + 7) })
  b:stack(2, { F.cbound, F.lfunc(fid, 3), F.lfunc(fid + 2, 6) })
  b:stack(3, { F.host(base + 0x110), F.vm, F.host(base + 0x3000) })
  b:sample(1, 3, 2):sample(2, 3, 1)
  b:ffunc(fid + 7, "string.rep"):hsym(base + 0x110, base + 0x100, "main")
  b:counters { { G.SPF_COUNTER_OVERRUNS, 3 }, { G.SPF_COUNTER_HANDLER_MAX_NS, tid } }
  if extra then extra(b) end
  return b:finish()
end

local A, Z = 0x555500000000, 0x7f0000000000
local STACKS = "main;main chunk (x.lua);f (x.lua:5);string.rep;libx.so+0x3000 %d\n" ..
	       "main;main chunk (x.lua);g (x.lua:5);libx.so+0x3000 %d\n"

local out, p = merged({ run(1, A, 70), run(30, Z, 71) })
t.equal(out, STACKS:format(4, 2), "two runs at other addresses")
t.equal(p:problem_text(), nil, "two runs: complete")
t.equal(#p.thread_list, 2, "two runs: threads")
t.equal(p.counters[G.SPF_COUNTER_OVERRUNS], 6, "counters add up")
t.equal(p.counters[G.SPF_COUNTER_HANDLER_MAX_NS], 71, "the maximum is the larger one")
t.equal(p.meta.clock, "cpu", "the same meta value")
t.equal(p.meta.pid, "70, 71", "two meta values")
t.equal(#p.modules, 1, "one module")
local samples, us = p:totals()
t.equal(samples, 6, "samples")
t.equal(us, 6000, "microseconds")
-- Small modules where the other run has others: each gets a place of its own.
local function two_modules(first, second)
  local b = B.new():context(1)
  for i, name in ipairs { first, second } do
    local at = A + i * 0x10000
    b:module(at, at + 0x1000, at, "/lib/" .. name .. ".so", name)
    b:stack(i, { F.host(at + 0x10 * i) }):sample(0, i)
  end
  return b:finish()
end
out, p = merged { two_modules("one", "two"), two_modules("three", "four") }
t.equal(out, "four.so+0x20 1\none.so+0x10 1\nthree.so+0x10 1\ntwo.so+0x20 1\n", "modules that move")
for i, m in ipairs(p.modules) do
  for k = 1, i - 1 do
    local other = p.modules[k]
    t.ok(m.first >= other.last or other.first >= m.last, ("modules %d and %d overlap"):format(k, i))
  end
end

out, p = merged({ run(1, A, 70), run(1, A, 70), run(2, Z, 70) })
t.equal(out, STACKS:format(6, 3), "three runs")
t.equal(p.slots:count(), 2, "three runs of one thread: distinct samples")
out = merged({ (run(1, A, 70)) })
t.equal(out, STACKS:format(2, 1), "one run")

-- The same numbers, but other things.
local other = B.new():context(9):module(A, A + 0x10000, A, "/lib/liby.so", "\9")
other:lfunc(1, 0, "@y.lua"):lfunc(2, 5, "@x.lua", "h", 8)
other:stack(1, { F.cbound, F.lfunc(1, 3), F.lfunc(2, 6), F.ffunc(8), F.lfunc(77) })
other:stack(2, { F.host(A + 0x110), F.vm, F.host(A + 0x3000), F.host(0x1234) })
other:sample(1, 2):ffunc(8, "string.sub"):hsym(A + 0x110, A + 0x100, "start")
local OTHER = "start;main chunk (y.lua);h (x.lua:5);string.sub;[lua function X];" ..
	      "liby.so+0x3000;0x1234 1\n"
out = merged({ run(1, A, 70), (other:finish()) })
out = out:gsub("function %d+", "function X")
t.equal(out, STACKS:format(2, 1) .. OTHER, "the same numbers for other things")

-- A name that only one of the two knows.
local function nameless(name)
  local b = B.new():context():lfunc(4, 2, "@n.lua", name, 3):stack(1, { F.lfunc(4) })
  return b:sample(1, 0):finish()
end
t.equal((merged({ nameless(""), nameless("n") })), "n (n.lua:2) 2\n", "name in the second")
t.equal((merged({ nameless("n"), nameless("") })), "n (n.lua:2) 2\n", "name in the first")

-- The definition's name or the path, which only one of the two knows. Each pair is one function.
local function pathed(name, path, n)
  local b = B.new():context():lfunc(4, 2, "@n.lua", name, 3, path):stack(1, { F.lfunc(4) })
  return b:sample(1, 0, n):finish()
end
local BOTH = "f (n.lua:2) [m.g]"
for _, pair in ipairs {
  { { "f", "m.g" }, { "f", "m.g" }, BOTH }, { { "f", "m.g" }, { "f" }, BOTH }, { { "f", "m.g" }, { "m.g" }, BOTH },
  { { "f", "m.g" }, { "" }, BOTH }, { { "f", "m.g" }, { "f", "m.h" } }, { { "f" }, { "m.g" } },
  { { "f", "m.g" }, { "h" } }, { { "f", "m.g" }, { "h", "m.g" } },
} do
  local a, c = pair[1], pair[2]
  for turn = 1, 2 do
    local what = ("%s [%s] and %s [%s]"):format(a[1], a[2] or "", c[1], c[2] or "")
    local all = merged { pathed(a[1], a[2], 1), pathed(c[1], c[2], 2) }
    local rows = select(2, all:gsub("\n", ""))
    if pair[3] then
      t.equal(all, pair[3] .. " 3\n", what)
    elseif a[1] == c[1] or a[2] and a[2] == c[2] then
      t.equal(rows, 1, what .. ": one function")
      t.contains(all, a[1] .. " (n.lua:2) [" .. a[2] .. "] 3", what .. ": the first one's names")
    else
      t.equal(rows, 2, what .. ": two functions")
    end
    -- Compared, they are one or two functions, too.
    local v = view.new(assert(reader.parse_string(pathed(a[1], a[2], 1))))
    v:compare_with(view.new(assert(reader.parse_string(pathed(c[1], c[2], 2)))))
    local out_diff = {}
    require("sysprof.formats.folded").render(v, function(s) out_diff[#out_diff + 1] = s end)
    local nameless_one = a[1] == "" or c[1] == ""
    if not nameless_one then t.equal(select(2, table.concat(out_diff):gsub("\n", "")), rows, what .. ": compared") end
    a, c = c, a
    if turn == 1 then t.ok(a ~= c, "in both orders") end
  end
end

-- No build-id: by path. No module: by symbol.
local function plain(base, path, at)
  local b = B.new():module(base, base + 0x1000, base, path):context()
  return b:stack(1, { F.host(base + (at or 0x20)) }):sample(0, 1):finish()
end
for at, expected in pairs { [0] = "x.so+0x0 2\n", [0xfff] = "x.so+0xfff 2\n",
			    [0x1000] = "0x11000 1\n0x91000 1\n", [-1] = "0x8ffff 1\n0xffff 1\n" } do
  t.equal((merged { plain(0x10000, "/x.so", at), plain(0x90000, "/x.so", at) }), expected,
	  "address at an end of a module")
end
t.equal((merged({ plain(0x10000, "/a/x.so"), plain(0x90000, "/a/x.so") })),
	"x.so+0x20 2\n", "by path")
t.equal((merged({ plain(0x10000, "/a/x.so"), plain(0x10000, "/b/y.so") })),
	"x.so+0x20 1\ny.so+0x20 1\n", "other path, same address")
-- A module that cannot be right is defined again with each list of modules.
p = B.new():module(32, 16, 16, "/x"):module(33, 16, 16, "/y"):module(32, 16, 16, "/x")
t.equal(#reader.parse_string(p:finish()).modules, 2, "the same module again")
-- Neighbours do not overlap: each stays where it is.
for _, base in ipairs { 0xf000, 0x11000 } do
  _, p = merged { plain(0x10000, "/a/x.so"), plain(base, "/b/y.so") }
  t.equal(p.modules[2].path .. " " .. p.modules[2].first, "/b/y.so " .. base, "a neighbour stays")
end
local function symbol(base, name)
  local b = B.new():context():stack(1, { F.host(base + 4) }):sample(0, 1)
  return b:hsym(base + 4, base, name):finish()
end
t.equal((merged({ symbol(0x100, "f"), symbol(0x900, "f") })), "f 2\n", "by symbol")
t.equal((merged({ symbol(0x100, "f"), symbol(0x100, "g") })), "f 1\ng 1\n",
	"other symbol, same address")

-- Versions of a file: functions { first line, last line, name, body }.
do
  local function version(chunk, list)
    local b = B.new():meta("pid", tostring(#list)):context(70)
    for i, f in ipairs(list) do
      b:lfunc(i, f[1], chunk, f[3], f[2])
      if f[4] then b:add(G.SPF_BODY, B.uleb(i) .. f[4]:rep(8)) end
      b:stack(i, { F.lfunc(i, f[1] > 0 and f[1] + 1 or 2) }):sample(0, i)
    end
    return b:finish()
  end
  local function check(what, a, b, expected, chunk)
    local got = merged { version(chunk or "@x.lua", a), version(chunk or "@x.lua", b) }
    t.equal(got, table.concat(expected, "\n") .. "\n", what)
  end
  local old = { { 1, 5, "f", "a" }, { 7, 12, "g", "b" }, { 14, 19, "h", "c" } }
  check("a comment above all", old, { { 2, 6, "f", "a" }, { 8, 13, "g", "b" }, { 15, 20, "h", "c" } },
	{ "f (x.lua:2) 2", "g (x.lua:8) 2", "h (x.lua:15) 2" })
  check("one edited", old, { { 1, 5, "f", "a" }, { 7, 14, "g", "x" }, { 16, 21, "h", "c" } },
	{ "f (x.lua:1) 2", "g (x.lua:7) 2", "h (x.lua:16) 2" })
  check("edited in place", old, { { 1, 5, "f", "x" } }, { "f (x.lua:1) 2", "g (x.lua:7) 1", "h (x.lua:14) 1" })
  check("many lines above", { { 1, 5, "f", "a" }, { 57, 62, "g", "b" }, { 74, 79, "h", "c" } },
	{ { 41, 45, "f", "a" }, { 97, 102, "g", "b" }, { 114, 119, "h", "c" } },
	{ "f (x.lua:41) 2", "g (x.lua:97) 2", "h (x.lua:114) 2" })
  check("a copy of a part of the text", old, { { 41, 45, "f", "a" }, { 47, 52, "g", "b" }, { 54, 59, "h", "c" } },
	{ "f (x.lua:1) 1", "f (x.lua:41) 1", "g (x.lua:47) 1", "g (x.lua:7) 1", "h (x.lua:14) 1", "h (x.lua:54) 1" })
  check("without bodies", { { 1, 5, "f" }, { 7, 12, "g" } }, { { 2, 6, "f" }, { 8, 13, "g" } },
	{ "f (x.lua:2) 2", "g (x.lua:8) 2" })
  check("without a name", { { 1, 5, "f", "a" }, { 7, 12, "", "b" } }, { { 2, 6, "f", "a" }, { 8, 13, "", "b" } },
	{ "f (x.lua:2) 2", "x.lua:8 2" })
  check("functions of one version alike", { { 1, 3, "new", "a" }, { 5, 7, "get", "b" } },
	{ { 11, 13, "new", "a" }, { 15, 17, "put", "b" } },
	{ "get (x.lua:5) 1", "new (x.lua:1) 1", "new (x.lua:11) 1", "put (x.lua:15) 1" })
  check("other functions of an edited file", { { 1, 5, "f", "a" }, { 7, 12, "new", "b" } },
	{ { 2, 6, "f", "a" }, { 30, 35, "new", "c" } },
	{ "f (x.lua:2) 2", "new (x.lua:30) 1", "new (x.lua:7) 1" })
  check("two alike in each version", { { 1, 9, "f", "a" }, { 11, 13, "get", "b" }, { 31, 33, "get", "b" } },
	{ { 6, 14, "f", "a" }, { 16, 18, "get", "b" }, { 36, 38, "get", "b" } },
	{ "f (x.lua:6) 2", "get (x.lua:16) 2", "get (x.lua:36) 2" })
  check("nested ones", { { 1, 20, "f", "a" }, { 3, 9, "g", "b" } }, { { 12, 18, "g", "b" } },
	{ "f (x.lua:1) 1", "g (x.lua:12) 1", "g (x.lua:3) 1" })
  check("one begins at the last line of its twin", { { 2, 4, "f", "a" } }, { { 4, 6, "f", "a" } }, { "f (x.lua:4) 2" })
  check("two short ones, one without its table", { { 2, 2, "f", "a" }, { 5, 5, "work", "b" } },
	{ { 4, 4, "f", "a" }, { 7, 7, "mod.work", "b" } }, { "f (x.lua:4) 2", "mod.work (x.lua:7) 2" })
  check("methods of two tables", { { 1, 5, "f", "a" }, { 7, 9, "m.get", "b" }, { 11, 13, "n.get", "b" } },
	{ { 2, 6, "f", "a" } }, { "f (x.lua:2) 2", "m.get (x.lua:7) 1", "n.get (x.lua:11) 1" })
  check("texts that programs load", old, { { 2, 6, "f", "a" } },
	{ "f (x:1) 1", "f (x:2) 1", "g (x:7) 1", "h (x:14) 1" }, "=x")
  local lines = {}
  local _, p = merged { version("@x.lua", old), version("@x.lua", { { 2, 6, "f", "a" } }) }
  view.new(p, { lines = true }):each(function(names, n) lines[#lines + 1] = names[n].text end)
  table.sort(lines)
  t.equal(table.concat(lines, " "), "f (x.lua:3) f (x.lua:3) g (x.lua:8) h (x.lua:15)", "lines of versions")
  t.equal(#p.versions, 1, "files with versions")
  -- Lines of main chunks, which stand at line 2 here: above all functions, which moved by 3.
  local function main_line(list)
    lines = {}
    local _, both = merged { version("@x.lua", { { 0, 30, "", nil }, unpack(old) }), version("@x.lua", list) }
    view.new(both, { lines = true }):each(function(names, n)
      if names[n].text:find("^main") then lines[#lines + 1] = names[n].text end
    end)
    table.sort(lines)
    return table.concat(lines, " ")
  end
  t.equal(main_line { { 0, 33, "" }, { 4, 8, "f", "a" }, { 10, 15, "g", "b" }, { 17, 22, "h", "c" } },
	  "main chunk (x.lua:2) main chunk (x.lua:5)", "a line of a main chunk, an edit above all")
  t.equal(main_line { { 0, 33, "" }, { 1, 5, "f", "a" }, { 7, 15, "g", "x" }, { 17, 22, "h", "c" } },
	  "main chunk (x.lua:2) main chunk (x.lua:2)", "a line of a main chunk, an edit below")
end

-- Problems name their file; the rest is used.
local paths, err, bad
out, p, paths = merged({ run(1, A, 70), run(1, A, 70):sub(1, -2), run(1, A, 70) })
t.equal(out, STACKS:format(4, 2), "one of three is cut")
t.contains(p:problem_text(), paths[2] .. ": offset 15: the file is cut", "which one is cut")
out, p, paths, err, bad = merged({ run(1, A, 70), "text" })
t.equal(p, nil, "one is no profile")
t.contains(err, "not a sysprof profile", "one is no profile: why")
t.equal(bad, paths[2], "one is no profile: which")

-- Without room for more stacks, a profile keeps what it has.
p = reader.parse_string(run(1, A, 70))
p.stacks = setmetatable({ push = function() end }, { __index = p.stacks })
t.contains(merge.into(p)(reader.parse_string(nameless("n"))), "different stacks", "no room for stacks")
t.equal(p:totals(), 3, "no room for stacks: samples")

-- Times.
out, p = merged({ run(1, A, 70), run(30, Z, 71) }, { timeline = true })
local times = {}
for time, weight, slot in p.timeline:in_order() do
  times[#times + 1] = ("%d %d %d"):format(time, weight, p.slots[slot].tid)
end
t.equal(table.concat(times, "; "), "1000 1000 70; 1000 1000 71; 2000 1000 70; " ..
	"2000 1000 71; 3000 1000 70; 3000 1000 71", "times of both")

t.finish()
