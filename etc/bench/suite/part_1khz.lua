----------------------------------------------------------------------------
-- Part "1kHz" of the benchmark suite, its headline: what a profile at 1 kHz costs.
--
-- The encoder works about once a second. A slice is longer, so the slices with the profiler
-- contain its work. All times are CPU time of the process with all its threads.
----------------------------------------------------------------------------

local clocks = require("clocks")
local measure = require("measure")
local profilers = require("profilers")
local proc = require("proc")
local report = require("report")
local stat = require("stat")

local SLICE_MS = 950	-- The handler encodes a batch that is 850 ms old.
local PAIRS = 9		-- Of slices, for each program and build, if there is time.
local PEER_PAIRS = 4
local SECONDS = 3	-- Start and end of a process.

local part = {}

local NOTE = [[
Each pair of slices has one with the profiler and one whose signals do nothing (bare), in one process.
On / off, bare / off and on / bare: CPU time. A sample: the second smallest time with the profiler less the
second smallest time with bare signals, divided by the samples of a slice; with encoder and writes. New /
old: the same of both builds, which take turns. perf, jit.p: on / off, with the process perf.]]

local COLUMNS = {
  { key = "program", title = "program" }, { key = "jit", title = "JIT" },
  { key = "rate", title = "samples/s" },
  { key = "added_cpu", title = "CPU, on / bare", digits = 4, from = 1 },
  { key = "old_added", title = "old, on / bare", digits = 4, from = 1 },
  { key = "added_cycles", title = "cycles, on / bare", digits = 4, from = 1 },
  { key = "bare", title = "CPU, bare / off", digits = 4, from = 1 },
  { key = "cpu", title = "CPU, on / off", digits = 4, from = 1 },
  { key = "perf", title = "perf -g", digits = 4, from = 1 },
  { key = "jitp", title = "jit.p", digits = 4, from = 1 },
  { key = "sample", title = "a sample, us", digits = 2 },
  { key = "old_sample", title = "old, us", digits = 2 },
  { key = "new_old", title = "new / old", digits = 2 },
}

-- -- Slices ------------------------------------------------------------------

-- The second smallest value: others on the machine make a value larger, never smaller.
local function second(list)
  local sorted = {}
  for i, v in ipairs(list) do sorted[i] = v end
  table.sort(sorted)
  return sorted[math.min(2, #sorted)]
end

local function run(suite, job, rounds)
  job.slice_ms = suite.hasty and suite.slice_ms or SLICE_MS
  job.session_slices, job.rounds_min, job.seconds, job.limit = 1, rounds, 0, 300
  return measure.run(suite, job)
end

-- Measures a build. Returns its figures, or nil and why.
local function measure_build(suite, luajit, rate, program, jit, pairs)
  local of_build = setmetatable({ luajit = luajit }, { __index = suite })
  local result, why = run(of_build, { program = program, jit = jit,
				      blocks = ("%s:%d:2"):format(rate.ours, pairs) }, 1)
  if not result then return nil, why end
  local on, bare = result.kinds[rate.ours], result.kinds["bare " .. rate.ours]
  local off = result.kinds["off " .. rate.ours]
  local samples = stat.sum(on.samples)
  if samples == 0 then return nil, "no samples" end
  local off_cpu = second(off.cpu)
  local function to_off(v) return v / off_cpu end
  local f = { rate = samples / stat.sum(on.cpu) * 1e9,
    lost = measure.reports(result, rate.ours).lost,
    ratios = stat.ratios(on.cpu, bare.cpu), cycle_ratios = stat.ratios(on.cycles, bare.cycles),
    on_ratios = {}, bare_ratios = {},
    us = (second(on.cpu) - second(bare.cpu)) * #on.samples / samples / 1e3 }
  for i = 1, #on.cpu do
    f.on_ratios[i], f.bare_ratios[i] = to_off(on.cpu[i]), to_off(bare.cpu[i])
  end
  return f
end

-- -- Other profilers ---------------------------------------------------------

-- Returns the ratios of CPU time, on / off.
local function measure_peer(suite, kind, program, jit, pairs, around)
  local job = { program = program, jit = jit, kinds = "off," .. kind, around = around }
  if around then job.parent = 1 end
  local result, why = run(suite, job, pairs)
  if not result then return nil, why end
  local off, on = result.kinds.off, result.kinds[kind]
  local parent = result.parent and result.parent / on.profiled or 0
  local ratios = {}
  for i, cpu in ipairs(on.cpu) do ratios[i] = cpu * (1 + parent) / off.cpu[i] end
  return ratios
end

local function perf_around(folder)
  return profilers.perf_command(folder, 1, { "-g" })
end

local function has_perf(suite)
  return proc.run({ "perf", "record", "-o", suite.work .. "/probe", "-e", "task-clock", "-g", "true" },
		  { err = suite.work .. "/probe.err", seconds = 20 })
end

-- -- Part --------------------------------------------------------------------

local function add_ratios(line, key, ratios, pool)
  line[key] = stat.summary(ratios)
  pool.add(key, ratios)
end

local function add_row(suite, t, rate, program, jit, pairs, peers, pool)
  local new, why = measure_build(suite, suite.luajit, rate, program, jit, pairs)
  if not new then return report.miss(t, program .. ", JIT " .. jit, why) end
  local line = { program = program, jit = jit, rate = new.rate, sample = new.us }
  add_ratios(line, "added_cpu", new.ratios, pool)
  add_ratios(line, "added_cycles", new.cycle_ratios, pool)
  add_ratios(line, "cpu", new.on_ratios, pool)
  add_ratios(line, "bare", new.bare_ratios, pool)
  pool.add("sample", { new.us })
  if new.lost > 0 then
    report.remark(t, "%s, JIT %s: %d samples were lost", program, jit, new.lost)
  end
  if suite.old then
    local old, reason = measure_build(suite, suite.old, rate, program, jit, pairs)
    if old then
      add_ratios(line, "old_added", old.ratios, pool)
      line.old_sample, line.new_old = old.us, new.us / old.us
      pool.add("old_sample", { old.us })
    else
      report.miss(t, "the old build, " .. program, reason)
    end
  end
  for _, peer in ipairs(peers) do
    local ratios, reason = measure_peer(suite, peer.kind, program, jit, math.min(pairs, PEER_PAIRS),
					peer.around)
    if ratios then add_ratios(line, peer.key, ratios, pool)
    else report.miss(t, ("%s, %s"):format(peer.name, program), reason) end
  end
  t.rows[#t.rows + 1] = line
end

-- The row of all programs.
local function add_all(t, jit, pool)
  local line = { program = "all", jit = jit }
  for _, name in ipairs(pool.names) do line[name] = stat.summary(pool[name]) end
  if line.sample and line.old_sample then
    line.new_old = stat.sum(pool.sample) / stat.sum(pool.old_sample)
  end
  if line.sample then t.rows[#t.rows + 1] = line end
end

function part.run(suite, seconds, add)
  local t = report.table("on-1kHz", "On at 1 kHz", NOTE, COLUMNS)
  local rates, missing = clocks.rates()
  local rate = rates[2]
  for _, m in ipairs(missing) do report.miss(t, m.what, m.why) end
  if not rate then return add(t) end
  t.title = "On, mode C, " .. rate.title
  local peers, reason = { { key = "jitp", name = "jit.p", kind = "jitp/1" } }, nil
  local there, why = has_perf(suite)
  if there then
    table.insert(peers, 1, { key = "perf", name = "perf record -g", kind = "perf", around = perf_around })
  else
    report.miss(t, "perf record -g", why)
  end
  -- Slices of a program in one mode of the JIT: pairs of the builds, pairs of the others.
  local builds = suite.old and 2 or 1
  local each = seconds / (#suite.programs * 2)
  local pairs = math.floor((each - SECONDS * (builds + #peers)) / (SLICE_MS / 1e3 * 2) / (builds + 1))
  pairs = math.max(1, math.min(PAIRS, pairs))
  local pools = { off = stat.pool(), on = stat.pool() }
  for _, program in ipairs(suite.programs) do
    for _, jit in ipairs({ "off", "on" }) do
      add_row(suite, t, rate, program, jit, pairs, peers, pools[jit])
    end
  end
  for _, jit in ipairs({ "off", "on" }) do add_all(t, jit, pools[jit]) end
  if not suite.old then reason = "no --old=BUILD" end
  if reason then report.miss(t, "new / old", reason) end
  if t.rows[1] and not t.rows[1].added_cycles then
    report.miss(t, "cycles", "this machine does not let us count them")
  end
  add(t)
end

return part
