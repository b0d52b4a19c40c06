-- TIMEOUT: 600
-- A function keeps its name while the program loads, calls and drops thousands of others.

local t = require("tools_test")
local reader = require("sysprof.read.reader")
local view = require("sysprof.show.view")

local SAMPLES = 12000
local LOADED = 3000	-- Of these, sampled at least. Ids were given anew after 2048 once.
local PATH = "names.bin"

jit.off()

local function stays(f)
  local s = 0
  for i = 1, 1500 do s = s + i % 7 end
  return f() + s
end
local calls = { stays }	-- The call does not tell the name; the end of the profile does.

assert(misc.sysprof.start { mode = "C", clock = "wall-signal", interval = 0.1, path = PATH, force = true })
local deadline, n = os.time() + 300, 0
repeat
  n = n + 1
  calls[1](load("local s = 0 for i = 1, 2000 do s = s + i % 5 end return s", "@load" .. n))
until misc.sysprof.report().samples >= SAMPLES or os.time() > deadline
assert(misc.sysprof.stop())

local p = assert(reader.read(PATH))
n = 0
for _, f in p.lfuncs:each() do
  if f.chunk:find("^@load") then n = n + 1 end
end
t.ok(n > LOADED, ("samples of %d loaded functions"):format(n))

local out, named, nameless = {}, 0, 0
require("sysprof.formats.folded").render(view.new(p, { no_host = true }), function(s) out[#out + 1] = s end)
local place = ("names_stay[%%w_.]*:%d%%f[%%D]"):format(debug.getinfo(stays, "S").linedefined)
for stack, count in table.concat(out):gmatch("([^\n]*) (%d+)\n") do
  if stack:find(";stays %([^;()]*" .. place) then named = named + count
  elseif stack:find(place) then nameless = nameless + count end
end
t.ok(named > SAMPLES / 4, ("%d samples with the name"):format(named))
t.equal(nameless, 0, "samples without the name")
t.finish()
