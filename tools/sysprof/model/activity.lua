----------------------------------------------------------------------------
-- Activity: what threads did over time, in steps of equal length.
--
-- Of sums of real time only. A thread has its time on CPU, waiting and runnable by step; lost time
-- is in none. The steps get twice as long when a profile outlasts them. So memory grows neither with
-- time nor with threads: 24 KiB for each of the first threads.
----------------------------------------------------------------------------

local array = require("sysprof.base.array")
local events = require("sysprof.model.events")
local threadstates = require("sysprof.model.threadstates")
local units = require("sysprof.model.units")

local steps = array.kind("struct { double time[3]; }")

local STEPS = 1024
local STEP_US = 1000	-- Length of a step at first.
-- Short waits and ready time stand in the stream as sums of up to so long.
local SUM_US = 1000000

local activity = {}
local methods = {}
local mt = { __index = methods }

local function new(room)
  return setmetatable({ room = room, step_us = STEP_US,
			is_part = {},	-- By event, when known.
			of_thread = {},	-- Tracks; false for a thread that is only counted.
			list = {}, left_out = 0 }, mt)
end

-- Returns { thread =, steps =, sums = } of a thread; false if it is only counted.
local function track_of(self, thread)
  local track = self.of_thread[thread]
  if track == nil and not self.room:take("TRACKS") then
    self.of_thread[thread], self.left_out, track = false, self.left_out + 1, false
  elseif track == nil then
    track = { thread = thread, steps = array.zeros(steps, STEPS), sums = {} }
    self.of_thread[thread], self.list[#self.list + 1] = track, track
  end
  return track
end

-- Makes the steps twice as long.
local function widen(self)
  for _, track in ipairs(self.list) do
    local list = track.steps
    for i = 0, STEPS - 1 do
      for state = 0, 2 do
	local sum = 2 * i < STEPS and list[2 * i].time[state] + list[2 * i + 1].time[state] or 0
	list[i].time[state] = sum
      end
    end
  end
  self.step_us = self.step_us * 2
end

-- Adds so much time of a thread in a state, evenly from one time to another.
local function add(self, track, state, us, from, to)
  while to >= STEPS * self.step_us do widen(self) end
  local width = self.step_us
  for i = math.floor(from / width), math.floor(to / width) do
    local part = math.min(to, (i + 1) * width) - math.max(from, i * width)
    local time = track.steps[i].time
    time[state - 1] = time[state - 1] + (to > from and us * part / (to - from) or us)
  end
end

-- Adds a sample of a thread, which ends at a time.
local function add_sample(self, profile, slot, now, weight)
  local event = profile.slots:event(slot)
  local is_part = self.is_part[event]
  if is_part == nil then
    is_part = events.is_part(event)
    self.is_part[event] = is_part
  end
  if weight == 0 or not is_part then return end
  local us, state = weight * units.of(event.unit).ns / 1000, threadstates.of(profile, slot)
  if state == threadstates.LOST then return end
  local track, from = track_of(self, profile.thread), now - us
  if not track then return end
  if threadstates.is_sum(profile, slot) then
    from = math.min(from, math.max(track.sums[state] or 0, now - SUM_US))
    track.sums[state] = now
  end
  add(self, track, state, us, math.max(from, 0), now)
end

-- Takes a track of another activity over.
local function take(self, track, thread)
  local own = self.of_thread[thread]
  if own then
    for i = 0, STEPS - 1 do
      for state = 0, 2 do
	own.steps[i].time[state] = own.steps[i].time[state] + track.steps[i].time[state]
      end
    end
    array.free(track.steps)
  else
    self.room:take("TRACKS")
    if own == false then self.left_out = self.left_out - 1 end
    track.thread = thread
    self.of_thread[thread], self.list[#self.list + 1] = track, track
  end
end

-- Adds the activity of another profile, which loses it. thread_of: a thread here by one there.
function methods:merge(other, thread_of)
  while self.step_us < other.step_us do widen(self) end
  while other.step_us < self.step_us do widen(other) end
  for _, track in ipairs(other.list) do take(self, track, thread_of[track.thread]) end
  for there, track in pairs(other.of_thread) do
    local thread = thread_of[there]
    if not track and self.of_thread[thread] == nil then
      self.of_thread[thread], self.left_out = false, self.left_out + 1
    end
  end
end

-- Returns the steps of a track as a list of { on, waiting, runnable }, in microseconds. A sample of
-- CPU time stands for time since the sample before, which may lie before waits. So what a step
-- has no room for goes to the steps before it.
local function steps_of(self, track)
  local list, rest = {}, 0
  for i = STEPS - 1, 0, -1 do
    local time = track.steps[i].time
    local room = math.max(self.step_us - time[1] - time[2], 0)
    local on = math.min(time[0] + rest, room)
    rest = time[0] + rest - on
    list[i + 1] = { on, time[1], time[2] }
  end
  return list
end

-- Returns the length of a step in microseconds, and a list of { thread =, steps =, total = }.
function methods:tracks()
  local out = {}
  for n, track in ipairs(self.list) do
    local list, total = steps_of(self, track), 0
    for _, time in ipairs(list) do total = total + time[1] + time[2] + time[3] end
    out[n] = { thread = track.thread, steps = list, total = total }
  end
  return self.step_us, out
end

-- Makes a profile note the activity of its threads by its options, see sysprof.model.profile.
function activity.attach(profile, options)
  if not options.activity then return end
  local add_slot, own = profile.add, new(profile.room)
  profile.activity = own
  profile.add = function(now, weight, state, lua, host, event)
    local ok, slot = add_slot(now, weight, state, lua, host, event)
    if slot and profile.session.meta.wall then add_sample(own, profile, slot, now, weight) end
    return ok, slot
  end
end

return activity
