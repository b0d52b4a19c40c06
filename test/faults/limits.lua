-- Low limits of a process, from its start or in mid-stream: few or no descriptors, no
-- queued signals (timers need them), no memory for the program.
-- TIMEOUT: 900
-- BASE: none, calls of the system fail; faults/memory and faults/live try each LuaJIT
-- LONG: 17

local faults = require("faults")

for _, scenario in ipairs { "wall", "task", "events", "threads", "fork" } do
  for limit = 3, 10 do
    faults.happens { title = "RLIMIT_NOFILE", scenario = scenario, limits = "7=" .. limit,
		     errno = "EMFILE", maybe = true }
  end
end
-- No descriptor is left; then there are some again.
for _, scenario in ipairs { "wall", "task", "events", "threads", "shared" } do
  faults.happens { title = "RLIMIT_NOFILE in mid-stream", scenario = scenario, errno = "EMFILE", maybe = true,
		   code = "local old = limit(7, 3) more(50) limit(7, old)" }
end

-- The program runs out of memory, hears it from LuaJIT, and has all of it again.
if not (os.getenv("CFLAGS") or ""):find("sanitize") then
  for _, scenario in ipairs { "wall", "task", "threads" } do
    faults.happens { title = "RLIMIT_AS in mid-stream", scenario = scenario, code = [[
      local pages = io.open("/proc/self/statm"):read("*n")
      local old = limit(9, pages*4096 + 3e7)
      for _ = 1, 3 do
        local ok, why = pcall(function()
          local t = {}
          while true do t[#t + 1] = ("x"):rep(10000) .. #t end
        end)
        assert(not ok and why == "not enough memory", why)
        collectgarbage()
      end
      limit(9, old)]] }
  end
end
for _, scenario in ipairs { "wall", "cpu", "task", "threads" } do
  faults.happens { title = "RLIMIT_SIGPENDING", scenario = scenario, limits = "11=0",
		   errno = "EAGAIN", maybe = true }
end
faults.finish()
