-- ps, record and stop on real programs: one that computes, one that never leaves compiled code, one asleep in C, children,
-- one that ends, one of another user, one in namespaces of its own.
-- TIMEOUT: 300
-- LONG: 40

local programs = require("live_programs")
local t = require("tools_test")

local start, try = programs.start, programs.try
local LOOP, ASLEEP = programs.LOOP, programs.ASLEEP

os.execute("rm -rf ./*")

-- Records, and returns the messages and the folded stacks.
local function record(arguments, expected)
  os.remove("out.folded")
  local status, out, err = try("record -o out.folded " .. arguments)
  t.equal(status, expected or 0, arguments .. ": status: " .. err)
  t.equal(out, "", arguments .. ": output")
  return err, t.content("out.folded")
end

-- Returns the samples of folded stacks with a name, and of all.
local function samples(folded, name)
  local n, sum = 0, 0
  for stack, count in folded:gmatch("([^\n]*) (%d+)\n") do
    sum = sum + count
    if stack:find(name, 1, true) then n = n + count end
  end
  return n, sum
end

local MIXED = "local kept\nlocal function makes() kept = {} for i = 1, 100 do kept[i] = { i } end end\n" ..
	      "local function works() for i = 1, 1000 do makes() end return 1 end\nlocal ffi = require('ffi')\n" ..
	      "ffi.cdef 'int usleep(unsigned);'\nwhile true do works() ffi.C.usleep(10000) end\n"

local OTHER_USER = 65534

local loop, mixed, asleep = start("loop.lua", LOOP), start("mixed.lua", MIXED), start("asleep.lua", ASLEEP)

local function finds(part, before)
  local status, out, err = try("ps", before)
  t.equal(status, 0, "ps: status: " .. err)
  t.ok(out:find(part), ("ps: expected %s in\n%s"):format(part, out))
end

for name, pid in pairs { loop = loop, mixed = mixed, asleep = asleep } do
  finds(("%d +[%%w_ -]* 1 +%%- +luajit %s%%.lua\n"):format(pid, name))
end

for _, pid in ipairs { loop, mixed, asleep } do finds(pid .. " ", "ulimit -Sn 5; ") end	-- It raises the limit.

local _, folded = record("-d " .. t.window(0.5) .. " " .. loop)
local n, sum = samples(folded, "never_left (loop.lua:1)")
t.ok(n > 0 and n == sum, ("a loop in compiled code: %d of %d samples"):format(n, sum))

local err
err, folded = record("-d 500ms -e wall " .. asleep)
n, sum = samples(folded, "asleep.lua:3")	-- Its name is in a table of the VM, which never answers.
-- Outside of its naps, it turns a loop for some us. A busy machine may take the processor there: a tenth is 50 ms.
t.ok(n > 0 and n > sum * 0.9, ("a program asleep: %d of %d ns: %s"):format(n, sum, err))

_, folded = record("-d " .. t.window(0.5) .. " -e alloc " .. mixed)
n, sum = samples(folded, "makes (mixed.lua:2)")
-- Nothing else allocates, except the compiler: less than 1 MB for some traces, beside hundreds.
t.ok(n > 0 and n > sum * 0.9, ("allocations: %d of %d bytes"):format(n, sum))

-- Only the VM's own thread can begin alloc. Other events do not wait for it.
err, folded = record("-d " .. t.window(0.5) .. " -e cpu,alloc " .. loop)
n, sum = samples(folded, "never_left (loop.lua:1)")
t.ok(n > 0 and n == sum, ("cpu beside alloc in compiled code: %d of %d samples"):format(n, sum))
for _, sentence in ipairs {
  ("process %d (loop.lua): alloc: recording begins when the program runs interpreted Lua code"):format(loop),
  ("process %d (loop.lua): alloc: nothing was recorded: the program waited, stayed in compiled code, or blocks or handles our signal"):format(loop),
  "sysprof: alloc: not recorded: the profiler met no Lua code outside of compiled code\n", "sysprof: live: not recorded: " } do
  t.contains(err, sentence, "cpu beside alloc in compiled code")
end
err = record("-d 300ms -e alloc " .. loop)
t.contains(err, "no samples: the event 'alloc' was not recorded", "alloc in compiled code")
programs.halt(loop)	-- What spins takes the machine's time.

-- The VM comes to Lua code in the middle.
do
  local late = start("late.lua", [[
    local ffi = require("ffi")
    ffi.cdef "int usleep(unsigned);"
    local function fill() local list = {} for i = 1, 100 do list[i] = {} end return list end
    local function makes() for i = 1, 1000 do fill() end end
    local limit = os.time() + 60
    while os.time() < limit do ffi.C.usleep(1500000) for i = 1, 50 do makes() end end
  ]])
  err, folded = record("-d 3s --clock=cpu,alloc/period=4096/ --event=alloc " .. late)
  n, sum = samples(folded, "fill (late.lua:3)")
  t.ok(n > 0 and n > sum * 0.9, ("alloc of a VM that wakes up: %d of %d bytes: %s"):format(n, sum, err))
  programs.stop { late }
end
err = record("-d 300ms -e no_event " .. mixed, 2)
t.contains(err, ("process %d (mixed.lua): 'no_event' is not a clock or event"):format(mixed), "an unknown event")

programs.stop { asleep }

-- Again and again.
for _ = 1, 20 do
  local status, _, message = try("record -d 10ms -o again.bin " .. mixed)
  t.equal(status, 0, "again: " .. message)
end

-- -- Several ---------------------------------------------------------------

local name = programs.unique("twin.lua")
local twin = start(name, MIXED)
local other_twin = start(name, MIXED)
err, folded = record("-d " .. t.window(0.5) .. " --name=" .. name)
t.contains(err, "recording 2 processes for ", "by name")
t.contains(err, "of 2 processes, written to out.folded", "by name: the summary")
t.ok(samples(folded, ("makes (%s:2)"):format(name)) > 0, "by name: samples")
programs.stop { other_twin }
programs.halt(twin)

programs.go_on(loop)
err, folded = record(("-d %s %d %d"):format(t.window(0.5), loop, mixed))
t.ok(samples(folded, "makes (mixed.lua:2)") > 0 and samples(folded, "never_left (loop.lua:1)") > 0, "two: " .. err)
programs.halt(loop)

-- A program that forks after its VM is live.
local parent = start("parent.lua", "local ffi = require('ffi')\nffi.cdef 'int fork(void); int pause(void); int getpid(void);'\n" ..
  "local function child() local s = 0 while true do s = s + 1 end end\n" ..
  "for i = 1, 2 do if ffi.C.fork() == 0 then child() end end\nlocal function waits() ffi.C.pause() return 1 end\nwhile true do waits() end\n")
local children = t.wait_until("two children", function()
  local list = {}
  for pid in t.content(("/proc/%d/task/%d/children"):format(parent, parent)):gmatch("%d+") do list[#list + 1] = tonumber(pid) end
  return #list == 2 and programs.is_live(list[1]) and programs.is_live(list[2]) and list
end)
for _, pid in ipairs(children) do programs.adopt(pid) end
err, folded = record("-d " .. t.window(0.5) .. " --children " .. parent)
t.contains(err, "recording 3 processes", "children")
n, sum = samples(folded, "child (parent.lua:3)")
t.ok(n > 0 and n == sum, ("children: %d of %d samples"):format(n, sum))
programs.stop(children)

-- -- Ends ------------------------------------------------------------------

-- Starts a recording without an end.
local function begin(arguments)
  os.remove("log")
  programs.spawn_for_status(("%s record %s >log.out 2>log"):format(programs.COMMAND, arguments))
  t.wait_until("it records", function() return t.content("log"):find("press Ctrl-C to end\n", 1, true) end)
end

do	-- The program is killed. What it wrote each second is kept.
  local pid = start("mixed.lua", MIXED)
  begin("-o killed.bin " .. pid)
  finds(pid .. " +[%w_ -]* 1 +recording +luajit mixed%.lua\n")
  programs.wait_for_samples(pid, "makes (mixed.lua:2)")
  os.execute("kill -KILL " .. pid)
  t.equal(programs.status(), 3, "a killed program: status: " .. t.content("log"))
  t.contains(t.content("log"), ("process %d (mixed.lua) has ended; what it had written until then is kept"):format(pid), "a killed program")
  t.contains(t.content("log"), "makes (mixed.lua:2)", "a killed program: samples")
end
do	-- By 'stop'.
  programs.go_on(loop)
  begin(("-o stopped.bin %d %d"):format(loop, mixed))
  os.execute(("(%s record -d 100ms -o second.bin %d 2>second.log; echo $? >second.status) &"):format(programs.COMMAND, loop))
  t.wait_until("a second client waits", function()
    return t.content("second.log"):find("another client records it; this recording begins when that one ends", 1, true)
  end)
  local _, _, message = try(("stop %d %d"):format(loop, mixed))
  t.contains(message, ("process %d (loop.lua): 1 recording ended"):format(loop), "stop")
  t.contains(message, ("process %d (mixed.lua): 1 recording ended"):format(mixed), "stop")
  t.equal(programs.status(), 0, "stop: status: " .. t.content("log"))
  t.contains(select(2, t.parse("stopped.bin")), "never_left (loop.lua:1)", "stop: samples")
  t.wait_until("the second client records", function() return t.content("second.status") == "0\n" end)
  t.contains(select(2, t.parse("second.bin")), "never_left (loop.lua:1)", "a second client: samples")
  programs.stop { loop }
end
do	-- A stopped process.
  err = record("-d 100ms " .. twin, 1)
  t.contains(err, ("process %d (%s) is stopped by a signal"):format(twin, name), "a stopped process")
  finds(twin .. " +[%w_ -]* %- +stopped +luajit twin_%d+%.lua\n")
  programs.stop { twin }
end

-- -- Users and namespaces --------------------------------------------------

if programs.can_be_user(OTHER_USER) then
  local status, _, message = try("record -o - " .. mixed, ("setpriv --reuid=%d "):format(OTHER_USER))
  t.equal(status, 1, "another user: status")
  t.contains(message, ("process %d (mixed.lua) belongs to user root; run luajit-sysprof as that user or as root"):format(mixed),
	     "another user")
  local its = start("mixed.lua", MIXED, nil, OTHER_USER)
  _, folded = record("-d " .. t.window(0.5) .. " " .. its)
  t.ok(samples(folded, "makes (mixed.lua:2)") > 0, "root records another user's program")
  local _, out = try("ps")
  t.ok(out:find("PID  USER", 1, true), "ps: users: " .. out)
end

t.write_file("box.lua", MIXED)
local inner = programs.start_in_a_box("box.lua")
if inner then
  err, folded = record("-d " .. t.window(0.5) .. " " .. inner)
  t.contains(err, ("recording process %d ("):format(inner), "in a box")
  t.ok(samples(folded, "makes (stdin:2)") > 0, "in a box: samples: " .. err)
  finds(inner .. " +[%w_ -]* 1 +%- ")
end

programs.finish()
