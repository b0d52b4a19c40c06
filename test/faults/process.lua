-- Interventions from outside the process. It is stopped and continued, or frozen and
-- thawed, repeatedly. A tracer sees each of its signals and system calls.
-- TIMEOUT: 900
-- BASE: none, calls of the system fail; faults/memory and faults/live try each LuaJIT
-- WAITS: half of its time
-- LONG: 14

local faults = require("faults")
local shell_status = require("shell_status")

-- It may be continued before it has stopped: so that is done until it has ended.
for _, scenario in ipairs { "wall", "cpu", "task", "threads", "fork" } do
  faults.happens { title = "SIGSTOP, SIGCONT", scenario = scenario, code = [[
    local pid = C.getpid()
    os.execute("(while kill -CONT " .. pid .. "; do sleep 0.03; done) >/dev/null 2>&1 &")
    for _ = 1, 8 do
      C.kill(pid, 19)
      more(2)
    end]] }
end

-- The freezer of control groups, which the process does not notice.
local FREEZE = [[sh "$SYSPROF_SOURCE/test/lib/helpers/freeze.sh"]]
local can = shell_status("sleep 60 & " .. FREEZE .. " $! 1; status=$?; kill $!; exit $status")
if can == 0 then
  for _, scenario in ipairs { "wall", "cpu", "task", "threads" } do
    faults.happens { title = "frozen by its control group", scenario = scenario, before = "rm -f frozen;",
		     code = ([==[
      os.execute([[(%s ]] .. C.getpid() .. " 8; echo $? >frozen.new; mv frozen.new frozen) >/dev/null 2>&1 &")
      local file
      repeat
	more(1)
	file = io.open("frozen")
      until file
      assert(file:read("*l") == "0", "it was not frozen")
      file:close()]==]):format(FREEZE) }
  end
else
  print("no control group can be made that freezes: " .. (can == 77 and "it is not allowed" or "status " .. can))
end

if shell_status("strace -o /dev/null true >/dev/null 2>&1") == 0 then
  for _, scenario in ipairs { "wall", "task", "threads", "fork" } do
    faults.happens { title = "`strace -f`", scenario = scenario, before = "strace -f -o trace.out env" }
  end
else
  print("strace is not there or not allowed: no tracer")
end
faults.finish()
