-- dump of real programs: stacks of threads that compute, stay in compiled code and sleep in C; coroutines; several VMs; a
-- program that is stopped, recorded, or profiled by itself.
-- TIMEOUT: 300

local ffi = require("ffi")
local t = require("tools_test")
local server = require("live_server")

os.execute("rm -rf ./*")

ffi.cdef "unsigned int getuid(void);"
local is_root = ffi.C.getuid() == 0

local COMMAND = ("timeout -k 1 100 '%s' '%s/tools/luajit-sysprof.lua' "):format(t.luajit, t.source)

local function try(arguments)
  local status, out, err = t.shell(COMMAND .. arguments)
  t.ok(not err:find("traceback") and not err:find("internal error"), arguments .. ": " .. err)
  return status, out, err
end

local function content(path)
  local file = io.open(path, "rb")
  local s = file and file:read("*a") or ""
  if file then file:close() end
  return s
end

local function wait_until(what, is_so)
  local limit = server.now() + 60
  while not is_so() do
    if server.now() > limit then return t.ok(false, "never: " .. what) end
    os.execute("sleep 0.02")
  end
end

local all = {}

-- Starts a live script, which makes the file NAME.up when it has begun; returns its PID.
local function start(name, source)
  t.write_file(name, ("local function up() io.open(%q, 'w'):close() end "):format(name .. ".up") .. source)
  os.execute(("LUAJIT_SYSPROF=live '%s' %s >%s.out 2>&1 & echo $! >pid"):format(t.luajit, name, name))
  local pid = tonumber(t.read_file("pid"))
  wait_until(name .. " runs", function() return io.open(name .. ".up") end)
  all[#all + 1] = pid
  return pid
end

-- Dumps; returns the text and the messages.
local function dump(arguments, code)
  local status, out, err = try("dump " .. arguments)
  t.equal(status, code or 0, arguments .. ": status: " .. err)
  return out, err
end

-- Repeats a dump until it has a text: a sample may come where a stack has not what is expected.
local function dump_until(arguments, part)
  local out
  wait_until(arguments .. " has " .. part, function()
    out = dump(arguments)
    return out:find(part, 1, true)
  end)
  return out
end

local loop = start("loop.lua", [[
local x = 0
local function never_left() while true do x = (x + 1) % 7 end end
up()
never_left()
]])
local sleeper = start("sleeper.lua", [[
local ffi = require("ffi")
ffi.cdef "unsigned int sleep(unsigned int);"
local function naps() ffi.C.sleep(1000) return 1 end
up()
naps()
]])
local scheduler = start("scheduler.lua", [[
jit.off()
local function waits(n) while true do coroutine.yield(n) end end
local function job(n) return waits(n) + 1 end
local list = {}
for i = 1, 20 do list[i] = coroutine.create(job) end
local function turns()
  for _, co in ipairs(list) do coroutine.resume(co, 1) end
  return 1
end
local function forever() while true do turns() end end
up()
forever()
]])

-- -- Single programs -------------------------------------------------------

do
  local out, err = dump(loop)
  t.equal(err, "", "a loop: messages")
  t.contains(out, ("process %d: luajit loop.lua\n"):format(loop), "a loop: head")
  t.ok(out:find(("\nthread %d %%([^\n]*%%): running"):format(loop)), "a loop: state: " .. out)
  t.contains(out, "\n    never_left (loop.lua:2) [compiled]\n", "a loop: its stack")
  t.ok(out:find("never_left.*main chunk %(loop%.lua:4%).*_start"), "a loop: innermost first: " .. out)
  t.contains(out, ("coroutines unknown: the VM came to no Lua code outside of compiled code: thread %d stays in " ..
		   "compiled code\n"):format(loop), "a loop: why there are no coroutines")
end
do
  local out = dump_until(sleeper, "waiting: clock_nanosleep, for at least ")
  t.ok(out:find("\n    sleep\n.*\n    [^\n]*sleeper%.lua:3[^\n]*\n    main chunk %(sleeper%.lua:5%)"),
       "a sleeper: its C call and who called it: " .. out)
  t.contains(out, ("outside of compiled code: thread %d waits in clock_nanosleep\n"):format(sleeper), "a sleeper: why")
end
do
  local out = dump(scheduler)
  t.contains(out, ("\nthread %d ("):format(scheduler), "coroutines: the thread")
  t.contains(out, "\n21 coroutines: 1 running", "coroutines: their number")
  t.ok(out:find("\n%d+ suspended\n    coroutine%.yield\n    waits %(scheduler%.lua:2%)\n    job %(scheduler%.lua:3%)\n"),
       "coroutines: where they are: " .. out)
  t.ok(not out:find("unknown:", 1, true), "coroutines: nothing is unknown: " .. out)
end

-- -- Several programs, outputs ---------------------------------------------

do
  local out, err = dump(("%d 99999999 --name=sleeper.lua"):format(loop))
  local _
  t.contains(err, "there is no process 99999999", "two of three")
  t.contains(out, "process " .. loop, "by PID")
  t.contains(out, "process " .. sleeper, "by name")
  dump("-o dump.txt " .. scheduler)
  dump("-o dump.txt " .. loop)
  t.contains(content("dump.txt"), "never_left (loop.lua:2)", "a file of ours is overwritten")
  t.write_file("letter.txt", "a letter")
  _, err = dump("-o letter.txt " .. loop, 1)
  t.contains(err, "cannot overwrite letter.txt: sysprof did not write this file", "a letter is kept")
  _, err = dump("-o page.html " .. loop, 2)
  t.contains(err, "'page.html' has no known ending; expected .txt or .json, or --format", "a wrong ending")
  _, err = dump("nginx", 2)
  t.contains(err, "did you mean 'luajit-sysprof dump --name=nginx'?", "a name")
end
do
  dump(("-o dump.json %d %d"):format(sleeper, scheduler))
  local python = os.execute("command -v python3 >/dev/null") == 0
  local s = content("dump.json")
  t.contains(s, '{"format":"sysprof dump","version":1,"processes":[', "JSON: head")
  t.contains(s, '"state":"waiting","waits_for":"clock_nanosleep"', "JSON: a wait")
  t.contains(s, '"coroutines":21', "JSON: coroutines")
  if python then
    local status, out, err = t.shell([[python3 -c "
import json
d = json.load(open('dump.json'))['processes']
print(d[0]['threads'][0]['frames'][-1]['name'], len(d[0]['vms']), d[1]['vms'][0]['coroutines'], len(d[1]['vms']))"]])
    t.equal(status, 0, "JSON: " .. err)
    t.equal(out, "_start 0 21 1\n", "JSON: content")
  end
end

-- -- Programs that are busy otherwise --------------------------------------

do	-- Another client records it.
  os.execute(("%s record -o other.bin %d >log 2>&1 & echo $! >pid"):format(COMMAND, scheduler))
  wait_until("a recording", function() return content("log"):find("press Ctrl-C to end\n", 1, true) end)
  local out = dump(scheduler)
  t.contains(out, "\nthreads unknown: another client records this process already; 'luajit-sysprof stop' ends that recording\n",
	     "beside a recording")
  t.contains(out, "\n21 coroutines: ", "beside a recording: coroutines")
  try("stop " .. scheduler)
  wait_until("the recording ends", function() return content("log"):find("next: ", 1, true) end)
end
do	-- It profiles itself.
  local own = start("own.lua", [[
jit.off()
assert(misc.sysprof.start { mode = "C", path = "own.bin" })
local function spins() local s = 0 for i = 1, 1e5 do s = s + i end return s end
local function forever() while true do spins() end end
up()
forever()
]])
  local out = dump(own)
  t.contains(out, "\nthreads unknown: the VM is being profiled already\n", "beside a profile")
  t.contains(out, "\n1 coroutines: 1 running\n", "beside a profile: coroutines")
end
do	-- It is stopped.
  os.execute("kill -STOP " .. scheduler)
  wait_until("it is stopped", function() return content(("/proc/%d/stat"):format(scheduler)):find(") T ", 1, true) end)
  local out, err = dump(scheduler, 1)
  t.equal(out, "", "a stopped process: output")
  t.contains(err, ("process %d (scheduler.lua) is stopped by a signal; 'kill -CONT %d'"):format(scheduler, scheduler),
	     "a stopped process")
  os.execute("kill -CONT " .. scheduler)
end

do	-- It is stopped, and ends, in the middle.
  local own = start("own.lua", "up() while true do end")
  local mortal = start("mortal.lua", "up() os.execute('sleep 1') os.exit(0)")
  local out = dump(mortal)
  t.ok(out:find("os%.execute\n") or out:find(" has ended", 1, true), "a program that ends: " .. out)
  os.execute(("(sleep 0.1; kill -STOP %d) &"):format(own))
  local _, text, err = try("dump " .. own)
  t.contains(text .. err, "is stopped by a signal", "stopped in the middle")
end

-- -- In namespaces of its own ----------------------------------------------

if is_root and os.execute("unshare --pid --mount-proc --mount --fork true 2>/dev/null") == 0 then
  -- Its /tmp hides files of this test.
  os.execute(("unshare --pid --mount --mount-proc --fork sh -c 'exec 3<%s 4<scheduler.lua && mount -t tmpfs none /tmp && " ..
	      "LUAJIT_SYSPROF=live exec /proc/self/fd/3 - <&4' >box.out 2>&1 & echo $! >pid"):format(t.luajit))
  local outer, inner = tonumber(t.read_file("pid")), nil
  wait_until("a program in a box", function()
    inner = tonumber(content(("/proc/%d/task/%d/children"):format(outer, outer)):match("%d+") or "")
    return inner and os.execute(("test -S /proc/%d/root/tmp/.luajit-sysprof-0/1"):format(inner)) == 0
  end)
  all[#all + 1], all[#all + 2] = inner, outer
  local out = dump_until(inner, "\n21 coroutines: ")
  t.contains(out, ("\nthread %d ("):format(inner), "in a box: the number that we see")
  t.ok(out:find("forever %(stdin:10%)"), "in a box: its stack: " .. out)
end

-- -- Programs that answer wrongly (test/lib/live_server.lua) ---------------

for _, behaviour in ipairs { "garbage", "silent", "closes", "never_done", "dies", "garbage_file", "empty_file", "done_with_error" } do
  local pid = server.start(behaviour)
  local status, out, err = try("dump " .. pid)
  t.ok(status == 0 or status == 1, behaviour .. ": status")
  t.ok(not (out .. err):find("\27"), behaviour .. ": no control character")
  t.ok((out .. err):find(tostring(pid), 1, true), behaviour .. ": something is told: " .. out .. err)
  all[#all + 1] = pid
end

server.stop(all)
t.finish()
