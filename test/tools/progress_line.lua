-- A progress line appears on a terminal only, after a second, and disappears at the end.
-- BASE: none, it reads no profile of this LuaJIT

local t = require("tools_test")
local B = require("stream_builder")
local progress = require("sysprof.terminal.progress")
local reader = require("sysprof.read.reader")

local time, written = 100, {}
local system = { terminal = true, now = function() return time end,
		 write = function(s) written[#written + 1] = s end }

t.equal(progress.new({ terminal = false }), nil, "no terminal")
local _, out = t.shell(("'%s' -e 'print(require(\"sysprof.terminal.progress\").new())'"):format(t.luajit))
t.equal(out, "nil\n", "standard error is a file")

local p = progress.new(system)
time = 100.9
p:update("x", 1e6, 4e6)
p:finish()
t.equal(#written, 0, "less than a second")
time = 101.5
p:update("x", 1e6, 4e6)
t.equal(written[1], "\r\27[Kreading x: 25% of 4 MB", "first line")
time = 101.6
p:update("x", 2e6, 4e6)
t.equal(#written, 1, "not too often")
time = 102
p:update("x", 3e6)
t.equal(written[2], "\r\27[Kreading x: 3 MB", "size is not known")
p:finish()
t.equal(written[3], "\r\27[K", "removed")
p:finish()
t.equal(#written, 3, "removed once")

-- By the reader, for a profile and for another file.
written = {}
local stream = B.new():context():sample(0, 0, 200000):finish()
t.with_file(stream, function(path)
  local shown = progress.new(system)
  time = time + 10
  local profile = reader.read(path, { progress = shown })
  t.equal(profile:totals(), 200000, "samples")
  t.contains(written[1], "reading " .. path .. ": ", "file")
  t.contains(written[1], ("%% of %.0f MB"):format(#stream / 1e6), "its size")
  t.equal(written[#written], "\r\27[K", "removed at the end of the file")
  written, time = {}, time + 10
  shown:update("x", 0)
  reader.read("/dev/null", { progress = shown })
  t.equal(written[#written], "\r\27[K", "removed for a file that is not a profile")
end)

-- When the reading was broken off, it is removed before a message.
written, time = {}, time + 10
p = progress.new(system)
time = time + 2
p:update("x", 0)
t.equal(#written, 1, "shown")
progress.erase()
t.equal(written[2], "\r\27[K", "removed before a message")
progress.erase()
p:finish()
t.equal(#written, 2, "removed once")

t.finish()
