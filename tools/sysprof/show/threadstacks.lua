----------------------------------------------------------------------------
-- Threads of a short profile: what each did last, and its whole stack.
--
-- The profile has the clock cpu and the event offcpu. The last sample with a stack tells. Sums, such as short
-- waits and ready time, have none; they tell what a thread without a stack did.
----------------------------------------------------------------------------

local G = require("sysprof.base.grammar")
local headline = require("sysprof.show.headline")
local leafwork = require("sysprof.model.leafwork")
local limits = require("sysprof.base.limits")
local numbermap = require("sysprof.base.numbermap")
local places = require("sysprof.names.places")
local threadstates = require("sysprof.model.threadstates")
local units = require("sysprof.model.units")
local view = require("sysprof.show.view")

local HAS_NO_STACK = { [G.SPF_WORK_READY] = true, [G.SPF_WORK_SHORT] = true, [G.SPF_WORK_UNSEEN] = true,
		       [G.SPF_WORK_LOST] = true, [G.SPF_WORK_UNKEPT] = true, [G.SPF_WORK_OTHERS] = true }
local KEYS = { [threadstates.ON] = "on", [threadstates.WAITING] = "waiting", [threadstates.RUNNABLE] = "runnable",
	       [threadstates.LOST] = "lost" }
local SHORT = "short"
local LUA = "lua"
local FRAME_BYTES = 16		-- Of a frame in the output, beside its texts.
local IS_LUA = { lua = true, compiled = true, builtin = true }

local threadstacks = {}

-- Returns a part of a joined stack as { text =, kind =, file =, line =, module = }.
local function frame_of(profile, shown, place_of, part)
  local entry, place = shown.symbols:name(part), place_of(part)
  local module = place.module and profile.modules[place.module]
  return { text = entry.text, kind = entry.kind, file = place.file or place.chunk, line = place.line,
	   module = module and module.path or nil }
end

-- Returns which slots have a stack: true, or LUA if it has Lua frames.
local function stacked(shown, wanted)
  local found = {}
  shown:each_joined(function(parts, n, _, slot)
    if not wanted[slot] then return end
    found[slot] = true
    for i = n, 1, -1 do
      if IS_LUA[shown.symbols:name(parts[i]).kind] then
	found[slot] = LUA
	return
      end
    end
  end, true, true)
  return found
end

-- Returns stacks by slot: { frames = innermost first, wait = what the thread waits for or nil }; and what is left out,
-- or nil. Equal frames are one table.
local function stacks_of(profile, shown, wanted)
  local stacks, place_of, known, left = {}, places.new(profile), {}, limits.DUMP_STACKS
  shown:each_joined(function(parts, n, _, slot)
    if not wanted[slot] or left < 0 then return end
    local stack = { frames = {}, wait = nil }
    for i = n, 1, -1 do
      local part = parts[i]
      local frame = known[part] or frame_of(profile, shown, place_of, part)
      known[part] = frame
      if i == n and frame.kind == "waiting" then
	stack.wait = frame.text
      else
	stack.frames[#stack.frames + 1] = frame
      end
      left = left - FRAME_BYTES - #frame.text - #(frame.file or "") - #(frame.module or "")
      if left < 0 then return end
    end
    stacks[slot] = stack
  end, true, true)
  return stacks, left < 0 and limits.sentence("DUMP_STACKS") or shown:room_text()
end

-- Returns how many VMs have sampled each thread, by its id: each of several VMs may sample all threads.
local function samplers_of(profile)
  local samplers = numbermap.new()
  for _, session in ipairs(profile.sessions) do
    for tid in session.tids:each() do samplers[tid] = (samplers[tid] or 0) + 1 end
  end
  return samplers
end

-- Returns the samples of the threads: a list of
--   tid, name, on, waiting, runnable, lost   see threadstacks.of()
--   samplers                           number of VMs that have sampled it
--   unseen                             seconds of waits without a stack, by the reason
--   samples                            those with a stack in order of time, { slot =, seconds = }
-- and the seconds on CPU of threads not sampled, which are of the thread 0.
local function count(profile)
  local slots, by_tid, list, samplers = profile.slots, numbermap.new(), {}, samplers_of(profile)
  for _, weight, slot in profile.timeline:in_order() do
    local its, unit = slots:thread(slot), units.of(slots:event(slot).unit)
    local work, reason = leafwork.of(profile, slot)
    local thread = by_tid[its.tid]
    if not thread then
      thread = { tid = its.tid, name = its.name, on = 0, waiting = 0, runnable = 0, lost = 0,
		 samplers = samplers[its.tid] or 1, unseen = {}, samples = {} }
      by_tid[its.tid] = thread
      if work ~= G.SPF_WORK_OTHERS then list[#list + 1] = thread end
    end
    local key, seconds = KEYS[threadstates.of(profile, slot)], weight * (unit.ns or 0) / 1e9
    thread[key] = thread[key] + seconds / thread.samplers
    if key == "waiting" and HAS_NO_STACK[work] then
      if work == G.SPF_WORK_SHORT then reason = SHORT end
      thread.unseen[reason] = (thread.unseen[reason] or 0) + seconds
    elseif not HAS_NO_STACK[work] then
      thread.samples[#thread.samples + 1] = { slot = slot, seconds = seconds }
    end
  end
  return list, by_tid[0] and by_tid[0].on or 0
end

-- Several VMs sample a thread; the one whose code it runs knows its Lua frames.
local function choose(thread, found)
  local best
  for i = #thread.samples, 1, -1 do
    local its = thread.samples[i]
    if found[its.slot] then
      best = best or its
      if thread.samplers == 1 then break end
      if found[its.slot] == LUA then return its end
    end
  end
  return best
end

-- Returns the key of the largest value, or nil.
local function largest(sums)
  local most
  for key, value in pairs(sums) do
    if not most or value > sums[most] then most = key end
  end
  return most
end

-- -- API -------------------------------------------------------------------

-- Returns the threads of a profile with a timeline, its real time in seconds, which stacks are left out or nil, and the
-- seconds on CPU of threads not sampled. A thread has:
--   tid, name                 as in the profile
--   on, waiting, runnable, lost   seconds in these states
--   frames                    of its last stack, innermost first: { text =, kind =, file =, line =, module = }
--   wait, seconds             what it waits for there, and how long, or nil
--   has_lua                   whether Lua frames are in the stack
--   unseen                    why most of its waits have no stack, SPF_UNSEEN_* or "short"
-- Without a stack, frames is nil.
function threadstacks.of(profile)
  local list, others = count(profile)
  local wanted, chosen, missing = {}, {}, nil
  for _, thread in ipairs(list) do
    for _, sample in ipairs(thread.samples) do wanted[sample.slot] = true end
  end
  local shown = view.new(profile, { lines = true })
  local found, stacks = shown and stacked(shown, wanted) or {}, {}
  for _, thread in ipairs(list) do
    local best = choose(thread, found)
    thread.unseen, thread.samples, thread.best = largest(thread.unseen), nil, best
    if best then chosen[best.slot] = true end
  end
  if shown then stacks, missing = stacks_of(profile, shown, chosen) end
  for _, thread in ipairs(list) do
    local best = thread.best
    local stack = best and stacks[best.slot]
    if stack then
      thread.frames, thread.wait, thread.has_lua = stack.frames, stack.wait, found[best.slot] == LUA
      thread.seconds = stack.wait and best.seconds
    end
    thread.best = nil
  end
  return list, headline.real_time(profile) or profile.end_time / 1e6, missing, others
end

return threadstacks
