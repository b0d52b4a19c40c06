-- Names of frames. No name does harm in any format.
-- BASE: none, it reads no profile of this LuaJIT

local t = require("tools_test")
local B = require("stream_builder")
local G = require("sysprof.base.grammar")
local text = require("sysprof.base.text")
local F = B.F

-- -- Names -----------------------------------------------------------------

-- Renders one sample with one frame on its Lua side; define adds definitions.
local function name_of(frame, define, options)
  local b = B.new():context()
  if define then define(b) end
  b:stack(1, { F.cbound, frame }):sample(1, 0)
  return (t.render(b:finish(), "folded", options):gsub(" 1\n$", ""))
end

local function host_name(define)
  local b = B.new():context():stack(1, { F.host(0x5123) }):sample(0, 1)
  define(b)
  return (t.render(b:finish()):gsub(" 1\n$", ""))
end

local function lua_name(chunk, name, firstline, options, lastline)
  return name_of(F.lfunc(1, 42), function(b)
    b:lfunc(1, firstline or 7, chunk, name, lastline)
  end, options)
end

t.equal(lua_name("@dir/x.lua", "f"), "f (dir/x.lua:7)", "name and place")
t.equal(lua_name("@dir/x.lua", ""), "dir/x.lua:7", "no name")
t.equal(lua_name("=stdin", "f"), "f (stdin:7)", "source that is a name")
t.equal(lua_name("@x.lua", "", 0), "main chunk (x.lua)", "main chunk")
t.equal(lua_name("return 1", "", 0), 'main chunk ([string "return 1"])',
	"main chunk of a string")
t.equal(lua_name("\n  local x = 1\nreturn x\n", "f"),
	'f ([string "local x = 1..."]:7)', "source text of lines")
t.equal(lua_name(("x"):rep(100), "f"), 'f ([string "' .. ("x"):rep(40) .. '..."]:7)',
	"long source text")
t.equal(lua_name(("x"):rep(39) .. "\195\164y", "f"),
	'f ([string "' .. ("x"):rep(39) .. '..."]:7)', "cut before a character")
t.equal(lua_name("", "f"), 'f ([string ""]:7)', "empty source")
t.equal(lua_name('x = "\1\255;]"', "f"), 'f ([string "x = "?\\xff:]""]:7)',
	"source text of any bytes")
t.equal(lua_name("@", "f"), "f (?:7)", "empty file name")
t.equal(lua_name("=", "", 0), "main chunk (?)", "empty source name")
t.equal(lua_name("=(command line)", "", 0), "main chunk (command line)",
	"main chunk of a source that is a name")
t.equal(lua_name("=(load)", "f"), "f ((load):7)", "function of such a source")
t.equal(lua_name("@x.lua", "f", 0, nil, 9), "main chunk (x.lua)", "main chunk with a name")
t.equal(lua_name("@x.lua", "", 0), "main chunk (x.lua)", "main chunk without lines")
t.equal(lua_name("@x.bc", "f", 0), "f (x.bc:?)", "function without lines")
t.equal(lua_name("@x.bc", "?", 0), "x.bc:?", "function without lines and name")
t.equal(lua_name("@x.lua", "f", 7, { lines = true }), "f (x.lua:42)", "--lines")
t.equal(lua_name("@x.lua", "", 7, { lines = true }), "x.lua:42",
	"--lines without a name")
t.equal(lua_name("@x.lua", "", 0, { lines = true }), "main chunk (x.lua:42)",
	"--lines, main chunk")
-- Where the program keeps a function.
local function path_name(path, options, name, firstline)
  return name_of(F.lfunc(1, 42), function(b) b:lfunc(1, firstline or 7, "@x.lua", name or "f", 9, path) end, options)
end
t.equal(path_name("m.g"), "f (x.lua:7) [m.g]", "a path")
t.equal(path_name("m.g", { lines = true }), "f (x.lua:42) [m.g]", "a path, --lines")
t.equal(path_name(""), "f (x.lua:7)", "an empty path")
t.equal(path_name("m\n\255;"), "f (x.lua:7) [m?\\xff:]", "a path of any bytes")
t.equal(path_name(("p"):rep(5000)), "f (x.lua:7) [" .. ("p"):rep(1024) .. "...]", "a long path")
for pattern, shown in pairs { ["^f ("] = true, ["m.g"] = true, ["[m.g]$"] = true, ["^m.g"] = false } do
  t.equal(path_name("m.g", { include = { pattern } }) ~= "", shown, pattern)
end
t.equal(name_of(F.lfunc(1), function(b)
  b:lfunc(1, 7, "@x", "f", 9, "m.g"):lfunc(1, 7, "@x", "", 9)
end), "f (x:7) [m.g]", "a later definition without a name")
t.equal(name_of(F.lfunc(1), function(b)
  b:lfunc(1, 7, "@x", "m.g", 9):lfunc(1, 7, "@x", "f", 9, "m.g")
end), "f (x:7) [m.g]", "a later definition with a path")
-- A path that does not fit into its record.
local cut = B.new():context():add(G.SPF_LFUNC, "\1\7\9" .. B.str("@x") .. B.str("f") .. "\5m.g")
cut = cut:stack(1, { F.lfunc(1) }):sample(1, 0):finish()
local _, cut_profile = t.render(cut)
t.ok(not cut_profile.complete, "a path that is cut is damage")

t.equal(name_of(F.lfunc(1, 0), function(b) b:lfunc(1, 7, "@x", "f") end,
		{ lines = true }), "f (x:?)", "--lines, line not known")
t.equal(name_of(F.lfunc(1, 5), nil, { lines = true }), "[lua function 1]",
	"--lines, function not described")
t.equal(name_of(F.lfunc(1)), "[lua function 1]", "function not described")
t.equal(name_of(F.lfunc(1), function(b)
  b:lfunc(1, 7, "@x", ""):lfunc(1, 7, "@x", "late")
end), "late (x:7)", "name comes later")
t.equal(name_of(F.lfunc(1), function(b)
  b:lfunc(1, 7, "@x", "early"):lfunc(1, 7, "@x", "")
end), "early (x:7)", "name was known")
t.equal(name_of(F.ffunc(9), function(b) b:ffunc(9, "string.find") end),
	"string.find", "builtin")
t.equal(name_of(F.ffunc(9)), "[builtin 9]", "builtin not described")
t.equal(name_of(F.cfunc(0x5100), function(b) b:hsym(0x5123, 0x5100, "cf") end),
	"cf", "C function, symbol seen inside")
t.equal(name_of(F.cfunc(0x5100), function(b) b:hsym(0x5100, 0x5100, "cf") end),
	"cf", "C function")
t.equal(name_of(F.cfunc(0x5100)), "0x5100", "C function without a symbol")

t.equal(host_name(function(b) b:hsym(0x5123, 0x5100, "h") end), "h", "symbol")
t.equal(host_name(function(b) b:module(0x5000, 0x6000, 0x4000, "/lib/libx.so.1") end),
	"libx.so.1+0x1123", "module")
t.equal(host_name(function(b)
  b:module(0x5000, 0x6000, 2^63, "vdso")
end), "vdso+0x123", "module with a bias of no use")
t.equal(host_name(function(b)
  b:hsym(0x5123, 0x5100, ""):module(0x5000, 0x6000, 0, "")
end), "?+0x5100", "empty names")
t.equal(host_name(function(b) b:hsym(0x5123, 0x5100, "") end), "0x5123", "a function in no module")
t.equal(host_name(function(b) b:hsym(0x5123, 0x4100, ""):module(0x5000, 0x6000, 0, "/x.so") end),
	"x.so+0x5123", "a function that begins before its module")
t.equal(host_name(function(b) b:hsym(0x5123, 0x5100, "h"):hsym(0x5123, 0x5110, "") end), "h",
	"a name is kept")
t.equal(host_name(function() end), "0x5123", "address")
t.equal((t.render(B.new():context():stack(1, { F.host(0x7ffff7fc1234) })
		   :sample(0, 1):finish())), "0x7ffff7fc1234 1\n", "long address")
t.equal((t.render(B.new():context():stack(1, { "\133" .. ("\128"):rep(7) .. "\16" })
		   :sample(0, 1):finish())), "[frame out of range] 1\n",
	"invalid address")

-- What the VM does itself.
local WORK = {
  { G.SPF_WORK_GC, G.SPF_GC_PAUSE, "[gc: pause]" },
  { G.SPF_WORK_GC, G.SPF_GC_PROPAGATE, "[gc: propagate]" },
  { G.SPF_WORK_GC, G.SPF_GC_ATOMIC, "[gc: atomic]" },
  { G.SPF_WORK_GC, G.SPF_GC_SWEEPSTRING, "[gc: sweep strings]" },
  { G.SPF_WORK_GC, G.SPF_GC_SWEEP, "[gc: sweep]" },
  { G.SPF_WORK_GC, G.SPF_GC_FINALIZE, "[gc: finalize]" },
  { G.SPF_WORK_GC, 77, "[gc: phase 77]" },
  { G.SPF_WORK_RECORD, 0, "[record trace]" },
  { G.SPF_WORK_OPT, 0, "[optimise trace]" },
  { G.SPF_WORK_ASM, 0, "[assemble trace]" },
  { G.SPF_WORK_EXIT, 12 * 65536 + 3, "[side exit 3 of trace 12]" },
  { G.SPF_WORK_EXIT, 65535 * 65536 + 65535, "[side exit 65535 of trace 65535]" },
  { 99, 5, "[work 99]" },
}
for _, w in ipairs(WORK) do
  t.equal(name_of(F.work(w[1], w[2])), w[3], w[3])
end
t.equal(name_of(F.work(2^40, 5)), "[frame out of range]", "work out of range")
for name, value in pairs(G) do
  if name:find("^SPF_GC_") then
    t.ok(not name_of(F.work(G.SPF_WORK_GC, value)):find("%d"), "words for " .. name)
  elseif name:find("^SPF_WORK_") then
    t.ok(not name_of(F.work(value)):find("[work", 1, true), "words for " .. name)
  end
end

-- -- Cleaning --------------------------------------------------------------

local CLEAN = {
  { "plain", "plain" }, { "", "" }, { "a\nb\0c\127", "a?b?c?" },
  { "\195\164\226\130\172\240\159\152\128", "\195\164\226\130\172\240\159\152\128" },
  { "\194\133", "?" }, { "\226\128\168", "?" },
  { "\255", "\\xff" }, { "\195", "\\xc3" }, { "\192\175", "\\xc0\\xaf" },
  { "\237\160\128", "\\xed\\xa0\\x80" }, { "\224\128\128", "\\xe0\\x80\\x80" },
  { "\244\144\128\128", "\\xf4\\x90\\x80\\x80" }, { "\226\130", "\\xe2\\x82" },
  { "\240\143\191\191", "\\xf0\\x8f\\xbf\\xbf" },
}
for _, c in ipairs(CLEAN) do
  t.equal(text.clean(c[1]), c[2], ("clean %q"):format(c[1]))
end

-- First and last characters of each length, and their neighbours that are none or control.
local function utf8(c)
  if c < 0x80 then return string.char(c) end
  if c < 0x800 then return string.char(0xc0 + math.floor(c / 64), 0x80 + c % 64) end
  local last = string.char(0x80 + math.floor(c / 64) % 64, 0x80 + c % 64)
  if c < 0x10000 then return string.char(0xe0 + math.floor(c / 4096)) .. last end
  return string.char(0xf0 + math.floor(c / 2^18), 0x80 + math.floor(c / 4096) % 64) .. last
end
for _, c in ipairs { 0x20, 0x7e, 0xa0, 0x61b, 0x61d, 0x7ff, 0x800, 0x2010, 0x2027, 0x202f, 0x205f, 0x2070,
		     0xd7ff, 0xe000, 0xffff, 0x10000, 0x10ffff } do
  t.equal(text.clean(utf8(c)), utf8(c), ("U+%04X stays"):format(c))
end
for _, c in ipairs { 0, 0x1f, 0x7f, 0x80, 0x9f, 0xad, 0x61c, 0x200b, 0x200f, 0x2028, 0x202e, 0x2060, 0x2069, 0xfe0f,
		     0xfeff, 0xe0041 } do
  t.equal(text.clean(utf8(c)), "?", ("U+%04X is control"):format(c))
end

-- The profiler cleans the same characters.
local source = assert(io.open(os.getenv("SYSPROF_SOURCE") .. "/src/profile/base/lj_cleantext.c")):read("*a")
local is_hidden, ranges = {}, 0
for first, last in assert(source:match("hidden%[%]%[2%] = (%b{})")):gmatch("{ (%w+), (%w+) }") do
  for c = tonumber(first), tonumber(last) do is_hidden[c] = true end
  ranges = ranges + 1
end
t.ok(ranges > 10, "ranges of lj_cleantext")
for c = 0, 0x10ffff do
  local is_valid = c < 0xd800 or c > 0xdfff
  if is_valid and (text.clean(utf8(c)) == "?") ~= (is_hidden[c] or c == 0x3f) then
    t.ok(false, ("U+%04X is hidden in one of both"):format(c))
  end
end

-- Joiners and variation selectors belong to some scripts and emoji, and behind other characters show nothing.
local FAMILY = "\240\159\145\168\226\128\141\240\159\145\167"
for _, sound in ipairs { FAMILY, "\226\157\164\239\184\143\226\128\141\240\159\148\165",
		       "\217\133\219\140\226\128\140\216\174" } do
  t.equal(text.clean(sound), sound, "joined characters stay")
end
t.equal(text.clean("a\226\128\141b\195\164\239\184\143"), "a?b\195\164?", "joiners in Latin text")
t.equal(text.clean("\226\128\174\226\128\141"), "??", "a joiner behind a hidden character")
local long = FAMILY:rep(30000)
t.ok(text.clean(long) == long, "joined characters in many pieces")
for _, odd in ipairs { "\128", "\191", "\193\191", "\194\127", "\194\192", "\224\159\191", "\224\160\192",
		       "\237\160\128", "\240\143\191\191", "\240\144\128\192", "\244\144\128\128", "\245\128\128\128" } do
  local escaped = odd:gsub("[\128-\255]", function(c) return ("\\x%02x"):format(c:byte()) end):gsub("\127", "?")
  t.equal(text.clean(odd), escaped, "invalid: " .. escaped)
end

-- -- Formats ---------------------------------------------------------------

local BAD = { "<script>alert(1)</script>", "a;b", 'say "hi"', "it's", "a\nb 5",
	      "\255\254", "</script>", "a\\b", "&amp;", "\27[31mred", "<!--",
	      "{{data}}", "%s%n%d", "x\r\ny" }
local b = B.new():context():meta("<b>key</b>", "</table><script>alert(2)</script>")
for i, name in ipairs(BAD) do
  b:lfunc(i, i, "@</title>" .. name, name):ffunc(i, name):hsym(i, i, name)
  b:stack(i, { F.cbound, F.lfunc(i, i), F.ffunc(i) })
  b:stack(i + 100, { F.host(i), F.vm }):sample(i, i + 100)
end
local stream = b:finish()

local folded = t.render(stream)
local lines = 0
for line in folded:gmatch("[^\n]*\n") do
  lines = lines + 1
  local _, semicolons = line:gsub(";", "")
  t.equal(semicolons, 2, "semicolons in " .. line)
  t.ok(line:find(" 1\n$"), "count in " .. line)
end
t.equal(lines, #BAD, "lines of folded stacks")
t.ok(not folded:gsub("\n", ""):find("%c"), "control characters in folded stacks")
t.contains(folded, "a:b (</title>a:b:2);a:b 1", "semicolon in a name")

local top = t.render(stream, "top", { limit = 0 })
t.ok(not top:gsub("\n", ""):find("%c"), "control characters in the table")

local page = t.render(stream, "flamegraph", { title = "</title><script>alert(3)</script>" })
local _, scripts = page:gsub("<script", "")
local _, ends = page:gsub("</script", "")
t.equal(scripts, 2, "script elements in the page")
t.equal(ends, 2, "ends of script elements in the page")
local _, titles = page:gsub("</title", "")
t.equal(titles, 1, "ends of the title")
t.ok(not page:find("alert%(%d%)</script>"), "a name as an element")
local data = page:match('id="data">\n(.-)\n</script>')
t.ok(data and not data:find("[<>&]"), "data of the page is escaped")
t.contains(data, '"\\u003cscript\\u003ealert(1)\\u003c/script\\u003e"',
	   "a name in the data of the page")
t.contains(page, "&lt;b&gt;key&lt;/b&gt;", "meta in the page")
t.ok(not page:find("https?://"), "no address of a network in the page")

-- -- Short texts -----------------------------------------------------------

t.equal(text.short("abcd", 4), "abcd", "a text of the greatest length")
t.equal(text.short("abcde", 4), "abcd...", "a text that is longer")
t.equal(text.short("abc\xc3\xa4", 4), "abc...", "not in the middle of a letter")
t.equal(text.excerpt("\n\n  abcd\n", 4), "abcd", "a line of the greatest length")
t.equal(text.excerpt("abcd\nb", 4), "abcd...", "the first of two lines")

t.finish()
