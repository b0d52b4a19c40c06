----------------------------------------------------------------------------
-- Summary of the benchmark report: its first table, computed from the others. Each row
-- is a goal, with its measurement and whether the goal holds.
----------------------------------------------------------------------------

local report = require("report")
local stat = require("stat")

local summary = {}

local OFF_LOW, OFF_HIGH = 0.995, 1.005
local NGINX_NOISE = 5		-- Percent; with more, equality says little.
local AGREE_LOW, AGREE_HIGH = 0.8, 1.2
local MEMORY_KIB = 2048
local BLOCK_NS = 5
local BUSY = 1e6		-- Allocations a second; with fewer, the cost of one is noise.

local YES, OPEN, NO = "yes", "open", "no"

-- -- Judgements ------------------------------------------------------------

-- Each judges whether a row's 95 % interval is on one side of a bar.

local function below(limit)
  return function(s)
    return s.high < limit and YES or s.low > limit and NO or OPEN
  end
end

local function between(low, high)
  return function(s)
    return s.low >= low and s.high <= high and YES or (s.high < low or s.low > high) and NO or OPEN
  end
end

local function equal(noise_max)
  return function(s)
    if s.high < 1 or s.low > 1 then return NO end
    return stat.noise(s) < noise_max and YES or OPEN
  end
end

-- -- Texts -----------------------------------------------------------------

local function percent(s)
  local noise = stat.noise(s)
  return ("%+.2f %% +/- %s"):format(100 * (s.median - 1), noise and ("%.2f"):format(noise) or "?")
end

local function factor(s)
  return ("%.2f [%.2f, %.2f]"):format(s.median, s.low, s.high)
end

local function rows_of(t, jit)
  local rows = {}
  for _, row in ipairs(t and t.rows or {}) do
    if row.program ~= "all" and (not jit or row.jit == jit) then rows[#rows + 1] = row end
  end
  return rows
end

local function row_where(t, key, value)
  for _, row in ipairs(t and t.rows or {}) do
    if row[key] == value then return row end
  end
end

local function add(t, row)
  if row.measured then t.rows[#t.rows + 1] = row end
end

-- For the rows of programs: the worst by its distance from 1, and how many hold. A row
-- with too few values for an interval is open.
local function over_programs(rows, key, judge, text)
  local count, n, worst, far = { yes = 0, open = 0, no = 0 }, 0, nil, -1
  for _, row in ipairs(rows) do
    local s = row[key]
    if s then
      local verdict = stat.noise(s) and judge(s) or OPEN
      n, count[verdict] = n + 1, count[verdict] + 1
      if math.abs(s.median - 1) > far then worst, far = row, math.abs(s.median - 1) end
    end
  end
  if n == 0 then return nil end
  local holds = count.yes == n and YES or
    ("%d of %d, open %d, no %d"):format(count.yes, n, count.open, count.no)
  return ("%s, JIT %s: %s"):format(worst.program, worst.jit, text(worst[key])), holds
end

-- -- Rows ------------------------------------------------------------------

-- A column of ratios of a table with a row for each program and mode of the JIT.
local function add_ratio(out, t, key, what, bar, judge, remark)
  local worst, holds = over_programs(rows_of(t), key, judge, percent)
  local all = {}
  for _, row in ipairs(t and t.rows or {}) do
    if row.program == "all" and row[key] then
      all[#all + 1] = ("JIT %s %s"):format(row.jit, percent(row[key])) .. (remark and remark(row) or "")
    end
  end
  add(out, { what = what, bar = bar, measured = worst and table.concat(all, "; "), worst = worst,
	     holds = bar and holds })
end

-- Percent that on may add at 1 kHz: a machine that counts no cycles is a slow one.
local function bar_1khz(t)
  return t and t.rows[1] and t.rows[1].added_cycles and 0.3 or 0.5
end

-- The headline: all programs at 1 kHz, beside the old build and beside perf.
local function add_1khz(out, t)
  for _, row in ipairs(t and t.rows or {}) do
    if row.program == "all" then
      local what = "1 kHz, JIT " .. row.jit
      add(out, { what = what .. ", a sample", measured = ("%.2f us"):format(row.sample.median) })
      if row.new_old then
	add(out, { what = what .. ", a sample, new / old", bar = "at most 0.7",
		   measured = ("%.2f"):format(row.new_old),
		   holds = (not stat.noise(row.added_cpu) or stat.is_noise(row.added_cpu, 1)) and OPEN or
			   row.new_old <= 0.7 and YES or NO })
      end
      for _, peer in ipairs({ { "perf", "perf record -g" }, { "jitp", "jit.p" } }) do
	local theirs = row[peer[1]]
	if theirs then
	  add(out, { what = ("%s, on / off, beside %s"):format(what, peer[2]), bar = "not above",
	    measured = ("%s, %s %s"):format(percent(row.cpu), peer[2], percent(theirs)),
	    holds = not stat.noise(theirs) and OPEN or row.cpu.median <= theirs.median and YES or NO })
	end
      end
    end
  end
end

local function add_costs(out, tables)
  local apart = between(OFF_LOW, OFF_HIGH)
  add_ratio(out, tables.off, "ratio", "off, cpu, ours / plain LuaJIT", "less than 0.5 % apart", apart)
  add_ratio(out, tables.off, "cycles", "off, cycles, ours / plain LuaJIT", "less than 0.5 % apart",
    apart, function(row)
      return row.instructions and (" (instructions %.4f)"):format(row.instructions) or ""
    end)
  for _, key in ipairs({ "cpu", "wall", "cycles" }) do
    add_ratio(out, tables["on-default"], key, ("default rate, %s, on / off"):format(key),
	      "below 0.5 %", below(1.005))
  end
  for _, rate in ipairs({ { "1kHz", "1 kHz", bar_1khz(tables["on-1kHz"]) }, { "10kHz", "10 kHz", 3 } }) do
    for _, of in ipairs({ "cpu", "wall", "cycles" }) do
      add_ratio(out, tables["on-" .. rate[1]], "added_" .. of,
		("%s, %s, on / bare signal"):format(rate[2], of),
		("below %g %%"):format(rate[3]), below(1 + rate[3] / 100))
    end
    add_ratio(out, tables["on-" .. rate[1]], "cpu", rate[2] .. ", cpu, on / off", nil, below(1))
  end
end

local function add_alloc(out, t)
  add_ratio(out, t, "hook", "alloc, no sample, cpu, on / off", nil, below(1))
  add_ratio(out, t, "cpu", "alloc, 512 KiB, cpu, on / off", "below 1 %", below(1.01))
  local worst, blocks = nil, {}
  for _, row in ipairs(rows_of(t)) do
    if row.block and row.allocs > BUSY then
      blocks[#blocks + 1] = row.block.median
      if not (worst and worst.block.median >= row.block.median) then worst = row end
    end
  end
  if not worst then return end
  add(out, { what = "alloc, an allocation without a sample", bar = ("at most %d ns"):format(BLOCK_NS),
	     measured = ("%.2f ns (median of the programs)"):format(stat.summary(blocks).median),
	     worst = ("%s, JIT %s: %.2f ns"):format(worst.program, worst.jit, worst.block.median),
	     holds = stat.noise(worst.block) and below(BLOCK_NS)(worst.block) or OPEN })
end

local function add_sample(out, t)
  local rows = rows_of(t)
  local worst, holds = over_programs(rows, "agreement", between(AGREE_LOW, AGREE_HIGH), factor)
  if not worst then return end
  local ratio = stat.map(rows, function(row) return row.agreement.median end)
  local us = stat.map(rows, function(row) return row.handler end)
  add(out, { what = "one sample at 10 kHz, added / handler's own report", bar = "0.8 to 1.2",
    measured = ("%.2f, handler %.2f us (medians of the programs)"):format(ratio.median, us.median),
    worst = worst, holds = holds })
end

-- The rows of the mode leaf have the same stacks as those of the other mode, in order.
local function add_handler(out, t)
  local modes = { callgraph = {}, leaf = {} }
  for _, row in ipairs(t and t.rows or {}) do
    if modes[row.mode] then table.insert(modes[row.mode], row) end
  end
  local function one(what, row, limit_ns)
    if not row then return end
    add(out, { what = what, bar = ("%g us"):format(limit_ns / 1e3),
	       measured = ("%.2f us"):format(row.whole / 1e3),
	       holds = row.whole <= limit_ns and YES or NO })
  end
  local at
  for i, row in ipairs(modes.callgraph) do
    if row.lua == 20 and row.host == 20 then
      one("handler, 20 Lua + 20 host frames", row, 2000)
      at = i
    elseif row.lua == 100 and row.host == 100 then
      one("handler, 100 + 100 frames", row, 5000)
    end
  end
  if #modes.leaf == #modes.callgraph then
    one("handler, mode L, 20 + 20 frames", modes.leaf[at], 500)
  end
end

local function add_nginx(out, t)
  for i = 1, 3 do
    local row = t and t.rows[i]
    if row and row.ratio then
      add(out, { what = "nginx, " .. row.what .. ", on / off",
	bar = ("equal, noise below %d %%"):format(NGINX_NOISE), measured = percent(row.ratio),
	holds = stat.noise(row.ratio) and equal(NGINX_NOISE)(row.ratio) or OPEN })
    end
  end
end

local function add_session(out, tables)
  local empty = row_where(tables.latency, "process", "empty")
  add(out, { what = "start, stop", measured = empty and empty.stop and
    ("%.2f ms, %.2f ms"):format(empty.start, empty.stop) })
  local memory = row_where(tables.memory, "when", "some seconds later")
  add(out, { what = "memory of a profile", bar = MEMORY_KIB .. " KiB",
    measured = memory and ("%.0f KiB"):format(memory.kib.median),
    holds = memory and (memory.kib.high <= MEMORY_KIB and YES or NO) })
  local rates, by_rate = {}, {}
  for _, row in ipairs(tables.stream and tables.stream.rows or {}) do
    if not by_rate[row.rate] then
      by_rate[row.rate] = {}
      rates[#rates + 1] = row.rate
    end
    table.insert(by_rate[row.rate], row.second)
  end
  for _, rate in ipairs(rates) do
    add(out, { what = "stream, " .. rate,
      measured = ("%.1f KB/s"):format(stat.summary(by_rate[rate]).median / 1e3) })
  end
  local kept = row_where(tables.reader, "stream", "kept")
  add(out, { what = "reader", measured = kept and
    ("%.0f MB/s, %.1f million samples/s"):format(kept.speed.median, kept.samples.median) })
end

local function cheaper(a, b)
  return a and a.median <= b.median and a or b
end

local function add_peers(out, t)
  local cost, full, ours, others = {}, {}, nil, nil
  for _, row in ipairs(t and t.rows or {}) do
    if row.program == "all" then
      if row.cost then
	cost[#cost + 1] = ("%s %.1f us"):format(row.profiler, row.cost.median / 1e3)
	if row.profiler:find("^sysprof") then ours = cheaper(ours, row.cost)
	else others = cheaper(others, row.cost) end
      end
      if row.full then full[#full + 1] = ("%s %.1f %%"):format(row.profiler, row.full.median) end
    end
  end
  if #cost > 0 then
    add(out, { what = "a sample beside other profilers", bar = "the cheapest",
      measured = table.concat(cost, "; "),
      holds = not (ours and others) and OPEN or ours.high < others.low and YES or
	      ours.low > others.high and NO or OPEN })
  end
  if #full > 0 then
    add(out, { what = "samples with the whole Lua stack", measured = table.concat(full, "; ") })
  end
end

-- -- Table -----------------------------------------------------------------

-- Makes the summary from the report's tables so far.
function summary.of(list)
  local tables = {}
  for _, t in ipairs(list) do tables[t.id] = t end
  local out = report.table("summary", "Summary", [[
Each goal, and whether it holds: for the programs of a table, by the 95 % interval of each ratio. Open:
the interval is on both sides of the bar, so more time is necessary. +/-: half of that interval.]], {
    { key = "what", title = "what" }, { key = "bar", title = "bar" },
    { key = "measured", title = "measured, all programs" }, { key = "worst", title = "the worst one" },
    { key = "holds", title = "holds" } })
  add_1khz(out, tables["on-1kHz"])
  add_costs(out, tables)
  add_sample(out, tables["sample-10kHz"])
  add_alloc(out, tables.alloc)
  add_handler(out, tables.handler)
  add_nginx(out, tables.nginx)
  add_session(out, tables)
  add_peers(out, tables.peers)
  return out
end

return summary
