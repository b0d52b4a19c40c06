----------------------------------------------------------------------------
-- Part "peers" of the benchmark suite: sysprof beside other profilers.
--
-- The same program switches each profiler on and off, and requests a sample every
-- millisecond. For some, the kernel's tick allows fewer.
----------------------------------------------------------------------------

local budget = require("budget")
local clocks = require("clocks")
local measure = require("measure")
local proc = require("proc")
local profilers = require("profilers")
local report = require("report")
local stacks = require("stacks")
local stat = require("stat")

local INTERVAL_MS = 1
local QUICK_EVERY = 3	-- With little time, of so many programs only one.
local COLLECT_SHARE = 0.25	-- Of the time, for the profile that is looked at,
local ATTEMPTS = 3
local COLLECT_MIN = 0.1		-- but so many seconds.

local peers = {}

-- -- Profilers -------------------------------------------------------------

-- Fields of a profiler:
-- probe(suite)                 returns nil and why if it is unavailable
-- kind()                       returns its kind of profilers.lua
-- job                          its additions to the job of measure.run
-- samples(suite, kind, result) returns the number of samples in all slices
-- full(suite, kind, result)    returns the result of a function of stacks

local function collected(result, kind)
  return profilers.path(result.folder, kind, result.collected[kind].number)
end

local function sum_of(result, kind, count)
  local sum = 0
  for _, n in ipairs(result.kinds[kind].numbers) do
    sum = sum + count(profilers.path(result.folder, kind, n))
  end
  return sum
end

local function perf_stacks(result)
  return stacks.perf(result.folder .. "/perf.data", result.folder .. "/script")
end

local function perf(name, options)
  return {
    name = name, kind = function() return "perf" end, job = {
      parent = 1,
      around = function(folder) return profilers.perf_command(folder, INTERVAL_MS, options) end,
    },
    probe = function(suite)
      local args = { "perf", "record", "-o", suite.work .. "/probe", "-e", "task-clock" }
      for _, option in ipairs(options) do args[#args + 1] = option end
      args[#args + 1] = "true"
      return proc.run(args, { err = suite.work .. "/probe.err", seconds = 20 })
    end,
    samples = function(_, _, result) return (perf_stacks(result)) or 0 end,
    full = function(_, _, result) return perf_stacks(result) end,
  }
end

-- With the clock task-clock, like perf, and with wall-signal, like jit.p and gperftools.
local function sysprof(clock)
  return {
    name = "sysprof, " .. clock, job = {},
    kind = function() return "ours/" .. INTERVAL_MS .. "/" .. clock end,
    probe = function() return clocks.first({ clock }) end,
    samples = function(_, kind, result) return measure.reports(result, kind).samples end,
    full = function(_, kind, result) return stacks.ours(collected(result, kind)) end,
  }
end

local PRELOAD = "libprofiler.so.0"

local list = {
  sysprof("task-clock"), sysprof("wall-signal"),
  {
    name = "jit.p", kind = function() return "jitp/" .. INTERVAL_MS end, job = {},
    probe = function() return true end,
    samples = function(_, kind, result) return sum_of(result, kind, stacks.jitp) end,
    full = function(_, kind, result) return stacks.jitp(collected(result, kind)) end,
  },
  perf("perf record -g", { "-g" }),
  perf("perf record --call-graph dwarf", { "--call-graph", "dwarf" }),
  {
    name = "gperftools", kind = function() return "gperftools" end, job = {
      env = { LD_PRELOAD = PRELOAD, CPUPROFILE_REALTIME = "1",
	      CPUPROFILE_FREQUENCY = tostring(1000 / INTERVAL_MS) } },
    probe = function(suite)
      local ok = proc.run({ suite.luajit, "-e",
	'local ffi = require("ffi") ffi.cdef "int ProfilerStart(const char *);" ' ..
	"local _ = ffi.C.ProfilerStart" }, { env = { LD_PRELOAD = PRELOAD }, seconds = 20 })
      return ok, PRELOAD .. " is not installed"
    end,
    samples = function(_, kind, result)
      return sum_of(result, kind, stacks.gperftools_samples)
    end,
    full = function(suite, kind, result)
      return stacks.gperftools(collected(result, kind), suite.luajit,
			       result.folder .. "/text")
    end,
  },
}

-- -- Tables ----------------------------------------------------------------

local COLUMNS = {
  { key = "program", title = "program" }, { key = "profiler", title = "profiler" },
  { key = "rate", title = "samples/s" },
  { key = "cpu", title = "CPU, on / off", digits = 4, from = 1 },
  { key = "wall", title = "wall, on / off", digits = 4, from = 1 },
  { key = "cost", title = "a sample, us", digits = 1, from = 0, scale = 1e-3 },
  { key = "bytes", title = "bytes a sample", digits = 1 },
  { key = "full", title = "whole Lua stack, %", digits = 2 },
}

-- Columns of the row of all programs.
local POOLED = { "cpu", "wall", "cost", "full", "bytes", "rate" }

local NOTE = [[
Each profiler takes one sample every millisecond, with JIT. A sample: (CPU on - CPU off) / samples, with
the time of the kernel and of a process of the profiler. Whole Lua stack: samples with all Lua functions
down to the main chunk; for perf and gperftools, samples with any Lua function. These two show C functions:
the interpreter and LuaJIT's own, and addresses without a name for compiled code.]]

-- The samples of perf pay for the time of its process.
local function add_parent(result, kind)
  local k = result.kinds[kind]
  for i, cpu in ipairs(k.cpu) do k.cpu[i] = cpu * (1 + result.parent / k.profiled) end
end

-- Measures one profiler. Some crash the program now and then, so it tries several times.
local function measure_peer(suite, t, peer, program, seconds)
  local kind = peer.kind()
  local job = { program = program, jit = "on", kinds = "off," .. kind,
    seconds = seconds * (1 - COLLECT_SHARE),
    collect = math.max(COLLECT_MIN, seconds * COLLECT_SHARE) }
  for key, value in pairs(peer.job) do job[key] = value end
  local result, why
  for attempt = 1, ATTEMPTS do
    result, why = measure.run(suite, job)
    if result then break end
    report.remark(t, "%s, %s, attempt %d of %d: %s", peer.name, program, attempt, ATTEMPTS, why)
  end
  if not result then return nil, why end
  if result.parent then add_parent(result, kind) end
  local off, on = result.kinds.off, result.kinds[kind]
  local rate = peer.samples(suite, kind, result) / on.profiled
  local row = { program = program, profiler = peer.name, rate = rate * 1e9,
    cpu_ratios = stat.ratios(on.cpu, off.cpu), wall_ratios = stat.ratios(on.wall, off.wall) }
  row.cpu, row.wall = stat.summary(row.cpu_ratios), stat.summary(row.wall_ratios)
  if rate > 0 then
    row.costs = measure.costs(result, kind, "off", rate)
    row.cost = stat.summary(row.costs)
  end
  local samples, full, bytes = peer.full(suite, kind, result)
  if samples and samples > 0 then
    row.bytes, row.full = bytes / samples, 100 * full / samples
  end
  return row, not samples and full or nil
end

-- All programs; with less time, some, and a note in the table.
local function programs_of(suite, t)
  if not suite.quick or #suite.programs <= QUICK_EVERY then return suite.programs end
  local some = {}
  for i = 1, #suite.programs, QUICK_EVERY do some[#some + 1] = suite.programs[i] end
  report.miss(t, "the other programs", "they are measured only if there is more time")
  return some
end

function peers.run(suite, seconds, add)
  local t = report.table("peers", "Peers", NOTE, COLUMNS)
  local there = {}
  for _, peer in ipairs(list) do
    local ok, why = peer.probe(suite)
    if ok then there[#there + 1] = peer else report.miss(t, peer.name, why) end
  end
  local pools = {}
  for _, key in ipairs(POOLED) do pools[key] = stat.pool() end
  local programs = programs_of(suite, t)
  local time = budget.new(seconds, #there * #programs)
  for _, program in ipairs(programs) do
    for _, peer in ipairs(there) do
      local row, why = measure_peer(suite, t, peer, program, time.next())
      if row then
	pools.cpu.add(peer.name, row.cpu_ratios)
	pools.wall.add(peer.name, row.wall_ratios)
	pools.cost.add(peer.name, row.costs or {})
	row.cpu_ratios, row.wall_ratios, row.costs = nil, nil, nil
	pools.rate.add(peer.name, { row.rate })
	pools.full.add(peer.name, { row.full })
	pools.bytes.add(peer.name, { row.bytes })
	t.rows[#t.rows + 1] = row
      end
      if why then report.miss(t, peer.name .. ", " .. program, why) end
    end
  end
  for _, name in ipairs(pools.cpu.names) do
    local row = { program = "all", profiler = name }
    for _, key in ipairs(POOLED) do row[key] = stat.summary(pools[key][name]) end
    t.rows[#t.rows + 1] = row
  end
  add(t)
end

return peers
