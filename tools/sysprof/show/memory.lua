----------------------------------------------------------------------------
-- Memory in the report of a profile: what is live, where the memory of the process is, and when
-- the collector has run.
----------------------------------------------------------------------------

local G = require("sysprof.base.grammar")
local events = require("sysprof.model.events")
local intervals = require("sysprof.model.intervals")
local text = require("sysprof.base.text")
local units = require("sysprof.model.units")

local Z = intervals.Z

local memory = {}

-- Returns the most that can be left without a sample, and how sure that is as a text; nil if that is not known. The VM
-- holds no less.
function memory.unseen(e, held)
  local _, most = events.left_error(e)
  if most and held and held <= most then return held, "" end
  return most, " with 95 % confidence"
end

-- Returns what is left, as a text: the samples, what they stand for with its 95 % error, and what the VM holds. They
-- are drawn, so they may stand for more than it holds.
function memory.left_text(e, whole)
  local unit, held = units.of(e.unit), whole and e.total or nil
  local most, how = memory.unseen(e, held)
  local err, _, second_err = events.left_error(e)
  local s = "no samples"
  if err or e.lacks then
    s = text.plural(e.samples, "sample") .. ", " .. unit.total(e.weight)
    if err then s = ("%s +- %s"):format(s, unit.total(Z * err)) end
  elseif most then
    s = ("%s: up to %s%s"):format(s, unit.total(most), how)
  end
  if held then s = s .. (" of %s that the VM holds"):format(unit.total(held)) end
  if e.lacks then s = s .. ", error unknown: allocations were lost" end
  if err and e.second and second_err > 0 then
    s = ("%s, %.0f +- %.0f %s"):format(s, e.second_weight, Z * second_err, e.second)
  elseif (err or e.lacks) and e.second then
    s = s .. ", " .. text.counted(e.second_weight, e.second)
  end
  if #e.periods == 1 and e.periods[1] > 0 then
    s = ("%s; one in %s asked"):format(s, unit.period(e.periods[1]))
  end
  return s
end

-- Returns a difference of two sums that were not measured together, as a text: memory is never less than nothing.
local function rest_of(unit, v)
  return v < 0 and "about 0 B" or unit.total(v)
end

-- Returns what the VM holds from before the start, as a text.
local function rest_text(e, held)
  local unit, err, most, how = units.of(e.unit), events.left_error(e), memory.unseen(e, held)
  local s = rest_of(unit, held - e.weight)
  if err then return ("%s +- %s"):format(s, unit.total(Z * err)) end
  if e.lacks then return s .. ", error unknown" end
  return most and ("%s to %s%s"):format(unit.total(held - most), s, how) or s
end

-- Returns what the VM holds from before the start; nil if that is not known, or not more than chance.
function memory.rest(e)
  local err, most = events.left_error(e)
  local rest = e.total and e.total - e.weight or 0
  return rest > (err and Z * err or most or 0) and rest or nil
end

-- Appends lines of what is left, and of the rest of what the VM holds.
function memory.add_left(list, e, whole)
  list[#list + 1] = { "event " .. e.name, memory.left_text(e, whole) }
  if whole and e.total then
    list[#list + 1] = { e.name .. ": the rest", rest_text(e, e.total) .. ": from before the start" }
  end
end

-- Returns the sum over processes of a counter that all sessions of a process share.
local function of_processes(profile, id)
  local of_pid, sum = {}, 0
  for _, session in ipairs(profile.sessions) do
    local pid, value = session.meta.pid or "", session.counters[id] or 0
    if value > (of_pid[pid] or 0) then
      sum, of_pid[pid] = sum + value - (of_pid[pid] or 0), value
    end
  end
  return sum
end

-- Appends lines on where the memory of the process is, if the profile knows what the VM holds.
function memory.add_places(list, profile, all_events)
  local held, at_cycle, bytes = 0, 0, units.of(G.SPF_UNIT_BYTES).total
  for _, e in ipairs(all_events) do
    if e.of and e.total then held = held + e.total end
    at_cycle = at_cycle + (e.counters[G.SPF_EVENT_CYCLE_HELD] or 0)
  end
  local resident = of_processes(profile, G.SPF_COUNTER_RESIDENT)
  if held == 0 or resident == 0 then return end
  local mapped, code = of_processes(profile, G.SPF_COUNTER_MAPPED), profile.counters[G.SPF_COUNTER_MCODE] or 0
  local function add(label, value) list[#list + 1] = { "memory: " .. label, value } end
  add("resident", bytes(resident))
  add("VM", bytes(held) .. (at_cycle > 0 and
      ("; %s when the collector's last cycle ended"):format(bytes(at_cycle)) or ""))
  local own = math.max(held, mapped)	-- A host may have an allocator of its own.
  if mapped > 0 then add("free in VM", bytes(own - held)) end
  add("machine code", bytes(code))
  add("others", rest_of(units.of(G.SPF_UNIT_BYTES), resident - own - code) .. ": malloc of C code, libraries, stacks")
end

-- Returns how often the collector has run, and the microseconds from the last time to the end; nil if that is not
-- known.
function memory.cycles(list)
  local cycles, us = 0, nil
  for _, e in ipairs(list) do
    local n = e.counters[G.SPF_EVENT_CYCLES] or 0
    if n > cycles then cycles, us = n, e.counters[G.SPF_EVENT_CYCLE_US] end
  end
  return cycles, us
end

-- Returns when the collector has run, as a text; nil if that is not known.
function memory.collector_text(list)
  local has_held, cycles, us = false, memory.cycles(list)
  for _, e in ipairs(list) do has_held = has_held or e.of and e.total end
  if not has_held then return nil end
  if cycles == 0 then return "no cycle has ended" end
  local s = text.plural(cycles, "cycle")
  return us and ("%s, the last one ended %.3f s before the end"):format(s, us / 1e6) or s
end

return memory
