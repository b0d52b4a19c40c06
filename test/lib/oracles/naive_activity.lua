----------------------------------------------------------------------------
-- Naive activity: what threads did over time, in steps.
--
-- A sample of a sum (naive_profile.lua) is a span of time. Each figure is a loop over all spans.
----------------------------------------------------------------------------

local naive = require("naive_profile")
local t = require("tools_test")

local naive_activity = {}

local STEPS = 1024
local FIRST_US = 1000	-- Length of a step at first.
local MANY_US = 1000000	-- A sample that stands for many waits spans no more.
local THREADS = 256	-- Others are only counted.

-- -- Spans -----------------------------------------------------------------

-- States are numbers: on CPU, waiting, runnable. Lost time has none.
local function state_of(s)
  if naive.is_off(s) and s.is_lost then return nil end
  return not naive.is_off(s) and 1 or s.runnable and 3 or 2
end

-- Returns the end of the sample before a sample of many waits: one of the same thread and state, also of many waits.
local function end_before(profile, at)
  local s = profile.samples[at]
  for i = at - 1, 1, -1 do
    local other = profile.samples[i]
    if other.session == s.session and other.tid == s.tid and other.in_sum and other.is_many and
       other.weight > 0 and state_of(other) == state_of(s) then
      return other.time
    end
  end
  return 0
end

-- Returns a list of { thread, sample, state, us, from, to }, one for each sample.
local function spans_of(profile)
  local list = {}
  for i, s in ipairs(profile.samples) do
    if s.in_sum and s.weight > 0 and state_of(s) then
      local us = s.unit == "us" and s.weight or s.weight / 1000
      local from = s.time - us
      if s.is_many then
	from = math.min(from, math.max(end_before(profile, i), s.time - MANY_US))
      end
      list[#list + 1] = { thread = naive.thread_key(s), sample = s, state = state_of(s), us = us,
			  from = math.max(from, 0), to = s.time }
    end
  end
  return list
end

-- -- Steps -----------------------------------------------------------------

local function step_length(spans)
  local last, us = 0, FIRST_US
  for _, span in ipairs(spans) do last = math.max(last, span.to) end
  while last >= STEPS * us do us = 2 * us end
  return us
end

-- Adds the part of a span that lies in each step.
local function add_span(steps, span, us)
  for i = math.floor(span.from / us), math.floor(span.to / us) do
    local inside = math.min(span.to, (i + 1) * us) - math.max(span.from, i * us)
    local share = span.to > span.from and inside / (span.to - span.from) or 1
    steps[i + 1][span.state] = steps[i + 1][span.state] + span.us * share
  end
end

-- CPU time that a step has no room for goes to the step before.
local function move_cpu_time(steps, us)
  for i = STEPS, 1, -1 do
    local step = steps[i]
    local more = math.max(step[1] - math.max(us - step[2] - step[3], 0), 0)
    step[1] = step[1] - more
    if i > 1 then steps[i - 1][1] = steps[i - 1][1] + more end
  end
end

-- Returns the length of a step, { sample, steps, total, weights } by thread, and the number of threads that are only
-- counted: those that come last. steps is a list of { on CPU, waiting,
-- runnable } in microseconds; weights has the sums of the weights by state.
local function threads_of(profile)
  local spans, of, count, others = {}, {}, 0, {}
  for _, span in ipairs(spans_of(profile)) do
    if not of[span.thread] and count == THREADS then
      others[span.thread] = true
    else
      count, of[span.thread] = count + (of[span.thread] and 0 or 1), true
      table.insert(spans, span)
    end
  end
  local us, left_out = step_length(spans), 0
  for _ in pairs(others) do left_out = left_out + 1 end
  for _, span in ipairs(spans) do
    local thread = of[span.thread]
    if thread == true then
      thread = { sample = span.sample, steps = {}, total = 0, weights = { 0, 0, 0 } }
      for i = 1, STEPS do thread.steps[i] = { 0, 0, 0 } end
      of[span.thread] = thread
    end
    add_span(thread.steps, span, us)
    thread.weights[span.state] = thread.weights[span.state] + span.us
  end
  for _, thread in pairs(of) do
    move_cpu_time(thread.steps, us)
    for _, step in ipairs(thread.steps) do thread.total = thread.total + step[1] + step[2] + step[3] end
  end
  return us, of, left_out
end

local function is_near(a, b)
  return math.abs(a - b) <= 1e-6 * math.max(1, math.abs(a), math.abs(b))
end

-- -- Checks ----------------------------------------------------------------

local function check_thread(got, expected, us, what)
  local sums, first, has_room = { 0, 0, 0 }, nil, true
  for i, step in ipairs(got.steps) do
    for state = 1, 3 do
      sums[state] = sums[state] + step[state]
      if not first and not is_near(step[state], expected.steps[i][state]) then
	first = ("step %d, state %d: expected %.3f, got %.3f"):format(i, state, expected.steps[i][state], step[state])
      end
    end
    has_room = has_room and (step[1] == 0 or step[1] + step[2] + step[3] <= us * (1 + 1e-9))
  end
  t.equal(#got.steps, STEPS, what .. ": steps")
  t.ok(not first, ("%s: %s"):format(what, first))
  t.ok(has_room, what .. ": a step has no more CPU time than room")
  t.ok(is_near(got.total, sums[1] + sums[2] + sums[3]), what .. ": sum of all")
  t.ok(is_near(sums[2], expected.weights[2]), what .. ": waiting")
  t.ok(is_near(sums[3], expected.weights[3]), what .. ": runnable")
  t.ok(sums[1] <= expected.weights[1] * (1 + 1e-6), what .. ": on CPU")
end

-- Checks the activity of a profile of the reader.
function naive_activity.check(p, profile, what)
  local us, of, left_out = threads_of(profile)
  local step_us, tracks = p.activity:tracks()
  local keys, expected = {}, {}
  for key in pairs(of) do expected[key] = true end
  for _, track in ipairs(tracks) do
    local key = naive.thread_key { pid = track.thread.pid or p.meta.pid, tid = track.thread.tid }
    keys[key] = true
    if of[key] then check_thread(track, of[key], us, ("%s, activity of %s"):format(what, key)) end
  end
  naive.same(keys, expected, what .. ", activity: threads")
  t.equal(step_us, us, what .. ", activity: length of a step")
  t.equal(p.activity.left_out, left_out, what .. ", activity: threads left out")
end

-- Returns by title the threads that a page shows, and the number of their steps.
local function shown_threads(case)
  local us, of = threads_of(case.naive)
  local wanted, last, list = case.options.threads, 0, {}
  for _, s in ipairs(case.naive.samples) do last = math.max(last, s.time) end
  for key, thread in pairs(of) do
    local is_shown = not wanted
    for _, v in ipairs(wanted or {}) do
      is_shown = is_shown or v == thread.sample.tid or v == case.naive.names[key]
    end
    if is_shown then list[naive.thread_title(case.naive, thread.sample)] = thread end
  end
  return list, math.min(math.floor(last / us) + 1, STEPS), us
end

-- Whether the shares of a thread are those of its steps, in percent without digits.
local function has_shares(shares, steps, us)
  for i, share in ipairs(shares) do
    local exact = 100 * steps[math.floor((i - 1) / 3) + 1][(i - 1) % 3 + 1] / us
    if math.abs(share - exact) > 0.5 + 1e-6 * (1 + exact) then return false end
  end
  return true
end

-- Checks the threads that the page of a flame graph shows. data: { step, left_out, list }, or nil.
function naive_activity.check_page(case, data)
  local what = case.what .. ", flamegraph"
  t.equal(data ~= nil, naive.has_states(case) and case.reader.activity ~= nil, what .. ": has threads")
  if not data or case.naive.no_leaves then return end
  local expected, count, us = shown_threads(case)
  local got, titles, main, last = {}, {}, false, math.huge
  for title, thread in pairs(expected) do
    titles[title] = true
    main = main or tostring(thread.sample.tid) == thread.sample.pid
  end
  for i, thread in ipairs(data.list) do
    local of = expected[thread.name]
    got[thread.name] = true
    t.equal(#thread.shares, 3 * count, ("%s: shares of %s"):format(what, thread.name))
    t.ok(of and has_shares(thread.shares, of.steps, us), ("%s: times of %s"):format(what, thread.name))
    local is_main = of and tostring(of.sample.tid) == of.sample.pid
    if i == 1 and main then
      t.ok(is_main, what .. ": the first thread of a process comes first")
    elseif of then
      t.ok(of.total <= last * (1 + 1e-6), what .. ": threads with the most time come first")
      last = of.total
    end
  end
  naive.same(got, titles, what .. ": threads")
  t.equal(data.step, us, what .. ": length of a step")
  t.equal(data.left_out, 0, what .. ": threads left out")
end

return naive_activity
