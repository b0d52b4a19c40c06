----------------------------------------------------------------------------
-- Profilers of the benchmark suite, to switch on and off in a running program.
--
-- A kind is written NAME, NAME/INTERVAL_MS or NAME/INTERVAL_MS/CLOCK; alloc has no interval:
-- NAME//alloc. Each entry is
-- function(job, interval_ms, clock). It returns start(n), stop() and, if the profiler
-- counts, look(): samples so far, and the time of its handler in ns. Ours also returns
-- bare(on), which makes its signals do nothing. profilers.path gives the file of the
-- n-th profile. slices.lua calls these functions, in the measured process.
----------------------------------------------------------------------------

local ffi = require("ffi")
local proc = require("proc")

local profilers = {}

ffi.cdef [[
void bare_handler_note(void);
int bare_handler_find(void);
void bare_handler_set(int bare);
uint64_t bare_handler_ticks(void);
int ProfilerStart(const char *path);
void ProfilerStop(void);
typedef int pid_t;
pid_t getppid(void);
int clock_getcpuclockid(pid_t pid, int *clock);
]]

local ENDINGS = { ours = "bin", jitp = "txt", gperftools = "prof" }

function profilers.path(folder, kind, n)
  local name = kind:match("^%w+")
  return ("%s/%s-%d.%s"):format(folder, name, n, ENDINGS[name])
end

local entries = {}

-- Returns start, stop, look and bare of a kind.
function profilers.open(job, kind)
  local name, interval, clock = kind:match("^(%w+)/?([%d.]*)/?(.*)$")
  return entries[name](job, tonumber(interval), clock)
end

function entries.off()
  return function() end, function() end
end

-- stop returns the 99th percentile of the handler's time, in ns. While the handler is
-- bare, look returns the number of its signals, and no time.
function entries.ours(job, interval_ms, clock)
  local sysprof = require("misc").sysprof
  local lib = interval_ms and job.bare_library and ffi.load(job.bare_library)
  local options = { mode = "C", clock = clock, interval = interval_ms }
  local is_bare = false
  if lib then lib.bare_handler_note() end
  return function(n)
    options.path = profilers.path(job.folder, "ours", n)
    assert(sysprof.start(options))
    if lib then assert(lib.bare_handler_find() > 0, "no signal has the profiler's handler") end
  end, function()
    assert(sysprof.stop())
    return sysprof.report().handler.p99_us * 1e3
  end, function()
    local report = sysprof.report()
    if is_bare then return tonumber(lib.bare_handler_ticks()) end
    return report.samples, report.samples * report.handler.mean_us * 1e3
  end, function(on)
    is_bare = on
    lib.bare_handler_set(on and 1 or 0)
  end
end

-- With stacks as deep as jit.p allows. A finalizer ends a profile with the program. It
-- would also end the next profile, so stop collects it.
function entries.jitp(job, interval_ms)
  local jitp = require("jit.p")
  return function(n)
    jitp.start("FGi" .. interval_ms, profilers.path(job.folder, "jitp", n))
  end, function()
    jitp.stop()
    collectgarbage()
  end
end

-- LD_PRELOAD has loaded the library.
function entries.gperftools(job)
  return function(n)
    if ffi.C.ProfilerStart(profilers.path(job.folder, "gperftools", n)) == 0 then
      error("ProfilerStart has failed", 0)
    end
  end, function() ffi.C.ProfilerStop() end
end

-- The words before luajit in a command that perf records.
function profilers.perf_command(folder, interval_ms, options)
  assert(proc.run({ "mkfifo", folder .. "/control", folder .. "/answer" }))
  local args = { "perf", "record", "-o", folder .. "/perf.data", "-e", "task-clock",
		 "-c", ("%.0f"):format(interval_ms * 1e6), "-D", "-1",
		 "--control=fifo:" .. folder .. "/control," .. folder .. "/answer" }
  for _, option in ipairs(options) do args[#args + 1] = option end
  args[#args + 1] = "--"
  return args
end

local PERF_ANSWER = "ack\n\0"

-- perf is our parent process. It takes commands from one pipe and answers over another.
function entries.perf(job)
  local control = assert(io.open(job.folder .. "/control", "w"))
  local answer = assert(io.open(job.folder .. "/answer", "r"))
  local function tell(command)
    control:write(command, "\n")
    control:flush()
    local said = answer:read(#PERF_ANSWER)
    if said ~= PERF_ANSWER then error("perf answers " .. tostring(said), 0) end
  end
  return function() tell("enable") end, function() tell("disable") end
end

-- The clock of the CPU time of the parent process.
function profilers.parent_clock()
  local id = ffi.new("int[1]")
  assert(ffi.C.clock_getcpuclockid(ffi.C.getppid(), id) == 0)
  return id[0]
end

return profilers
