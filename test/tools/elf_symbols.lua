-- Symbol tables of ELF files: the right symbol for each address. No content of a file
-- causes a crash or a wrong name.
-- TIMEOUT: 600
-- BASE: none, it reads no profile of this LuaJIT

local t = require("tools_test")
local B = require("stream_builder")
local E = require("elf_files")
local demangle = require("sysprof.names.demangle")
local elf = require("sysprof.names.elf")
local reader = require("sysprof.read.reader")
local symbolfiles = require("sysprof.names.symbolfiles")

E.needs("g++", "nm", "readelf", "strip")
E.make("libx.so")
local addr, id = E.addresses("libx.so"), E.buildid("libx.so")

-- Looks up addresses in the folder dir. Returns for each its name and start in the file,
-- or false; and the missing files.
local function look_up(list, dir, buildid)
  local p = assert(reader.parse_string(E.stream("/gone/libx.so", buildid or id, list)))
  local files, names = symbolfiles.new(p, { dir }), {}
  for i, at in ipairs(list) do
    local found = files:find(E.BASE + at)
    names[i] = found and ("%s %x"):format(demangle.without_version(found.name),
					  found.addr - E.BASE) or false
  end
  return names, files.messages
end

-- A note that says it goes on behind its section has no build-id.
local NOTE = "\4\0\0\0\20\0\0\0\3\0\0\0GNU\0"
local image = t.read_file("libx.so")
local note_at = assert(image:find(NOTE, 1, true))
t.write_file("libnote.so", image:sub(1, note_at + 3) .. "\21" .. image:sub(note_at + 5))
t.equal(elf.open("libx.so").buildid, id, "build-id")
t.equal(elf.open("libnote.so").buildid, nil, "a note longer than its section")

local function named(name)
  return ("%s %x"):format(name, addr[name])
end

-- -- The right symbol ------------------------------------------------------

local BOX, HIDDEN = "_ZN2ns3Box3putEi", "_ZL6hiddeni"

t.ok(addr[BOX] and addr[HIDDEN] and addr.asm_two == addr.asm_one + 3, "nm shows the symbols")

local list = { addr[BOX], addr[BOX] + 5, addr[HIDDEN] + 1, addr.plain + 4, addr.asm_one,
	       addr.asm_one + 2, addr.asm_two, addr.asm_two + 2, addr.asm_other + 1,
	       addr.asm_other + 0x1000 }
local function expect_full(what, names)
  for i, name in ipairs { BOX, BOX, HIDDEN, "plain", "asm_one", "asm_one", "asm_two",
			  "asm_two", "asm_other" } do
    t.equal(names[i], named(name), what .. ": address " .. i)
  end
  t.equal(names[10], false, what .. ": behind the section")
end
local names, messages = look_up(list, ".")
expect_full("whole file", names)
t.equal(#messages, 0, "nothing is missing")

-- Each symbol of nm, at its start, once with all the others.
local all, expected = {}, {}
for line in E.run("nm -S libx.so"):gmatch("[^\n]+") do
  local at, size, name = line:match("^(%x+) (%x+) [tT] (.*)$")
  -- Of two names at one address, the global one is shown.
  if at and name ~= "versioned_1" then
    all[#all + 1] = tonumber(at, 16) + tonumber(size, 16) - 1
    expected[#all] = name:gsub("@.*", "")
  end
end
t.ok(#all >= 3, "functions with sizes: " .. #all)
names = look_up(all, ".")
for i in ipairs(all) do
  t.equal(names[i], named(expected[i]), "last byte of " .. expected[i])
end

local function nameless(name)
  return (" %x"):format(addr[name])
end

-- Without .symtab only exported symbols have names. The start of other functions is known, but
-- not that of code without unwind tables.
E.run("mkdir -p stripped && strip -o stripped/libx.so libx.so")
names, messages = look_up(list, "stripped")
t.equal(names[1], nameless(BOX), "stripped: not exported")
t.equal(names[2], nameless(BOX), "stripped: not exported, in it")
t.equal(names[3], nameless(HIDDEN), "stripped: static")
t.equal(names[4], named("plain"), "stripped: exported")
-- What follows it is not known to be something else.
t.equal(names[5], false, "stripped: exported, size 0")
t.equal(#messages, 1, "stripped: one sentence")
t.contains(messages[1], " addresses of '/gone/libx.so'", "stripped: which file")
t.contains(messages[1], "no file with its symbols was found", "stripped: why")

-- -- Other files -----------------------------------------------------------

t.equal(select("#", elf.open("nowhere.so")), 1, "no file")
for what, make in pairs {
  ["a folder"] = "mkdir", ["a pipe"] = "mkfifo", ["a device"] = "ln -s /dev/zero",
  ["a link to nothing"] = "ln -s nowhere", ["a link to itself"] = "ln -s libx.so",
} do
  E.run("rm -rf odd && mkdir odd && " .. make .. " odd/libx.so")
  names, messages = look_up({ addr.plain }, "odd")
  t.equal(names[1], false, what)
  t.contains(messages[1], "no file with its symbols was found", what)
end

-- -- Damaged files ---------------------------------------------------------

local whole = t.read_file("libx.so")
E.run("mkdir -p damaged")

-- All names found are right. For a damaged file, one sentence reports the fault.
local function damaged(what, s, may_differ)
  t.write_file("damaged/libx.so", s)
  local ok, found, missing = pcall(look_up, list, "damaged")
  t.ok(ok, what .. ": " .. tostring(found))
  if not ok then return end
  for i, name in ipairs(found) do
    t.ok(may_differ or not name or name == names[i], ("%s: %s"):format(what, tostring(name)))
  end
  t.ok(#missing <= 1, what .. ": at most one sentence")
  if missing[1] then
    t.ok(not missing[1]:find("[%c]"), what .. ": one line of text: " .. missing[1])
  end
  return found, missing
end

names = look_up(list, ".")
local _, missing
for cut = 0, #whole - 1, math.ceil(#whole / 300) do
  _, missing = damaged("cut at " .. cut, whole:sub(1, cut))
  t.contains(missing[1], "damaged/libx.so'", "cut at " .. cut)
end
-- The header and all section headers, byte by byte.
local sections = tonumber(E.run("readelf -h libx.so"):match("Start of section headers:%s+(%d+)"))
local function change(offset, byte)
  return whole:sub(1, offset) .. byte .. whole:sub(offset + 2)
end
-- An empty table at the end of the file is there.
for at = sections, #whole - 64, 64 do
  if whole:sub(at + 5, at + 8) == "\2\0\0\0" then
    local place = B.u32(#whole) .. ("\0"):rep(12)
    t.write_file("damaged/libx.so", whole:sub(1, at + 24) .. place .. whole:sub(at + 41))
  end
end
local file = elf.open("damaged/libx.so")
t.equal((file:symbols("symtab") or {}).n, 0, "an empty table")
file:close()
for offset = 0, 63 do
  for _, byte in ipairs { "\0", "\127", "\255" } do
    damaged("header " .. offset, change(offset, byte), true)
  end
end
for offset = sections, #whole - 1, 3 do
  damaged("section header " .. offset, change(offset, offset % 2 == 0 and "\255" or "\1"), true)
end
-- Whole parts at random.
local random = 12345
for n = 1, 200 do
  local s = whole
  for _ = 1, 1 + n % 7 do
    random = (random * 1103515245 + 12345) % 2^31
    local at, junk = random % #s, {}
    for i = 1, 1 + n % 40 do
      random = (random * 1103515245 + 12345) % 2^31
      junk[i] = string.char(math.floor(random / 2^16) % 256)
    end
    s = s:sub(1, at) .. table.concat(junk) .. s:sub(at + #junk + 1)
  end
  damaged("random " .. n, s, true)
end
damaged("empty", "")
damaged("text", ("some text\n"):rep(100))
_, missing = damaged("32 bits", change(4, "\1"))
t.contains(missing[1], "is no 64-bit little-endian ELF file", "32 bits")

t.finish()
