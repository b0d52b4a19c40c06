-- Results of start, stop and report: success, a second call, without a profile, each
-- mode, limits.

local t = require("tools_test")
local sysprof = misc.sysprof

local STATES = { "INTERP", "LFUNC", "FFUNC", "CFUNC", "GC", "EXIT", "RECORD", "OPT",
		 "ASM", "TRACE" }

local function check_report(what)
  local r = sysprof.report()
  local sum, n = 0, 0
  t.equal(type(r), "table", what)
  t.equal(type(r.samples), "number", what)
  for key, value in pairs(r.vmstate) do
    sum, n = sum + value, n + 1
  end
  for _, state in ipairs(STATES) do
    t.equal(type(r.vmstate[state]), "number", what .. ": " .. state)
  end
  t.equal(n, #STATES, what .. ": states")
  t.equal(sum, r.samples, what .. ": sum")
  return r.samples
end

t.equal(check_report("before any start"), 0, "before any start")
local stop = { sysprof.stop() }
t.equal(select("#", sysprof.stop()), 3, "stop when idle: results")
t.equal(stop[1], nil, "stop when idle")
t.equal(stop[2], "profiler is not running", "stop when idle")
t.equal(type(stop[3]), "number", "stop when idle")

for _, mode in ipairs({ "D", "L", "C" }) do
  local path = "mode_" .. mode .. ".bin"
  os.remove(path)
  t.equal(select("#", sysprof.start({ mode = "?" })), 3, "results")
  t.equal(sysprof.start({ mode = mode, interval = 1, path = path, clock = "wall-signal" }),
	  true, mode .. ": start")
  local again = { sysprof.start({ mode = mode, path = path }) }
  t.equal(again[1], nil, mode .. ": start twice")
  t.equal(again[2], "profiler is running already", mode .. ": start twice")
  t.equal(type(again[3]), "number", mode .. ": start twice")
  t.equal(select(2, sysprof.start({ mode = "?" })),
	  "profiler misuse: option 'mode' is '?'; expected D, L or C", mode .. ": misuse comes first")
  t.work_until(30)
  check_report(mode .. ": while running")
  local stopped = { sysprof.stop() }
  t.equal(#stopped, 1, mode .. ": results of stop")
  t.equal(stopped[1], true, mode .. ": stop")
  local samples = check_report(mode .. ": after the stop")
  t.ok(samples >= 30, mode .. ": samples are kept")
  t.equal(select(2, sysprof.stop()), "profiler is not running", mode .. ": stop twice")
  local file = io.open(path, "rb")
  if mode == "D" then
    t.equal(file, nil, "mode D writes no file")
  else
    t.ok(file, mode .. ": there is a file")
    local s = file:read("*a")
    file:close()
    t.equal(s:sub(1, 4), "ljs\3", mode .. ": prologue")
    local status, out = t.shell("'" .. os.getenv("SYSPROF_BUILD") ..
				"/bin/luajit-parse-sysprof' " .. path)
    t.equal(status, 0, mode .. ": the reader takes it")
    local sum = 0
    for n in out:gmatch(" (%d+)\n") do sum = sum + n end
    t.equal(sum, samples, mode .. ": the file has all samples")
  end
end

-- The whole range of intervals, after a profile of many samples.
local MANY = 2000
t.equal(sysprof.start({ mode = "D", interval = 0.1, clock = "wall-signal" }), true, "many samples")
t.work_until(MANY)
t.equal(sysprof.stop(), true, "many samples")
for _, interval in ipairs({ 0.1, 0.5, 1, 10, 1000, 86400000 }) do
  t.equal(sysprof.start({ mode = "D", interval = interval }), true,
	  "interval " .. interval)
  t.ok(check_report("a new profile") < MANY, "counters begin again")
  t.equal(sysprof.stop(), true, "stop")
end

-- In a coroutine, and stopped from the main one.
t.equal(coroutine.wrap(function() return sysprof.start({ mode = "D" }) end)(), true,
	"start in a coroutine")
t.equal(sysprof.stop(), true, "stop outside")

t.finish()
