----------------------------------------------------------------------------
-- Endurance test of etc/soak: real workloads in turns, one profile at 10 kHz.
--
--   luajit soak.lua MINUTES
--
-- The first fifth of the time fills caches, so it does not count. Two halves
-- follow. The largest value in the second half must not exceed the largest one in
-- the first by more than chance.
----------------------------------------------------------------------------

local coverage = require("coverage")
local workloads = require("workloads")

local SECONDS = assert(tonumber(arg[1]), "expected minutes") * 60
local LINES = 30
local SLACK_KB = 2048		-- Of resident memory, for the program's own allocator.

local function read_file(path)
  local f = io.open(path)
  local text = f and f:read("*a") or ""
  if f then f:close() end
  return text
end

local function count(text, pattern) return select(2, text:gsub(pattern, "")) end

-- Resident memory of the program without its pages of files, in KB.
local function look()
  collectgarbage()
  collectgarbage()
  local status = read_file("/proc/self/status")
  local list = io.popen("ls /proc/$PPID/fd")
  local fds = count(list:read("*a"), "\n")
  list:close()
  return { rss = tonumber(status:match("RssAnon:%s*(%d+)")), fds = fds,
	   threads = tonumber(status:match("Threads:%s*(%d+)")),
	   timers = count(read_file("/proc/self/timers"), "signal:"),
	   lua = math.floor(collectgarbage("count")) }
end

local function now()
  return tonumber(read_file("/proc/uptime"):match("[%d.]+"))
end

io.stdout:setvbuf("line")
local expected = {}
for i, w in ipairs(workloads.list) do expected[i] = w.run(1) end
look()

print(("%8s %10s %10s %8s %8s %8s %10s %6s %7s %8s"):format("seconds", "samples", "lost",
  "throttled", "RSS KB", "Lua KB", "file KB", "fds", "timers", "threads"))
assert(misc.sysprof.start({ mode = "C", clock = "wall-signal", hz = 10000, path = "soak.bin" }))
local began, failures, seen, due = now(), {}, {}, 0

local function lost_of(r) return r.lost.buffer + r.lost.queue + r.lost.writer end

local function line(seconds)
  local s, r = look(), misc.sysprof.report()
  local f = io.open("soak.bin")
  local kb = f:seek("end") / 1024
  f:close()
  s.seconds = seconds
  seen[#seen + 1] = s
  print(("%8.0f %10.0f %10.0f %8.0f %8d %8d %10.0f %6d %7d %8d"):format(seconds, r.samples, lost_of(r),
    r.throttled, s.rss, s.lua, kb, s.fds, s.timers, s.threads))
end

repeat
  for i, w in ipairs(workloads.list) do
    if w.run(1) ~= expected[i] then failures[1] = w.name .. ": another result" end
  end
  local seconds = now() - began
  if seconds >= due then
    line(seconds)
    due = due + SECONDS / LINES
  end
until seconds >= SECONDS

local ok, message = misc.sysprof.stop()
if not ok then failures[#failures + 1] = message end
local report = misc.sysprof.report()

-- Largest value between two parts of the time.
local function largest(key, from, to)
  local most = 0
  for _, s in ipairs(seen) do
    if s.seconds >= from * SECONDS and s.seconds <= to * SECONDS then
      most = math.max(most, s[key])
    end
  end
  return most
end

for key, slack in pairs { rss = SLACK_KB, fds = 0, timers = 0, threads = 0 } do
  local before, after = largest(key, 0.2, 0.6), largest(key, 0.6, 1)
  if after > before + slack then
    failures[#failures + 1] = ("%s has grown from %d to %d"):format(key, before, after)
  end
end
collectgarbage()
local why = coverage.inconsistency(coverage.read("soak.bin"), report)
if why then failures[#failures + 1] = why end
print(("%.0f samples, %.0f lost and counted"):format(report.samples, lost_of(report)))
for _, text in ipairs(failures) do print("FAIL: " .. text) end
os.exit(#failures == 0 and 0 or 1)
