-- Which functions of two profiles a comparison takes for the same, and how it says so.
-- BASE: none, it reads no profile of this LuaJIT

local t = require("tools_test")
local B = require("stream_builder")
local G = require("sysprof.base.grammar")
local limits = require("sysprof.base.limits")
local reader = require("sysprof.read.reader")
local samefuncs = require("sysprof.model.samefuncs")
local F, uleb = B.F, B.uleb

-- A stream of functions { chunk, first, last, name, body }: each has a sample at its second line or at a given line, unless
-- it is_unseen.
-- The body is a letter.
local function stream(list)
  local b = B.new():context(1, 0):event(0, "cpu-clock", G.SPF_UNIT_US, 1000000)
  for fid, f in ipairs(list) do
    b:lfunc(fid, f[2], f[1], f[4], f[3])
    if f[5] then b:add(G.SPF_BODY, uleb(fid) .. f[5]:rep(8)) end
  end
  for fid, f in ipairs(list) do
    b:stack(fid, { F.lfunc(fid, f.line or f[2] > 0 and f[2] + 1 or 1) })
    if not f.is_unseen then b:sample(fid, 0, fid) end
  end
  return b:finish()
end

-- Rows of a comparison: "name before after" in order of the names, and the sentence on what was matched.
local function compare(before, after, options)
  options = options or {}
  options.brief, options.weight, options.by, options.lines = true, "event", options.lines and "line" or "lua", options.lines
  local out = t.render(stream(after), "top", options, stream(before))
  local rows = {}
  for base, now, name in out:gmatch("\n +[%d.+-]+ +([%d.]+) +([%d.]+) +[%d.]+ +[%d.]+  ([^\n]+)") do
    rows[#rows + 1] = ("%s %g %g"):format(name, base, now)
  end
  table.sort(rows)
  return table.concat(rows, "\n"), out:match("\nmatched +([^\n]+)")
end

local function check(what, before, after, expected, matched, options)
  local rows, sentence = compare(before, after, options)
  t.equal(rows, table.concat(expected, "\n"), what)
  t.equal(sentence, matched, what .. ": matched")
end

local APP, LIB = "@app.lua", "@lib.lua"

check("the same", { { APP, 1, 9, "f", "a" } }, { { APP, 1, 9, "f", "a" } }, { "f (app.lua:1) 1 1" })
check("other lines", { { APP, 1, 9, "f", "a" } }, { { APP, 3, 11, "f", "a" } }, { "f (app.lua:3) 1 1" },
      "1 functions: 1 at other lines")
check("other lines, by line", { { APP, 1, 9, "f", "a" } }, { { APP, 3, 11, "f", "a" } }, { "f (app.lua:4) 1 1" },
      "1 functions: 1 at other lines, lines by their distance from functions", { lines = true })
check("without hashes", { { APP, 1, 9, "f" }, { APP, 11, 19, "g" } }, { { APP, 3, 11, "f" }, { APP, 13, 19, "g", "a" } },
      { "f (app.lua:3) 1 1", "g (app.lua:13) 2 2" }, "2 functions: 2 at other lines; 2 by name and order only")
check("changed", { { APP, 1, 9, "f", "a" } }, { { APP, 1, 9, "f", "b" } }, { "f (app.lua:1) 1 1" },
      "1 functions: 1 changed")
-- A function that a profile knows is not gone, and not new.
do
  local both, without = { { APP, 1, 9, "f", "a" }, { APP, 11, 19, "key", "b" } },
			{ { APP, 1, 9, "f", "a" }, { APP, 11, 19, "key", "c", is_unseen = true } }
  for by, name in pairs { lua = "key (app.lua:11)", line = "key (app.lua:12)" } do
    local options = { brief = true, weight = "event", by = by, lines = by == "line" or nil }
    local out = t.render(stream(without), "top", options, stream(both))
    t.contains(out, "\nunseen    " .. name .. " 2.000 ms: no samples after\n", "no samples after, by " .. by)
    t.ok(not out:find("\ngone", 1, true), "known functions are not gone, by " .. by)
    out = t.render(stream(both), "top", options, stream(without))
    t.contains(out, "\nunseen    " .. name .. " 2.000 ms: no samples before\n", "no samples before, by " .. by)
    t.ok(not out:find("\nnew", 1, true), "known functions are not new, by " .. by)
  end
  t.contains(t.render(stream { both[1] }, "top", { brief = true, weight = "event", by = "lua" }, stream(both)),
	     "\ngone      key (app.lua:11) 2.000 ms\n", "a gone function")
end
-- Lines of a main chunk move as the functions above them.
check("main chunk below a comment, by line", { { APP, 0, 30, "", "m", line = 12 }, { APP, 1, 9, "f", "a" } },
      { { APP, 0, 32, "", "m", line = 14 }, { APP, 3, 11, "f", "a" } }, { "f (app.lua:4) 2 2", "main chunk (app.lua:14) 1 1" },
      "2 functions: 1 at other lines, lines by their distance from functions", { lines = true })
check("main chunk between functions, by line",
      { { APP, 0, 30, "", "m", line = 15 }, { APP, 1, 9, "f", "a" }, { APP, 21, 29, "g", "b" } },
      { { APP, 0, 34, "", "m", line = 17 }, { APP, 3, 11, "f", "a" }, { APP, 25, 33, "g", "b" } },
      { "f (app.lua:4) 2 2", "g (app.lua:26) 3 3", "main chunk (app.lua:17) 1 1" },
      "3 functions: 2 at other lines, lines by their distance from functions", { lines = true })
-- The compiler may have chosen otherwise.
do
  local function compiled(n, all)
    local b = B.new():context(1, 0):event(0, "cpu-clock", G.SPF_UNIT_US, 10000000):lfunc(1, 1, "@x.lua", "f", 9)
    b:stack(1, { F.lfunc(1, 2) })
    for i = 1, all do b:sample(1, 0, 1, i <= n and G.SPF_VMST_TRACE or G.SPF_VMST_LFUNC, 10000) end
    return b:finish()
  end
  for _, case in ipairs { { 60, 100, 100, 100, "60% of the samples before, 100% after" }, { 60, 100, 66, 100 }, { 1, 2, 2, 2 } } do
    local out = t.render(compiled(case[3], case[4]), "top", { brief = true, weight = "event", by = "lua" }, compiled(case[1], case[2]))
    t.equal(out:match("\ncompiled +([^:\n]*)"), case[5], "compiled: " .. case[1] .. " to " .. case[3])
  end
end
check("renamed", { { APP, 1, 9, "f", "a" } }, { { APP, 1, 9, "g", "a" } }, { "g (app.lua:1), was f 1 1" },
      "1 functions: 1 under other names")
check("another function", { { APP, 1, 9, "f", "a" } }, { { APP, 1, 9, "g", "b" } },
      { "f (app.lua:1) 1 0", "g (app.lua:1) 0 1" })
check("another function, without hashes", { { APP, 1, 9, "f" } }, { { APP, 1, 9, "g" } },
      { "f (app.lua:1) 1 0", "g (app.lua:1) 0 1" })
check("a name that grew", { { APP, 1, 9, "f", "a" } }, { { APP, 1, 9, "M.f", "a" } }, { "M.f (app.lua:1) 1 1" })
check("a name that is not known", { { APP, 1, 9, "", "a" } }, { { APP, 5, 13, "f", "a" } }, { "f (app.lua:5) 1 1" },
      "1 functions: 1 at other lines")
check("nameless, in order", { { APP, 1, 3, "" }, { APP, 5, 7, "" } }, { { APP, 2, 4, "" }, { APP, 6, 8, "" } },
      { "app.lua:2 1 1", "app.lua:6 2 2" }, "2 functions: 2 at other lines; 2 by name and order only")
check("nameless, one is new", { { APP, 1, 3, "", "a" }, { APP, 5, 7, "", "b" } },
      { { APP, 1, 3, "", "c" }, { APP, 5, 7, "", "a" }, { APP, 9, 11, "", "b" } },
      { "app.lua:1 0 1", "app.lua:5 1 2", "app.lua:9 2 3" }, "2 functions: 2 at other lines")
check("equal bodies, by name", { { APP, 1, 3, "f", "a" }, { APP, 5, 7, "g", "a" } },
      { { APP, 1, 3, "g", "a" }, { APP, 5, 7, "f", "a" } },
      { "f (app.lua:5), moved from app.lua:1 1 2", "g (app.lua:1) 2 1" }, "2 functions: 1 moved, 2 at other lines")
check("equal bodies, by the enclosing function",
      { { APP, 1, 9, "f", "x" }, { APP, 2, 3, "", "a" }, { APP, 11, 19, "g", "y" }, { APP, 12, 13, "", "a" } },
      { { APP, 1, 9, "g", "y" }, { APP, 2, 3, "", "a" }, { APP, 11, 19, "f", "x" }, { APP, 12, 13, "", "a" } },
      { "app.lua:12 2 4", "app.lua:2 4 2", "f (app.lua:11), moved from app.lua:1 1 3", "g (app.lua:1) 3 1" },
      "4 functions: 1 moved, 4 at other lines")
check("equal names, by body", { { APP, 1, 3, "f", "a" }, { APP, 5, 7, "f", "b" } },
      { { APP, 1, 3, "f", "c" }, { APP, 5, 7, "f", "a" }, { APP, 9, 11, "f", "b" } },
      { "f (app.lua:1) 0 1", "f (app.lua:5) 1 2", "f (app.lua:9) 2 3" }, "2 functions: 2 at other lines")
check("moved to another file", { { APP, 1, 9, "f", "a" }, { APP, 11, 19, "g", "b" } },
      { { APP, 1, 9, "g", "b" }, { LIB, 1, 9, "f", "a" } },
      { "f (lib.lua:1), moved from app.lua:1 1 2", "g (app.lua:1) 2 1" },
      "2 functions: 1 moved, 1 at other lines")
check("moved and renamed", { { APP, 1, 9, "f", "a" }, { APP, 11, 19, "g", "b" } },
      { { APP, 11, 19, "g", "b" }, { LIB, 1, 9, "h", "a" } },
      { "g (app.lua:11) 2 1", "h (lib.lua:1), was f (app.lua:1) 1 2" },
      "2 functions: 1 moved, 1 under other names")
check("a short function elsewhere, by another name", { { APP, 1, 1, "f", "a" } }, { { LIB, 1, 1, "h", "a" } },
      { "f (app.lua:1) 1 0", "h (lib.lua:1) 0 1" })
check("moved and changed, with another one",
      { { APP, 1, 9, "f", "a" }, { APP, 11, 19, "g", "b" }, { APP, 21, 29, "h", "c" } },
      { { APP, 1, 9, "h", "c" }, { LIB, 1, 9, "f", "a" }, { LIB, 11, 19, "g", "z" } },
      { "f (lib.lua:1), moved from app.lua:1 1 2", "g (lib.lua:11), moved from app.lua:11 2 3", "h (app.lua:1) 3 1" },
      "3 functions: 1 changed, 2 moved, 1 at other lines")
check("a file in another folder", { { "@a/x.lua", 1, 9, "f", "a" }, { "@a/x.lua", 0, 20, "", "m" } },
      { { "@b/x.lua", 1, 9, "f", "b" }, { "@b/x.lua", 0, 20, "", "m" } },
      { "f (b/x.lua:1) 1 1", "main chunk (b/x.lua) 2 2" }, "2 functions: 1 changed, a/x.lua is now b/x.lua")
check("a file that moved into a folder", { { "@x.lua", 1, 9, "f", "a" } }, { { "@b/x.lua", 1, 9, "f", "b" } },
      { "f (b/x.lua:1) 1 1" }, "1 functions: 1 changed, x.lua is now b/x.lua")
check("a file of another name", { { APP, 1, 9, "f", "a" }, { APP, 11, 19, "g", "b" } },
      { { LIB, 1, 9, "f", "a" }, { LIB, 11, 19, "g", "c" } },
      { "f (lib.lua:1) 1 1", "g (lib.lua:11) 2 2" }, "2 functions: 1 changed, app.lua is now lib.lua")
check("two files became one",
      { { "@a.lua", 1, 9, "f", "a" }, { "@a.lua", 11, 19, "h", "b" }, { "@b.lua", 1, 9, "g", "c" },
	{ "@b.lua", 11, 19, "i", "d" } },
      { { LIB, 1, 9, "f", "a" }, { LIB, 11, 19, "h", "x" }, { LIB, 21, 29, "g", "c" }, { LIB, 31, 39, "i", "y" } },
      { "f (lib.lua:1) 1 1", "g (lib.lua:21) 3 3", "h (lib.lua:11) 2 2", "i (lib.lua:31) 4 4" },
      "4 functions: 2 changed, 2 at other lines, 2 files at other paths")
check("without debug information", { { "=?", 0, 0, "f", "a" }, { "=?", 0, 0, "g", "b" } },
      { { "=?", 0, 0, "f", "c" }, { "=?", 0, 0, "h", "b" } },
      { "f (?:?) 1 1", "h (?:?), was g 2 2" }, "2 functions: 1 changed, 1 under other names")
-- A caller has named two functions alike, and each profile has samples of one.
check("other functions of one name", { { APP, 1, 3, "f", "a" }, { APP, 5, 7, "handler", "b" }, { APP, 13, 15, "g", "d" } },
      { { APP, 1, 3, "f", "a" }, { APP, 9, 11, "handler", "c" }, { APP, 13, 15, "g", "d" } },
      { "f (app.lua:1) 1 1", "g (app.lua:13) 3 3", "handler (app.lua:5) 2 0", "handler (app.lua:9) 0 2" })
check("the same at the end", { { APP, 1, 3, "f", "a" }, { APP, 5, 7, "", "b" } },
      { { APP, 1, 3, "f", "a" }, { APP, 9, 11, "", "c" } },
      { "app.lua:5 2 0", "app.lua:9 0 2", "f (app.lua:1) 1 1" })
check("two ids, one without a name", { { APP, 1, 9, "", "a" }, { APP, 1, 9, "f", "a" } }, { { APP, 1, 9, "f", "a" } },
      { "f (app.lua:1) 3 1" })

-- Of two functions without names in an unchanged one, each profile has samples of another.
check("others of an unchanged function",
      { { APP, 1, 5, "f", "a" }, { APP, 10, 20, "g", "b" }, { APP, 11, 12, "", "c" }, { APP, 30, 40, "h", "e" } },
      { { APP, 1, 5, "f", "a" }, { APP, 13, 23, "g", "b" }, { APP, 17, 18, "", "d" }, { APP, 36, 46, "h", "e" } },
      { "app.lua:11 3 0", "app.lua:17 0 3", "f (app.lua:1) 1 1", "g (app.lua:13) 2 2", "h (app.lua:36) 4 4" },
      "3 functions: 2 at other lines")

-- Lines outside of functions go with the functions above them.
local function main_lines(list, lines)
  local p, q = reader.parse_string(stream(list[1])), reader.parse_string(stream(list[2]))
  samefuncs.match(p, q)
  local out = {}
  for _, f in p.lfuncs:each() do
    for i, line in ipairs(f.firstline == 0 and lines or {}) do out[i] = f.line_of and f.line_of(line) or line + (f.shift or 0) end
  end
  return table.concat(out, " ")
end
t.equal(main_lines({ { { APP, 0, 40, "", "m" }, { APP, 10, 19, "f", "a" }, { APP, 30, 35, "g", "b" } },
		     { { APP, 0, 50, "", "m" }, { APP, 13, 22, "f", "a" }, { APP, 33, 42, "g", "c" } } },
		   { 1, 9, 10, 19, 20, 29, 30, 35, 40 }), "1 9 13 22 23 32 33 42 47", "lines of a main chunk")
t.equal(main_lines({ { { APP, 0, 40, "", "m" }, { APP, 10, 19, "f", "a" }, { APP, 30, 35, "g", "b" } },
		     { { APP, 0, 40, "", "m" }, { APP, 30, 39, "f", "a" }, { APP, 10, 15, "g", "b" } } },
		   { 5, 20, 36 }), "5 40 56", "lines of a main chunk whose functions moved")

-- Lines by texts.
do
  local samelines = require("sysprof.show.samelines")
  local function lines_of(s)
    local list = {}
    for word in s:gmatch("%S+") do list[#list + 1] = word end
    return list
  end
  local function check_lines(a, b, expected)
    local list, out = lines_of(a), {}
    local line_of = samelines.match(list, lines_of(b))
    for i = 1, #list do out[i] = line_of(i) end
    t.equal(table.concat(out, " "), expected, ("lines of %s and %s"):format(a, b))
  end
  check_lines("a b c", "a b c", "1 2 3")
  check_lines("a b c", "x a b c", "2 3 4")
  check_lines("a b c", "a x y b c", "1 4 5")
  check_lines("a b c d", "a c d", "1 2 2 3")
  check_lines("a end b end", "x end a end b end", "3 4 5 6")
  check_lines("end end end", "end end end end", "1 2 3")
  check_lines("a b c", "c b a", "1 2 1")
  check_lines("a", "", "1")
  check_lines("a b end c end", "a b2 end c end", "1 2 3 4 5")
end

-- Functions that the base has in two versions of its file are one.
check("a base with two versions",
      { { APP, 1, 5, "f", "a" }, { APP, 7, 19, "g", "b" }, { APP, 2, 6, "f", "a" }, { APP, 8, 20, "g", "c" } },
      { { APP, 4, 8, "f", "a" }, { APP, 10, 22, "g", "c" } },
      { "f (app.lua:4) 4 1", "g (app.lua:10) 6 2" }, "2 functions: 2 at other lines")

-- Above the limit, only equal files, names and places are the same.
local most = limits.SAME_FUNCTIONS
limits.SAME_FUNCTIONS = 1
check("too many functions", { { APP, 1, 9, "f", "a" }, { APP, 11, 19, "g", "b" } }, { { APP, 1, 9, "f", "a" } },
      { "f (app.lua:1) 1 1", "g (app.lua:11) 2 0" },
      ("by file, name and place only: a profile has more than %d Lua functions"):format(most))
limits.SAME_FUNCTIONS = most

-- -- Any functions ----------------------------------------------------------------

-- Each function has one partner at most, which has the function; equal profiles are the same function by function.
local seed = 7
local function random(n)
  seed = seed * 16807 % 2147483647
  return seed % n + 1
end

local function any_functions()
  local list = {}
  for i = 1, random(40) do
    local first = random(60) - 1
    local body = random(4) > 1 and string.char(96 + random(12)) or nil
    list[i] = { ("@%s.lua"):format(("abc"):sub(random(3), -1)), first, first + random(20) - 1,
		("xyz"):sub(random(4)), body }
  end
  return list
end

local function partners(p, q)
  local of = {}
  samefuncs.match(p, q)
  for _, f in p.lfuncs:each() do
    if f.as and not f.now then	-- An older version goes with the last one.
      local place = ("%s %.0f %.0f"):format(f.chunk, f.firstline, f.lastline)
      t.ok(not of[f.as] or of[f.as] == place, "one partner")
      of[f.as] = place
    end
  end
  return of
end

for _ = 1, 200 do
  local list = any_functions()
  partners(reader.parse_string(stream(list)), reader.parse_string(stream(any_functions())))
  local of = partners(reader.parse_string(stream(list)), reader.parse_string(stream(list)))
  for f, place in pairs(of) do
    t.equal(place, ("%s %.0f %.0f"):format(f.chunk, f.firstline, f.lastline), "the same function")
  end
end

t.finish()
