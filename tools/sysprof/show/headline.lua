----------------------------------------------------------------------------
-- Headline of a profile: the facts that each reader needs, in lines of at most 80 columns.
--
-- Real and CPU time, samples, rates asked and got, the share of the profiler; what was lost or broken
-- only if something was. The whole self-report is in sysprof.show.selfreport.
----------------------------------------------------------------------------

local G = require("sysprof.base.grammar")
local events = require("sysprof.model.events")
local leafwork = require("sysprof.model.leafwork")
local metanumber = require("sysprof.model.metanumber")
local selfreport = require("sysprof.show.selfreport")
local sort = require("sysprof.base.sort")
local symbols = require("sysprof.names.symbols")
local text = require("sysprof.base.text")
local units = require("sysprof.model.units")
local work = require("sysprof.names.work")

local WIDTH, LABEL = 80, 10
local UNPLACED_SHARE = 0.01	-- Of an event's weight: below, it is not worth a line.
local FILES = 3		-- With versions, that a line names.
local FEW_PERCENT = 80	-- Of the rate asked: below, why it is so is worth a line.

local headline = {}

-- Returns the number of processes that a profile has.
function headline.processes(profile)
  local pids, n = {}, 0
  for _, session in ipairs(profile.sessions) do
    local pid = session.meta.pid
    if pid and not pids[pid] then pids[pid], n = true, n + 1 end
  end
  return n
end

-- Returns the real time of a profile in seconds: of each process, its longest session's; nil if it is not known.
function headline.real_time(profile)
  local longest, sum = {}, nil
  for _, session in ipairs(profile.sessions) do
    local us, pid = session.counters[G.SPF_COUNTER_WALL_US], session.meta.pid or ""
    if us then longest[pid] = math.max(longest[pid] or 0, us) end
  end
  for _, us in pairs(longest) do sum = (sum or 0) + us / 1e6 end
  return sum
end

-- Returns what a profile spans: times and threads. is_of_waits: its CPU time does not matter.
function headline.times(profile, is_of_waits)
  local parts, real, cpu = {}, headline.real_time(profile), not is_of_waits and selfreport.cpu_time(profile)
  local processes = headline.processes(profile)
  local of = processes > 1 and (" of %d processes"):format(processes) or ""
  local part = selfreport.part_text(profile)
  if part then parts[1] = part end
  if real then parts[1] = (part and part .. " of " or "") .. ("%.3f s%s"):format(real, of) end
  if cpu then parts[#parts + 1] = ("%.3f s of CPU time"):format(cpu) end
  local n = selfreport.threads(profile)
  if n > 1 then parts[#parts + 1] = ("%d threads"):format(n) end
  return table.concat(parts, ", ")
end

-- Splits words into lines of the width that is left.
function headline.wrap(list, label, s)
  local line = nil
  for word in s:gmatch("%S+") do
    if line and #line + 1 + #word > WIDTH - LABEL then
      list[#list + 1] = { label, line }
      label, line = "", word
    else
      line = line and line .. " " .. word or word
    end
  end
  if line then list[#list + 1] = { label, line } end
end

local wrap = headline.wrap

-- Returns whether an event got much less than the rate that was asked for.
function headline.is_slow(profile, e)
  local asked, got = selfreport.rates(profile, e)
  return asked ~= nil and got ~= nil and got < asked * FEW_PERCENT / 100
end

-- Returns a sentence on what was lost or broken, or nil.
local function damage(profile)
  local parts = {}
  local lost, lost_text = selfreport.lost(profile)
  if lost > 0 then parts[1] = "lost " .. lost_text end
  for _, side in ipairs { { "LUA", "Lua" }, { "HOST", "C" } } do
    local n = 0
    for group = 0, G.SPF_BROKEN__MAX - 1 do
      n = n + (profile.counters[G["SPF_COUNTER_" .. side[1] .. "_BROKEN"] + group] or 0)
    end
    if n > 0 then parts[#parts + 1] = ("%.0f with a broken %s stack"):format(n, side[2]) end
  end
  if #parts == 0 then return nil end
  return table.concat(parts, ", ") .. (profile.whole and "" or ", in all of the time")
end

-- Work without a place, and its argument.
local UNPLACED = { { G.SPF_WORK_UNKEPT, 0 }, { G.SPF_WORK_OTHERS, 0 }, { G.SPF_WORK_UNSEEN, G.SPF_UNSEEN_NO_TICK } }

-- Returns a sentence on weights without a place, such as the CPU time of threads that ended too soon. Returns nil if
-- they are below 1 % of each event. event: only of this one, or nil.
function headline.unplaced(profile, event)
  local parts = {}
  for _, e in ipairs(events.list(profile)) do
    local counts = not e.parts and not e.of and e.weight > 0 and (not event or e.key == event.key)
    local sums = counts and leafwork.unplaced(profile, e) or {}
    for _, unplaced in ipairs(UNPLACED) do
      local share = (sums[unplaced[1]] or 0) / e.weight
      if share >= UNPLACED_SHARE then
	parts[#parts + 1] = ("%.1f%% of %s has no place: %s"):format(100 * share, text.clean(e.name),
								    work.name(unplaced[1], unplaced[2]))
      end
    end
  end
  return #parts > 0 and table.concat(parts, ", ") or nil
end

-- Whether an event tells waits: of threads or of coroutines. Each wait is a sample, so there is no rate.
function headline.is_of_waits(e)
  return e.has_waits or e.is_of_things
end

-- Returns what was sampled of an event.
local function event_text(profile, e)
  if headline.is_of_waits(e) then return selfreport.sums_text(profile, e) end
  if not units.of(e.unit).is_cpu or e.parts then return selfreport.event_text(profile, e) end
  local s = text.plural(e.samples, "sample")
  local asked, got = selfreport.rates(profile, e)
  if asked then s = s .. ("; %.6g a second asked"):format(asked) end
  return got and s .. (asked and ", %.1f got" or "; %.1f a second got"):format(got) or s
end

-- Returns a sentence if the limit of its size has ended the profile, or nil.
function headline.size_limit(profile)
  local bytes = metanumber(profile.meta.size_limit)
  return bytes and "ended at the size limit of " .. units.of(G.SPF_UNIT_BYTES).text(bytes)
end

-- Returns a sentence if live memory lacks what local variables held, or nil.
function headline.hidden_locals(profile)
  return profile.meta.main_locals and
	 "live lacks what only local variables of the main chunk held: they are unknown after its end" or nil
end

-- Returns a sentence if the program has forked children that the profile lacks, or nil.
function headline.forked(profile)
  local lacking, own, pids = 0, 0, {}
  for _, session in ipairs(profile.sessions) do
    local meta = session.meta
    lacking = lacking + (metanumber(meta.forked) or 0)
    own = own + (metanumber(meta.child_profiles) or 0)
    -- Processes of the same program on the same machine, each once: the first one, and children that are here.
    local program, pid = (meta.host or "") .. "\0" .. (meta.command or ""), meta.pid or ""
    pids[program] = pids[program] or { n = -1 }
    if not pids[program][pid] then pids[program][pid], pids[program].n = true, pids[program].n + 1 end
  end
  for _, its in pairs(pids) do own = own - its.n end
  if lacking > 0 then
    return ("the program forked %s that this profile lacks; 'run --fork' or LUAJIT_SYSPROF=fork takes each, " ..
	    "'record --children' those that are there"):format(lacking == 1 and "a child" or ("%.0f children"):format(lacking))
  elseif own > 0 then
    return own == 1 and "a child has a profile of its own, FILE.PID" or
	   ("%.0f children have profiles of their own, FILE.PID"):format(own)
  end
end

-- Returns a sentence if the CPU quota of the control group has stopped the program, or nil. Programs of one group have
-- the same counts.
function headline.throttled(profile)
  local periods, ns = 0, 0
  for _, session in ipairs(profile.sessions) do
    local n = metanumber(session.meta.throttled)
    if n and n > periods then periods, ns = n, metanumber(session.meta.throttled_ns) or 0 end
  end
  if periods == 0 then return nil end
  return ("the CPU quota of the control group stopped the program in %s, for %.3f s over all processors; " ..
	  "wall shows it as [runnable]"):format(text.plural(periods, "period"), ns / 1e9)
end

-- Returns a sentence if a part of the time may have real time of an event from before, or lack some; or nil. Such time
-- may stand behind the part.
local function late_text(profile, e)
  if profile.whole or not e or e.is_of_things then return nil end
  local names, found = {}, {}
  for member, sums in pairs(profile.late) do
    for what, arg in pairs(e.members[member] and sums or {}) do
      local name = work.name(what, arg)
      if not found[name] then found[name], names[#names + 1] = true, name end
    end
  end
  sort(names)
  return #names > 0 and ("%s %s up to a second late, so the real time may differ from the part's length")
			:format(table.concat(names, ", "), #names == 1 and "stands" or "stand") or nil
end

-- Adds names that a sentence may call an event of a list by.
local function add_names(names, list, e)
  names[e.name], names[e.of or e.name] = true, true
  for _, name in ipairs(e.used) do names[name] = true end
  for _, part in ipairs(e.parts or {}) do
    for _, other in ipairs(list) do
      if other.name == part then add_names(names, list, other) end
    end
  end
end

-- Returns the sentences of the profile's limit that bear on an event, or on all if that is nil; nil without one. A
-- sentence begins with the name of its event, or bears on each. Those on a lower rate matter only to slow events.
local function limit_text(profile, event, is_slow)
  local list, all, shown, parts = events.list(profile), {}, {}, {}
  for _, e in ipairs(list) do add_names(all, list, e) end
  if event then add_names(shown, list, event) end
  for sentence in text.parts(text.clean(profile.meta.limit or ""):gsub("%. ", "\n"), "\n") do
    local name = sentence:match("^[^%s:]*:?[^%s:]*"):gsub(":$", "")
    local bears = not event or shown[name] or not all[name]
    if sentence ~= "" and bears and (is_slow or not sentence:find(" samples a second", 1, true)) then
      parts[#parts + 1] = sentence
    end
  end
  return #parts > 0 and table.concat(parts, ". ") or nil
end

-- Append lines { label, line } on the times of a profile, and on what it lacks.

local function add_times(list, profile, name, label, is_of_waits)
  local times, start = headline.times(profile, is_of_waits), selfreport.start_time(profile)
  local date = start and os.date(", %Y-%m-%d %H:%M:%S", start) or ""
  wrap(list, label, text.clean(name) .. date .. (times ~= "" and ": " .. times or ""))
end

-- Says which files were edited and loaded again, or are of several versions of a program; "" for none.
local function versions_text(profile)
  local parts = {}
  for i, file in ipairs(profile.versions) do
    parts[i] = ("%s: %s"):format(symbols.chunk_name(file.chunk), text.plural(file.count, "function"))
  end
  if #parts == 0 then return "" end
  return text.listed(parts, 1, FILES) .. " of earlier versions of the file, counted at the places in the last one"
end

local function add_problems(list, profile, event)
  wrap(list, "limit", headline.size_limit(profile) or "")
  wrap(list, "locals", headline.hidden_locals(profile) or "")
  wrap(list, "quota", headline.throttled(profile) or "")
  wrap(list, "forked", headline.forked(profile) or "")
  wrap(list, "samples", damage(profile) or "")
  wrap(list, "versions", versions_text(profile))
  wrap(list, "unknown", headline.unplaced(profile, event) or "")
  wrap(list, "warning", profile:problem_text() or "")
end

-- Returns a list of { label, line }: the times of a profile, and what it lacks. name: of the profile; label: of the
-- first line.
function headline.short(profile, name, label)
  local list = {}
  add_times(list, profile, name, label)
  add_problems(list, profile)
  return list
end

-- Returns lines on an event of a profile, as short().
function headline.event(profile, e, label)
  local list = {}
  wrap(list, label, selfreport.event_text(profile, e))
  return list
end

-- Returns the cost of the profiler: in the sampled threads, and in its own one. "" if it is not known.
local function cost_text(profile)
  local parts, share, own = {}, selfreport.handler_share(profile), selfreport.thread_ms(profile)
  local real = headline.real_time(profile)
  if share then parts[1] = ("%.2f%% of the CPU time"):format(share) end
  if own then
    parts[#parts + 1] = ("%.1f ms in its own thread%s"):format(own,
      real and real > 0 and (" (%.2f%% of a processor)"):format(own / real / 10) or "")
  end
  return table.concat(parts, ", and ")
end

-- The same, and what was sampled. event: of the table below, or nil. One of waits stands alone: they say little about
-- the profiler and its other events.
function headline.lines(profile, name, event)
  local list, slow = {}, false
  local only = event and headline.is_of_waits(event) and event or nil
  add_times(list, profile, name, "profile", only)
  for _, e in ipairs(events.list(profile)) do
    if not only or e.key == only.key then
      wrap(list, text.clean(e.name), event_text(profile, e))
      slow = slow or headline.is_slow(profile, e)
    end
  end
  if not only then wrap(list, "profiler", cost_text(profile)) end
  wrap(list, "part", late_text(profile, event) or "")
  wrap(list, "limit", limit_text(profile, event, slow) or "")
  add_problems(list, profile, only)
  return list
end

return headline
