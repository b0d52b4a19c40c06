----------------------------------------------------------------------------
-- Sessions of each event against an independent log: are the shares of a profile right, and by no more off than chance?
--
-- A session is a run of truth_program.lua, which logs what its parts did. For each part, z is the error of the profile in
-- standard errors. A row judges the sessions of an event with one setting:
--
-- z rms.  The mean of z*z is 1 if only chance makes errors. Of N sessions with K parts, whose shares have K - 1 degrees of
--         freedom, it has the standard deviation d = sqrt(2 / (N*(K-1))). The bar is RMS_MOST, with few sessions
--         sqrt(1 + Q*d) instead. Samples of alloc are independent, so z rms must not be small, either.
-- bias.   The sum of a part's z over N sessions, divided by sqrt(N), is the mean error in its own standard errors. The row has
--         that of the worst part. The bar is Q.
-- Q.      One mean is beyond 2 standard errors by chance once in 22. A run has m bars: a z rms and K biases of each row. So Q
--         is where m bars together are missed once in 22: each with the probability 1 - (1 - 1/22)^(1/m).
--
-- Ticks. The samples of a part are draws with its true share t of CPU time. A share of weights w has the variance
-- t*(1-t)*S(w*w)/S(w)^2. A tick that keeps to its interval, and parts longer than that, have less.
--
-- Allocations: see alloc_truth.lua. Also the sum of all parts is a part.
--
-- held.   The intervals of the parts (sysprof.model.spread) hold the truth in so many percent of the cases. The bars are
--         94 %, and for alloc 98 %, with few sessions less by Q standard errors of 95 %.
--
-- Waits are measured, not sampled. Their standard error is a resolution. What the profile says that it cannot tell is none of
-- the error.
----------------------------------------------------------------------------

local alloc_truth = require("alloc_truth")
local events = require("sysprof.model.events")
local ffi = require("ffi")
local G = require("sysprof.base.grammar")
local leafwork = require("sysprof.model.leafwork")
local programs = require("accuracy_programs")
local reader = require("sysprof.read.reader")
local spread = require("sysprof.model.spread")
local t = require("tools_test")

ffi.cdef("double erfc(double);")

local sessions = {}

local CHUNK = "truth_parts"	-- Of truth_program.lua.
local RMS_MOST, RMS_LEAST = 1.1, 0.9
local HELD_LEAST, HELD_MOST = 0.94, 0.98
local ONE_BIAS = 2		-- Standard errors that a single mean may be off.
local SAID_SHARE = 0.9		-- Of the sessions: so many must say that an event is not exact here.
-- Of the time that the session waited. By doc/clocks.md, a share of [runnable] takes up to 1.7 % of half a second.
local WAIT_RESOLUTION = 0.01
local COROUTINE_RESOLUTION = 1e-4	-- Of the time that a line waited.
local TIMEOUT = 120		-- Seconds until a session hangs.

-- -- Kinds: each returns z by part, and the numbers of intervals and of those that hold the truth, or nil ------

-- Returns these numbers. truth: amounts by part. weight: of sysprof.model.spread.
local function count_held(p, name, weight, truth)
  local event, slots, list, rows = events.choose(p, name), p.slots, {}, {}
  local its = spread.of(p, event, weight)
  for i, slot in slots:each() do
    local def = event.members[slot.event] and programs.lua_leaf(p, slot, "=" .. CHUNK, list)
    local k = def and def.firstline
    if k and truth[k] then
      rows[k] = rows[k] or { slots = {}, amount = 0 }
      table.insert(rows[k].slots, i)
      rows[k].amount = rows[k].amount + slot[weight]
    end
  end
  local n, held = 0, 0
  for k, row in pairs(rows) do
    local low, high = its:interval(its:row(row.slots), row.amount)
    n, held = n + 1, held + (low <= truth[k] and truth[k] <= high and 1 or 0)
  end
  return n, held
end

local kinds = {}

function kinds.ticks(log, path)
  local p = assert(reader.read(path, { timeline = true, spread = true }))
  assert(p.complete, p:problem_text())
  local part_of, list, weights, sum, squares, truth = {}, {}, {}, 0, 0, 0
  for i, slot in p.slots:each() do
    local def = programs.lua_leaf(p, slot, "=" .. CHUNK, list)
    part_of[i] = def and log.parts[def.firstline] and def.firstline
  end
  for i = 0, p.timeline.n - 1 do
    local s = p.timeline.list[i]
    local k = part_of[s.slot]
    if k then
      weights[k], sum, squares = (weights[k] or 0) + s.weight, sum + s.weight, squares + s.weight * s.weight
    end
  end
  for _, ns in ipairs(log.parts) do truth = truth + ns end
  assert(sum > 0, "no samples")
  local z, us = {}, {}
  for k, ns in ipairs(log.parts) do
    local share = ns / truth
    z[k] = ((weights[k] or 0) / sum - share) / math.sqrt(share * (1 - share) * squares) * sum
    us[k] = ns / 1000
  end
  return z, count_held(p, nil, "weight", us)
end

-- weight: "bytes" or "objects". event: "alloc" or "live".
local function allocations(log, path, weight, event)
  local parts, truth = {}, {}
  for k, rows in ipairs(log.parts) do
    local mean, var = 0, 0
    for _, row in ipairs(rows) do
      local n = event == "live" and row[3] or row[2]
      local bytes, bytes_var, blocks, blocks_var = alloc_truth.moments(n, row[1], log.period)
      if weight == "objects" then bytes, bytes_var = blocks, blocks_var end
      mean, var = mean + bytes, var + bytes_var
    end
    parts[k], truth[k] = { mean = mean, var = var }, mean
  end
  local z = alloc_truth.errors(parts, alloc_truth.sums(path, weight, function(stack)
    return tonumber(stack:match(".*" .. CHUNK .. ":(%d+)"))
  end, event))
  local p = assert(reader.read(path, { spread = true }))
  return z, count_held(p, event, weight == "objects" and "second" or "weight", truth)
end

function kinds.alloc(log, path) return allocations(log, path, "bytes", "alloc") end
function kinds.objects(log, path) return allocations(log, path, "objects", "alloc") end
function kinds.live(log, path) return allocations(log, path, "bytes", "live") end

-- Returns by how much x is outside of an interval.
local function outside(x, least, most)
  return x > most and x - most or x < least and x - least or 0
end

function kinds.waits(log, path)
  local p = assert(reader.read(path))
  assert(p.complete, p:problem_text())
  local all = events.list(p)
  local waits
  for _, e in ipairs(all) do if e.has_waits and not e.parts then waits = e end end
  local list, seen, ready, untold, sum = {}, {}, 0, 0, 0
  for i, slot in p.slots:each() do
    if waits.members[slot.event] then
      local what = leafwork.of(p, i)
      local def = programs.lua_leaf(p, slot, "=" .. CHUNK, list)
      local k = def and def.firstline
      sum = sum + slot.weight
      if what == G.SPF_WORK_READY then ready = ready + slot.weight
      elseif k and log.parts[k] then seen[k] = (seen[k] or 0) + slot.weight
      else untold = untold + slot.weight end
    end
  end
  local off, z = log.real - log.cpu, {}
  local unit = WAIT_RESOLUTION * off
  -- What the profile says that it cannot tell.
  local vague = tonumber((p.meta.limit or ""):match("was runnable is exact to (%d+) ms") or 0) * 1e6
  -- Waits without a place, short ones above all, may belong to any line.
  for k, part in ipairs(log.parts) do
    local waited = part.off - part.ready
    z[k] = outside(seen[k] or 0, waited - untold - vague, waited + vague) / unit
  end
  z.ready = outside(ready, log.ready - vague, log.ready + vague) / unit
  z.sum = (sum - off) / unit
  return z
end

function kinds.coroutines(log)
  local z = {}
  for k, part in ipairs(log.parts) do
    z[k] = part.seen == part.waits and part.off / (COROUTINE_RESOLUTION * part.most) or math.huge
  end
  return z
end

-- -- Events -------------------------------------------------------------------

-- program: kind of truth_program.lua. judges: the title of a row, its kind. is_random: samples are independent.
local EVENTS = {
  { name = "cpu", hz = 100, program = "ticks", judges = { { "cpu 100 Hz", "ticks" } } },
  { name = "cpu", hz = 1000, program = "ticks", judges = { { "cpu 1 kHz", "ticks" } } },
  { name = "ctimer", hz = 100, program = "ticks", judges = { { "ctimer 100 Hz", "ticks" } } },
  { name = "task-clock", hz = 1000, program = "ticks", judges = { { "task-clock 1 kHz", "ticks" } } },
  { name = "wall", hz = 100, program = "waits", judges = { { "wall", "waits" } } },
  { name = "offcpu", hz = 100, program = "waits", judges = { { "offcpu", "waits" } } },
  { name = "coroutine-wait", hz = 100, program = "coroutines", judges = { { "coroutine-wait", "coroutines" } } },
  { name = "alloc", hz = 100, program = "alloc", is_random = true,
    judges = { { "alloc, bytes", "alloc" }, { "alloc, objects", "objects" }, { "live, bytes", "live" } } },
}

sessions.NAMES = {}
for i, e in ipairs(EVENTS) do
  if i == 1 or EVENTS[i - 1].name ~= e.name then table.insert(sessions.NAMES, e.name) end
end

-- Adds the events of a name to a list for run(). Returns whether there are some.
function sessions.add(list, name)
  local n = #list
  for _, e in ipairs(EVENTS) do
    if e.name == name then list[#list + 1] = e end
  end
  return #list > n
end

-- -- Rows ---------------------------------------------------------------------

local function quoted(path) return "'" .. path:gsub("'", "'\\''") .. "'" end

-- Runs a session. Returns its log, or nil and why not.
local function run_session(event, jit, seed, path)
  local program = event.program == "alloc" and os.getenv("TRUTH_HOST") or t.luajit
  local status, out, err = t.shell(("timeout %d %s %s/test/lib/programs/truth_program.lua %s %s %d %s %d %s"):format(TIMEOUT,
    quoted(program), quoted(t.source), event.program, event.name, event.hz, jit, seed, quoted(path)))
  if status ~= 0 then return nil, err:match("[^\n]+") or ("status %d"):format(status) end
  return assert(loadstring(out))()
end

-- Returns a row without sessions. is_random: samples are independent.
function sessions.row(title, jit, is_random)
  return { title = title, jit = jit, is_random = is_random, n = 0, parts = 0, squares = 0, sums = {}, said = 0, limit = "", intervals = 0, held = 0 }
end

-- Adds a session to a row. z: by part. limit: what the profile says against itself. intervals, held: numbers, or nil.
function sessions.add_session(row, z, limit, intervals, held)
  row.intervals, row.held = row.intervals + (intervals or 0), row.held + (held or 0)
  row.n = row.n + 1
  if limit ~= "" then row.said, row.limit = row.said + 1, limit end
  for k, one in pairs(z) do
    if not row.sums[k] then row.sums[k], row.parts = 0, row.parts + 1 end
    row.sums[k], row.squares = row.sums[k] + one, row.squares + one * one
  end
end

-- Runs n sessions of an event. Adds its rows to a list.
local function run_event(rows, event, jit, n, seed, path)
  local mine, first = {}, #rows
  for i, judge in ipairs(event.judges) do
    mine[i] = sessions.row(judge[1], jit, event.is_random)
    rows[#rows + 1] = mine[i]
  end
  for i = seed, seed + n - 1 do
    local log, why = run_session(event, jit, i, path)
    if not log then
      for k = first + 1, #rows do rows[k].failed = ("session %d: %s"):format(i, why) end
      return
    end
    for k, row in ipairs(mine) do
      local z, intervals, held = kinds[event.judges[k][2]](log, path)
      sessions.add_session(row, z, log.limit, intervals, held)
    end
  end
end

-- Returns Q of m bars.
local function quantile(m)
  local chance = 1 - (1 - ffi.C.erfc(ONE_BIAS / math.sqrt(2))) ^ (1 / m)
  local low, high = 0, 10
  for _ = 1, 60 do
    local middle = (low + high) / 2
    if ffi.C.erfc(middle / math.sqrt(2)) > chance then low = middle else high = middle end
  end
  return low
end

local HEAD = "%-16s %-4s %8s  %5s %12s  %-15s %4s %5s  %s"

-- Prints a row with the verdict. Returns whether it is right.
local function judge(row, q)
  local d = math.sqrt(2 / (row.n * (row.parts - 1)))
  local most = math.max(RMS_MOST, math.sqrt(1 + q * d))
  local least = row.is_random and math.min(RMS_LEAST, math.sqrt(math.max(0, 1 - q * d))) or 0
  local rms, bias, worst = math.sqrt(row.squares / (row.n * row.parts)), 0, nil
  for k, sum in pairs(row.sums) do
    local b = sum / math.sqrt(row.n)
    if not worst or math.abs(b) > math.abs(bias) then bias, worst = b, k end
  end
  local held, slack = row.held / row.intervals, q * math.sqrt(0.95 * 0.05 / row.n)
  local holds = row.intervals == 0 or held + slack >= HELD_LEAST and (held - slack <= HELD_MOST or not row.is_random)
  local is_right = rms >= least and rms <= most and math.abs(bias) <= q and holds
  local is_said = row.said >= SAID_SHARE * row.n
  print(HEAD:format(row.title, row.jit, row.n, ("%.2f"):format(rms), ("%.2f to %.2f"):format(least, most),
    ("%+.2f of part %s"):format(bias, worst), ("%.2f"):format(q),
    row.intervals > 0 and ("%.1f%%"):format(100 * held) or "", is_right and "ok" or is_said and "said: " .. row.limit or "MISSED"))
  return is_right or is_said
end

-- Prints rows. Returns whether all meet the bars, or their profiles say that they cannot.
function sessions.judge(rows)
  local bars, all_right = 0, true
  for _, row in ipairs(rows) do bars = bars + row.parts + 1 end
  local q = quantile(bars)
  print(HEAD:format("event", "JIT", "sessions", "z rms", "bars", "bias", "bar", "held", "verdict"))
  for _, row in ipairs(rows) do
    local is_right = false
    if row.failed then
      print(("%-16s %-4s %8d  FAILED, %s"):format(row.title, row.jit, row.n, row.failed))
    else
      is_right = judge(row, q)
    end
    all_right = all_right and is_right
  end
  return all_right
end

-- Runs n sessions of each event of a list with JIT off and on. Returns whether all is right.
function sessions.run(list, n, seed)
  local rows, path = {}, os.tmpname()
  for _, event in ipairs(list) do
    for _, jit in ipairs { "off", "on" } do run_event(rows, event, jit, n, seed, path) end
  end
  os.remove(path)
  return sessions.judge(rows)
end

return sessions
