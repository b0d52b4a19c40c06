----------------------------------------------------------------------------
-- Completeness of a profile's stacks, sample by sample.
--
-- For tests that profile a script from its main chunk. A Lua stack is complete if
-- its outermost Lua function is that main chunk, and if no frame marks it as broken
-- or cut. Needs the modules of the reader.
----------------------------------------------------------------------------

local G = require("sysprof.base.grammar")
local join = require("sysprof.show.join")
local reader = require("sysprof.read.reader")
local view = require("sysprof.show.view")

local coverage = {}

local function count(map, key, n)
  map[key] = (map[key] or 0) + n
end

-- The fault of one side of a sample, or nil. A broken side may be cut, too.
local function fault(p, node, list)
  local all = p.stacks
  local n = all:list(node, list)
  local why = n == 0 and "empty" or nil
  for i = 1, n do
    local kind = all.kind[list[i]]
    if kind == G.SPF_FRAME_BROKEN then
      return join.reason(all.payload[list[i]])
    elseif kind == G.SPF_FRAME_CUT then
      why = "left out"
    end
  end
  return why
end

-- The outermost Lua function must be a main chunk.
local function root_fault(p, node, list)
  local all = p.stacks
  for i = 1, all:list(node, list) do
    if all.kind[list[i]] == G.SPF_FRAME_LFUNC then
      local f = p.lfuncs[all.payload[list[i]]]
      return (not f or f.firstline ~= 0) and "no main chunk" or nil
    end
  end
  return "no main chunk"
end

-- Returns a table of counts: samples, lua and host (complete ones), and by
-- reason lua_faults and host_faults.
function coverage.of(p)
  local c = { samples = 0, lua = 0, host = 0, lua_faults = {}, host_faults = {} }
  local list = {}
  for _, slot in p.slots:each() do
    local n = slot.samples
    c.samples = c.samples + n
    local bad = fault(p, slot.lua, list) or root_fault(p, slot.lua, list)
    if bad then count(c.lua_faults, bad, n) else c.lua = c.lua + n end
    bad = fault(p, slot.host, list)
    if bad then count(c.host_faults, bad, n) else c.host = c.host + n end
  end
  return c
end

-- Samples that the profiler took and the stream lacks.
function coverage.lost(p)
  return (p.counters[G.SPF_COUNTER_LOST_BUFFER] or 0) +
	 (p.counters[G.SPF_COUNTER_LOST_QUEUE] or 0) +
	 (p.counters[G.SPF_COUNTER_LOST_WRITER] or 0)
end

-- Do the profile's counters agree with its samples? Returns nil, or the difference.
-- report is misc.sysprof.report() after the stop.
function coverage.inconsistency(p, report)
  local c = coverage.of(p)
  local lost = coverage.lost(p)
  if not p.complete then return p:problem_text() end
  if c.samples + lost ~= report.samples then
    return ("%d samples in the file and %d lost, %d reported")
	   :format(c.samples, lost, report.samples)
  end
  local sum, states = 0, p:states()
  for name, n in pairs(report.vmstate) do
    sum = sum + n
    local state = G["SPF_VMST_" .. name]
    if n ~= (p.counters[state] or 0) or (states[state] or 0) > n then
      return ("state %s: %d in the file, %d counted, %d reported"):format(name,
	states[state] or 0, p.counters[state] or 0, n)
    end
  end
  if sum ~= report.samples then return "the states do not add up" end
  for reason = 0, G.SPF_BROKEN__MAX - 1 do
    local text = join.reason(reason)
    local seen = c.lua_faults[text] or 0
    local counted = p.counters[G.SPF_COUNTER_LUA_BROKEN + reason] or 0
    if seen > counted or seen + lost < counted then
      return ("Lua stacks broken by '%s': %d in the file, %d counted")
	     :format(text, seen, counted)
    end
  end
end

function coverage.reasons(faults)
  local text = {}
  for reason, n in pairs(faults) do text[#text + 1] = reason .. " " .. n end
  table.sort(text)
  return #text > 0 and table.concat(text, ", ") or "-"
end

coverage.HEADER = ("%-12s %9s %8s %8s  %s"):format("workload", "samples", "Lua %",
  "host %", "reasons (Lua; host)")

function coverage.row(name, c)
  local function percent(n) return c.samples > 0 and 100 * n / c.samples or 0 end
  return ("%-12s %9d %8.3f %8.3f  %s; %s"):format(name, c.samples, percent(c.lua),
    percent(c.host), coverage.reasons(c.lua_faults), coverage.reasons(c.host_faults))
end

-- Prints the n most frequent stacks with an incomplete side: "host", or the Lua
-- side.
function coverage.dump(p, n, side)
  local list, found = {}, {}
  local v = view.new(p, { lines = true })
  local texts = {}
  v:each(function(names, depth)
    local text = {}
    for i = 1, depth do text[i] = names[i].text end
    texts[#texts + 1] = table.concat(text, ";")
  end)
  local at = 0
  for _, slot in p.slots:each() do
    if slot.samples > 0 then
      at = at + 1
      local bad
      if side == "host" then
	bad = fault(p, slot.host, list)
      else
	bad = fault(p, slot.lua, list) or root_fault(p, slot.lua, list)
      end
      if bad then
	found[#found + 1] = { n = slot.samples, text = texts[at], bad = bad,
			      state = slot.state }
      end
    end
  end
  table.sort(found, function(a, b) return a.n > b.n end)
  for i = 1, math.min(n, #found) do
    print(("  %d x state %d, %s: %s"):format(found[i].n, found[i].state,
      found[i].bad, found[i].text))
  end
end

function coverage.read(path)
  local p, err = reader.read(path)
  return assert(p, path .. ": " .. tostring(err))
end

return coverage
