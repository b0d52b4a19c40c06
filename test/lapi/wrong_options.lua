-- Each wrong option is refused with nil, one sentence and a number. The sentence names the
-- option, its value and what was expected. No profile starts and no file appears.

local t = require("tools_test")
local sysprof = misc.sysprof

os.remove("sysprof.bin")
os.remove("x.bin")

local function misuse(what, ...)
  local n = select("#", sysprof.start(...))
  local ok, msg, err = sysprof.start(...)
  t.equal(n, 3, what .. ": results")
  t.equal(ok, nil, what)
  t.ok(msg:find("^profiler misuse: [^\n]+ is [^\n]+; expected [^\n]+$"), what .. ": " .. msg)
  t.equal(type(err), "number", what .. ": errno")
  local stopped, why = sysprof.stop()
  t.equal(stopped, nil, what .. " started nothing")
  t.equal(why, "profiler is not running", what)
end

misuse("no argument")
misuse("nil", nil)
misuse("a string", "C")
misuse("a number", 10)
misuse("a function", print)
misuse("no mode", {})
misuse("mode and no table", "D", { mode = "D" })
for _, mode in ipairs({ 1, true, {}, "", "X", "d", "c", "l", "CC", "DC", "C\0", "D ",
			"DEFAULT", "callgraph" }) do
  misuse("mode " .. tostring(mode), { mode = mode, path = "x.bin" })
end
misuse("mode a number that looks right", { mode = 0 })
for _, mode in ipairs({ "D", "L", "C" }) do
  for _, interval in ipairs({ 0, -0.0, -1, -1e300, 0/0, math.huge, -math.huge, 1e300,
			      1e-9, 1e-7, 86400001, "x", "10", true, {} }) do
    misuse(mode .. " interval " .. tostring(interval),
	   { mode = mode, interval = interval, path = "x.bin" })
  end
  for _, path in ipairs({ 1, true, {}, print, "a\0b", "x.bin\0" }) do
    misuse(mode .. " path " .. tostring(path), { mode = mode, path = path })
  end
  misuse(mode .. " path false", { mode = mode, path = false })
  misuse(mode .. " interval false", { mode = mode, interval = false })
  for _, clock in ipairs({ 1, true, {}, false }) do
    misuse(mode .. " clock " .. tostring(clock),
	   { mode = mode, clock = clock, path = "x.bin" })
  end
end

-- interval and hz are two ways to say the same, so only one may be there.
misuse("interval and hz", { mode = "D", interval = 10, hz = 100 })
for name, values in pairs({
  hz = { 0, -1, 0/0, math.huge, 1e300, 1e-9, "100", true, {}, false },
  period = { 0, -1, 0.5, 1.5, 0/0, math.huge, 1e17, "1000", true, {}, false },
  signal = { 0, -1, 1.5, 65, 1000, 0/0, math.huge, true, {}, false, "", "SIG", "PROF",
	     "sigprof", "SIGPROF ", "SIGNONE", "SIGRTMIN+", "SIGRTMIN+x", "SIGRTMIN+99",
	     "SIGRTMIN-1", "SIGRTMAX+1", "SIGRTMIN+3x", "SIGRTMAX-99", "SIGRTMIN +3",
	     "SIGRTMIN+-1", "SIGRTMIN+ 3", "SIGPROF\0" },
  jitter = { 0, 1, "yes", {} },
  flush = { 0, true, {}, "", "VM", "handler", "vm\0" },
  backtracer = { 0, true, {}, "", "unwind", "OWN", "own\0" },
  threads = { 0, true, false, {}, "", "none", "ALL", "all\0" },
  fork = { 0, 1, "yes", {} },
  shared = { 0, 1, "yes", {} },
  clock = { 0, true, false, {}, "cpu\0" },
}) do
  for _, value in ipairs(values) do
    misuse(name .. " " .. tostring(value), { mode = "D", [name] = value, path = "x.bin" })
  end
end

-- An error of a metamethod comes through.
local ok, err = pcall(sysprof.start, setmetatable({},
  { __index = function(_, key) error("no " .. key, 0) end }))
t.equal(ok, false, "error in __index")
t.contains(tostring(err), "no mode", "error in __index")
t.equal(sysprof.stop(), nil, "nothing was started")

t.equal(io.open("sysprof.bin"), nil, "no default file")
t.equal(io.open("x.bin"), nil, "no file")
t.finish()
