-- Names of C++ and versions of symbols, as users know them; hostile names do no
-- harm.

local t = require("tools_test")
local B = require("stream_builder")
local pprof = require("pprof_decode")
local demangle = require("sysprof.demangle")

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

if demangle.name("_Z1fv") == "_Z1fv" then
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
