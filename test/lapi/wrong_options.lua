-- Each wrong option is refused with nil, one sentence and a number. The sentence names the
-- option, its value and what was expected. No profile starts and no file appears.

local t = require("tools_test")
package.path = t.source .. "/tools/?.lua;" .. package.path
local suggest = require("sysprof.base.suggest")
local sysprof = misc.sysprof

os.remove("sysprof.bin")
os.remove("x.bin")

local function misuse(what, ...)
  local n = select("#", sysprof.start(...))
  local ok, msg, err = sysprof.start(...)
  t.equal(n, 3, what .. ": results")
  t.equal(ok, nil, what)
  t.ok(msg:find("^profiler misuse: [^\n]+ is [^\n]+; expected [^\n]+$"), what .. ": " .. msg)
  t.ok(#msg < 310, what .. ": the message is whole: " .. msg)
  t.equal(type(err), "number", what .. ": errno")
  local stopped, why = sysprof.stop()
  t.equal(stopped, nil, what .. " started nothing")
  t.equal(why, "profiler is not running", what)
  return msg
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
			      1e-9, 1e-7, 0.0099, 86400001, "x", "10x", "1us", "25h", "-1", "nan", true, {} }) do
    misuse(mode .. " interval " .. tostring(interval),
	   { mode = mode, interval = interval, path = "x.bin" })
  end
  for _, path in ipairs({ 1, true, {}, print, "a\0b", "x.bin\0" }) do
    misuse(mode .. " path " .. tostring(path), { mode = mode, path = path })
  end
  misuse(mode .. " path false", { mode = mode, path = false })
  misuse(mode .. " interval false", { mode = mode, interval = false })
  for _, clock in ipairs({ 1, true, {}, false, "" }) do
    misuse(mode .. " clock " .. tostring(clock),
	   { mode = mode, clock = clock, path = "x.bin" })
  end
end

-- interval and hz are two ways to say the same, so only one may be there.
misuse("interval and hz", { mode = "D", interval = 10, hz = 100 })
for name, values in pairs({
  hz = { 0, -1, 0/0, math.huge, 1e300, 100001, 1e-9, "100k", "0x10", " 1", "1 ", "", ".", "1e", "inf", true, {}, false },
  period = { 0, -1, 0.5, 1.5, 0/0, math.huge, 1e17, "1.5", "1e17", "8388608G1", "1s", "1kk", "1i", true, {}, false },
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

-- -- Messages --------------------------------------------------------------

-- The sentence holds the key, the value, and what was expected.
for _, case in ipairs({
  { { mode = "callgraph" }, "option 'mode' is 'callgraph'; expected D, L or C" },
  { {}, "option 'mode' is missing; expected D, L or C" },
  { { mode = "D", hz = 1e6 }, "option 'hz' is 1000000; expected a number of samples a second, 0.001 to 100000" },
  { { mode = "D", hz = "99x" }, "option 'hz' is '99x'; expected a number of samples a second" },
  { { mode = "D", interval = 0.001 }, "option 'interval' is 0.001; expected a number of milliseconds, or a time such as 500us, 20ms, 10s or 2m, 10us to 24h" },
  { { mode = "D", interval = 10, hz = 100 }, "option 'hz' is given beside 'interval'; expected one of them" },
  { { mode = "C", path = "" }, "option 'path' is ''; expected the name of a file" },
  { { mode = "C", path = {} }, "option 'path' is a table; expected the name of a file" },
  { { mode = "D", clock = "" }, "option 'clock' is ''; expected names of clocks and events with ',' between them, in LUAJIT_SYSPROF '+'" },
  { { mode = "D", jitter = 1 }, "option 'jitter' is 1; expected true or false" },
  { { mode = "D", "x.bin" }, "key 1 is not a name; expected options by name, such as mode = 'C'" },
  { { mode = "D", [true] = 1 }, "key true is not a name; expected options by name, such as mode = 'C'" },
  { { mode = "D", [{}] = 1 }, "key a table is not a name; expected options by name, such as mode = 'C'" },
  { "x.bin", "argument #1 is 'x.bin'; expected a table of options" },
  { sysprof, "argument #1 is the library itself; expected a table of options; call start with '.', not with ':'" },
  { misc.memprof, "argument #1 is the library itself" },
}) do
  local message = misuse(case[2], case[1])
  t.equal(message:sub(1, 17 + #case[2]), "profiler misuse: " .. case[2], "message")
end

-- -- Unknown keys ----------------------------------------------------------

local _, all = sysprof.start({ nonsense = 1 })
local names = {}
for name in all:match("; expected (.*)$"):gmatch("[%w_]+") do names[#names + 1] = name end

-- All names are those of doc/options.md, in its order.
local documented = {}
for name, doors in t.read_file(t.source .. "/doc/options.md"):gmatch("\n| %[?`([%l_]+)`[^|]*|[^|]*|[^|]*| ([^|]*) |") do
  if doors:find("^Lua") then documented[#documented + 1] = name end
end
t.equal(table.concat(names, " "), table.concat(documented, " "), "the options of doc/options.md")

-- Other words for an option.
local also = { hertz = "hz", frequency = "hz", freq = "hz", rate = "hz", RATE = "hz", ms = "interval", file = "path",
	       filename = "path", output = "path", out = "path", event = "clock", events = "clock",
	       children = "fork", overwrite = "force" }

local function check_unknown(key)
  local message = misuse("key " .. key, { mode = "D", path = "x.bin", [key] = 1 })
  local meant = also[key] or suggest.nearest(key, names)
  t.equal(message, ("profiler misuse: option '%s' is unknown%s; expected %s"):format(key,
    meant and (" (did you mean '%s'?)"):format(meant) or "", table.concat(names, ", ")), "key " .. key)
end

for word in pairs(also) do check_unknown(word) end
for _, key in ipairs({ "x", "", "Mode", "HZ", "hz ", "perod", "treads", "flushes", "prefertick", "prefer-tick",
		       "told_", "paused", "control", "coroutines", "a b" }) do
  check_unknown(key)
end
for _, key in ipairs({ ("x"):rep(24), ("hz"):rep(12) }) do check_unknown(key) end
t.contains(misuse("a long key", { mode = "D", [("hz"):rep(1000)] = 1 }), "option '" .. ("hz"):rep(20) .. "' is unknown;",
	   "a long key")
t.contains(misuse("a zero byte", { mode = "D", ["hz\0"] = 1 }), "option 'hz' is unknown (did you mean 'hz'?);", "a zero byte")

-- Each name with each kind of mistake, made at random: the rule is the reader's.
math.randomseed(7)
for _, name in ipairs(names) do
  for _ = 1, 20 do
    local key = name
    for _ = 1, math.random(3) do
      local at, c = math.random(0, #key), string.char(96 + math.random(26))
      local way = math.random(4)
      local head, tail = key:sub(1, at), key:sub(at + 1)
      key = way == 1 and head .. c .. tail or way == 2 and head .. c .. tail:sub(2) or way == 3 and head .. tail:sub(2)
	    or head .. tail:sub(2, 2) .. tail:sub(1, 1) .. tail:sub(3)
    end
    local known = false
    for _, other in ipairs(names) do known = known or key == other end
    if not known and #key <= 24 and key ~= "told" then check_unknown(key) end
  end
end

-- A table that hides its keys is read by them.
t.equal(sysprof.start(setmetatable({}, { __index = { mode = "D", hertz = 5 } })), true, "options of a metatable")
t.equal(sysprof.stop(), true, "options of a metatable")

-- An error of a metamethod comes through.
local ok, err = pcall(sysprof.start, setmetatable({},
  { __index = function(_, key) error("no " .. key, 0) end }))
t.equal(ok, false, "error in __index")
t.contains(tostring(err), "no mode", "error in __index")
t.equal(sysprof.stop(), nil, "nothing was started")

t.equal(io.open("sysprof.bin"), nil, "no default file")
t.equal(io.open("x.bin"), nil, "no file")
t.finish()
