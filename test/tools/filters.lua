-- Filters of samples: patterns, states, threads, times, root and depth.
-- BASE: none, it reads no profile of this LuaJIT

local t = require("tools_test")
local B = require("stream_builder")
local G = require("sysprof.base.grammar")
local filters = require("sysprof.show.filters")
local reader = require("sysprof.read.reader")
local F = B.F

-- -- Patterns --------------------------------------------------------------

local PATTERNS = {
  { "f", "f", true }, { "f", "xfx", true }, { "f", "x", false }, { "F", "f", false },
  { "^f", "fx", true }, { "^f", "xf", false }, { "f$", "xf", true }, { "f$", "fx", false },
  { "^f$", "f", true }, { "^f$", "ff", false }, { "^f$", "", false },
  { "a*b", "a--b", true }, { "a*b", "ab", true }, { "a*b", "ba", false },
  { "^a*b$", "ab", true }, { "^a*b$", "acb", true }, { "^a*b$", "acbc", false },
  { "^ab*ba$", "aba", false }, { "^ab*ba$", "abba", true },
  { "a*a", "a", false }, { "*", "", true }, { "^*$", "x", true }, { "^$", "", true },
  { "^$", "x", false }, { "%d", "5", false }, { "%d", "%d", true }, { ".", "x", false },
  { "[", "[gc: sweep]", true }, { "$", "a$b", true }, { "$", "ab", false },
  { "a^b", "a^b", true }, { "a$b", "a$b", true }, { "^", "x", true },
  { "**", "x", true }, { "a*b*c", "a1b2c3", true }, { "a*b*c$", "abcb", false },
  { "f (x.lua:7)", "f (x.lua:7)", true }, { "^x*x$", "x", false },
  { "b*b$", "ab", false }, { "b*b$", "abb", true },
}
for _, p in ipairs(PATTERNS) do
  t.equal(filters.matcher(p[1])(p[2]), p[3], ("%q on %q"):format(p[1], p[2]))
end

-- A name is compared once with a pattern, however often it occurs.
local compared = 0
local name = setmetatable({}, { __index = function()
  compared = compared + 1
  return "f"
end })
local names, once = { name = function() return name end }, filters.new({ include = { "f" } })
for _ = 1, 3 do t.equal(once:cut({ 1, 1 }, 2, names), 2, "a name that matches") end
t.equal(compared, 1, "a name that is known")

-- -- On a profile ----------------------------------------------------------

local b = B.new():context(7, 0)
for fid, name in ipairs { "main", "a", "b", "c" } do b:lfunc(fid, fid, "@x", name) end
b:stack(1, { F.cbound, F.lfunc(1), F.lfunc(2) })
b:stack(2, { F.cbound, F.lfunc(1), F.lfunc(3), F.lfunc(4), F.lfunc(3), F.lfunc(4) })
b:stack(3, { F.cbound, F.lfunc(1), F.lfunc(4) })
b:sample(1, 0, 2, G.SPF_VMST_LFUNC):sample(2, 0, 4, G.SPF_VMST_TRACE)	-- 1 to 6 ms
b:context(8, 10000):sample(3, 0, 8, G.SPF_VMST_GC)			-- 11 to 18 ms
local stream = b:finish()

local MAIN, A, BCBC, C = "main (x:1)", "main (x:1);a (x:2)",
  "main (x:1);b (x:3);c (x:4);b (x:3);c (x:4)", "main (x:1);c (x:4)"

-- Stacks are given as a table of value by folded stack.
local function check(what, options, expected)
  local lines = {}
  for stack, value in pairs(expected) do
    lines[#lines + 1] = ("%s %d\n"):format(stack, value)
  end
  table.sort(lines)
  t.equal((t.render(stream, "folded", options)), table.concat(lines), what)
end

check("all", {}, { [A] = 2, [BCBC] = 4, [C] = 8 })
check("include", { include = { "a (" } }, { [A] = 2 })
check("include one of two", { include = { "a (", "b (" } }, { [A] = 2, [BCBC] = 4 })
check("exclude", { exclude = { "a (" } }, { [BCBC] = 4, [C] = 8 })
check("exclude two", { exclude = { "a (", "^b" } }, { [C] = 8 })
check("both", { include = { "^c" }, exclude = { "^b" } }, { [C] = 8 })
check("nothing", { include = { "z" } }, {})
check("root", { root = "^b" }, { ["b (x:3);c (x:4);b (x:3);c (x:4)"] = 4 })
check("outermost root", { root = "^c" }, { ["c (x:4);b (x:3);c (x:4)"] = 4, ["c (x:4)"] = 8 })
check("include looks at all of the stack", { root = "^c", include = { "main" } },
      { ["c (x:4);b (x:3);c (x:4)"] = 4, ["c (x:4)"] = 8 })
check("depth", { depth = 2 }, { [A] = 2, ["main (x:1);b (x:3)"] = 4, [C] = 8 })
check("depth 1", { depth = 1 }, { [MAIN] = 14 })
check("root, then depth", { root = "^c", depth = 1 }, { ["c (x:4)"] = 12 })
check("state", { states = { G.SPF_VMST_GC } }, { [C] = 8 })
check("states", { states = { G.SPF_VMST_GC, G.SPF_VMST_LFUNC } }, { [A] = 2, [C] = 8 })
check("thread", { threads = { 7 } }, { [A] = 2, [BCBC] = 4 })
check("thread and state", { threads = { 7 }, states = { G.SPF_VMST_GC } }, {})
check("weight", { states = { G.SPF_VMST_GC }, weight = "cpu" }, { [C] = 8000 })

-- -- A part of the time, and samples one by one ----------------------------

-- Samples stand at 1, 2, 3.. 6 and 11.. 18 ms.
local function part(from, to)
  local p = assert(reader.parse_string(stream, { from = from, to = to, timeline = true }))
  local n, last = 0, -1
  for time, weight, slot in p.timeline:in_order() do
    n = n + 1
    t.ok(time > last and weight == 1000 and p.slots[slot], "a sample of the timeline")
    t.ok(time >= (from or 0) and time < (to or math.huge), "time of a sample")
    last = time
  end
  t.equal(n, (p:totals()), "samples of the timeline")
  return n
end
t.equal(part(), 14, "all of the time")
t.equal(part(2000), 13, "from a sample on")
t.equal(part(2001), 12, "from after a sample on")
t.equal(part(nil, 2000), 1, "before a sample")
t.equal(part(6000, 11000), 1, "from, to")
t.equal(part(7000, 11000), 0, "an empty part")
t.equal(part(0, 1e12), 14, "a part that is all")

-- Threads by turns: their samples come in order of time, large weights whole.
b = B.new():stack(1, { F.host(1) }):stack(2, { F.host(2) })
b:context(1, 5000):sample(0, 1, 3):context(2, 0):sample(0, 2, 2, 0, 2^24 + 1)
b:context(1, 3000):sample(0, 1, 1, 0, 2^33 + 1)
local p = assert(reader.parse_string(b:finish(), { timeline = true }))
local got = {}
for time, weight, slot in p.timeline:in_order() do
  got[#got + 1] = ("%d:%.0f:%d"):format(time, weight, p.slots[slot].tid)
end
t.equal(table.concat(got, " "), ("1000:%d:2 2000:%d:2 4000:%.0f:1 6000:1000:1 " ..
	"7000:1000:1 8000:1000:1"):format(2^24 + 1, 2^24 + 1, 2^33 + 1), "order of time")

-- -- No sample passes ------------------------------------------------------

local view = require("sysprof.show.view")
local NONE = "no sample passes the filters"

-- What a view under filters says that shows nothing.
local function nothing(what, bytes, options, expected)
  local v = assert(view.new(assert(reader.parse_string(bytes)), options))
  local shown = 0
  v:each(function() shown = shown + 1 end)
  t.equal(shown, 0, what .. ": nothing is shown")
  t.equal(v:nothing_text(), NONE .. (expected and ": " .. expected or ""), what)
end

nothing("a name", stream, { include = { "nobody" } })
nothing("a thread", stream, { threads = { 9 } }, "no sample has the thread '9'; threads: 8, 7")
nothing("threads", stream, { threads = { "nope", 9 } }, "no sample has the thread 'nope'; threads: 8, 7")
nothing("a state", stream, { states = { G.SPF_VMST_ASM } }, "no sample has the state 'ASM'; states: GC, TRACE, LFUNC")
nothing("a thread before a state", stream, { states = { G.SPF_VMST_ASM }, threads = { 9 } },
	"no sample has the thread '9'; threads: 8, 7")
nothing("a state and a thread, each has samples", stream, { states = { G.SPF_VMST_GC }, threads = { 7 } })
nothing("a label", stream, { labels = { "k=v" } }, "the samples have no labels")
nothing("no samples", B.new():event(0, "cpu", G.SPF_UNIT_US, 0):finish(), { threads = { 9 }, states = { 1 }, labels = { "k=v" } },
	"the samples have no labels")

-- Twelve threads: those with the most samples are listed, and one with a similar name.
b = B.new():context(1, 0):event(0, "cpu", G.SPF_UNIT_US, 0):event(1, "alloc", G.SPF_UNIT_BYTES, 1):stack(1, { F.host(1) })
for tid = 101, 112 do
  b:thread(tid, tid == 101 and "wörker\27" or ("pool%d"):format(tid)):context(tid, 0):sample(0, 1, tid)
end
b:context(50, 0):thread(50, "of-alloc"):sample(0, 1, 1, 0, 16, 1)
local many = b:finish()
local listed = {}
for tid = 112, 103, -1 do listed[#listed + 1] = ("pool%d (%d)"):format(tid, tid) end
listed = "threads: " .. table.concat(listed, ", ") .. ", and 2 more"
nothing("many threads", many, { threads = { "nope" } }, "no sample has the thread 'nope'; " .. listed)
nothing("a similar name", many, { threads = { "wörkers\27" } },
	"no sample has the thread 'wörkers?' (did you mean 'wörker?'?); " .. listed)
nothing("a thread of another event", many, { threads = { 50 } }, "no sample has the thread '50'; " .. listed)
nothing("the other event", many, { threads = { 101 }, event = "alloc" },
	"no sample has the thread '101'; threads: of-alloc (50)")
nothing("a long name", many, { threads = { ("x"):rep(100) }, event = "alloc" },
	"no sample has the thread '" .. ("x"):rep(60) .. "...'; threads: of-alloc (50)")

-- -- Command line ----------------------------------------------------------

local function command(arguments, status, out, err)
  t.with_file(stream, function(path)
    local got_status, stdout, stderr = t.parse(arguments .. " " .. path)
    t.equal(got_status, status, arguments .. ": status")
    t.equal(stdout, out, arguments .. ": output")
    if err then t.contains(stderr, err, arguments .. ": message")
    else t.equal(stderr, "", arguments .. ": message") end
    local _, lines = stderr:gsub("\n", "")
    t.equal(lines, err and 1 or 0, arguments .. ": lines of messages")
  end)
end

command("--include='^a' --include=^b", 0, A .. " 2\n" .. BCBC .. " 4\n")
command("--exclude 'a (' --exclude='b ('", 0, C .. " 8\n")
command("--state=gc", 0, C .. " 8\n")
command("--state=GC --state=LFUNC --thread=7", 0, A .. " 2\n")
command("--from=0.002 --to=0.011", 0, A .. " 1\n" .. BCBC .. " 4\n")
command("--from=0.011", 0, C .. " 8\n")
command("--root='^c' --depth=1", 0, "c (x:4) 12\n")
command("--include=nobody", 0, "", "no sample passes the filters")
command("--from=100", 0, "", "no sample passes the filters")
command("--from=2 --to=2", 2, "", "--from must be less than --to")
command("--from=x", 2, "", "option '--from': expected seconds")
command("--from=" .. ("9"):rep(12), 0, "", "no sample passes the filters")
command("--to=" .. ("9"):rep(13), 2, "", "option '--to': expected seconds")
command("--to=-1", 2, "", "option '--to': expected seconds")
command("--state=x", 2, "", "option '--state': expected a state of the VM")
command("--state=_MAX", 2, "", "option '--state': expected a state of the VM")
command("--thread=x", 0, "", "warning: no sample passes the filters")
command("--depth=0", 2, "", "--depth=0 leaves nothing")
command("--include=", 2, "", "option '--include': expected PATTERN")
command("--root=", 2, "", "option '--root': expected PATTERN")

do	-- Many stars are one: the text is searched for two pieces only.
  local searches, name = 0, {}
  function name.find() searches = searches + 1 return 1, 0 end
  t.equal(filters.matcher("a" .. ("*"):rep(1000) .. "b")(name), true, "many stars")
  t.equal(searches, 2, "many stars: searches")
end

t.finish()
