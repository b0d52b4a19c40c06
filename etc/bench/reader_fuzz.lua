-- Rounds of etc/bench/reader_fuzz in one process. Arguments: seed, first round,
-- last round. Prints the peak memory, and the longest time for one stream. If a
-- round fails, the status is 1 and the file "failed" holds its stream.

local ffi = require("ffi")
local mutations = require("mutations")

local SECONDS_MAX = 1
local SECONDS_END = 2		-- SIGPROF then ends the process.

ffi.cdef[[
int clock_gettime(int, void *);
int setitimer(int, const int64_t *, void *);
]]

local function cpu_seconds()
  local t = ffi.new("int64_t[2]")
  ffi.C.clock_gettime(2, t)		-- CLOCK_PROCESS_CPUTIME_ID
  return tonumber(t[0]) + tonumber(t[1]) / 1e9
end

-- Have the kernel end the process unless the next call comes in time.
local LIMIT = ffi.new("int64_t[4]", { 0, 0, SECONDS_END, 0 })

local function limit_time()
  assert(ffi.C.setitimer(2, LIMIT, nil) == 0)	-- ITIMER_PROF
end

-- The file "round" names the round that ended the process.
local round_file = assert(io.open("round", "wb"))

local function note_round(round)
  round_file:seek("set")
  round_file:write(round)
  round_file:flush()
end

local function peak_mib()
  for line in io.lines("/proc/self/status") do
    local kib = line:match("^VmHWM:%s*(%d+)")
    if kib then return tonumber(kib) / 1024 end
  end
end

local function fail(seed, round, s, why)
  local file = assert(io.open("failed", "wb"))
  file:write(s)
  file:close()
  print(("seed %d, round %d: %s"):format(seed, round, why))
  os.exit(1)
end

local seed, first, last = tonumber(arg[1]), tonumber(arg[2]), tonumber(arg[3])
local longest, silent_count = 0, 0
for round = first, last do
  note_round(round)
  limit_time()
  local s, must_notice = mutations.stream(seed, round)
  local start = cpu_seconds()
  local wrong, silent = mutations.try(s, round)
  local seconds = cpu_seconds() - start
  longest = math.max(longest, seconds)
  if silent then silent_count = silent_count + 1 end
  if wrong then
    fail(seed, round, s, wrong)
  elseif must_notice and silent then
    fail(seed, round, s, "the reader noticed nothing")
  elseif seconds > SECONDS_MAX then
    fail(seed, round, s, ("%.1f s of CPU time"):format(seconds))
  end
end
print(("rounds %d to %d: longest %.3f s of CPU time, peak %.1f MiB, %d without a problem")
      :format(first, last, longest, peak_mib(), silent_count))
