-- What is done to a process from outside: it is stopped and goes on, again and again; a
-- tracer has each of its signals and system calls.
-- TIMEOUT: 300

local faults = require("faults")

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

if os.execute("strace -o /dev/null true >/dev/null 2>&1") == 0 then
  for _, scenario in ipairs { "wall", "task", "threads", "fork" } do
    faults.happens { title = "`strace -f`", scenario = scenario, before = "strace -f -o trace.out env" }
  end
else
  print("strace is not there or not allowed: no tracer")
end
faults.finish()
