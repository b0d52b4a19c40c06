----------------------------------------------------------------------------
-- Self-report of a profile.
--
-- Samples taken, lost and broken by reason, time in the handler, and the stream's meta
-- records, as short texts for formats and warnings.
----------------------------------------------------------------------------

local G = require("sysprof.base.grammar")
local events = require("sysprof.model.events")
local join = require("sysprof.show.join")
local labels = require("sysprof.model.labels")
local leafwork = require("sysprof.model.leafwork")
local memory = require("sysprof.show.memory")
local metanumber = require("sysprof.model.metanumber")
local refusals = require("sysprof.show.refusals")
local slots = require("sysprof.model.slots")
local text = require("sysprof.base.text")
local threadstates = require("sysprof.model.threadstates")
local units = require("sysprof.model.units")

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
STATES[slots.UNKNOWN] = "UNKNOWN"

local LOST = {
  { G.SPF_COUNTER_LOST_BUFFER, "no room in the buffer" },
  { G.SPF_COUNTER_LOST_QUEUE, "all buffers waited to be written" },
  { G.SPF_COUNTER_LOST_WRITER, "the writer failed" },
  { G.SPF_COUNTER_LOST_NESTED, "the session was held, the signal stack small, or the signal blocked" },
}

local function number(n)
  return ("%.0f"):format(n)
end

-- Returns the name of a state of the VM.
function selfreport.state_name(state)
  return STATES[state] or ("%.0f"):format(state)
end

-- Returns when the first session of a profile was started, in seconds of Unix
-- time; nil if that is not known: any text can stand there.
function selfreport.start_time(profile)
  local first
  for _, session in ipairs(profile.sessions) do
    local start = metanumber(session.meta.start_time)
    if start and start < 2^33 then first = math.min(first or start, start) end
  end
  return first
end

-- Returns the part of the time that a profile has, as a text; nil if it has all.
function selfreport.part_text(profile)
  local from, to = profile.from / 1e6, profile.to / 1e6
  if profile.whole then return nil end
  if to == math.huge then return ("from %.6g s on"):format(from) end
  return from > 0 and ("from %.6g to %.6g s"):format(from, to) or ("up to %.6g s"):format(to)
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

-- Returns a sentence if a profile has no sample: how much its first event has counted, and what a sample stands
-- for. Otherwise nil.
function selfreport.nothing(profile)
  if profile:totals() > 0 then return nil end
  local e = events.list(profile)[1]
  local unit = e and units.of(e.unit)
  local total = e and (e.total or profile.whole and not unit.is_cpu and e.weight)
  if not total or not profile.complete then return "no samples" end
  local name = text.clean(e.name)
  if events.never_began(e) then return ("no samples: the event '%s' was not recorded"):format(name) end
  if total == 0 and not unit.is_cpu then return ("no samples: the event '%s' did not occur"):format(name) end
  local period = #e.periods == 1 and e.periods[1] > 0 and e.periods[1]
  local each = period and unit.period(period)
  return ("no samples: %s counted %s%s"):format(name,
    unit.is_time and ("%.6g ms"):format(total * unit.ns / 1e6) or unit.total(total),
    each and (", one in %s has a sample"):format(each) or "")
end

-- Appends a line for the broken stacks of a side ("lua", "host"), and for each group a
-- line with the checks that refused its stacks.
local function add_broken(list, profile, side)
  local first = G["SPF_COUNTER_" .. side:upper() .. "_BROKEN"]
  local total, parts, lines = 0, {}, {}
  for group = 0, G.SPF_BROKEN__MAX - 1 do
    local n, checks = profile.counters[first + group] or 0, {}
    total = total + n
    if n > 0 then parts[#parts + 1] = number(n) .. " " .. join.reason(group) end
    for _, check in ipairs(refusals.list(profile, side, group)) do
      checks[#checks + 1] = number(check.count) .. " " .. check.words
    end
    if #checks > 0 then
      lines[#lines + 1] = { side .. ": " .. join.reason(group), table.concat(checks, ", ") }
    end
  end
  list[#list + 1] = { side .. " stack broken", total_of(total, parts) }
  for _, line in ipairs(lines) do list[#list + 1] = line end
end

local function states(profile, samples)
  local by_state, parts = profile:states(), {}
  for state = 0, slots.UNKNOWN do
    local n = STATES[state] and by_state[state]
    if n then
      parts[#parts + 1] = ("%s %.1f%%"):format(STATES[state], 100 * n / samples)
    end
  end
  return #parts > 0 and table.concat(parts, "  ") or "-"
end

-- -- Events ----------------------------------------------------------------

-- What threads did in the real time of a sum.
local function states_text(profile, e)
  local parts, unit = {}, units.of(e.unit)
  for state, sum in ipairs(threadstates.sums(profile, e)) do
    if state ~= threadstates.LOST or sum > 0 then
      parts[state] = ("%s %s"):format(unit.total(sum), threadstates.NAMES[state])
    end
  end
  return ": " .. table.concat(parts, ", ")
end

-- Sampled amount of an event, and its total: the end of a thread has no sample.
local function sums_text(e, whole)
  local unit = units.of(e.unit)
  if e.compiler and #e.periods == 1 and e.periods[1] == 1 then
    local s = text.counted(math.max(e.weight, whole and e.total or 0), e.compiler.count)
    return s .. (e.second and (", %.0f bytes of machine code"):format(e.second_weight) or "")
  end
  local s = text.plural(e.samples, "sample") .. ", " .. unit.total(e.weight)
  if e.total and e.total > 0 and whole then
    s = s .. (" of %s (%.1f%%)"):format(unit.total(e.total), 100 * e.weight / e.total)
  end
  s = s .. (e.is_of_things and " waited" or unit.of)
  if e.second then s = s .. ", " .. text.counted(e.second_weight, e.second) end
  return s
end

-- Returns samples a second of a CPU event: asked and got, each nil if it is not known. The clock wall-signal
-- ticks while its thread waits, too; in older streams it is wall.
function selfreport.rates(profile, e)
  if not units.of(e.unit).is_cpu or e.parts then return nil end
  local period, spent = e.periods[1], e.total or e.weight
  if e.name == "wall-signal" or e.name == "wall" then spent = e.wall_us or 0 end
  local _, no_ticks = leafwork.unplaced(profile, e)
  local ticks = profile.whole and spent > 0 and e.samples - no_ticks or 0
  return #e.periods == 1 and period > 0 and 1e9 / period or nil, ticks > 0 and ticks * 1e6 / spent or nil
end

-- How often it was sampled.
function selfreport.rate_text(profile, e)
  if e.of or e.parts or e.compiler and e.periods[1] == 1 then return nil end
  local parts, period, unit = {}, e.periods[1], units.of(e.unit)
  local spent = e.total or e.weight
  if e.is_of_things then
    return e.second_weight > 0 and unit.mean(e.weight / e.second_weight) .. " each" or nil
  end
  if unit.is_cpu then
    local asked, got = selfreport.rates(profile, e)
    if asked then parts[1] = ("%.6g samples a second asked"):format(asked) end
    if got then parts[#parts + 1] = (asked and "%.1f got" or "%.1f samples a second got"):format(got) end
  else
    if #e.periods == 1 and period > 0 then parts[1] = ("one in %s asked"):format(unit.period(period)) end
    if profile.whole and e.samples > 0 and spent > 0 then
      parts[#parts + 1] = ("one in %s got"):format(unit.mean(spent / e.samples))
    end
  end
  if #parts > 0 then return table.concat(parts, ", ") end
end

-- Returns { label, text } of the ends of what samples of an event have begun.
local function things_line(e)
  local all, parts = e.things, {}
  for i, age in ipairs(labels.age_counts(all.ages)) do
    parts[i] = ("%.0f after %s"):format(age[2], age[1])
  end
  local s = ("%s of %.0f tracked, %.0f dropped, %.0f left"):format(total_of(all.ended, parts), all.began,
    all.dropped, all.began - all.ended - all.dropped)
  local lost = e.counters[G.SPF_EVENT_LOST_ENDS] or 0
  if lost > 0 then s = s .. ("; %.0f beginnings or ends were lost"):format(lost) end
  return { e.name .. ": ended", s }
end

local function marks_text(profile)
  local list = profile.marks:kinds()
  for i, kind in ipairs(list) do list[i] = ("%.0f %s"):format(kind[2], kind[1]) end
  return #list > 0 and table.concat(list, ", ") or nil
end

-- Samples with a broken stack. The lines of a single event say it, too.
local function broken_text(e)
  local parts = {}
  for _, side in ipairs { { G.SPF_EVENT_LUA_BROKEN, "Lua" }, { G.SPF_EVENT_HOST_BROKEN, "C" } } do
    local n = e.counters[side[1]]
    if n then parts[#parts + 1] = ("%.0f with a broken %s stack"):format(n, side[2]) end
  end
  return #parts > 0 and table.concat(parts, ", ") or nil
end

local NEVER_BEGAN = "not recorded: the profiler met no Lua code outside of compiled code"

-- Returns the sums of an event, and its states if it is a sum.
function selfreport.sums_text(profile, e)
  if events.never_began(e) then return NEVER_BEGAN end
  return sums_text(e, profile.whole) .. (e.parts and states_text(profile, e) or "")
end

local START_US = 10000		-- An event takes less to begin.

-- Returns what was sampled of an event, and how often.
function selfreport.event_text(profile, e)
  if events.never_began(e) then return NEVER_BEGAN end
  if e.of then return memory.left_text(e, profile.whole) end
  local s = sums_text(e, profile.whole)
  if e.parts then return s .. states_text(profile, e) end
  local rate = selfreport.rate_text(profile, e)
  local missed_us = e.counters[G.SPF_EVENT_MISSED_US] or 0
  if rate then s = s .. "; " .. rate end
  if missed_us >= START_US then s = s .. ("; not recorded for %.3f s"):format(missed_us / 1e6) end
  return s
end

-- Returns { label, text } of an event.
local function event_line(profile, e, is_only)
  local s = selfreport.event_text(profile, e)
  if e.parts then return { "event " .. e.name, s } end
  local broken = not is_only and broken_text(e)
  if broken then s = s .. "; " .. broken end
  if #e.used > 0 then s = s .. "; by " .. table.concat(e.used, ", ") end
  return { "event " .. e.name, s }
end

-- -- The profiler's own cost -----------------------------------------------

-- Returns how many sessions have a counter.
local function sessions_with(profile, id)
  local n = 0
  for _, session in ipairs(profile.sessions) do
    if session.counters[id] then n = n + 1 end
  end
  return n
end

-- Returns the time of the handler and of its interrupts, in nanoseconds.
local function own_time(profile)
  return (profile.counters[G.SPF_COUNTER_HANDLER_NS] or 0) + (events.counter_sum(profile, G.SPF_EVENT_SIGNAL_NS) or 0)
end

-- Returns the CPU time of the profiler in seconds: in the sampled threads, and in its own one.
function selfreport.own_seconds(profile)
  return own_time(profile) / 1e9, (profile.counters[G.SPF_COUNTER_THREAD_NS] or 0) / 1e9
end

-- Returns the profiler's share of the first CPU time in percent, or nil.
function selfreport.handler_share(profile)
  if not profile.counters[G.SPF_COUNTER_HANDLER_NS] then return nil end
  for _, e in ipairs(events.list(profile)) do
    local us = units.of(e.unit).is_cpu and (e.total or profile.whole and e.weight) or 0
    if us > 0 then return own_time(profile) / us / 10 end
  end
end

-- Returns the CPU time of the profiler's own thread in milliseconds, or nil. No other figure has it.
function selfreport.thread_ms(profile)
  local ns = profile.counters[G.SPF_COUNTER_THREAD_NS]
  return ns and ns / 1e6
end

-- Time in the handler. It ran for the lost samples, too, but not for waits.
local function handler(profile, list)
  local c, runs = profile.counters, 0
  local total = c[G.SPF_COUNTER_HANDLER_NS]
  for state = 0, G.SPF_VMST__MAX - 1 do runs = runs + (c[state] or 0) end
  for _, e in ipairs(list) do
    if units.of(e.unit).by_others and not e.is_of_things then runs = runs - (e.counters[G.SPF_EVENT_SAMPLES] or 0) end
  end
  if not total or runs <= 0 then return nil end
  local parts = { ("%.1f us mean"):format(total / runs / 1e3) }
  local p99, most = c[G.SPF_COUNTER_HANDLER_P99_NS], c[G.SPF_COUNTER_HANDLER_MAX_NS] or 0
  if p99 then
    local sessions = sessions_with(profile, G.SPF_COUNTER_HANDLER_P99_NS)
    -- It is not exact.
    parts[2] = ("99%% below %.1f us%s"):format(math.min(p99, most) / 1e3,
      sessions > 1 and (" (the largest of %d sessions)"):format(sessions) or "")
  end
  parts[#parts + 1] = ("%.1f us at most"):format(most / 1e3)
  parts[#parts + 1] = ("%.3f ms in total"):format(total / 1e6)
  local all = own_time(profile)
  if all > total then
    parts[#parts + 1] = ("interrupt and signal %.1f us mean: at most %.0f samples a second")
      :format((all - total) / runs / 1e3, 1e9 * runs / (G.SPF_TICK_CYCLES * all))
  end
  local share = selfreport.handler_share(profile)
  if share then parts[#parts + 1] = ("%.2f%% of the CPU time"):format(share) end
  return table.concat(parts, ", ")
end

-- Returns the number of an event's samples, and what they stand for unless that is time or a
-- count, as a text.
function selfreport.samples(e)
  local unit = units.of(e.unit)
  return unit.varies and ("%.0f (%s)"):format(e.samples, unit.total(e.weight)) or number(e.samples)
end

-- Returns the CPU time of a profile in seconds, also of what has no sample; nil if it is not known. Of a part of the
-- time, that of its samples.
function selfreport.cpu_time(profile)
  for _, e in ipairs(events.list(profile)) do
    if units.of(e.unit).is_cpu and not e.parts then return (profile.whole and e.total or e.weight) / 1e6 end
  end
end

-- Returns the number of samples of the compiler's events.
local function compiler_samples(profile)
  local n = 0
  for _, e in ipairs(events.list(profile)) do n = n + (e.compiler and e.samples or 0) end
  return n
end

-- Returns the number of samples and the CPU time, as a text. Without CPU time, bytes or real
-- time of the first event; not if unnamed.
function selfreport.totals(profile, unnamed)
  local samples, cpu = profile:totals(), selfreport.cpu_time(profile)
  local told = cpu and compiler_samples(profile) or 0	-- They take no CPU time.
  samples = samples - told
  local s = unnamed and number(samples) or text.plural(samples, "sample")
  local e = events.list(profile)[1]
  local unit = e and units.of(e.unit)
  if e and e.parts and not unnamed then
    return ("%s, %s%s"):format(s, unit.total(e.weight), unit.of)
  end
  if cpu then
    return s .. (", %.3f s of CPU time"):format(cpu) ..
	   (told > 0 and ", " .. text.plural(told, "compiler event") or "")
  end
  if unnamed or not e or not unit.varies then return s end
  return ("%s, %s of %s"):format(s, unit.total(e.weight), e.name)
end

-- Returns the number of sampled threads. In a profile, the thread 0 stands for those that nobody sampled.
function selfreport.threads(profile)
  local n = 0
  for _, thread in ipairs(profile.thread_list) do
    if thread.tid ~= 0 then n = n + 1 end
  end
  return n
end

-- Returns a list of { label, text }.
function selfreport.lines(profile)
  local samples = profile:totals()
  local _, lost = selfreport.lost(profile)
  local c = profile.counters
  local all_events = events.list(profile)
  local list = {
    { "samples", selfreport.totals(profile, true) .. ", " .. text.plural(selfreport.threads(profile), "thread") },
  }
  local part = selfreport.part_text(profile)
  if part then list[2] = { "part", part .. "; what was lost, and what the profiler took, is of all the time" } end
  for _, e in ipairs(all_events) do
    if e.of and not events.never_began(e) then
      memory.add_left(list, e, profile.whole)
    else
      list[#list + 1] = event_line(profile, e, #all_events == 1)
      if e.things then list[#list + 1] = things_line(e) end
    end
  end
  list[#list + 1] = { "lost", lost }
  add_broken(list, profile, "lua")
  add_broken(list, profile, "host")
  list[#list + 1] = { "vm states", states(profile, samples) }
  local function add(label, value)
    if value then list[#list + 1] = { label, value } end
  end
  memory.add_places(list, profile, all_events)
  add("collector", memory.collector_text(all_events))
  add("dump", profile.goes_on and "the profile went on after this dump" or nil)
  add("marks", marks_text(profile))
  add("lost marks", c[G.SPF_COUNTER_LOST_MARKS] and number(c[G.SPF_COUNTER_LOST_MARKS]))
  local overruns = events.counter_sum(profile, G.SPF_EVENT_OVERRUNS)
  local throttled = events.counter_sum(profile, G.SPF_EVENT_THROTTLED)
  add("timer overruns", overruns and number(overruns))
  add("throttled ticks", throttled and number(throttled))
  local ended = events.counter_sum(profile, G.SPF_EVENT_ENDED_CALLS) or 0
  add("calls ended early", ended > 0 and text.plural(ended, "system call") .. " returned EINTR because of a tick" or
      nil)
  add("pages read uncopied", (c[G.SPF_COUNTER_UNCOPIED] or 0) > 0 and
      number(c[G.SPF_COUNTER_UNCOPIED]) .. ", the kernel or a seccomp filter refuses" ..
      " process_vm_readv")
  add("threads not sampled", c[G.SPF_COUNTER_UNSAMPLED] and
      number(c[G.SPF_COUNTER_UNSAMPLED]) .. ", the most at one time")
  add("handler", handler(profile, all_events))
  local own = selfreport.thread_ms(profile)
  add("profiler's thread", own and ("%.1f ms of CPU time, in no other figure"):format(own))
  for _, key in ipairs(profile.meta_keys) do
    add(text.clean(key), text.clean(profile.meta[key]))
  end
  add("incomplete", profile:problem_text())
  return list
end

return selfreport
