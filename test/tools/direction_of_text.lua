-- Characters that show nothing, or reverse the direction of text, become "?" in each format, like
-- control characters, anywhere in a stream.
-- BASE: none, it reads no profile of this LuaJIT

local t = require("tools_test")
local B = require("stream_builder")
local reader = require("sysprof.read.reader")
local text = require("sysprof.base.text")
local view = require("sysprof.show.view")
local F = B.F

local BAD = { "\216\156", "\226\128\142", "\226\128\143", "\194\173", "\226\128\139", "\226\128\141", "\226\129\160",
	      "\226\129\164", "\239\187\191", "\227\133\164" }	-- A soft hyphen, a space of no width, and the like.
for last = 0xaa, 0xae do BAD[#BAD + 1] = "\226\128" .. string.char(last) end
for last = 0xa6, 0xa9 do BAD[#BAD + 1] = "\226\129" .. string.char(last) end
for _, s in ipairs(BAD) do t.equal(text.clean("a" .. s .. "b"), "a?b", ("%q"):format(s)) end

-- Their neighbours are text: U+061B, U+2010, U+202F, U+2070.
for _, s in ipairs { "\216\155", "\226\128\144", "\226\128\175", "\226\129\176" } do
  t.equal(text.clean(s), s, ("%q"):format(s))
end

local CLEANED = ("?"):rep(#BAD)

local function holds_bad(s)
  for _, bad in ipairs(BAD) do
    if s:find(bad, 1, true) then return true end
  end
  return false
end

local all = table.concat(BAD)
local stream = B.new():context():meta("clock", "cpu" .. all):meta("pid", "1" .. all)
  :event(0, "cpu" .. all, 0, 1000000):thread(1, "name" .. all)
  :module(0x1000, 0x9000, 0x1000, "/lib/" .. all .. ".so")
  :lfunc(1, 1, "@dir/" .. all .. ".lua", "f" .. all):ffunc(2, "builtin" .. all)
  :hsym(0x5000, 0x4000, "c" .. all)
  :stack(1, { F.cbound, F.lfunc(1, 2), F.ffunc(2) }):stack(2, { F.vm, F.host(0x5000), F.host(0x1001) })
  :sample(1, 2):finish()

local function check(format, options)
  local p = assert(reader.parse_string(stream, { timeline = true }))
  local out = {}
  options.title = "title" .. all
  require("sysprof.formats." .. format).render(view.new(p, options), function(s) out[#out + 1] = s end)
  out = table.concat(out)
  if format == "pprof" then
    t.with_file(out, function(path)
      local status
      status, out = t.shell("gzip -dc <" .. path)
      t.equal(status, 0, "gzip")
    end)
  end
  t.ok(not holds_bad(out), format .. " holds a character that turns text around")
  -- All of the names are there.
  for _, name in ipairs { "f" .. CLEANED, "builtin" .. CLEANED, "c" .. CLEANED } do
    local there = out:find(name, 1, true) ~= nil
    t.ok(there or options.by ~= nil, ("%s: no '%s'"):format(format, name))
  end
end

for _, format in ipairs { "folded", "top", "tree", "flamegraph", "svg", "pprof", "speedscope",
			  "gecko", "json" } do
  check(format, {})
end
for _, by in ipairs { "line", "module", "thread", "vmstate" } do check("top", { by = by }) end

-- The command's messages, and the listing of a file.
t.with_file(stream, function(path)
  t.write_file("source.lua", "-- " .. all .. "\nlocal x = 1\n")
  local status, out, err = t.parse(("--event='none%s' %s"):format(all, path))
  t.equal(status, 1, "no such event")
  t.ok(not holds_bad(out .. err), "message: " .. err)
end)
local listed = B.new():context():lfunc(1, 1, "@source.lua", "f")
  :stack(1, { F.cbound, F.lfunc(1, 2) }):sample(1, 0):finish()
t.with_file(listed, function(path)
  local status, out = t.parse("--annotate=source.lua " .. path)
  t.equal(status, 0, "--annotate")
  t.contains(out, "-- " .. CLEANED, "--annotate")
  t.ok(not holds_bad(out), "--annotate")
end)

t.finish()
