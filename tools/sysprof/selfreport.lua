----------------------------------------------------------------------------
-- Sysprof reader: what a profile says about itself.
--
-- Samples taken, lost and broken by reason, time in the handler, and what the
-- stream's meta records hold, as short texts for the formats and warnings.
----------------------------------------------------------------------------

local G = require("sysprof.grammar")
local join = require("sysprof.join")
local text = require("sysprof.text")

local selfreport = {}

-- Names of constants with a prefix, by value: INTERP for SPF_VMST_INTERP.
local function names_of(prefix)
  local names = {}
  for name, value in pairs(G) do
    local short = name:match("^" .. prefix .. "([^_].*)$")
    if short then names[value] = short end
  end
  return names
end

local STATES = names_of("SPF_VMST_")

local LOST = {
  { G.SPF_COUNTER_LOST_BUFFER, "no room in the buffer" },
  { G.SPF_COUNTER_LOST_WRITER, "the writer failed" },
  { G.SPF_COUNTER_LOST_NESTED, "the handler was running" },
}

local function number(n)
  return ("%.0f"):format(n)
end

-- Returns the name of a state of the VM.
function selfreport.state_name(state)
  return STATES[state] or ("%.0f"):format(state)
end

-- Returns a number that a stream's SPF_META holds, at least 0 and below max, or
-- nil: any text can stand there.
function selfreport.meta_number(profile, key, max)
  local n = tonumber(profile.meta[key])
  return n and n >= 0 and n < max and n or nil
end

-- Joins a total and its parts: "5 (3 this, 2 that)".
local function total_of(total, parts)
  if #parts == 0 then return number(total) end
  return number(total) .. " (" .. table.concat(parts, ", ") .. ")"
end

-- Returns the number of lost samples, and it with the reasons as a text.
function selfreport.lost(profile)
  local total, parts = 0, {}
  for _, lost in ipairs(LOST) do
    local n = profile.counters[lost[1]] or 0
    total = total + n
    if n > 0 then parts[#parts + 1] = number(n) .. " " .. lost[2] end
  end
  return total, total_of(total, parts)
end

local function broken(profile, first)
  local total, parts = 0, {}
  for reason = 0, G.SPF_BROKEN__MAX - 1 do
    local n = profile.counters[first + reason] or 0
    total = total + n
    if n > 0 then
      parts[#parts + 1] = number(n) .. " " .. join.reason(reason)
    end
  end
  return total_of(total, parts)
end

local function states(profile, samples)
  local by_state, parts = profile:states(), {}
  for state = 0, G.SPF_VMST__MAX - 1 do
    local n = by_state[state]
    if n then
      parts[#parts + 1] = ("%s %.1f%%"):format(STATES[state], 100 * n / samples)
    end
  end
  return #parts > 0 and table.concat(parts, "  ") or "-"
end

local function handler(profile, samples)
  local c = profile.counters
  local total = c[G.SPF_COUNTER_HANDLER_NS]
  if not total or samples == 0 then return nil end
  return ("%.3f ms in total, %.1f us for a sample, %.1f us at most"):format(
    total / 1e6, total / samples / 1e3,
    (c[G.SPF_COUNTER_HANDLER_MAX_NS] or 0) / 1e3)
end

-- Returns a list of { label, text }.
function selfreport.lines(profile)
  local samples, weight = profile:totals()
  local _, lost = selfreport.lost(profile)
  local c = profile.counters
  local list = {
    { "samples", ("%.0f, %.3f s of CPU time, %d thread%s"):format(samples,
      weight / 1e6, profile.thread_count,
      profile.thread_count == 1 and "" or "s") },
    { "lost", lost },
    { "lua stack broken", broken(profile, G.SPF_COUNTER_LUA_BROKEN) },
    { "host stack broken", broken(profile, G.SPF_COUNTER_HOST_BROKEN) },
    { "vm states", states(profile, samples) },
  }
  local function add(label, value)
    if value then list[#list + 1] = { label, value } end
  end
  add("timer overruns", c[G.SPF_COUNTER_OVERRUNS] and
      number(c[G.SPF_COUNTER_OVERRUNS]))
  add("throttled ticks", c[G.SPF_COUNTER_THROTTLED] and
      number(c[G.SPF_COUNTER_THROTTLED]))
  add("handler", handler(profile, samples))
  for _, key in ipairs(profile.meta_keys) do
    add(text.clean(key), text.clean(profile.meta[key]))
  end
  add("incomplete", profile:problem_text())
  return list
end

return selfreport
