-- Files that are not profiles: one sentence says what a file is, and what to do. Our own outputs and
-- sources are among them.
-- BASE: none, it reads no profile of this LuaJIT

local t = require("tools_test")
local B = require("stream_builder")
local reader = require("sysprof.read.reader")
local otherfiles = require("sysprof.read.otherfiles")
local F = B.F

local BIN = "; give the .bin file"
local RECORD = "; record a profile with luajit-sysprof run"
local GZIP = "compressed by gzip; give the .bin file, or decompress it"

-- Checks the message on an input. It may be as short as it is.
local function check(what, bytes, kind)
  local p, err = reader.parse_string(bytes)
  t.equal(p, nil, what .. ": no profile")
  t.equal(err, "not a sysprof profile" .. (kind and ": it is " .. kind or ""), what)
end

-- -- What our formats write ------------------------------------------------

local stream = B.new():context(1, 0):event(0, "cpu", 0, 0):lfunc(1, 1, "@a.lua", "f"):stack(1, { F.cbound, F.lfunc(1, 2) })
  :sample(1, 0, 5):finish()
for format, kind in pairs {
  folded = "folded text" .. BIN, top = "a text file" .. BIN, tree = "a text file" .. BIN,
  flamegraph = "an HTML page" .. BIN, svg = "an XML file" .. BIN, pprof = GZIP, speedscope = "a JSON file" .. BIN,
  gecko = "a JSON file" .. BIN, json = "a JSON file" .. BIN,
} do
  local out = t.render(stream, format, { title = "title" })
  check(format, out, kind)
  check(format .. ", its first bytes", out:sub(1, otherfiles.SIZE), kind)
end

-- -- Files of others -------------------------------------------------------

for _, case in ipairs {
  { "\31\139", GZIP }, { "\2537zXZ\0\0", "compressed by xz; decompress it" },
  { "(\181/\253\0", "compressed by zstd; decompress it" },
  { "\127ELF\2\1\1\0", "a program or a library" .. RECORD }, { "\27LJ\2\8", "compiled Lua code" .. RECORD },
  { string.dump(function() return 1 end), "compiled Lua code" .. RECORD },
  { "ljh\1\0", "a heap snapshot; luajit-sysprof heap reads it" },
  { "PERFILE2h\0\0\0", "a file of perf" .. BIN }, { "\n <!DOCTYPE HTML PUBLIC", "an HTML page" .. BIN },
  { "<html>\n", "an HTML page" .. BIN }, { "<svg width='5'>", "an SVG picture" .. BIN },
  { "<?xml version='1.0'?>\n", "an XML file" .. BIN }, { '{\n  "a": 1 }', "a JSON file" .. BIN },
  { "local x = 1", "a Lua script" .. RECORD }, { "#!/usr/bin/env luajit\nprint(5)\n", "a Lua script" .. RECORD },
  { "\nrequire('x')\n", "a Lua script" .. RECORD }, { "-- A comment.\n", "a Lua script" .. RECORD },
  { "x = 5\nreturn x\n", "a Lua script" .. RECORD }, { "function f() end", "a Lua script" .. RECORD },
  { "a;b 5\nc 7\n", "folded text" .. BIN }, { "a;b 5\nc 7\nrest", "folded text" .. BIN },
  { "a;b 5\nc\n", "a text file" .. BIN }, { "a;b 5", "a text file" .. BIN }, { "locale x\n", "a text file" .. BIN },
  { "#!/bin/sh\n", "a text file" .. BIN }, { "\195\164\n", "a text file" .. BIN },
  { "a\0b" }, { "\0" }, { "\27[31m" }, { ("\0"):rep(1000) }, { " \n" }, { "\1local x\n" },
} do
  check(("%q"):format(case[1]), case[1], case[2])
end

-- Our own sources, and the programs that run them.
for name, kind in pairs {
  ["test/tools/files_that_are_no_profiles.lua"] = "a Lua script" .. RECORD,
  ["tools/luajit-sysprof.lua"] = "a Lua script" .. RECORD, ["doc/tool.md"] = "a text file" .. BIN,
} do
  check(name, t.read_file(t.source .. "/" .. name), kind)
end
local status, out, err = t.parse("'" .. t.luajit .. "'")
t.equal(status .. out, "1", "luajit")
t.contains(err, "luajit: not a sysprof profile: it is a program or a library" .. RECORD .. "\n", "luajit")

-- -- Cut and damaged profiles are no other files ---------------------------

for n = 1, #B.PROLOGUE - 1 do
  local _, why = reader.parse_string(B.PROLOGUE:sub(1, n))
  t.contains(why, ("cut sysprof profile: the file ends at offset %d, expected"):format(n), "cut after " .. n)
end
local _, why = reader.parse_string("ljs\3\0\0\0x" .. stream:sub(9))
t.contains(why, "cut or damaged profile: offset ", "damaged")

t.finish()
