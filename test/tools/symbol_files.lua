-- Places of symbols: the module itself, the folders of --symbols, debug files by build-id
-- and debug link. The reader names missing and wrong files.
-- BASE: none, it reads no profile of this LuaJIT

local t = require("tools_test")
local E = require("elf_files")

E.needs("g++", "nm", "readelf", "strip", "objcopy")
-- What an earlier run has left.
E.run("rm -rf own empty other noid byid named link files crc")
E.make("full.so")
local addr = E.addresses("full.so")
local id, id_hex = E.buildid("full.so")
local HIDDEN = addr["_ZL6hiddeni"] + 2
local here = E.run("pwd"):match("[^\n]+")

local NAMED = "hidden(int) 1\n"
local UNNAMED = ("libx.so+0x%x 1\n"):format(HIDDEN)
local STRIPPED = ("libx.so+0x%x 1\n"):format(addr._ZL6hiddeni)	-- Where the function begins.

-- Reads a profile of one address in the module at path.
local function read(path, options, buildid, address)
  t.write_file("p.bin", E.stream(path, buildid or id, { address or HIDDEN }))
  local status, out, err = t.parse(options .. " p.bin")
  t.equal(status, 0, options .. ": status")
  return out, err
end

local function check(what, out, err, expected, part)
  t.equal(out, expected, what)
  if not part then
    t.equal(err, "", what .. ": message")
  else
    t.contains(err, part, what .. ": message")
    t.ok(err:find("^[^\n]+\n$"), what .. ": one line")
  end
end

local function check_read(what, path, options, expected, part)
  local out, err = read(path, options)
  check(what, out, err, expected, part)
end

local GONE = "/gone/libx.so"

-- -- The module itself -----------------------------------------------------

E.run("mkdir -p own && cp full.so own/libx.so")
check_read("own path", here .. "/own/libx.so", "", NAMED)
check_read("no file", GONE, "", UNNAMED)
check("unknown build-id", select(1, read(here .. "/own/libx.so", "", "other")), "", UNNAMED)
check("no build-id", select(1, read(here .. "/own/libx.so", "", "")), "", UNNAMED)

check("short build-id", select(1, read(here .. "/own/libx.so", "", "\4")), "", UNNAMED)
for _, path in ipairs { "", "/", "//", "[vdso]", "own", ("x"):rep(5000), "own\0/libx.so" } do
  local out = read(path, "--symbols=own/none")
  t.ok(out:find("+0x", 1, true), "odd path " .. path:sub(1, 20) .. ": " .. out:sub(-50))
end

-- -- Folders ---------------------------------------------------------------

E.run("mkdir -p empty")
check_read("folder", GONE, "--symbols=own", NAMED)
check_read("second folder", GONE, "--symbols empty --symbols own", NAMED)
check_read("own path, too", here .. "/own/libx.so", "--symbols=empty", NAMED)
check_read("missing", GONE, "--symbols=empty", UNNAMED,
	   ("p.bin: warning: 1 address of '/gone/libx.so' (build-id %s) without a name: " ..
	    "no file with its symbols was found"):format(id_hex))
check_read("no folder", GONE, "--symbols=nowhere", UNNAMED, "no file with its symbols was found")
local out, err = read(GONE, "--symbols=own", "")
check("no build-id in the profile", out, err, NAMED)

E.run("mkdir -p other")
E.make("other/libx.so", 2)
t.ok(E.buildid("other/libx.so") ~= id, "another library has another build-id")
check_read("another build-id", GONE, "--symbols=other", UNNAMED,
	   "'other/libx.so' has another build-id")
check_read("another one, then the right one", GONE, "--symbols=other --symbols=own", NAMED)

E.run("mkdir -p noid")
E.make("noid/libx.so", 1, "-Wl,--build-id=none")
check_read("file without build-id", GONE, "--symbols=noid", UNNAMED,
	   "'noid/libx.so' has no build-id")

t.write_file("empty/libx.so", "text")
check_read("no ELF file", GONE, "--symbols=empty", UNNAMED, "'empty/libx.so' is no ELF file")

-- -- Debug files -----------------------------------------------------------

local id_path = ("%s/%s.debug"):format(id_hex:sub(1, 2), id_hex:sub(3))
E.run("objcopy --only-keep-debug full.so full.debug")
E.run(("mkdir -p byid/.build-id/%s && cp full.debug byid/.build-id/%s"):format(
  id_hex:sub(1, 2), id_path))
check_read("by build-id", GONE, "--symbols=byid", NAMED)

E.run("mkdir -p named && cp full.debug named/libx.so.debug")
check_read("by name", GONE, "--symbols=named", NAMED)

-- Stripped files that name their debug file.
local function linked(folder, source)
  E.run(("mkdir -p %s && strip -o %s/libx.so %s"):format(folder, folder, source))
  E.run(("objcopy --add-gnu-debuglink=full.debug %s/libx.so"):format(folder))
end
linked("link", "full.so")
local LINK = here .. "/link/libx.so"
check_read("debug file is not there", LINK, "", STRIPPED)
E.run("cp full.debug link/")
check_read("debug link, beside it", LINK, "", NAMED)
check_read("debug link, in a folder", GONE, "--symbols=link", NAMED)
E.run("mkdir -p link/.debug files && cp full.debug files/ && mv link/full.debug link/.debug/")
check_read("debug link, in .debug", LINK, "", NAMED)
E.run("rm link/.debug/full.debug")
check_read("debug link, in a folder of the user", LINK, "--symbols=files", NAMED)

-- Without a build-id the checksum counts.
E.run("objcopy --remove-section=.note.gnu.build-id full.debug files/full.debug")
check_read("another checksum", LINK, "--symbols=files", STRIPPED,
	   "'files/full.debug' has another checksum")
E.run("mkdir -p crc && strip -o crc/libx.so full.so && cp files/full.debug full.debug")
E.run("objcopy --add-gnu-debuglink=full.debug crc/libx.so")
check_read("the right checksum", here .. "/crc/libx.so", "--symbols=files", NAMED)
-- Nobody waits for the checksum of a sparse file.
E.run("mkdir -p huge && cp files/full.debug huge/ && truncate -s 8G huge/full.debug")
check_read("a huge file", here .. "/crc/libx.so", "--symbols=huge", STRIPPED,
	   "'huge/full.debug' is not read: the files with symbols have more than 1073741824 bytes")

-- -- All that is known is shown together -----------------------------------

local stream = E.stream(GONE, id,
  { addr.plain + 4, HIDDEN, addr.versioned, addr.asm_other + 0x1000 }, function(b)
    b:hsym(E.BASE + addr.plain + 4, E.BASE + addr.plain, "from_the_stream")
  end)
t.write_file("p.bin", stream)
local status
status, out, err = t.parse("--symbols=own p.bin")
t.equal(status, 0, "together: status")
t.equal(out, ("from_the_stream 1\nhidden(int) 1\nlibx.so+0x%x 1\nversioned 1\n"):format(
	     addr.asm_other + 0x1000), "together")
t.equal(err, "", "together: the file was found")

-- A C function and its code are one frame of the stack once they have names.
local B = require("stream_builder")
local b = B.new():context():module(E.BASE, E.BASE + 0x100000, E.BASE, GONE, id)
b:lfunc(1, 1, "@x.lua", "f")
b:stack(1, { B.F.cbound, B.F.lfunc(1), B.F.cfunc(E.BASE + addr.plain) })
b:stack(2, { B.F.vm, B.F.host(E.BASE + addr.plain + 3) }):sample(1, 2)
t.write_file("p.bin", b:finish())
status, out = t.parse("--symbols=own p.bin")
t.equal(out, "f (x.lua:1);plain 1\n", "C function that Lua called")

-- Two mappings of one file, and two profiles.
b = B.new():context()
for i = 1, 2 do
  local base = E.BASE * i
  b:module(base, base + 0x100000, base, GONE, id):stack(i, { B.F.host(base + HIDDEN) })
  b:sample(0, i)
end
t.write_file("p.bin", b:finish())
status, out = t.parse("--symbols=own p.bin p.bin")
t.equal(out, "hidden(int) 4\n", "two mappings, two profiles")
status, out, err = t.parse("--format=top --diff=p.bin --symbols=other p.bin")
t.equal(status, 0, "two profiles to compare")
t.equal(select(2, err:gsub("another build%-id", "")), 2, "both report the missing files")

t.finish()
