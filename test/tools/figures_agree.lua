-- 200 random profiles: the figures of report, info, JSON and the tables do not contradict one another, and parts add up.
-- "luajit figures_agree.lua SEED" repeats one profile.
-- BASE: none, it reads no profile of this LuaJIT

local B = require("stream_builder")
local G = require("sysprof.base.grammar")
local headline = require("sysprof.show.headline")
local json = require("json_decode")
local selfreport = require("sysprof.show.selfreport")
local t = require("tools_test")
local F = B.F

local PROFILES = 200
local FUNCTIONS, THREADS = 6, { 77, 78, 90 }
local NS_OF = { us = 1e3, ns = 1 }
local WORKS = { { G.SPF_WORK_UNKEPT, 0 }, { G.SPF_WORK_OTHERS, 0 }, { G.SPF_WORK_UNSEEN, G.SPF_UNSEEN_NO_TICK } }

-- A list of events: names as recorded, and as asked for.
local LISTS = {
  { { "ctimer", "us", 10000000 } },
  { { "task-clock", "us", 1000000 }, { "page-faults", "count", 100 } },
  { { "ctimer", "us", 4000000 }, { "switch-records", "ns", 0, { { G.SPF_FIELD_COUNT, "waits" } } }, wall = "cpu,offcpu" },
  { { "alloc", "bytes", 524288, { { G.SPF_FIELD_COUNT, "objects" } } } },
  { { "ctimer", "us", 10000000 }, { "alloc", "bytes", 4096, { { G.SPF_FIELD_COUNT, "objects" } } } },
}
local UNITS = { us = G.SPF_UNIT_US, ns = G.SPF_UNIT_NS, count = G.SPF_UNIT_COUNT, bytes = G.SPF_UNIT_BYTES }
local ASKED = { ["task-clock"] = "cpu", ctimer = "cpu", ["switch-records"] = "offcpu" }

-- -- Profiles --------------------------------------------------------------

local function add_counters(b, random, list, sums)
  local counters = { { G.SPF_COUNTER_WALL_US, random(10) * 1e6 }, { G.SPF_COUNTER_HANDLER_NS, random(0, 2000000) },
		     { G.SPF_COUNTER_HANDLER_MAX_NS, random(0, 90000) }, { G.SPF_COUNTER_UNSAMPLED, random(0, 3) },
		     { G.SPF_COUNTER_LOST_QUEUE, random(0, 5) }, { G.SPF_COUNTER_LOST_BUFFER, random(0, 2) } }
  local all = 0
  for i, e in ipairs(list) do
    all = all + sums[i].samples
    local first = G.SPF_COUNTER_EVENT + (i - 1) * G.SPF_COUNTER_EVENT_STEP
    local total = sums[i].weight + random(0, 1) * random(0, 90000)
    table.insert(counters, { first + G.SPF_EVENT_TOTAL, total })
    table.insert(counters, { first + G.SPF_EVENT_SAMPLES, sums[i].samples })
    table.insert(counters, { first + G.SPF_EVENT_THROTTLED, random(0, 4) })
    table.insert(counters, { first + G.SPF_EVENT_SIGNAL_NS, e[2] == "us" and random(0, 500000) or 0 })
  end
  table.insert(counters, { G.SPF_VMST_LFUNC, all })
  b:counters(counters)
end

-- Returns a stream, and the true sums of each event.
local function random_profile(random)
  local list, b, sums, asked = LISTS[random(#LISTS)], B.new(), {}, {}
  b:context(THREADS[1])
  for i, e in ipairs(list) do
    b:event(i - 1, e[1], UNITS[e[2]], e[3], e[4])
    asked[i], sums[i] = ASKED[e[1]] or e[1], { samples = 0, weight = 0 }
  end
  b:meta("clock", table.concat(asked, ","))
  if list.wall then b:meta("wall", list.wall) end
  for fid = 1, FUNCTIONS do b:lfunc(fid, fid, "@x", "f" .. fid) end
  for id = 1, 20 do
    local lua = { F.cbound }
    for depth = 2, random(2, 6) do lua[depth] = F.lfunc(random(FUNCTIONS), depth) end
    local work = random(8) == 1 and WORKS[random(#WORKS)]
    if work then lua[#lua + 1] = F.work(work[1], work[2]) end
    b:stack(id, lua)
  end
  for _ = 1, random(40) do
    if random(4) == 1 then b:context(THREADS[random(#THREADS)], random(0, 5000)) end
    local i, n = random(#list), random(3)
    local weight = random(5) == 1 and random(0, 2e9) or random(0, 200000)
    b:sample(random(20), 0, n, 1, weight, i - 1, list[i][4] and { random(0, 9) } or {})
    sums[i].samples, sums[i].weight = sums[i].samples + n, sums[i].weight + n * weight
  end
  add_counters(b, random, list, sums)
  return b:finish(), sums
end

-- -- Checks ----------------------------------------------------------------

local function numbers_of(s)
  local list = {}
  for number in s:gmatch("%d[%d.]*") do list[#list + 1] = number:gsub("%.$", "") end
  return list
end

-- Each figure of the header stands in the same line of `info`.
local function header_agrees(what, header, report)
  for _, line in ipairs(header) do
    local its = report["event " .. line[1]]
    if its then
      local plain = " " .. its:gsub("[^%d.]+", " ") .. " "
      for _, number in ipairs(numbers_of(line[2])) do
	t.ok(plain:find(" " .. number:gsub("%.", "%%.") .. "%.? "), ("%s: %s of '%s: %s' stands in '%s'"):format(what, number,
	  line[1], line[2]:gsub("%s+", " "), its))
      end
    elseif line[1] == "profiler" then
      local share = line[2]:match("^([%d.]+%%)")
      t.ok(not (share and report.handler) or report.handler:find(share, 1, true), what .. ": share of the profiler")
    elseif line[1] == "profile" then
      local cpu = line[2]:match("([%d.]+ s) of CPU time")
      t.ok(not cpu or report.samples:find(cpu .. " of CPU time", 1, true), what .. ": CPU time")
    end
  end
end

-- The samples of JSON add up to its events, and these to what was built. A share is the quotient of its figures.
local function json_agrees(what, tree, sums)
  local samples, weights = {}, {}
  for _, s in ipairs(tree.samples) do
    samples[s.event] = (samples[s.event] or 0) + 1
    weights[s.event] = (weights[s.event] or 0) + s.weight
  end
  local i, all = 0, 0
  for _, e in ipairs(tree.events) do
    if not e.parts then
      i = i + 1
      t.equal(e.samples, sums[i].samples, what .. ": samples of " .. e.name)
      t.equal(e.weight, sums[i].weight, what .. ": weight of " .. e.name)
      t.equal(samples[e.name] or 0, e.samples, what .. ": single samples of " .. e.name)
      t.equal(weights[e.name] or 0, e.weight, what .. ": their weights")
      all = all + e.samples
    else
      local sum = 0
      for _, other in ipairs(tree.events) do
	if NS_OF[other.unit] and not other.parts then sum = sum + other.weight * NS_OF[other.unit] end
      end
      t.equal(e.weight, sum, what .. ": the sum of the parts")
    end
    local line = tree.report["event " .. e.name]
    local percent = line and line:match("%(([%d.]+)%%%)")
    if percent and e.total then
      t.ok(math.abs(percent - 100 * e.weight / e.total) <= 0.0501, ("%s: %s of %.0f of %.0f"):format(what, line, e.weight,
	e.total))
    end
  end
  t.equal(tonumber(tree.report.samples:match("^%d+")), all, what .. ": all samples")
end

local SCALE = { us = 1e-3, ns = 1e-6 }	-- To what tables show: milliseconds.

-- Self values of a table add up to the event, and its shares to 100 %.
local function table_agrees(what, stream, e)
  local top = t.render(stream, "top", { event = e.name, weight = "event", limit = 0 })
  local sum, percent, rows = 0, 0, 0
  for self, share in top:gmatch("\n *([%d.]+) +([%d.]+) +[%d.]+ +[%d.]+[ %d.]-  [^\n]+") do
    sum, percent, rows = sum + self, percent + share, rows + 1
  end
  local scale = SCALE[e.unit]
  if not scale or e.weight == 0 then return end
  t.ok(math.abs(sum - e.weight * scale) <= 0.0005 * rows + 1e-9 * sum + 1e-6, ("%s: rows of %s: %.6f of %.6f"):format(what, e.name,
    sum, e.weight * scale))
  t.ok(math.abs(percent - 100) <= 0.0501 * rows, ("%s: shares of %s: %.1f %%"):format(what, e.name, percent))
end

local function check(seed)
  local state = seed * 2654435761 % 2^31
  local function random(m, n)	-- As math.random; the same on each base.
    if not n then m, n = 1, m end
    state = (state * 1103515245 + 12345) % 2^31
    return m + math.floor(state / 2^31 * (n - m + 1))
  end
  local stream, sums = random_profile(random)
  local text, profile = t.render(stream, "json")
  if not text then return t.ok(false, ("seed %d: %s"):format(seed, profile)) end
  local what, tree = "seed " .. seed, json.decode(text)
  local report = {}
  for _, line in ipairs(selfreport.lines(profile)) do
    report[line[1]] = line[2]
    t.equal(tree.report[line[1]], line[2], what .. ": report in JSON")
  end
  header_agrees(what, headline.lines(profile, "x.bin"), report)
  json_agrees(what, tree, sums)
  for _, e in ipairs(tree.events) do table_agrees(what, stream, e) end
end

if arg[1] then
  check(tonumber(arg[1]))
else
  for seed = 1, PROFILES do check(seed) end
end

t.finish()
