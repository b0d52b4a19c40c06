----------------------------------------------------------------------------
-- Recordings of live programs: begin together, and are followed to their ends.
--
-- Each program writes into a file of its own, whose descriptor it gets. say(...) takes sentences on what the
-- programs did.
----------------------------------------------------------------------------

local files = require("sysprof.base.files")
local limits = require("sysprof.base.limits")
local processes = require("sysprof.live.processes")
local programs = require("sysprof.live.programs")
local requests = require("sysprof.live.requests")
local system = require("sysprof.base.system")

local DONE_SECONDS = limits.DONE_SECONDS	-- A program may search names at the end of its profile.
local STEP_SECONDS = 1
local NEARLY, EARLY_SECONDS = 0.99, 0.1	-- What is left of the time that was asked for is worth a line above these.
local ENDING_SECONDS = 0.5	-- Programs that end close their profiles first.

-- Programs have one recording at a time.
local BUSY = "another client records this process already"
local WAITS = "another client records it; this recording begins when that one ends"
local BUSY_SECONDS = 0.2	-- From one question to the next.

local recording = { BUSY = BUSY }

-- Says the sentences of a program.
local function say_all(say, name, list)
  for _, sentence in ipairs(list) do say(name, ": ", sentence) end
end

-- Lets programs of a list begin. started gets those that began. Returns how many refused the request, and a list of
-- those that refused because they are busy, if is_last is not set; and whether signals ended that. started.has_refused
-- is set if one refused the events.
local function ask(list, values, say, started, signals, is_last)
  local refused, busy = 0, {}
  local is_interrupted = requests.ask_for_files(list, "record", values, function(program, answer, why, is_refusal)
    local name = programs.name(program.facts)
    if not answer or answer.kind ~= "ok" then
      requests.close(program)
      if not is_last and is_refusal and why:find(BUSY, 1, true) then
	busy[#busy + 1] = program
	return
      end
      refused = refused + (is_refusal and 1 or 0)
      started.has_refused = started.has_refused or is_refusal and requests.is_wrong_event(why)
      say_all(say, name, answer and answer.notes or {})
      say_all(say, name, answer and answer.errors or {})
      if why or #answer.errors == 0 then say(why or name .. " ended the recording at once") end
      return
    end
    started[#started + 1] = program
    say_all(say, name, answer.notes)
  end, signals)
  return refused, busy, is_interrupted
end

-- The user does not want it any more: programs that have begun end as their connections close.
local function interrupted(say, started)
  for _, program in ipairs(started) do requests.close(program) end
  say("interrupted before the recording began")
  return {}
end

-- Lets each opened program begin. values: lines of the request. patience: seconds that one program may be recorded for
-- somebody else before, or nil. signals: they end this wait; an object of sysprof.base.interrupts, or nil. Returns
-- those that began, with path: where they write, and has_refused: one refused the events; and how many refused the
-- request.
function recording.begin(list, values, say, patience, signals)
  local started, begun, told = {}, system.now(), false
  -- Nobody would follow a program that has begun while others are waited for.
  local refused, busy, is_interrupted = ask(list, values, say, started, signals, not patience or #list > 1)
  while #busy > 0 and not is_interrupted do
    if not told then
      for _, program in ipairs(busy) do say(programs.name(program.facts), ": ", WAITS) end
      told = true
    end
    local ready = system.wait({ signals and signals.fd }, BUSY_SECONDS)
    if signals and ready[signals.fd] and signals.take() then return interrupted(say, started), refused + #busy end
    local opened = requests.reopen(busy)
    for _, program in ipairs(busy) do
      if not program.fd then say(program.sentence or programs.name(program.facts) .. " has ended") end
    end
    local more
    more, busy, is_interrupted = ask(opened, values, say, started, signals, system.now() > begun + patience)
    refused = refused + more
  end
  if is_interrupted then return interrupted(say, started), refused end
  return started, refused
end

-- Says which programs ended their recordings before the time that was asked for. list: { program =, seconds = }.
local function say_early(say, list, duration)
  local limit = system.now() + ENDING_SECONDS
  for _, early in ipairs(list) do
    local program = early.program
    while not processes.has_ended(program.pid) and system.now() < limit do system.wait({}, 0.01) end
    say(programs.name(program.facts), processes.has_ended(program.pid) and " ended" or " ended its recording",
	(" after %.1f of %g s"):format(early.seconds, duration))
  end
end

-- Takes what a recording program has sent. Returns whether its recording is over.
local function take(say, program)
  local answer, why, is_closed = requests.receive(program)
  local name = programs.name(program.facts)
  if answer and answer.kind == "done" then
    say_all(say, name, answer.notes)
    say_all(say, name, answer.errors)
  elseif answer then
    say(name, " sent a second answer before the recording ended")
  elseif is_closed then
    say(requests.why_closed(program, why), "; what it had written until then is kept")
  elseif why then
    say(why)
  end
  return answer ~= nil or why ~= nil
end

-- Returns why the file of a recording is too long, or nil. The program may write as much as it wants.
function recording.too_long(program, most)
  local st = files.stat_of(program.file)
  if not st or st.size <= most then return nil end
  return ("%s: its recording was ended: %s"):format(programs.name(program.facts), limits.too_long(most))
end

-- Says that a profile is not of the process that was asked for it, or nil. The program may write what it wants.
function recording.foreign(profile, facts)
  for _, session in ipairs(profile.sessions) do
    local pid = tonumber(session.meta.pid or "")
    if pid and pid ~= facts.own_pid then
      return ("%s sent the recording of another process, expected PID %d in it, got %.0f; restart the program")
	     :format(programs.name(facts), facts.own_pid, pid)
    end
  end
end

-- Ends recordings whose files are too long, and says so. list: those that began. running: those that go on. Returns
-- whether there are any.
local function end_long(say, list, running, most)
  local found = false
  for _, program in ipairs(list) do
    local why = not program.is_long and recording.too_long(program, most)
    if why then
      say(why, "; what it had written until then is kept")
      requests.close(program)	-- The program notices that its client has left.
      program.is_long, found = true, true
    end
  end
  for i = #running, 1, -1 do
    if running[i].is_long then table.remove(running, i) end
  end
  return found
end

-- Asks recording programs to end their recordings, each by a connection of its own. Returns a list of these.
local function stop(list)
  local stops = {}
  for _, program in ipairs(list) do
    local fd = programs.connect(program.facts)
    local its = { fd = fd, pid = program.pid, facts = program.facts }
    if fd and requests.send(its, "stop") then stops[#stops + 1] = its end
  end
  return stops
end

-- Waits until all recordings are over: by themselves, by a signal, or because a program does not answer. signals: an
-- object of sysprof.base.interrupts, or nil. most: bytes of a file. Returns whether a file became longer.
function recording.follow(list, duration, most, say, signals)
  local begun, early, is_long = system.now(), {}, false
  local running, stops, limit = {}, nil, duration and system.now() + duration + DONE_SECONDS
  for _, program in ipairs(list) do running[#running + 1] = program end
  while #running > 0 do
    local fds = { signals and signals.fd }
    for _, program in ipairs(running) do fds[#fds + 1] = program.fd end
    local ready = system.wait(fds, STEP_SECONDS)
    for i = #running, 1, -1 do
      if ready[running[i].fd] and take(say, running[i]) then
	local program, seconds = table.remove(running, i), system.now() - begun
	if duration and not stops and seconds < duration * NEARLY and seconds < duration - EARLY_SECONDS then
	  early[#early + 1] = { program = program, seconds = seconds }
	end
      end
    end
    is_long = end_long(say, list, running, most) or is_long
    if signals and ready[signals.fd] and signals.take() then
      if stops then break end	-- Who interrupts twice does not want to wait.
      stops, limit = stop(running), system.now() + DONE_SECONDS
    end
    if limit and system.now() > limit then
      for _, program in ipairs(running) do
	say(requests.no_answer(program, DONE_SECONDS), "; what it had written until then is kept")
      end
      break
    end
  end
  for _, program in ipairs(stops or {}) do requests.close(program) end
  say_early(say, early, duration)
  return is_long
end

return recording
