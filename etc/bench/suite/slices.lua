----------------------------------------------------------------------------
-- Slices of the benchmark suite: measures one program with and without profilers.
--
-- The program runs in this process all the time. So its compiled code and the layout of
-- its memory are the same with and without. Arguments: KEY=VALUE, see measure.lua.
--
-- kinds=A,B,C: sessions take turns, A B C C B A. Each is a start, session_slices slices,
-- and a stop.
-- blocks=A:4:2,B:3:1: for A, 2 slices without profiler, and a session with 4 pairs of
-- slices: one with the handler of A, one with a handler that does nothing. Then B.
--
-- Prints these lines, times in ns, - for an unknown value:
--
--   slice KIND CPU WALL CYCLES SAMPLES HANDLER   the last two by the profiler. In blocks
--                                           KIND is A, "bare A" or "off A"
--   session KIND N PROFILED RETURNED        the profile N: CPU time from start to stop,
--                                           and the result of stop
--   collected KIND CPU WALL N               the profile N, of job.collect seconds
--   parent CPU                              of the parent process, in all slices
--   counted ALLOCATIONS BYTES               of a slice, if job.count is 1
----------------------------------------------------------------------------

local ffi = require("ffi")
local counter = require("counter")
local profilers = require("profilers")
local programs = require("programs")

ffi.cdef "int clock_gettime(int, void *);"

local CLOCK_MONOTONIC, CLOCK_PROCESS_CPUTIME_ID = 1, 2

local job = {}
for _, word in ipairs(arg) do
  local key, value = word:match("^([%w_]+)=(.*)$")
  job[key] = tonumber(value) or value
end

local time = ffi.new("int64_t[2]")

local function nanoseconds(clock)
  ffi.C.clock_gettime(clock, time)
  return tonumber(time[0]) * 1e9 + tonumber(time[1])
end

local cycles = counter.open("cycles") or counter.open("cycles", true) or function() end
local program = assert(programs.by_name(job.program), "no such program")
local kinds, blocks, starts, stops, looks, bares = {}, {}, {}, {}, {}, {}

local function open(kind)
  starts[kind], stops[kind], looks[kind], bares[kind] = profilers.open(job, kind)
  return kind
end

open("off")
for kind in (job.kinds or ""):gmatch("[^,]+") do kinds[#kinds + 1] = open(kind) end
for kind, pairs, offs in (job.blocks or ""):gmatch("([^,:]+):(%d+):(%d+)") do
  blocks[#blocks + 1] = { kind = open(kind), pairs = tonumber(pairs), offs = tonumber(offs) }
end
local parent_clock = job.parent == 1 and profilers.parent_clock()

-- Runs the program until all is compiled. Then computes the iterations of a slice.
local expected = program.run(1)
local warm_till = nanoseconds(CLOCK_MONOTONIC) + job.warm * 1e9
local runs, began = 0, nil
repeat
  began = nanoseconds(CLOCK_PROCESS_CPUTIME_ID)
  assert(program.run(1) == expected)
  runs = runs + 1
until nanoseconds(CLOCK_MONOTONIC) >= warm_till and runs >= 2
local once = nanoseconds(CLOCK_PROCESS_CPUTIME_ID) - began
local iterations = math.max(1, math.floor(job.slice_ms * 1e6 / once + 0.5))
local result = program.run(iterations)
math.randomseed(os.time())

local profiles = 0

local function print_line(...)
  io.write(table.concat({ ... }, " "), "\n")
end

local function number(n)
  return n and ("%.0f"):format(n) or "-"
end

-- Samples so far, and the time of the handler, if the profiler counts them.
local function look(kind)
  if looks[kind] then return looks[kind]() end
end

-- label: printed as the kind.
local function slice(kind, label)
  collectgarbage()
  local samples, handler = look(kind)
  local counted = cycles()
  local wall, cpu = nanoseconds(CLOCK_MONOTONIC), nanoseconds(CLOCK_PROCESS_CPUTIME_ID)
  local same = program.run(iterations) == result
  cpu = nanoseconds(CLOCK_PROCESS_CPUTIME_ID) - cpu
  wall = nanoseconds(CLOCK_MONOTONIC) - wall
  counted = counted and cycles() - counted
  local samples_then, handler_then = look(kind)
  assert(same, "another result while profiled")
  print_line("slice", label, number(cpu), number(wall), number(counted),
	     number(samples and samples_then - samples),
	     number(handler and handler_then - handler))
end

-- The costs of start and stop are not part of a slice: some iterations run in between.
-- Their samples do not count either. Their number is random. Otherwise a regular event,
-- such as a flush of all compiled code, might fall into slices of one kind only.
local function session(kind, slices)
  profiles = profiles + 1
  collectgarbage()
  starts[kind](profiles)
  local cpu = nanoseconds(CLOCK_PROCESS_CPUTIME_ID)
  program.run(math.random(1, math.ceil(iterations / 2)))
  slices()
  cpu = nanoseconds(CLOCK_PROCESS_CPUTIME_ID) - cpu
  print_line("session", kind, profiles, number(cpu), number(stops[kind]()))
end

local function alternate(first, n)
  for i = 1, n do
    local kind = kinds[first and i or n + 1 - i]
    session(kind, function()
      for _ = 1, job.session_slices do slice(kind, kind) end
    end)
  end
end

-- Each pair reverses its order, each round reverses the order of the block. Slices
-- without profiler have the same callers as the others. A program that requests its stack
-- as text, such as errors, spends time on each level and name.
local function block(kind, pairs, offs, first)
  local function without()
    for _ = 1, offs do slice("off", "off " .. kind) end
  end
  if first then session("off", without) end
  session(kind, function()
    for i = 1, 2 * pairs do
      local bare = (math.floor(i / 2) % 2 == 0) ~= first
      bares[kind](bare)
      slice(kind, bare and "bare " .. kind or kind)
    end
    bares[kind](false)
  end)
  if not first then session("off", without) end
end

local function collect(kind, seconds)
  profiles = profiles + 1
  starts[kind](profiles)
  local wall, cpu = nanoseconds(CLOCK_MONOTONIC), nanoseconds(CLOCK_PROCESS_CPUTIME_ID)
  repeat
    assert(program.run(1) == expected)
    local now = nanoseconds(CLOCK_PROCESS_CPUTIME_ID)
  until now - cpu >= seconds * 1e9
  wall, cpu = nanoseconds(CLOCK_MONOTONIC) - wall, nanoseconds(CLOCK_PROCESS_CPUTIME_ID) - cpu
  stops[kind]()
  print_line("collected", kind, number(cpu), number(wall), profiles)
end

-- What a slice allocates, without the compiler's own memory.
local function count()
  local counted = require("misc").memprof.count(function() program.run(iterations) end, 1)
  print_line("counted", number(counted.allocs), number(counted.bytes))
end

local function main()
  if job.count then count() end
  local till = nanoseconds(CLOCK_MONOTONIC) + job.seconds * 1e9
  local parent = parent_clock and nanoseconds(parent_clock)
  local round = 0
  while round < job.rounds_min or nanoseconds(CLOCK_MONOTONIC) < till do
    round = round + 1
    alternate(round % 2 == 1, #kinds)
    for _, b in ipairs(blocks) do block(b.kind, b.pairs, b.offs, round % 2 == 1) end
  end
  if parent then print_line("parent", number(nanoseconds(parent_clock) - parent)) end
  if job.collect then
    for _, kind in ipairs(kinds) do
      if kind ~= "off" and kind ~= "perf" then collect(kind, job.collect) end
    end
  end
end

local ok, why = pcall(main)
if not ok then
  io.stderr:write(tostring(why), "\n")
  os.exit(1)
end
os.exit(0, true)	-- Completes the files.
