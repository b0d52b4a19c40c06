-- Streams of Tarantool's sysprof, versions 1 and 2, also give joined stacks.
-- BASE: none, it reads no profile of this LuaJIT

local t = require("tools_test")
local B = require("stream_builder")
local G = require("sysprof.base.grammar")
local seen = require("sysprof.read.seen")

local uleb, str = B.uleb, B.str
local FINAL = "\128"

-- -- A writer --------------------------------------------------------------

local function lfunc_symbol(addr, chunk, line) return uleb(addr) .. str(chunk) .. uleb(line) end
local function cfunc_symbol(addr, name) return uleb(addr) .. str(name) end
local function trace_symbol(no, addr, line) return uleb(no) .. uleb(addr) .. uleb(line) end

local SYMBOLS = "\0" .. lfunc_symbol(0x100, "@x.lua", 0) ..
  "\0" .. lfunc_symbol(0x200, "@x.lua", 5) ..
  "\2" .. trace_symbol(1, 0x200, 6) ..
  "\1" .. cfunc_symbol(0x5000, "lj_BC_FUNCC") ..
  "\1" .. cfunc_symbol(0x1000, "main") .. "\1" .. cfunc_symbol(0x2000, "lua_pcall") ..
  "\1" .. cfunc_symbol(0x3000, "cfunc") .. "\1" .. cfunc_symbol(0x4000, "malloc") ..
  "\1" .. cfunc_symbol(0x7000, "sysprof_signal_handler") ..
  "\1" .. cfunc_symbol(0x8000, "restore") .. "\1" .. cfunc_symbol(0x9000, "lj_cf_gsub")

local function stream(version, samples, symbols)
  return "ljs\3\0\0\0" .. (symbols or SYMBOLS) .. FINAL ..
	 "ljp" .. string.char(version) .. "\0\0\0" .. samples .. FINAL
end

local function host(...)
  local out = {}
  for i, addr in ipairs { ... } do out[i] = uleb(addr + 0x10) end
  return table.concat(out) .. "\0"
end

local LF = "\1" .. uleb(0x200) .. uleb(7)
local MAIN = "\1" .. uleb(0x100) .. uleb(1)
local CF = "\2" .. uleb(0x3000)
local FF = "\3" .. uleb(84)
local function state(name) return string.char(G["SPF_VMST_" .. name]) end

local function check(what, version, samples, expected, symbols)
  local out, p = t.render(stream(version, samples, symbols))
  t.equal(out, expected, what)
  if out then t.equal(p:problem_text(), nil, what .. ": complete") end
  if out then t.equal(p.version, version, what .. ": version") end
end

-- -- Samples ---------------------------------------------------------------

check("host only", 2, state("GC") .. host(0x4000, 0x1000), "main;malloc 1\n")
check("INTERP", 2, state("INTERP") .. host(0x5000, 0x2000, 0x1000), "main;lua_pcall 1\n")
check("Lua under C", 2, state("LFUNC") .. LF .. MAIN .. FINAL ..
  host(0x5000, 0x2000, 0x1000), "main;lua_pcall;main chunk (x.lua);x.lua:5 1\n")
check("version 1", 1, state("LFUNC") .. LF .. FINAL .. host(0x5000, 0x1000),
  "main;x.lua:5 1\n")
check("without the handler", 2, state("CFUNC") .. CF .. MAIN .. FINAL ..
  host(0x7000, 0x8000, 0x4000, 0x3000, 0x5000, 0x1000),
  "main;main chunk (x.lua);cfunc;malloc 1\n")
check("C function calls Lua", 2, state("LFUNC") .. LF .. CF .. MAIN .. FINAL ..
  host(0x5000, 0x2000, 0x3000, 0x5000, 0x1000),
  "main;main chunk (x.lua);cfunc;lua_pcall;x.lua:5 1\n")
check("builtin calls Lua", 2, state("LFUNC") .. LF .. FF .. MAIN .. FINAL ..
  host(0x5000, 0x9000, 0x5000, 0x1000),
  "main;main chunk (x.lua);[builtin 84];lj_cf_gsub;x.lua:5 1\n")
check("builtin that calls nothing", 2, state("FFUNC") .. FF .. MAIN .. FINAL ..
  host(0x5000, 0x1000), "main;main chunk (x.lua);[builtin 84] 1\n")
check("one of two builtins calls Lua, which is not known", 2, state("LFUNC") .. LF .. FF .. FF ..
  MAIN .. FINAL .. host(0x5000, 0x9000, 0x5000, 0x1000),
  "main;lj_cf_gsub;main chunk (x.lua);[builtin 84];[builtin 84];x.lua:5 1\n")
check("the handler is the last frame", 2, state("LFUNC") .. LF .. FINAL .. host(0x4000, 0x5000, 0x7000),
  "x.lua:5 1\n")
check("as far as a symbol goes", 2, state("GC") .. host(0x9000 + 2^20 - 0x11), "lj_cf_gsub 1\n")
check("behind a symbol", 2, state("GC") .. host(0x9000 + 2^20 - 0x10), "0x109000 1\n")
check("innermost host frames missing", 2, state("LFUNC") .. LF .. MAIN .. FINAL ..
  host(0x2000, 0x1000),
  "main;lua_pcall;[host frames left out];main chunk (x.lua);x.lua:5 1\n")
check("no host frames", 2, state("LFUNC") .. LF .. FINAL .. host(), "x.lua:5 1\n")
check("trace", 2, state("TRACE") .. uleb(1) .. uleb(0x200) .. uleb(6), "x.lua:5 1\n")
check("no samples", 2, "", "")
check("no symbols", 2, state("LFUNC") .. LF .. FINAL .. host(0x4000),
  "0x4010;[host frames left out];[lua function 0] 1\n", "")
check("symbols between samples", 2, "\10" .. lfunc_symbol(0x300, "=new", 9) ..
  state("LFUNC") .. "\1" .. uleb(0x300) .. uleb(9) .. FINAL .. host() ..
  "\11" .. cfunc_symbol(0x6000, "late") .. "\12" .. trace_symbol(2, 0x300, 9) ..
  state("GC") .. host(0x6000), "late 1\nnew:9 1\n")
check("an address used again", 2, state("LFUNC") .. LF .. FINAL .. host() ..
  "\10" .. lfunc_symbol(0x200, "@y.lua", 8) .. state("LFUNC") .. LF .. FINAL .. host(),
  "x.lua:5 1\ny.lua:8 1\n")

-- Samples that are there again and again, while what they mean changes.
check("the same sample, other functions", 2,
  (state("LFUNC") .. LF .. FINAL .. host()):rep(9) ..
  "\10" .. lfunc_symbol(0x200, "@x.lua", 5) .. state("LFUNC") .. LF .. FINAL .. host() ..
  "\10" .. lfunc_symbol(0x200, "@y.lua", 8) ..
  (state("LFUNC") .. LF .. FINAL .. host()):rep(4), "x.lua:5 10\ny.lua:8 4\n")
check("the same sample, function known later", 2,
  (state("LFUNC") .. "\1" .. uleb(0x900) .. uleb(9) .. FINAL .. host()):rep(3) ..
  "\10" .. lfunc_symbol(0x900, "@z.lua", 9) ..
  (state("LFUNC") .. "\1" .. uleb(0x900) .. uleb(9) .. FINAL .. host()):rep(2),
  "[lua function 0] 3\nz.lua:9 2\n")
check("the same sample, C symbol known later", 2, (state("GC") .. host(0x4800)):rep(3) ..
  "\11" .. cfunc_symbol(0x4800, "other") .. (state("GC") .. host(0x4800)):rep(2),
  "other 5\n")

local long = stream(2, (state("LFUNC") .. LF:rep(40000) .. FINAL .. host()):rep(2))
t.equal(#(t.render(long) or ""):gsub("[^;]", ""), 39999, "stack larger than a window")

-- -- Damage ----------------------------------------------------------------

local function refused(what, s, message)
  local out, why = t.render(s)
  t.equal(out, nil, what)
  t.contains(why, message, what)
end
refused("symbols between samples in version 1", stream(1, "\10" .. lfunc_symbol(0x300, "=new", 9)),
	"expected a sample")
refused("newer profile", stream(3, ""), "expected a profile of a version up to 2")
refused("newer symbol table", "ljs\4" .. stream(2, ""):sub(5), "a version up to 3")
refused("unknown symbol", stream(2, "", "\9"), "expected a symbol")
refused("cut in the symbol table", stream(2, ""):sub(1, 20), "expected a symbol")

local SAMPLE = state("LFUNC") .. LF .. MAIN .. FINAL .. host(0x5000, 0x1000)
local good = stream(2, SAMPLE:rep(3))
local first = #good - 1 - 3 * #SAMPLE
for cut = first, #good - 1 do
  local out, p = t.render(good:sub(1, cut))
  local whole = math.floor((cut - first) / #SAMPLE)
  local what, message = "cut at " .. cut, p
  if whole > 0 then
    t.equal(out, ("main;main chunk (x.lua);x.lua:5 %d\n"):format(whole), what)
    t.equal(p.complete, false, what .. ": incomplete")
    message = p:problem_text()
  else
    t.equal(out, nil, what)
  end
  t.contains(message, "offset " .. first + whole * #SAMPLE .. ":", what)
end
local out, p = t.render(good .. "x")
t.equal(out, "main;main chunk (x.lua);x.lua:5 3\n", "bytes behind the end")
t.equal(p.complete, false, "bytes behind the end: incomplete")

-- Without a checksum a changed byte can pass, but nothing breaks.
for offset = 0, #good - 1 do
  for _, new in ipairs { 0, 1, 2, 3, 9, 10, 127, 128, 255 } do
    local s = good:sub(1, offset) .. string.char(new) .. good:sub(offset + 2)
    local ok, err = pcall(t.render, s)
    t.ok(ok, ("byte %d is %d: %s"):format(offset, new, tostring(err)))
  end
end

-- The reader decodes samples of the same bytes once, except the last ones of the stream.
local prefixes, decoded = seen.prefixes, 0
seen.prefixes = function()
  local known = prefixes()
  local put = known.put
  known.put = function(...)
    decoded = decoded + 1
    return put(...)
  end
  return known
end
check("many equal samples", 2, (state("GC") .. host(0x4000, 0x1000)):rep(1000), "main;malloc 1000\n")
t.ok(decoded >= 1 and decoded < 10, "samples that were decoded: " .. decoded)
seen.prefixes = prefixes

-- No CPU time in it.
t.with_file(good, function(path)
  local status, _, err = t.parse("--weight=cpu " .. path)
  t.equal(status, 1, "--weight=cpu")
  t.contains(err, "holds no CPU times", "--weight=cpu")
end)

t.finish()
