-- The limits of a process, set low while it is profiled: descriptors from none on, and
-- no queued signal, which timers need.
-- TIMEOUT: 300

local faults = require("faults")

for _, scenario in ipairs { "wall", "task", "events", "threads", "fork" } do
  for limit = 3, 10 do
    faults.happens { title = "RLIMIT_NOFILE", scenario = scenario, limits = "7=" .. limit,
		     errno = "EMFILE", maybe = true }
  end
end
for _, scenario in ipairs { "wall", "cpu", "task", "threads" } do
  faults.happens { title = "RLIMIT_SIGPENDING", scenario = scenario, limits = "11=0",
		   errno = "EAGAIN", maybe = true }
end
faults.finish()
