-- misc.memprof.start and stop: a path or a table, the same profile as the event alloc of
-- misc.sysprof; one sentence for each wrong use.

local t = require("tools_test")
local memprof, sysprof = misc.memprof, misc.sysprof

-- Results of a call that must fail.
local function refused(what, message, ...)
  t.equal(select("#", ...), 3, what .. ": results")
  local ok, err, code = ...
  t.equal(ok, nil, what)
  t.contains(err, message, what)
  t.ok(type(err) == "string" and not err:find("\n"), what .. ": one sentence")
  t.ok(type(code) == "number" and code > 0, what .. ": errno")
end

local keep = { false }
local function allocate()
  for i = 1, 1000 do keep[1] = { i } end
  return keep
end

-- Table of the types in a profile, by objects.
local function types(path)
  local status, out, err = t.parse("--format=top --by=type --weight=objects " .. path)
  t.equal(status .. err, "0", path)
  return out
end

refused("stop when idle", "profiler is not running", memprof.stop())

-- -- Each way to start -----------------------------------------------------

for _, case in ipairs({
  { "a path", "path.bin", "path.bin" },
  { "a table", "table.bin", { path = "table.bin", period = 1 }, 1000 },
  { "no path", "memprof.bin", {} },
  { "nothing", "memprof.bin" },
  { "a thread that writes", "thread.bin",
    { path = "thread.bin", flush = "thread", period = 1 }, 1000 },
}) do
  local what, path, argument, objects = unpack(case, 1, 4)
  os.remove(path)
  t.equal(memprof.start(argument), true, what)
  refused(what .. ": start twice", "profiler is running already", memprof.start("other.bin"))
  refused(what .. ": sysprof beside", "profiler is running already",
	  sysprof.start({ mode = "C", path = "other.bin" }))
  allocate()
  local result = { memprof.stop() }
  t.equal(#result, 1, what .. ": results of stop")
  t.equal(result[1], true, what .. ": stop")
  refused(what .. ": stop twice", "profiler is not running", memprof.stop())
  t.equal(io.open("other.bin"), nil, what .. ": no other file")
  if objects then
    local n = types(path):match("(%d+) +[%d.]+ +%d+ +[%d.]+  table\n")
    t.ok(n and tonumber(n) >= objects, what .. ": tables: " .. tostring(n))
  end
  t.equal(t.parse("--event=alloc " .. path), 0, what .. ": the profile has the event alloc")
end

-- The caller's table stays as it is.
local options = { path = "same.bin", period = 2 ^ 40 }
assert(memprof.start(options))
keep[1] = {}
assert(memprof.stop())
t.ok(options.path == "same.bin" and options.period == 2 ^ 40 and not options.clock,
     "the options are the caller's")
local _, _, said = t.parse("same.bin")
t.ok(said:find("same.bin: warning: no samples: alloc counted %d+ B, one in 1 TiB has a sample\n"),
     "nothing sampled: " .. said)

-- -- Beside misc.sysprof ---------------------------------------------------

assert(sysprof.start({ mode = "D" }))
refused("start beside sysprof", "profiler is running already", memprof.start("other.bin"))
refused("stop of a profile without alloc", "the running profile has no event alloc; "
	.. "misc.sysprof.stop stops it", memprof.stop())
t.equal(sysprof.stop(), true, "sysprof goes on")
assert(sysprof.start({ mode = "D", clock = "cpu,alloc" }))
t.equal(memprof.stop(), true, "a profile with alloc")
assert(memprof.start("by_sysprof.bin"))
t.equal(sysprof.stop(), true, "misc.sysprof.stop stops any profile")

-- -- Wrong use -------------------------------------------------------------

for _, argument in ipairs({ 5, true, print, { path = 5 }, { path = "a\0b" }, { period = 0 },
			    { period = -1 }, { period = 1.5 }, { period = "many" } }) do
  refused("start(" .. tostring(argument) .. ")", "profiler misuse", memprof.start(argument))
end
refused("a huge period", "the period of 'alloc' is 1099511627777 bytes; it must be between 1 and",
	memprof.start({ period = 2 ^ 40 + 1, path = "other.bin" }))
for _, key in ipairs({ "clock", "mode" }) do
  refused(key, "misc.memprof.start takes no clock and no mode: it samples the event alloc; "
	  .. "misc.sysprof.start takes them", memprof.start({ [key] = "C" }))
end
refused("an unknown key", "profiler misuse: option 'perod' is unknown (did you mean 'period'?); expected path, ",
	memprof.start({ perod = 5, path = "other.bin" }))
refused("a call with a colon", "profiler misuse: argument #1 is the library itself; expected a table of options; call "
	.. "start with '.', not with ':'", memprof:start("other.bin"))
for key, shown in pairs({ warm = "warm", [5] = "number" }) do
  local ok, err = pcall(memprof.count, allocate, 1, { warmup = 1, [key] = 1 })
  t.equal(ok, false, "count: an unknown option")
  t.contains(err, ("option '%s' is unknown; expected warmup"):format(shown), "count: an unknown option")
end
refused("no folder", "no/such.bin: No such file", memprof.start("no/such.bin"))
refused("stop after wrong starts", "profiler is not running", memprof.stop())
t.equal(io.open("other.bin"), nil, "no file of a failed start")
t.finish()
