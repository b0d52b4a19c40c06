----------------------------------------------------------------------------
-- Waits of many threads that switch at many rates, against the kernel's figures: with perf and without, and with threads
-- that end early. A row is a run of truth_switches.c. The time of each thread adds up to its life, and its run delay is in
-- [runnable], within BOUND of its life. Its number of waits is that of its voluntary switches, within BOUND. The profile may say
-- what it does not know: [waits lost] then has the rest, and of a thread that has ended, the time up to the look that noticed
-- it; sentences tell how vague such an end is, and the runnable time before it.
----------------------------------------------------------------------------

local events = require("sysprof.model.events")
local G = require("sysprof.base.grammar")
local leafwork = require("sysprof.model.leafwork")
local reader = require("sysprof.read.reader")
local t = require("tools_test")

local switches = {}

local THREADS, RATES = { 2, 20, 200 }, { 100, 1000, 10000, 100000, 1000000 }	-- The last one: as fast as they can.
local SECONDS, TIMEOUT = 2, 120
local BOUND = 0.01	-- Of a thread's life.
local FEW = 5	-- Waits at the begin and the end of the profile.
local TICK = 10e6	-- CPU time after the last tick of a thread that has ended is in [threads not sampled].
local NO_FILTER = 77	-- Status of the program where perf cannot be refused.

-- Returns how vague something is by a sentence of a profile, in nanoseconds.
local function vague_of(p, sentence)
  local vague = 0
  for ms in ((p.meta.limit or ""):match(sentence .. " is exact to ([%d to]*) ms") or ""):gmatch("%d+") do
    vague = math.max(vague, (ms + 0.5) * 1e6)
  end
  return vague
end

-- Returns the sums of a profile by name of the thread, nanoseconds: { sum =, ready =, lost = }, and numbers of
-- waits, { waits =, unseen = }; how vague the ends of threads are, and their runnable time.
local function sums_of(path)
  local p = assert(reader.read(path))
  assert(p.complete, p:problem_text())
  local wall, sums = assert(events.choose(p, "wall")), {}
  for i, slot in p.slots:each() do
    local factor, name = wall.members[slot.event], slot.thread.name or ""
    if factor then
      local one = sums[name] or { sum = 0, ready = 0, lost = 0, waits = 0, unseen = 0 }
      local what, ns, n = leafwork.of(p, i), slot.weight * factor, slot.event.second and p.slots:second(i) or 0
      sums[name], one.sum = one, one.sum + ns
      if what == G.SPF_WORK_READY then one.ready = one.ready + ns
      elseif what == G.SPF_WORK_LOST then one.lost, one.unseen = one.lost + ns, one.unseen + n
      else one.waits = one.waits + n end
    end
  end
  return sums, vague_of(p, "the end of a thread"), vague_of(p, "the time that a thread was runnable")
end

-- Returns by how much the interval from low to high is outside of another one.
local function outside(low, high, least, most)
  return low > most and low - most or high < least and high - least or 0
end

-- Runs one row. Returns the worst errors of a thread as parts of its life, the lost part of all, switches a second; or nil and
-- a message.
local function run_row(threads, rate, with_perf, ends_early, path)
  local status, out, err = t.shell(("timeout %d '%s' %d %d %d %d %d '%s'"):format(TIMEOUT, os.getenv("TRUTH_SWITCHES"),
    threads, rate, SECONDS, with_perf and 1 or 0, ends_early and 1 or 0, path))
  if status == NO_FILTER then return nil, "skipped: the kernel takes no filter" end
  if status ~= 0 then return nil, ("FAILED, status %d: %s"):format(status, (out .. err):match("FAILED[^\n]*") or err) end
  local sums, vague, vague_ready = sums_of(path)
  local row, life, lost = { sum = 0, ready = 0, waits = 0, wrong = 0, got = 0 }, 0, 0
  for _, thread in ipairs(assert(loadstring("return {" .. out .. "}"))()) do
    local seen = sums[thread.name] or { sum = 0, ready = 0, lost = 0, waits = 0, unseen = 0 }
    for key, off in pairs { sum = outside(seen.sum - (thread.has_ended and seen.lost or 0), seen.sum, thread.least, thread.most),
			    ready = outside(seen.ready, seen.ready + seen.lost, thread.ready_least, thread.ready_most) } do
      if math.abs(off / thread.least) > math.abs(row[key]) then row[key] = off / thread.least end
      -- What nobody saw is missing; it is never too much.
      local slack = thread.has_ended and off < 0 and (key == "sum" and vague + TICK or math.max(vague, vague_ready)) or 0
      row.wrong = math.max(row.wrong, (math.abs(off) - slack) / thread.least)
    end
    local off, lived = outside(seen.waits, seen.waits + seen.unseen, thread.waits_least, thread.waits_most), thread.waits_least
    if math.abs(off) > FEW then
      local part = off / math.max(lived, 1)
      if math.abs(part) > math.abs(row.waits) then row.waits = part end
      -- Nobody knows how often a thread that has ended waited in its lost time.
      local unknown = (seen.lost + math.max(vague, vague_ready)) / thread.least
      local slack = thread.has_ended and off < 0 and unknown > BOUND and lived or 0
      row.wrong = math.max(row.wrong, (math.abs(off) - FEW - slack) / math.max(lived, 1))
    end
    life, lost, row.got = life + thread.least, lost + seen.lost, row.got + thread.runs / thread.least * 1e9
  end
  row.lost = lost / life
  return row
end

-- Runs all rows. Returns whether all are right.
function switches.run()
  local path, is_right = os.tmpname(), true
  print(("%7s %8s %8s  %-7s %-6s %8s %8s %8s %7s  %s"):format("threads", "asked/s", "got/s", "perf", "ended", "sum", "runnable",
    "waits", "lost", "verdict"))
  for _, threads in ipairs(THREADS) do
    for _, rate in ipairs(RATES) do
      for _, with_perf in ipairs { true, false } do
	for _, ends_early in ipairs { false, true } do
	  local row, why = run_row(threads, rate, with_perf, ends_early, path)
	  local is_wrong = row and row.wrong > BOUND
	  local is_off = row and math.max(math.abs(row.sum), math.abs(row.ready), math.abs(row.waits)) > BOUND
	  local head = ("%7d %8d %8.0f  %-7s %-6s"):format(threads, rate, row and row.got or 0, with_perf and "with" or "without",
	    ends_early and "half" or "no")
	  print(row and ("%s %+7.2f%% %+7.2f%% %+7.2f%% %6.2f%%  %s"):format(head, 100 * row.sum, 100 * row.ready,
	    100 * row.waits, 100 * row.lost,
	    is_wrong and "MISSED" or is_off and "said: ends" or row.lost > BOUND and "said: lost" or "ok") or head .. " " .. why)
	  io.flush()
	  is_right = is_right and not is_wrong and (row ~= nil or why:find("^skipped") ~= nil)
	end
      end
    end
  end
  os.remove(path)
  return is_right
end

return switches
