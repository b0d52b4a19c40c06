-- A profile holds where functions without a symbol begin, and the names of stubs. A machine
-- without the program's files shows them, too.

local t = require("tools_test")
local E = require("elf_files")
local ffi = require("ffi")

E.needs("cc", "nm", "strip")
t.write_file("far.c", "int far_away(int x) { return x + 1; }\n")
t.write_file("code.c", [[
int far_away(int x);
static __attribute__((noipa)) int first(int x)
{
  int i;
  for (i = 0; i < 100000; i++) x = far_away(x);
  return x;
}
static __attribute__((noipa)) int second(int x)
{
  int i;
  for (i = 0; i < 100000; i++) { x += i; __asm__ volatile("" : "+r"(x)); }
  return x;
}
int burn(int x) { return first(x) + second(x) + 1; }
]])
E.run("cc -O1 -shared -fPIC -o libfar.so far.c")
E.run("cc -O1 -shared -fPIC -Wl,--build-id=sha1 -o whole.so code.c ./libfar.so")
E.run("strip -o libcode.so whole.so")
local addr = E.addresses("whole.so")

jit.off()
ffi.cdef("int burn(int x);")
local library = ffi.load("./libcode.so")
assert(misc.sysprof.start { mode = "C", interval = 1, clock = "wall-signal", path = "p.bin" })
local start = os.time()
repeat
  for _ = 1, 50 do library.burn(1) end
until misc.sysprof.report().samples >= 400 or os.time() - start > 200
assert(misc.sysprof.stop())
E.run("rm -f libcode.so whole.so")

local status, out, err = t.parse("p.bin")
t.equal(status, 0, "status: " .. err)
local shown = { stub = "far_away@plt" }
for _, name in ipairs { "first", "second" } do shown[name] = ("libcode.so+0x%x"):format(addr[name]) end
for what, name in pairs(shown) do
  t.ok(out:find(";" .. name, 1, true), ("%s is %s in %s"):format(what, name, out))
end
for name in out:gmatch("(libcode%.so%+0x%x+)") do
  t.ok(name == shown.first or name == shown.second, name .. " is a function's start")
end
-- What the linker has in .dynsym keeps its name.
t.ok(out:find(";burn;" .. shown.first, 1, true), "the exported caller: " .. out)

t.finish()
