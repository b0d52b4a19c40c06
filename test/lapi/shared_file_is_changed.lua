-- A shared file between two profiles. The second profile joins the first if the file is
-- unchanged, else it begins the file again.

local t = require("tools_test")
local reader = require("sysprof.read.reader")
local sysprof = misc.sysprof

-- Profiles a moment into the file. Returns the number of samples.
local function profile()
  assert(sysprof.start { mode = "C", path = "x", shared = true, interval = 1, clock = "wall-signal" })
  local deadline = os.time() + 200
  repeat until sysprof.report().samples > 0 or os.time() > deadline
  assert(sysprof.stop())
  t.ok(sysprof.report().samples > 0, "samples")
  return sysprof.report().samples
end

-- What the file holds must be whole, with so many samples.
local function holds(what, samples)
  local p, err = reader.parse_string(t.read_file("x"))
  t.ok(p and p.complete, what .. ": whole: " .. tostring(err))
  t.equal(p and p:totals(), samples, what .. ": samples")
end

os.remove("x")
local first = profile()
holds("the first", first)
holds("nobody has changed it", first + profile())

local f = assert(io.open("x", "ab"))
f:write("another program's")
f:close()
local third = profile()
holds("another program has appended to it", third)

t.write_file("x", t.read_file("x"):sub(1, -2))
holds("another program has cut it", profile())
t.finish()
