----------------------------------------------------------------------------
-- Shared libraries for tests of symbols, and profiles of addresses in them.
--
-- Expected values come from nm and readelf, not from the reader.
----------------------------------------------------------------------------

local t = require("tools_test")
local B = require("stream_builder")

local elf_files = {}

elf_files.BASE = 0x7f0000000000	-- Where the library is mapped.

local SOURCE = [[
namespace ns {
  struct Box { int put(int); };
  __attribute__((noinline)) int Box::put(int x) { return x + %d; }
}
static __attribute__((noinline)) int hidden(int x) { return x * 3; }
extern "C" int plain(int x) { ns::Box b; return hidden(b.put(x)); }
extern "C" int plain_alias(int x) __attribute__((weak, alias("plain")));
asm(".pushsection .text\n.globl asm_one\nasm_one: nop\nnop\nret\nasm_two: nop\nnop\nret\n.popsection\n"
    ".pushsection other_code,\"ax\"\n.globl asm_other\nasm_other: nop\nret\n.popsection\n");
extern "C" int versioned_1(int x) { return x; }
asm(".symver versioned_1,versioned@@VERSION_1\n");
]]

local VERSIONS = "VERSION_1 { global: plain; plain_alias; asm_one; versioned; local: *; };\n"

function elf_files.run(command)
  local status, out, err = t.shell(command)
  if status ~= 0 then error(command .. ": " .. err) end
  return out
end
local run = elf_files.run

-- Skips the test if a program is missing.
function elf_files.needs(...)
  for _, program in ipairs { ... } do
    if t.shell("command -v " .. program) ~= 0 then
      print("skipped: no " .. program)
      os.exit(77)
    end
  end
end

-- Makes the library path; a different number makes a different library.
function elf_files.make(path, number, flags)
  t.write_file("lib.cc", SOURCE:format(number or 1))
  t.write_file("lib.map", VERSIONS)
  run(("g++ -O0 -g -shared -fPIC -Wl,--build-id=sha1 -Wl,--version-script=lib.map " ..
       "%s -o '%s' lib.cc"):format(flags or "", path))
end

-- Returns the addresses of the symbols, by their names without versions.
function elf_files.addresses(path)
  local addr = {}
  for at, name in run(("nm '%s'"):format(path)):gmatch("(%x+) %a ([^@\n]+)") do
    addr[name] = tonumber(at, 16)
  end
  return addr
end

-- Returns the build-id, as bytes.
function elf_files.buildid(path)
  local hex = run(("readelf -n '%s'"):format(path)):match("Build ID: (%x+)")
  return (hex:gsub("%x%x", function(b) return string.char(tonumber(b, 16)) end)), hex
end

-- Returns a profile with one sample at each address of the file. add(b) may add
-- records.
function elf_files.stream(path, buildid, addresses, add)
  local b = B.new():context()
  b:module(elf_files.BASE, elf_files.BASE + 0x100000, elf_files.BASE, path, buildid)
  for i, addr in ipairs(addresses) do
    b:stack(i, { B.F.host(elf_files.BASE + addr) }):sample(0, i)
  end
  if add then add(b) end
  return b:finish()
end

return elf_files
