-- Names of C++ and versions of symbols, in the form that users know. Hostile names do no
-- harm.
-- BASE: none, it reads no profile of this LuaJIT

local ffi = require("ffi")
local t = require("tools_test")
local B = require("stream_builder")
local pprof = require("pprof_decode")
local demangle = require("sysprof.names.demangle")

local function shown(name, options)
  local b = B.new():context():stack(1, { B.F.host(0x100) }):sample(0, 1)
  b:hsym(0x100, 0x100, name)
  local out = t.render(b:finish(), "folded", options)
  return out:match("^(.*) 1\n$")
end

-- Versions are cut, whatever else the name is.
for name, expected in pairs {
  ["clock_gettime@@GLIBC_2.17"] = "clock_gettime", ["memcpy@GLIBC_2.2.5"] = "memcpy",
  ["@odd"] = "@odd", ["@"] = "@", ["plain"] = "plain", ["_Z"] = "_Z", ["_Zx"] = "_Zx",
  ["_ZN"] = "_ZN", ["__Zx"] = "__Zx", ["_Z\1\255"] = "_Z?\\xff",
} do
  t.equal(shown(name), expected, name)
end
t.equal(demangle.name("f@@V1", true), "f", "version is cut from names that stay mangled")
t.equal(shown("lj_gc_step@@V1"), "lj_gc_step", "version of a name of the VM")

-- Rust: parts with their lengths, and a hash.
local function rust(...)
  local parts = {}
  for i, part in ipairs { ... } do parts[i] = #part .. part end
  return "_ZN" .. table.concat(parts) .. "17h0123456789abcdefE"
end
for name, expected in pairs {
  [rust("core", "fmt", "write")] = "core::fmt::write",
  [rust("_$LT$std..io..Stdin$u20$as$u20$A$LT$X$C$Y$GT$$GT$", "read") .. ".llvm.123"] =
    "<std::io::Stdin as A<X,Y>>::read",
  [rust("a", "$u7b$$u7b$closure$u7d$$u7d$")] = "a::{{closure}}",
  [rust("$odd$", "$u1$", "$u1b$")] = "$odd$::$u1$::$u1b$",
} do
  t.equal(shown(name), expected, name)
  t.equal(shown(name, { no_demangle = true }), name, name .. " as it is")
end

-- Its newer names.
for name, expected in pairs {
  _RNvC1a4main = "a::main", _RNvCsjrHSEGnQ3l9_3std4main = "std::main",
  _RNvNtC3std2io4main = "std::io::main", _RNvC1a3_10x = "a::10x",
  _RNCNvC1a1f0 = "a::f::{closure#0}", _RNCNCNvC1a1f0s_0 = "a::f::{closure#0}::{closure#1}",
  _RNSNvC1a1f6vtable = "a::f::{shim:vtable#0}", _RNvMC1aNtB2_1B3new = "<a::B>::new",
  _RNvXs_C1aNtB4_1BNtNtC4core3fmt7Display3fmt = "<a::B as core::fmt::Display>::fmt",
  _RNvYNtC1a1BNtC1c1T1f = "<a::B as c::T>::f", _RINvC1a1fmeE = "a::f::<u32, str>",
  _RINvC1a1fINtC1v3VecAhj10_EL_E = "a::f::<v::Vec<[u8: 16]>>",	-- ";" is of folded stacks
  _RINvC1a1fRL_eQhPaOsTEThETdfESlE = "a::f::<&str, &mut u8, *const i8, *mut i16, (), (u8,), (f64, f32), [i32]>",
  _RINvC1a1fFmlEuFUKCEbE = 'a::f::<fn(u32, i32), unsafe extern "C" fn() -> bool>',
  _RINvC1a1fDNtC1c1TNtC1c4SendEL_DNtC1c2Fnp6OutputmEL_E = "a::f::<dyn c::T + c::Send, dyn c::Fn<Output = u32>>",
  _RINvC1a1fKb1_Kj0_Klna_Kc61_Kyffffffffffffffff_KpE = "a::f::<true, 0, -10, 'a', 0xffffffffffffffff, _>",
  _RNvCs1_1au7caf_dma = "a::punycode{caf_dma}", ["_RNvC1a4main.llvm.12"] = "a::main",
  _RNvC1a4mainC1b = "a::main", _RNvC1au4x_9a = "a::punycode{x_9a}",
} do
  t.equal(shown(name), expected, name)
  t.equal(shown(name, { no_demangle = true }), (name:gsub("@.*", "")), name .. " as it is")
end
-- Invalid names, and names that would expand beyond any memory.
for _, name in ipairs {
  "_R", "_Rust", "_RN", "_RNv", "_RNvC", "_RNvC1", "_RNvC5ab", "_RNvC1a", "_RNvC1a9999a", "_RNvB_1a",
  "_RNvBz_1a", "_RINvC1a1f", "_RINvC1a1fm", "_RNvC1a1f!", "_RINvC1a1fKE", "_RINvC1a1fK!_E", "_RX", "_RC1aB_",
  "_R" .. ("Nv"):rep(200) .. "C1a", "_RINvC1a1f" .. ("S"):rep(3000) .. "mE", "_R" .. ("I"):rep(4000),
  "_RNvC1a1f\1", "_RNvC" .. ("s"):rep(90) .. "_1a1f",
} do
  t.ok(#shown(name) > 0, "hostile " .. name:sub(1, 20))
end
for _, name in ipairs { "_R", "_Rust", "_RNvC1a", "_RNvBz_1a", "_RINvC1a1fm" } do
  t.equal(shown(name), name, "no name of Rust")
end
-- Each tuple has the one before it twice: positions are written in 62 digits.
local DIGITS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
local function position(n)
  local function digit(d) return DIGITS:sub(d + 1, d + 1) end
  n = n - 1
  return (n < 62 and "" or digit(math.floor(n / 62))) .. digit(n % 62) .. "_"
end
local function tuples(n)
  local parts, last, at = { "_RINvC1a1f", "TmE" }, 8, 11
  for _ = 1, n do
    local s = "TB" .. position(last) .. "B" .. position(last) .. "E"
    parts[#parts + 1], last, at = s, at, at + #s
  end
  return table.concat(parts) .. "E"
end
t.equal(shown(tuples(2)), "a::f::<(u32,), ((u32,), (u32,)), (((u32,), (u32,)), ((u32,), (u32,)))>",
	"references")
t.equal(shown(tuples(40)), tuples(40), "grows by references")

-- Each bound alone. Steps: each part reads the one before it twice, and shows it once.
local function implementations(n)
  local parts, last, at = { "_RINvC1a1f", "C1a" }, 8, 11
  for _ = 1, n do
    local s = "MB" .. position(last) .. "B" .. position(last)
    parts[#parts + 1], last, at = s, at, at + #s
  end
  return table.concat(parts) .. "E"
end
t.equal(shown(implementations(2)), "a::f::<a, <a>, <<a>>>", "implementations")
t.equal(shown(implementations(16)), implementations(16), "steps of references")
-- Text with few parts, one long.
local function long_names(n)
  local parts, at = { "_RINvC1a1f", "C0900", ("x"):rep(900) }, 8
  parts[2] = "C900"
  for _ = 1, n do parts[#parts + 1] = "B" .. position(at) end
  return table.concat(parts) .. "E"
end
t.equal(#shown(long_names(2)), #"a::f::<, , >" + 3 * 900, "a long text")
t.equal(shown(long_names(5)), long_names(5), "too long a text")

if demangle.name("_Z1fv") == "_Z1fv" and not pcall(ffi.load, "libstdc++.so.6") then
  print("skipped: no C++ library")
  os.exit(77)
end

for name, expected in pairs {
  _Z1fv = "f()", _ZN2ns3Box3putEi = "ns::Box::put(int)", _ZL6hiddeni = "hidden(int)",
  ["_ZN3foo3barEv.cold"] = "foo::bar() [clone .cold]",
  ["_ZNSaIcEC1Ev@@GLIBCXX_3.4"] = "std::allocator<char>::allocator()",
  ["_ZlsRSoi"] = "operator<<(std::ostream&, int)",
} do
  t.equal(shown(name), expected, name)
  t.equal(shown(name, { no_demangle = true }), (name:gsub("@.*", "")), name .. " as it is")
end

-- pprof's files have both names, where they differ.
for name, expected in pairs { ["_ZN2ns3Box3putEi@@V1"] = "ns::Box::put(int) _ZN2ns3Box3putEi",
			      ["malloc@@V1"] = "malloc " } do
  local b = B.new():context():stack(1, { B.F.host(0x100) }):sample(0, 1)
  b:hsym(0x100, 0x100, name)
  local f = pprof.decode((t.render(b:finish(), "pprof"))).functions[1]
  t.equal(f.name .. " " .. f.system_name, expected, "pprof: names of " .. name)
end

-- By the command.
local b = B.new():context():stack(1, { B.F.host(0x100) }):sample(0, 1)
t.write_file("p.bin", b:hsym(0x100, 0x100, "_Z1fv"):finish())
local _, out = t.parse("p.bin")
t.equal(out, "f() 1\n", "the command demangles")
_, out = t.parse("--no-demangle p.bin")
t.equal(out, "_Z1fv 1\n", "--no-demangle")
_, out = t.parse("--exclude='^f()' p.bin")
t.equal(out, "", "filters see the shown name")

-- A short name that stands for more than any memory holds: each argument is three
-- times the one before.
local hostile = "_Z1f1AIiiE"
for i = 1, 30 do
  local part = i == 1 and "S0_" or ("S%s_"):format(i < 11 and i - 1 or string.char(55 + i - 1))
  hostile = hostile .. "S_I" .. part .. part .. part .. "E"
end
t.equal(shown(hostile), hostile, "grows without end")
for _, name in ipairs {
  "_Z" .. ("P"):rep(900) .. "i", "_Z1f" .. ("P"):rep(1000) .. "i", "_Z1f" .. ("P"):rep(1e5) .. "i",
  "_ZN" .. ("1a"):rep(400) .. "E", "_Z1fI" .. ("XadL"):rep(200), "_Z1f" .. ("S_"):rep(400),
  "_Z1f" .. ("F"):rep(300) .. "v" .. ("E"):rep(300),
} do
  t.ok(#shown(name) >= 1, "hostile " .. name:sub(1, 20))
end

t.finish()
