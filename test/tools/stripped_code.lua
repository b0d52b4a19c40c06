-- Stripped code: each address belongs to the function of the unwind tables, or to a stub with
-- the name of the function that it jumps to. Damaged tables name nothing wrong.

local t = require("tools_test")
local B = require("stream_builder")
local E = require("elf_files")
local elf = require("sysprof.names.elf")
local functionstarts = require("sysprof.names.functionstarts")
local stubs = require("sysprof.names.stubs")

E.needs("cc", "nm", "objdump", "readelf", "strip")

t.write_file("code.c", [[
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
static __attribute__((noipa, cold)) int rare(int x) { puts("rare"); return x; }
static __attribute__((noipa)) int small(int x) { return x * 3; }
static __attribute__((noipa)) int large(int x, char *to, const char *from)
{
  memcpy(to, from, (size_t)x);
  if (x == 12345) return rare(x);
  return small(x) + atoi(to) + (int)strlen(from);
}
void *pointer_to_free(void) { return (void *)free; }
int both(void *p) { free(p); return abs((int)(size_t)p); }
int exported(int x) { char to[200]; return large(x, to, "abc") + small(x + 1); }
]])

-- Returns { name, first, last (addresses) } of all functions, by nm.
local function functions_of(path)
  local list = {}
  for at, size, name in E.run("nm -S " .. path):gmatch("(%x+) (%x+) [tT] ([^\n]+)") do
    local first = tonumber(at, 16)
    list[#list + 1] = { name = name, first = first, last = first + tonumber(size, 16) - 1 }
  end
  return list
end

-- Returns the names of stubs by their addresses, by objdump.
local function stubs_of(path)
  local list, n = {}, 0
  for at, name in E.run("objdump -d " .. path):gmatch("(%x+) <([%w_]+)@[^\n>]*plt>:") do
    list[tonumber(at, 16)], n = name, n + 1
  end
  return list, n
end

local function strip(from, to)
  E.run(("strip -o %s %s"):format(to, from))
end

-- -- The right function, the right stub ------------------------------------

local KINDS = {
  { "lazy", "-Wl,-z,lazy" }, { "now", "-Wl,-z,now" }, { "without PLT", "-fno-plt" },
  { "for CET", "-fcf-protection=full -Wl,-z,ibtplt -Wl,-z,lazy" },
  { "for CET, now", "-fcf-protection=full -Wl,-z,ibtplt -Wl,-z,now" },
  { "gold", "-fuse-ld=gold", "ld.gold" }, { "lld", "-fuse-ld=lld", "ld.lld" }, { "mold", "-fuse-ld=mold", "mold" },
}
-- Code of the C runtime has no unwind tables. The cold part of a function has its own entry.
local OURS = { large = true, small = true, rare = true, both = true, exported = true }
local named_stubs, parts = 0, 0
for _, kind in ipairs(KINDS) do
  local what, flags, needs = kind[1], kind[2], kind[3]
  if not needs or t.shell("command -v " .. needs) == 0 then
    E.run("cc -O2 -fno-builtin -shared -fPIC -Wl,--build-id=sha1 -o whole.so code.c " .. flags)
    strip("whole.so", "code.so")
    local file = assert(elf.open("code.so"))
    local start, stub = functionstarts.new(file), stubs.new(file)
    local found = 0
    for _, f in ipairs(functions_of("whole.so")) do
      if OURS[f.name:match("^[^.]+")] then
	found, parts = found + 1, parts + (f.name:find("%.cold$") and 1 or 0)
	for addr = f.first, f.last do
	  t.equal(start(addr), f.first, ("%s: %s+%d"):format(what, f.name, addr - f.first))
	  if stub then t.equal(stub(addr), nil, what .. ": not a stub") end
	end
	t.ok(start(f.first - 1) ~= f.first, what .. ": before " .. f.name)
      end
    end
    t.ok(found >= 5, ("%s: %d functions"):format(what, found))
    -- What begins the search of a name at run time is a stub without a name.
    local plt = file:section(".plt")
    if plt and stub and not needs then
      t.equal(stub(plt.first + 3), plt.first, what .. ": the first stub")
      t.equal(select(2, stub(plt.first + 3)), nil, what .. ": name of the first stub")
    end
    for first, name in pairs(stubs_of("whole.so")) do
      for addr = first, first + 5 do
	local at, shown = stub(addr)
	t.equal(at, first, what .. ": start of the stub of " .. name)
	t.equal(shown, name .. "@plt", what .. ": name of a stub")
      end
      named_stubs = named_stubs + 1
    end
    file:close()
  end
end
t.ok(named_stubs >= 10, "stubs: " .. named_stubs)
print(("%d stubs, %d cold parts"):format(named_stubs, parts))

-- -- Frames of a profile ---------------------------------------------------

E.run("cc -O2 -fno-builtin -shared -fPIC -Wl,--build-id=sha1 -Wl,-z,lazy -o whole.so code.c")
local by_name, first_stub = {}, nil
for _, f in ipairs(functions_of("whole.so")) do by_name[f.name] = f end
for addr, name in pairs(stubs_of("whole.so")) do
  if name == "memcpy" then first_stub = addr end
end
strip("whole.so", "code.so")
local id = E.buildid("code.so")
local here = E.run("pwd"):gsub("\n", "")
local large, small = by_name.large, by_name.small

-- Writes a profile with these host frames, root first, one sample for each; a builder adds more.
local function write(path, addresses, add)
  t.write_file(path, E.stream(here .. "/code.so", id, addresses, add))
end
local LARGE = ("code.so+0x%x"):format(large.first)

write("p.bin", { large.first, large.first + 4, large.last, first_stub })
local status, out = t.parse("p.bin")
t.equal(status, 0, "profile: status")
t.equal(out, LARGE .. " 3\nmemcpy@plt 1\n", "one row for a function")
status, out = t.parse("--format=json p.bin")
t.equal(status, 0, "json: status")
t.contains(out, ('"address":"0x%x"'):format(E.BASE + large.first + 4), "json: the exact address")

-- The profile knows where functions begin, the files are gone.
local function starts(b)
  b:hsym(E.BASE + large.first + 4, E.BASE + large.first, "", { E.BASE + large.last })
end
E.run("mkdir -p away && mv code.so away/")
write("q.bin", { large.first + 4, large.last, small.last }, starts)
local SMALL_LAST = ("code.so+0x%x"):format(small.last)
status, out = t.parse("q.bin")
t.equal(out, SMALL_LAST .. " 1\n" .. LARGE .. " 2\n", "without the file")
-- A symbol without a name leaves the search to files.
E.run("mkdir -p full && cp whole.so full/code.so")
status, out = t.parse("--symbols=full q.bin")
t.equal(out, "large 2\nsmall 1\n", "a file with symbols")
-- Another profile may know the name of the same place, or its function only.
write("r.bin", { large.first + 4, small.last }, function(b)
  b:hsym(E.BASE + large.first + 4, E.BASE + large.first, "named")
end)
for _, order in ipairs { "q.bin r.bin", "r.bin q.bin" } do
  status, out = t.parse(order)
  t.equal(out, ("%s 2\n%s 1\nnamed 2\n"):format(SMALL_LAST, LARGE), "merged: " .. order)
end
E.run("mv away/code.so .")

-- A C function that Lua calls and its code are one frame.
local b = B.new():context():module(E.BASE, E.BASE + 0x100000, E.BASE, here .. "/code.so", id)
b:lfunc(1, 1, "@x.lua", "f")
b:stack(1, { B.F.cbound, B.F.lfunc(1), B.F.cfunc(E.BASE + large.first) })
b:stack(2, { B.F.vm, B.F.host(E.BASE + large.first + 3), B.F.host(E.BASE + small.first + 1) }):sample(1, 2)
t.write_file("p.bin", b:finish())
status, out = t.parse("p.bin")
t.equal(out, ("f (x.lua:1);%s;code.so+0x%x 1\n"):format(LARGE, small.first), "C function that Lua called")

-- -- Damaged tables --------------------------------------------------------

local whole = t.read_file("code.so")
local functions = {}
for _, name in ipairs { "large", "small", "rare", "both", "exported" } do
  functions[#functions + 1] = by_name[name]
end

-- Returns offset and size of a section in the file, and the offset of its header.
local function section(name)
  local listing = E.run("readelf -SW code.so")
  local number, offset, size = listing:match("%[ *(%d+)%] " .. name:gsub("%.", "%%.") ..
					     " +%S+ +%x+ (%x+) (%x+)")
  local headers = tonumber(E.run("readelf -h code.so"):match("Start of section headers:%s+(%d+)"))
  return tonumber(offset, 16), tonumber(size, 16), headers + 64 * tonumber(number)
end
local function changed(offset, bytes)
  return whole:sub(1, offset) .. bytes .. whole:sub(offset + #bytes + 1)
end

-- Looks up all functions in a damaged file. Returns how many starts were found: each is right,
-- unless any_start.
local function damaged(what, s, any_start)
  t.write_file("damaged.so", s)
  local file, found = elf.open("damaged.so"), 0
  if not file then return 0 end
  local ok, why = pcall(function()
    local start, stub = functionstarts.new(file), stubs.new(file)
    for _, f in ipairs(start and functions or {}) do
      local at = start(f.last)
      found = found + (at and 1 or 0)
      if at then t.ok(any_start and at <= f.last or at == f.first, what .. ": " .. f.name) end
    end
    for addr = first_stub - 16, stub and first_stub + 64 or 0, 3 do stub(addr) end
  end)
  t.ok(ok, what .. ": " .. tostring(why))
  file:close()
  return found
end

local index, index_size, index_header = section(".eh_frame_hdr")
local rows = (index_size - 12) / 8
t.equal(damaged("whole", whole), #functions, "the whole file")
t.equal(damaged("huge count", changed(index + 8, "\255\255\255\127")), 0, "a huge count of rows")
t.equal(damaged("one row too many", changed(index + 8, B.u32(rows + 1))), 0, "one row too many")
t.equal(damaged("no row", changed(index + 8, B.u32(0))), 0, "no row")
t.equal(damaged("other rows", changed(index + 3, "\27")), 0, "rows of another encoding")
t.equal(damaged("cut index", changed(index_header + 32, B.u32(11))), 0, "an index of 11 bytes")
t.equal(damaged("cut before the index", whole:sub(1, index)), 0, "a file that ends before it")
-- Rows in the wrong order: less is found, nothing is wrong.
local reversed = {}
for i = rows - 1, 0, -1 do
  local at = index + 12 + 8 * i
  reversed[#reversed + 1] = whole:sub(at + 1, at + 8)
end
t.ok(damaged("reversed", changed(index + 12, table.concat(reversed))) < #functions, "rows in the wrong order")
-- Rows that lead behind the entries, or into the middle of one.
for _, shift in ipairs { "\255\255\255\127", "\0\0\0\128", "\1\0\0\0" } do
  local s = whole
  for i = 0, rows - 1 do
    local at = index + 12 + 8 * i + 4
    s = s:sub(1, at) .. shift .. s:sub(at + 5)
  end
  t.equal(damaged("wrong entries", s), 0, "rows that lead nowhere")
end
for offset = index, index + index_size - 1 do
  for _, byte in ipairs { "\0", "\127", "\255" } do damaged("index " .. offset, changed(offset, byte)) end
end
for _, name in ipairs { ".eh_frame", ".rela.plt", ".plt", ".dynsym" } do
  local first, size, header = section(name)
  for offset = first, first + size - 1, 1 + math.floor(size / 400) do
    damaged(name, changed(offset, "\255"), true)
    damaged(name, changed(offset, "\1"), true)
  end
  for offset = header, header + 63 do damaged(name .. ": header", changed(offset, "\255"), true) end
end

t.finish()
