-- Each clock and event by its name: it starts and reports its name, or fails with one
-- sentence. The default always starts.

local t = require("tools_test")
local sysprof = misc.sysprof
local parse = "'" .. os.getenv("SYSPROF_BUILD") .. "/bin/luajit-parse-sysprof' "

local function work(seconds)
  local till, s = os.clock() + seconds, 0
  repeat
    local list = {}
    for i = 1, 1000 do list[i] = tostring(i) end
    s = s + #table.concat(list)
  until os.clock() > till
  return s
end

-- A message is one line with a sentence on the requested clock.
local function check_message(what, message, code)
  t.equal(type(message), "string", what .. ": message")
  t.ok(#message > 20, what .. ": a sentence: " .. tostring(message))
  t.equal(message:find("\n", 1, true), nil, what .. ": one line")
  t.ok(type(code) == "number" and code > 0, what .. ": errno")
  t.equal(select(2, sysprof.stop()), "profiler is not running", what .. ": not started")
end

-- Always there.
for _, clock in ipairs({ "cpu", "ctimer", "wall-signal" }) do
  for _, mode in ipairs({ "D", "L", "C" }) do
    local what = clock .. ", mode " .. mode
    t.equal(sysprof.start({ mode = mode, clock = clock, interval = 1, path = "c.bin" }), true,
	    what)
    work(0.03)
    local r = sysprof.report()
    t.equal(sysprof.stop(), true, what)
    if clock ~= "cpu" then t.equal(r.clock, clock, what) end
    t.equal(r.asked_hz, 1000, what .. ": asked")
  end
end

-- "cpu" becomes one of two clocks, also at a rate above any tick's.
for _, hz in ipairs({ 50, 1000, 5000 }) do
  t.equal(sysprof.start({ mode = "C", hz = hz, path = "c.bin" }), true, hz .. " Hz")
  work(0.1)
  t.equal(sysprof.stop(), true, hz .. " Hz")
  local r = sysprof.report()
  t.ok(r.clock == "ctimer" or r.clock:find("^task%-clock"),
       hz .. " Hz: clock " .. r.clock)
  t.ok(math.abs(r.asked_hz - hz) < 1e-3 * hz, hz .. " Hz asked: " .. r.asked_hz)
  print(("asked for %d Hz, got %.0f by %s"):format(hz, r.hz, r.clock))
end

-- What may be forbidden or not be there.
for _, clock in ipairs({ "task-clock", "itimer", "page-faults", "minor-faults", "major-faults",
    "context-switches", "cpu-migrations", "alignment-faults", "cycles", "instructions",
    "cache-references", "cache-misses", "branch-instructions", "branch-misses", "rc0",
    "page-faults/period=1/", "page-faults:u/period=10/", "instructions:u", "cycles:pp",
    "cpu,page-faults", "wall-signal,page-faults/period=3/", "ctimer,wall-signal" }) do
  local r = { sysprof.start({ mode = "C", clock = clock, interval = 1, path = "c.bin" }) }
  if r[1] then
    work(0.05)
    local report = sysprof.report()
    t.equal(sysprof.stop(), true, clock)
    local name = clock:gsub("/[^,]*/", "")
    local asked = {}
    for one in name:gmatch("[^,]+") do asked[#asked + 1] = one end
    local used = {}
    for one in report.clock:gmatch("[^,]+") do used[#used + 1] = one end
    t.equal(#used, #asked, clock .. ": as many: " .. report.clock)
    for i, one in ipairs(asked) do
      if one ~= "cpu" then t.contains(used[i], one:match("^[%w-]+"), clock) end
    end
    t.equal((t.shell(parse .. "c.bin")), 0, clock .. ": the reader takes it")
  else
    check_message(clock, r[2], r[3])
    print(clock .. ": " .. r[2])
  end
end

-- Names and forms that nothing has.
for clock, part in pairs({
  [""] = "expected names of clocks", ["CPU"] = "CPU", ["monotonic"] = "monotonic", ["cpu,"] = "empty",
  [",cpu"] = "empty", ["cpu,cpu/period=500000/"] = "twice", ["cpu,nothing"] = "nothing",
  ["cpu:u"] = "modifier", ["page-faults:x"] = "'x'", ["page-faults/period=0/"] = "period",
  ["page-faults/period=x/"] = "period", ["page-faults/period=5"] = "period",
  ["rXYZ"] = "rXYZ", ["cpu,wall-signal,page-faults,r1,r2,r3,r4,r5,r6,r7,r8,r9,ra,rb,rc,rd,re"] = "more than",
}) do
  local what = "'" .. clock .. "'"
  local r = { sysprof.start({ mode = "C", clock = clock, path = "none.bin" }) }
  t.equal(r[1], nil, what)
  check_message(what, r[2], r[3])
  t.contains(r[2], part, what)
  t.equal(io.open("none.bin"), nil, what .. ": no file")
  os.remove("none.bin")
end
local r = { sysprof.start({ mode = "D", hz = 1e6 }) }
t.equal(r[1], nil, "a million a second")
check_message("a million a second", r[2], r[3])

-- Who chooses itimer is told at the start what exec makes of it; others are not.
local _, _, itimer_says = t.shell(("LUAJIT_SYSPROF=clock=itimer,path=c.bin,force '%s' -e 'assert(misc.sysprof.report().limit:find(%q))'")
				  :format(t.luajit, "exec keeps itimer"))
t.contains(itimer_says, "the kernel keeps the clock itimer over exec; SIGPROF ends a program that follows by exec\n", "itimer")
local _, _, cpu_says = t.shell(("LUAJIT_SYSPROF=clock=cpu,path=c.bin,force '%s' -e ''"):format(t.luajit))
t.equal(cpu_says, "", "cpu")
t.finish()
