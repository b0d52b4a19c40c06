----------------------------------------------------------------------------
-- Scenarios: exact stacks of code that runs in known places.
--
-- A scenario has a function, its body. The test calls it repeatedly and samples it in
-- three modes: interpreted, compiled, and compiled again all the time. The scenario
-- lists the possible stacks within the body, as text, root first:
--
--   body@call pcall leaf
--
--   leaf           a function of the scenario's file, by its name there
--   leaf@call      this function at a line with the comment "-- @call"; a number is
--                  that line
--   main(NAME)     main chunk of the chunk NAME; NAME:7 is its function that begins at
--                  line 7
--   string.gsub    a builtin; builtin: one in Lua bytecode, such as table.foreach
--   C:c_call       a C function that Lua calls
--   c:c_burn       another C function. Functions with the prefix c_, and those that the
--                  scenario mentions, must stand exactly where it lists them
--   [C]            C code calls the next function
--   [coroutine]    the next function runs in a coroutine, resumed here
--   [GC] [EXIT]    work of the VM (SPF_WORK_*), if the scenario mentions it
--   x?  x{7}  x{1,7}   perhaps x; seven times; one to seven times
--
-- Every sample within the body must be one of these stacks, complete, with each Lua
-- function at one of its own lines. Every stack of "seen" must occur; a stack of
-- "seen_compiled" must occur in compiled code; a stack of "also" may occur. Samples
-- outside of the body must be within this file. Broken samples do not count, if they
-- are few.
--
-- By hand: SCENARIO_SAMPLES=10000 takes more samples, SCENARIO_MODES=compiled runs
-- only this mode.
----------------------------------------------------------------------------

local expected = require("scenario_expected")
local judge = require("scenario_judge")

local scenario = { SKIPPED = 77 }

local INTERVAL_MS = 0.1
local SAMPLES = tonumber(os.getenv("SCENARIO_SAMPLES")) or 400 -- In each mode.
local SECONDS_MAX = 8		-- CPU time after which fewer are enough.
local BROKEN_SHARE = 0.005	-- Of the samples.
local NO_LINE_SHARE = 0.02	-- Where the interpreter is between two lines.
local ATTEMPTS = 3		-- To have so few broken samples, and
local ATTEMPTS_MAX = 10		-- for rare stacks.

local MODES = { "interpreted", "compiled", "compiling" }

-- -- Counts ------------------------------------------------------------------

local function count(map, key, n) map[key] = (map[key] or 0) + n end

-- Number of samples among n that chance allows for a kind with this true share: the mean
-- of the Poisson distribution, three standard deviations, and two. Chance exceeds it in
-- less than one of a thousand measurements, and in each of ATTEMPTS in one of a billion.
local function at_most(share, n)
  local mean = share * n
  return mean + 3 * math.sqrt(mean) + 2
end

-- Adds the counts of a measurement to a sum.
local function add_counts(sum, c)
  for key, value in pairs(c) do
    if type(value) == "number" then sum[key] = (sum[key] or 0) + value end
  end
  sum.by_stack, sum.bad = sum.by_stack or {}, sum.bad or {}
  for text, n in pairs(c.by_stack) do count(sum.by_stack, text, n) end
  for text, n in pairs(c.bad) do count(sum.bad, text, n) end
  return sum
end

local function unseen(s, mode, c)
  for _, text in ipairs(s.seen) do
    if not c.by_stack[text] then return text end
  end
  for _, text in ipairs(mode == "compiled" and s.seen_compiled or {}) do
    if not c.by_stack[text] then return text end
  end
end

-- -- Running ------------------------------------------------------------------

-- Calls the body until the profile has enough samples.
local function rounds(s, mode, samples)
  local body, round = s.body, s.round
  local till = os.clock() + s.seconds
  repeat
    if mode == "compiling" then jit.flush() end
    if round then round() end
    body()
  until misc.sysprof.report().samples >= samples or os.clock() > till
end

-- Returns the counts of one measurement.
local function measure(s, mode, samples)
  local path = mode .. ".bin"
  collectgarbage()	-- What the harness has left runs no finalizer later.
  collectgarbage()
  if s.before then s.before(mode) end
  assert(misc.sysprof.start({ mode = "C", clock = "wall-signal", path = path,
			      interval = INTERVAL_MS }))
  rounds(s, mode, samples)
  assert(misc.sysprof.stop())
  if s.after then s.after(mode) end
  return judge(s, path)
end

local function verdict(s, mode, c)
  if c.wrong > 0 then return "wrong stacks" end
  local missing = unseen(s, mode, c)
  if missing then return "never seen: " .. missing end
  if mode == "compiled" and s.traced and c.traced == 0 then
    return "no sample in compiled code"
  end
end

-- Returns true if a mode of a scenario is as expected.
local function run_mode(s, mode)
  local sum = {}
  local fault, few
  for attempt = 1, ATTEMPTS_MAX do
    local c = measure(s, mode, SAMPLES)
    add_counts(sum, c)
    fault = verdict(s, mode, sum)
    few = few or c.broken <= at_most(s.broken_share, c.total) and
	  c.no_line <= at_most(NO_LINE_SHARE, c.total)
    if sum.wrong > 0 or (few and not fault) or (attempt >= ATTEMPTS and not few) then break end
  end
  if not fault and not few then fault = "too many samples are incomplete" end
  print(("%-12s %5d samples: %d within, %d outside, %d broken, %d without line, " ..
	 "%d wrong; %d in traces"):format(mode, sum.total, sum.inside, sum.outside,
	sum.broken, sum.no_line, sum.wrong, sum.traced))
  for text, n in pairs(sum.by_stack) do print(("  %6d %s"):format(n, text)) end
  if fault then print("FAIL: " .. fault) end
  for text, n in pairs(sum.bad) do print(("  %6d %s"):format(n, text)) end
  return not fault
end

local function function_line(f) return debug.getinfo(f, "S").linedefined end

-- Runs a scenario and ends the program with its result. Fields of s:
--   body           the function
--   seen, also, seen_compiled   lists of stacks
--   traced         false if LuaJIT does not compile the body
--   modes          modes in which it runs, all if missing
--   broken_share   share of samples that may be broken
--   round          called before each call of the body
--   before, after  called before and after the profile, with the mode
function scenario.run(s)
  local info = debug.getinfo(s.body, "S")
  s.file = info.source:sub(2)
  s.harness = debug.getinfo(1, "S").source:sub(2)
  s.names, s.tags = expected.read_source(s.file)
  s.body_name = assert(s.names[info.linedefined], "body without a name")
  s.traced = s.traced ~= false
  s.also, s.seen_compiled = s.also or {}, s.seen_compiled or {}
  s.seconds = s.seconds or SECONDS_MAX
  s.broken_share = s.broken_share or BROKEN_SHARE
  s.stacks = {}
  for _, list in ipairs({ s.seen, s.seen_compiled, s.also }) do
    for _, text in ipairs(list) do
      s.stacks[#s.stacks + 1] = expected.stack_sides(text)
    end
  end
  local mentioned = {}
  s.works = {}
  for _, stack in ipairs(s.stacks) do
    for work in stack.text:gmatch("%[%u+%]") do s.works[work] = true end
    for name in stack.text:gmatch("[cC]:([%w_]+)") do mentioned[name] = true end
  end
  function s.shown(name) return name:find("^c_") or mentioned[name] end
  s.rounds_name = ("harness:%d"):format(function_line(rounds))
  local good = true
  local wanted = os.getenv("SCENARIO_MODES")
  for _, mode in ipairs(s.modes or MODES) do
    if not wanted or wanted:find(mode, 1, true) then
      jit.flush()
      if mode == "interpreted" then jit.off() else jit.on() end
      good = run_mode(s, mode) and good
    end
  end
  os.exit(good and 0 or 1)
end

function scenario.skip(why)
  print("SKIP: " .. why)
  os.exit(scenario.SKIPPED)
end

-- The library of test/lib/hosts/scenario_c.c: its functions for Lua, and for the FFI.
function scenario.c() return require("scenario_c") end

function scenario.ffi()
  local ffi = require("ffi")
  ffi.cdef([[
    double c_burn(int n);
    double c_burn_outer(int n);
    double c_call_back(double (*f)(double), int n);
  ]])
  return ffi.load(assert(package.searchpath("scenario_c", package.cpath)))
end

-- The harness itself stays interpreted.
jit.off(true, true)

return scenario
