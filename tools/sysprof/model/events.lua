----------------------------------------------------------------------------
-- Events of a profile: clocks and counters that caused its samples.
--
-- Each session numbers its own events (of lanes, sysprof.model.slots): { session, index, name,
-- unit, period, second, thing }, as in SPF_EVENT; second is the name of its second weight, thing
-- that of what its samples begin, or nil. What is left of these things at the end is an event,
-- too: e.left, with e.of for the event that began them.
-- Users see events by their requested names: "cpu" is one event, whatever clock each thread got.
-- A sum is an event without samples of its own: "wall" has those of "cpu" and "offcpu".
----------------------------------------------------------------------------

local G = require("sysprof.base.grammar")
local labels = require("sysprof.model.labels")
local leafwork = require("sysprof.model.leafwork")
local limits = require("sysprof.base.limits")
local metanumber = require("sysprof.model.metanumber")
local text = require("sysprof.base.text")
local units = require("sysprof.model.units")

local events = {}

local SUM = "wall"	-- Key of the metadata that lists its parts, and its name.

-- Returns the event of an index in a session; it may not be known (yet), then it
-- is the clock of the session.
function events.of_index(session, index)
  local e = session.events[index]
  if not e then
    e = { session = session, index = index, unit = G.SPF_UNIT_US }
    session.events[index] = e
  end
  return e
end

-- -- Things that samples begin ----------------------------------------------

-- Numbers of things that samples of an event have begun. ages: of those that have ended, by
-- labels.age_text().
local function things_of(e)
  e.things = e.things or { began = 0, ended = 0, dropped = 0, ages = {} }
  return e.things
end

function events.begin_thing(e)
  local all = things_of(e)
  all.began = all.began + 1
end

-- gone: it does not exist any more; otherwise it is not known whether it does.
function events.end_thing(e, gone, age)
  local all = things_of(e)
  if not gone then
    all.dropped = all.dropped + 1
    return
  end
  local class = labels.age_text(age)
  all.ended, all.ages[class] = all.ended + 1, (all.ages[class] or 0) + 1
end

local function add_things(to, things)
  local all = things_of(to)
  for _, key in ipairs { "began", "ended", "dropped" } do all[key] = all[key] + things[key] end
  for class, n in pairs(things.ages) do all.ages[class] = (all.ages[class] or 0) + n end
end

-- An event becomes another one.
function events.move_things(from, to)
  if from ~= to and from.things then
    add_things(to, from.things)
    to.thing, from.things = to.thing or from.thing, nil
  end
end

-- Returns the event of what is left of things.
function events.left_of(e)
  e.left = e.left or { of = e, session = e.session, index = e.index, name = e.thing, unit = e.unit,
		       period = nil, second = e.second, text = e.text, variance = 0, second_variance = 0 }
  return e.left
end

-- Adds to the variances of the weights and of the second weights of what is left.
function events.add_left(left, variance, second_variance)
  left.variance, left.second_variance = left.variance + variance, left.second_variance + second_variance
end

local UNSEEN_PERIODS = 3	-- e^-3 is 5 %: the chance that so many bytes have no sample, in blocks of any sizes.

-- Returns the standard error of what an event of a list has left, and that of the second weights as the third value.
-- Without samples nil, and the amount that it has at
-- most with 95 % confidence, nil if that is not known. Neither is known if beginnings were lost.
function events.left_error(e)
  if e.lacks then return nil end
  if e.samples > 0 then return math.sqrt(e.variance), nil, math.sqrt(e.second_variance) end
  local most = nil
  for _, period in ipairs(e.periods) do most = math.max(most or 0, UNSEEN_PERIODS * period) end
  return nil, most and math.max(most, UNSEEN_PERIODS * e.longest)
end

-- -- Counters --------------------------------------------------------------

-- Counters that older streams have for all events together, and the total for the first
-- OLD_TOTALS of them.
local OLD = { [G.SPF_EVENT_OVERRUNS] = G.SPF_COUNTER_OVERRUNS,
	      [G.SPF_EVENT_THROTTLED] = G.SPF_COUNTER_THROTTLED,
	      [G.SPF_EVENT_SIGNAL_NS] = G.SPF_COUNTER_SIGNAL_NS }
local OLD_TOTALS = 4

-- Returns a counter of the event with an index, or nil. kind: SPF_EVENT_*.
local function counter_of(counters, index, kind)
  local value = counters[G.SPF_COUNTER_EVENT + index * G.SPF_COUNTER_EVENT_STEP + kind]
  if not value and kind == G.SPF_EVENT_TOTAL and index < OLD_TOTALS then
    value = counters[G.SPF_COUNTER_TOTAL + index]
  end
  return value
end

-- Returns the period by which things of an event are left, and cycles of the collector so far.
function events.left_period(e)
  local period = counter_of(e.session.counters, e.index, G.SPF_EVENT_LEFT_PERIOD) or 0
  return period > 0 and period or e.period or 0
end

function events.cycles(e)
  return counter_of(e.session.counters, e.index, G.SPF_EVENT_CYCLES) or 0
end

-- Returns the sum of a counter of all events, or nil.
function events.counter_sum(profile, kind)
  local counters = profile.counters
  local sum = OLD[kind] and counters[OLD[kind]]
  for index = 0, G.SPF_EVENTS_MAX - 1 do
    local value = counter_of(counters, index, kind)
    if value then sum = (sum or 0) + value end
  end
  return sum
end

-- -- Names -----------------------------------------------------------------

-- Events of real time whose samples the thread takes itself. Many things wait at a time, so their times
-- exceed real time.
local OF_THINGS = { ["coroutine-wait"] = true }

events.COMPILER = "jit"	-- Group of the next ones.

-- Events of the compiler: what their samples count, and what happened at their lines.
local OF_COMPILER = {
  ["trace-abort"] = { count = "aborts", verb = "aborted" },
  ["trace-blacklist"] = { count = "blacklists", verb = "blacklisted" },
  ["trace-flush"] = { count = "flushes", verb = "flushed all traces" },
  ["trace-stop"] = { count = "traces", verb = "compiled" },
  ["trace-exit"] = { count = "exits", verb = "left a trace" },
}

-- Returns the requested name of an event, without a period; nil if it is unknown. A second
-- request of the same name has a number.
local function asked_name(e)
  local index, times = 0, {}
  for item in text.parts(e.session.meta.clock or "", ",") do
    item = item:gsub("/.*", "")
    times[item] = (times[item] or 0) + 1
    if index == e.index then
      if item == "" then return nil end
      return times[item] > 1 and ("%s %d"):format(item, times[item]) or item
    end
    index = index + 1
  end
end

-- Returns the name of an event, as users see it.
local function name_of(e)
  if e.of then return text.clean(e.name) end
  local name = asked_name(e) or e.name or e.index == 0 and "cpu" or
	       ("event %.0f"):format(e.index)
  return text.clean(name)
end

-- Key of an event: equal events of several sessions or profiles have the same.
function events.key(e)
  return ("%.0f %s"):format(e.unit, name_of(e))
end

-- Whether an event of a session is a part of the session's sum.
function events.is_part(e)
  local parts = e.session.meta[SUM]
  return parts ~= nil and not e.of and units.of(e.unit).ns ~= nil and
	 ("," .. parts .. ","):find("," .. name_of(e) .. ",", 1, true) ~= nil
end

-- The same, but parts of a sum differ from other events.
function events.origin(e)
  return events.key(e) .. (events.is_part(e) and " of " .. SUM or "")
end

-- Returns what one sample of an event was asked to stand for, nil if not known.
local function period_of(e)
  local period = e.of and events.left_period(e.of) or e.period
  if period then return period > 0 and period or nil end
  local ns = e.index == 0 and metanumber(e.session.meta.interval_ns)
  return ns and ns >= 1 and ns or nil
end

-- Of thousands of sessions, each may have another period.
local LIST_MAX = limits.PERIODS

local function put(list, value)
  if #list == LIST_MAX then return end
  for _, v in ipairs(list) do
    if v == value then return end
  end
  list[#list + 1] = value
end

local function new_event(key, name, unit)
  return { key = key, name = name, unit = unit,
	   used = {},		-- Names of the clocks and events that were used.
	   periods = {},	-- See SPF_EVENT.
	   samples = 0, weight = 0,
	   second = nil, second_weight = 0,	-- What the second weights count; their sum.
	   is_of_things = OF_THINGS[name] and units.of(unit).ns == 1,	-- Times of things, not of threads.
	   has_waits = units.of(unit).by_others and not OF_THINGS[name],	-- Of threads.
	   compiler = OF_COMPILER[name],	-- Its words, or nil.
	   thing = nil, things = nil,	-- What its samples begin; see things_of().
	   of = nil,	-- Name of the event that began what is left, nil of others;
	   variance = 0, second_variance = 0,	-- of the sums of its weights;
	   lacks = false,	-- whether beginnings or ends were lost;
	   longest = 0,		-- the longest period of the samples, if it grew.
	   total = nil,		-- All occurrences, sampled or not; nil if unknown.
	   counters = {},	-- Other counters, by SPF_EVENT_*.
	   wall_us = 0,		-- Since the starts of its processes' profiles.
	   processes = {},	-- Set of their ids,
	   without = {},	-- of those in which it never began in a VM,
	   with = {},	-- and of those in which it counted something in a VM.
	   parts = nil,		-- Of a sum: their names.
	   members = {} }	-- By event of a session: what its weights are multiplied by.
end

-- Has an event of a list begun in no process?
function events.never_began(e)
  for pid in pairs(e.processes) do
    if not e.without[pid] or e.with[pid] then return false end
  end
  return next(e.processes) ~= nil
end

-- Returns the sum of a list of events; without one, appends it.
local function sum_of(list, sum, taken)
  if sum then return sum end
  sum = new_event(SUM, taken[SUM] and SUM .. " (sum)" or SUM, G.SPF_UNIT_NS)
  sum.parts, taken[sum.name] = {}, true
  list[#list + 1] = sum
  return sum
end

local function add_part(sum, e, all)
  sum.members[e] = units.of(e.unit).ns
  for _, name in ipairs(sum.parts) do
    if name == all.name then return end
  end
  sum.parts[#sum.parts + 1] = all.name
end

-- Counters that do not add up.
local LARGEST = { [G.SPF_EVENT_LEFT_PERIOD] = true, [G.SPF_EVENT_CYCLES] = true,
		  [G.SPF_EVENT_CYCLE_US] = true, [G.SPF_EVENT_LONGEST] = true }

-- When a thread has begun is not known, so with several in a process nothing is.
local function add_wall_time(e, session)
  local wall_us, pid = session.counters[G.SPF_COUNTER_WALL_US], session.meta.pid or ""
  if e.processes[pid] or not wall_us then e.wall_us = nil end
  e.processes[pid] = true
  e.wall_us = e.wall_us and e.wall_us + wall_us
end

-- Notes a process in which the event never began in a VM, or counted something: it may have several VMs.
local function add_missed_time(e, session, index)
  local counters, pid = session.counters, session.meta.pid or ""
  local missed_us = counter_of(counters, index, G.SPF_EVENT_MISSED_US) or 0
  if missed_us > 0 and missed_us >= (counters[G.SPF_COUNTER_WALL_US] or math.huge) then e.without[pid] = true end
  for _, kind in ipairs { G.SPF_EVENT_TOTAL, G.SPF_EVENT_HELD } do
    if (counter_of(counters, index, kind) or 0) > 0 then e.with[pid] = true end
  end
end

local function add_counters(e, counters, index)
  local total = counter_of(counters, index, G.SPF_EVENT_TOTAL)
  if total then e.total = (e.total or 0) + total end
  for kind = G.SPF_EVENT_TOTAL + 1, G.SPF_EVENT__MAX - 1 do
    local value = counter_of(counters, index, kind)
    if value then
      local before = e.counters[kind] or 0
      e.counters[kind] = LARGEST[kind] and math.max(before, value) or before + value
    end
  end
end

-- What the VM holds is the total of what is left.
local function add_held(left, counters, index)
  local held = counter_of(counters, index, G.SPF_EVENT_HELD)
  if held then left.total = (left.total or 0) + held end
end

-- Returns the events of a profile, in the order of the streams. Those without
-- samples are there, too, if they are described.
function events.list(profile)
  local list, by_key, taken, sum = {}, {}, {}, nil
  local function add(e)
    local key = events.key(e)
    local all = by_key[key]
    if not all then
      all = new_event(key, name_of(e), e.unit)
      -- The same name for time and for occurrences.
      if taken[all.name] then all.name = all.name .. " (other unit)" end
      taken[all.name] = true
      by_key[key], list[#list + 1] = all, all
    end
    if not all.members[e] then
      all.members[e] = 1
      local name, period = e.name and text.clean(e.name), period_of(e)
      if name and name ~= all.name then put(all.used, name) end
      if period then put(all.periods, period) end
      all.second = all.second or e.second and text.clean(e.second)
      all.thing = all.thing or e.thing and text.clean(e.thing)
      all.text = all.text or e.text
      if e.things then add_things(all, e.things) end
      if e.of then
	all.of, all.variance = name_of(e.of), all.variance + e.variance
	all.second_variance = all.second_variance + e.second_variance
      end
    end
    return all
  end
  for _, session in ipairs(profile.sessions) do
    if session.meta.clock and not next(session.events) then events.of_index(session, 0) end
    for index = 0, G.SPF_EVENTS_MAX - 1 do
      local e = session.events[index]
      if e then
	if events.is_part(e) then sum = sum_of(list, sum, taken) end
	local all = add(e)
	if events.is_part(e) then add_part(sum, e, all) end
	add_counters(all, session.counters, index)
	add_missed_time(all, session, index)
	add_wall_time(all, session)
	if e.left then
	  local left = add(e.left)
	  add_held(left, session.counters, index)
	  left.longest = math.max(left.longest, counter_of(session.counters, index, G.SPF_EVENT_LONGEST) or 0)
	  left.processes, left.without, left.with = all.processes, all.without, all.with
	end
      end
    end
    if sum and session.meta[SUM] then add_wall_time(sum, session) end
  end
  local members = {}
  local slots = profile.slots
  for i = 1, slots:count() do
    local event = slots:event(i)
    local all = members[event]
    if not all then
      all = add(event)
      members[event] = all
    end
    all.samples = all.samples + slots:samples(i)
    all.weight = all.weight + slots:weight(i)
    all.second_weight = all.second_weight + slots:second(i)
    all.lacks = all.lacks or leafwork.of(profile, i) == G.SPF_WORK_UNKEPT
    local factor = sum and sum.members[event]
    if factor then
      sum.samples, sum.weight = sum.samples + slots:samples(i), sum.weight + slots:weight(i) * factor
    end
  end
  if sum and sum.wall_us then sum.total = sum.wall_us * 1000 end
  for _, e in ipairs(list) do
    if events.never_began(e) then e.total = nil end
    e.lacks = e.lacks or (e.counters[G.SPF_EVENT_LOST_ENDS] or 0) > 0
  end
  for _, left in ipairs(list) do
    for _, e in ipairs(left.of and list or {}) do
      if e.name == left.of then left.lacks = e.lacks end
    end
  end
  return list
end

-- Returns the name of the first event that measures waits of threads, and nothing else; or nil.
function events.of_waits(profile)
  for _, e in ipairs(events.list(profile)) do
    if e.has_waits and not e.parts then return e.name end
  end
end

-- Returns the first event that measures CPU time, or nil.
function events.of_cpu(profile)
  for _, e in ipairs(events.list(profile)) do
    if units.of(e.unit).is_cpu and not e.parts then return e end
  end
end

-- Returns the name of the first event of what is left of things, or nil.
function events.of_left(profile)
  for _, e in ipairs(events.list(profile)) do
    if e.of then return e.name end
  end
end

-- Returns the event of a profile by the name that was asked for or used; the first one
-- without a name. The compiler's group is its first event with samples. Returns nil and a message for an unknown name.
function events.choose(profile, name)
  local list, names = events.list(profile), {}
  if not name then
    local e = list[1] or events.of_index(profile.sessions[1], 0)
    return list[1] or new_event(events.key(e), name_of(e), e.unit)
  end
  for i, e in ipairs(list) do
    if e.name == name then return e end
    names[i] = e.name
  end
  for _, e in ipairs(list) do
    for _, used in ipairs(e.used) do
      if used == name then return e end
    end
  end
  local first
  for _, e in ipairs(name == events.COMPILER and list or {}) do
    if e.compiler and (not first or first.samples == 0 and e.samples > 0) then first = e end
  end
  if first then return first end
  return nil, ("the profile has no event '%s', its events are: %s"):format(text.clean(name),
    #names > 0 and table.concat(names, ", ") or "none")
end

return events
