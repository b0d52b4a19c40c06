----------------------------------------------------------------------------
-- Part "off" of the benchmark suite: the profiler's cost while it is off, against
-- LuaJIT without our files.
--
-- Two processes of one program differ by percents, because of LuaJIT's random numbers
-- and of the places of code and data. So both of a pair get the same random numbers
-- and the same order of LuaJIT's code (layouts.lua). Each gets a new copy of its file.
-- The next pair gets others.
----------------------------------------------------------------------------

local layouts = require("layouts")
local proc = require("proc")
local report = require("report")
local stat = require("stat")

local RUN_SECONDS = 0.03	-- Short: what differs are the places, and each pair has others.
local COPIES = 16		-- Are kept: what a removed one had would be taken again.
local KEYS = { "seconds", "cycles", "instructions" }

local off = {}

-- -- Copies of a program -----------------------------------------------------

local copies = { made = 0 }

-- Returns the path of a new copy, in other pages of memory. All paths have the same
-- length.
local function copy(suite, luajit)
  copies.made = copies.made + 1
  local path = ("%s/copy-%06d"):format(suite.work, copies.made)
  os.remove(("%s/copy-%06d"):format(suite.work, copies.made - COPIES))
  local ok, why = proc.run({ "cp", luajit, path }, { seconds = 20 })
  if not ok then error(why, 0) end
  return path
end

-- -- Runs --------------------------------------------------------------------

-- Runs one process. Returns { seconds=, cycles=, instructions= }, or nil and why.
local function run(suite, luajit, bench, random)
  local out = suite.work .. "/seconds"
  local ok, why = proc.run({ luajit, suite.here .. "/off_state.lua", suite.source,
    bench.program, bench.jit, tostring(bench.iterations) },
    { out = out, err = out .. ".err", seconds = 120,
      env = random and { LD_PRELOAD = suite.random_library, SAME_RANDOM = tostring(random) } })
  if not ok then return nil, why end
  local found, at = {}, 0
  for word in (proc.read(out) or ""):gmatch("%S+") do
    at = at + 1
    found[KEYS[at]] = tonumber(word)
  end
  if not found.seconds then return nil, "no number was printed" end
  return found
end

-- Returns the programs with their iterations, and 1 if both of a pair can get the same
-- random numbers, else nil.
local function prepare(suite, t)
  local list, random = {}, 1
  local probe = { program = suite.programs[1], jit = "on", iterations = 1 }
  local ok, why = run(suite, copy(suite, suite.luajit), probe, random)
  if not ok then
    random = nil
    report.miss(t, "the same random numbers for both", why)
  end
  for _, jit in ipairs({ "off", "on" }) do
    for _, name in ipairs(suite.programs) do
      local bench = { program = name, jit = jit, iterations = 1, ours = {}, plain = {} }
      local once
      once, why = run(suite, suite.luajit, bench, random)
      if once then
	bench.iterations =
	  math.max(1, math.floor(RUN_SECONDS / math.max(once.seconds, 1e-4) + 0.5))
	list[#list + 1] = bench
      else
	report.miss(t, name .. ", JIT " .. jit, why)
      end
    end
  end
  return list, random
end

-- fixed: the programs to run if relink is nil.
local function run_pairs(suite, fixed, relink, list, random, till)
  local round = 0
  repeat
    round = round + 1
    local luajit = relink and assert(relink()) or fixed
    for _, bench in ipairs(list) do
      local order = round % 2 == 1 and { "ours", "plain" } or { "plain", "ours" }
      for _, which in ipairs(order) do
	bench[which][round] =
	  assert(run(suite, copy(suite, luajit[which]), bench, random and round))
      end
    end
  until #list == 0 or proc.now() >= till and round >= 2
end

-- -- Table -------------------------------------------------------------------

local function new_table()
  return report.table("off", "Off", [[
Our build, not profiling, over the same LuaJIT without our files: CPU time, cycles of the processor,
and instructions outside of the kernel. Each run is a process. Each round links both programs again, with
LuaJIT's code at another random place. The row `all` has the means of each round.]], {
    { key = "program", title = "program" }, { key = "jit", title = "JIT" },
    { key = "ratio", title = "CPU, ours / plain", digits = 4, from = 1 },
    { key = "noise", title = "noise, %", digits = 2 },
    { key = "cycles", title = "cycles, ours / plain", digits = 4, from = 1 },
    { key = "cycles_noise", title = "noise, %", digits = 2 },
    { key = "instructions", title = "instructions", digits = 4 },
    { key = "pairs", title = "pairs" },
    { key = "plain_ms", title = "plain, ms", digits = 1 } })
end

local COLUMNS = { seconds = "ratio", cycles = "cycles", instructions = "instructions" }

local function add_row(t, row, ratios)
  for key, column in pairs(COLUMNS) do row[column] = stat.summary(ratios[key]) end
  row.noise, row.pairs = stat.noise(row.ratio), row.ratio.n
  row.cycles_noise = row.cycles and stat.noise(row.cycles)
  row.instructions = row.instructions and row.instructions.median
  t.rows[#t.rows + 1] = row
end

-- The ratios of a value, for pairs in which both have it.
local function ratios_of(bench, key)
  local ratios = {}
  for i, ours in ipairs(bench.ours) do
    local plain = bench.plain[i]
    if ours[key] and plain[key] then ratios[#ratios + 1] = ours[key] / plain[key] end
  end
  return ratios
end

-- The mean of several lists at each index, which is a round. All programs of a round
-- share one layout. So their ratios depend on each other, but rounds are independent.
local function means(lists)
  local result = {}
  for i = 1, lists[1] and #lists[1] or 0 do
    local sum = 0
    for _, list in ipairs(lists) do sum = sum + list[i] end
    result[i] = sum / #lists
  end
  return result
end

local function add_rows(t, list, jit)
  local all = {}
  for _, key in ipairs(KEYS) do all[key] = {} end
  for _, bench in ipairs(list) do
    if bench.jit == jit then
      local ratios = {}
      for _, key in ipairs(KEYS) do
	ratios[key] = ratios_of(bench, key)
	table.insert(all[key], ratios[key])
      end
      add_row(t, { program = bench.program, jit = jit,
	plain_ms = stat.map(bench.plain, function(p) return 1e3 * p.seconds end).median }, ratios)
    end
  end
  if #all.seconds == 0 then return nil end
  for _, key in ipairs(KEYS) do all[key] = means(all[key]) end
  return function() add_row(t, { program = "all", jit = jit }, all) end
end

function off.run(suite, duration, add)
  local t = new_table()
  local plain = suite.build .. "/plain/bin/luajit"
  if not proc.size(plain) then
    report.miss(t, "plain LuaJIT", "no plain/ in the build, configure with -DSYSPROF_BUILD_PLAIN=ON")
    return add(t)
  end
  local till = proc.now() + duration
  local relink, why = layouts.new(suite)
  if not relink then report.miss(t, "other places of the code", why) end
  local list, random = prepare(suite, t)
  run_pairs(suite, { ours = suite.luajit, plain = plain }, relink, list, random, till)
  local all_off, all_on = add_rows(t, list, "off"), add_rows(t, list, "on")
  if all_off then all_off() end
  if all_on then all_on() end
  if #list > 0 and not list[1].plain[1].cycles then
    report.miss(t, "cycles and instructions", "this machine does not let us count them")
  end
  add(t)
end

return off
