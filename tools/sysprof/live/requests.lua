----------------------------------------------------------------------------
-- Requests to live programs, and their answers (doc/live.md).
--
-- A packet is a list of lines: the first is a verb, "ok", "done", or "error" and a sentence; the others
-- are "key=value". The program at the other side may be broken or hostile: no wait is without an
-- end, and all answers are text to be cleaned.
----------------------------------------------------------------------------

local limits = require("sysprof.base.limits")
local processes = require("sysprof.live.processes")
local programs = require("sysprof.live.programs")
local socket = require("sysprof.live.socket")
local sort = require("sysprof.base.sort")
local system = require("sysprof.base.system")
local temporary = require("sysprof.base.temporary")
local text = require("sysprof.base.text")

local END_SECONDS = 0.5
local USUAL_SECONDS = 1.5	-- After which a process without an answer may be stopped.
local STEP_SECONDS = 0.2
local FULL = "No space left on device"	-- What a program answers that cannot write our temporary file.
local SENTENCE_MAX = limits.ANSWER_SENTENCE
local NO_VM = "has no live VM any more"	-- As a program answers.

-- Parts of the answers to events that a program does not know.
local WRONG_EVENT = { "' is not a clock or event", "' is followed by '", "; it must be between ",
		      "'live' is recorded by 'alloc'", "the list of clocks has an empty name" }

local requests = {}

-- Whether a refusal is about the events that the request names, so no program will ever take it.
function requests.is_wrong_event(sentence)
  for _, part in ipairs(WRONG_EVENT) do
    if sentence:find(part, 1, true) then return true end
  end
  return false
end

-- Returns how long a program may take to answer.
function requests.patience()
  return processes.is_busy() and limits.BUSY_SECONDS or limits.ANSWER_SECONDS
end

-- Returns { kind = "ok" or "done", values = {}, notes = {}, errors = {} } or { kind = "error", sentence = }; or nil for
-- any other packet.
local function parse(packet)
  local first, rest = packet:match("^([^\n]*)\n?(.*)$")
  local sentence = first:match("^error +(%S.*)$")
  if sentence then return { kind = "error", sentence = text.short(text.without_end(sentence), SENTENCE_MAX) } end
  if first ~= "ok" and first ~= "done" then return nil end
  local answer = { kind = first, values = {}, notes = {}, errors = {} }
  for line in rest:gmatch("[^\n]+") do
    local key, value = line:match("^([%a_]+)=(.*)$")
    if not key then return nil end
    local list = key == "note" and answer.notes or key == "error" and answer.errors
    if not list then
      answer.values[key] = value
    elseif #list < limits.ANSWER_NOTES then
      list[#list + 1] = text.short(value, SENTENCE_MAX)
    end
  end
  return answer
end

-- Returns a value of an answer as a number, 0 if it is absent or no number.
function requests.number(answer, key)
  local value = answer.values[key] or ""
  return value:find("^%d+$") and #value < 10 and tonumber(value) or 0
end

-- Names the file that a program could not write.
local function explained(program, sentence)
  return program.file and sentence == FULL and temporary.problem(FULL) or sentence
end

-- Says that a program has closed its VM.
function requests.no_vm(program)
  return ("%s %s"):format(programs.name(program.facts), NO_VM)
end

-- Reads what a program has sent. Returns an answer; or nil and, unless nothing has come yet, a sentence, whether the
-- program has closed the connection, and whether it refuses the request. Sets has_left if it has closed its VM.
function requests.receive(program)
  local packet, sender = socket.receive(program.fd)
  local name = programs.name(program.facts)
  if not packet then return nil end
  if packet == "" then return nil, name .. " closed the connection", true end
  if sender ~= program.pid then return nil, ("another process answers for %s; restart the program"):format(name) end
  local answer = parse(packet)
  if not answer then return nil, limits.sentence("PACKET", name) end
  if answer.kind == "error" then
    program.has_left = answer.sentence:find(NO_VM, 1, true) ~= nil
    return nil, ("%s: %s"):format(name, explained(program, answer.sentence)), false, true
  end
  for i, sentence in ipairs(answer.errors) do answer.errors[i] = explained(program, sentence) end
  return answer
end

-- Sends a request to an opened program. values: a table of its lines. Returns true, or nil and a sentence.
function requests.send(program, verb, values, descriptor)
  local lines = {}
  for key, value in pairs(values or {}) do
    local shown = type(value) == "number" and ("%.14g"):format(value) or tostring(value)
    lines[#lines + 1] = ("%s=%s"):format(key, shown)
  end
  sort(lines)
  table.insert(lines, 1, verb)
  local ok, err = socket.send(program.fd, table.concat(lines, "\n") .. "\n", descriptor)
  if ok then return true end
  local _, refusal, is_closed = requests.receive(program)	-- It may have said why before it closed.
  if refusal and not is_closed then return nil, refusal end
  local is_gone = is_closed or err:find("Broken pipe", 1, true) or err:find("reset by peer", 1, true)
  local why = is_gone and "it " .. NO_VM or err
  why = ("%s took no request: %s"):format(programs.name(program.facts), why)
  return nil, is_gone and requests.why_closed(program, why) or why
end

-- Sends a request with the descriptor of a new file, which the program fills. Returns true, or nil and a sentence. The
-- file stands at program.path until program.file is closed.
function requests.send_file(program, verb, values)
  local path, fd = temporary.unnamed()
  if not path then return nil, fd end
  local ok, why = requests.send(program, verb, values, fd)
  if ok then
    if program.file then system.close(program.file) end
    program.path, program.file = path, fd
    return true
  end
  system.close(fd)
  return nil, why
end

-- Has a program ended that has closed its connection? An end closes the connection a moment before it shows.
function requests.has_ended(program)
  local limit = system.now() + END_SECONDS
  repeat
    if processes.has_ended(program.pid) then return true end
    system.wait({}, 0.01)
  until system.now() > limit
  return false
end

-- Says why a program has closed its connection; why: what else is known. Sets has_left if its VM may be closed.
function requests.why_closed(program, why)
  local name, facts = programs.name(program.facts), program.facts
  if requests.has_ended(program) then return name .. " has ended" end
  local now = processes.look(program.pid)	-- exec() keeps the process, and its time of start.
  if now and (now.comm ~= facts.comm or table.concat(now.args, " ") ~= table.concat(facts.args, " ")) then
    return ("%s runs another program now, %s"):format(name, now.name)
  end
  program.has_left = true
  return why .. programs.filter_text(facts)
end

-- Says that a program did not answer.
function requests.no_answer(program, seconds)
  local name = programs.name(program.facts)
  if processes.has_ended(program.pid) then return name .. " has ended" end
  return programs.stopped(program.facts) or
	 limits.sentence("ANSWER_SECONDS", name, seconds) .. programs.filter_text(program.facts)
end

function requests.close(program)
  if program.fd then system.close(program.fd) end
  program.fd = nil
end

-- Returns what a program has sent, or why it sends nothing: an answer; or nil, a sentence, whether it refuses; or nil.
local function news(program, is_ready, is_late)
  if is_ready then
    local answer, why, is_closed, is_refusal = requests.receive(program)
    if is_closed then why = requests.why_closed(program, why) end
    return answer, why, is_refusal
  end
  return nil, is_late and programs.stopped(program.facts) or nil
end

-- Waits until each program of a list has sent an answer, or time is up. Calls take(program, answer), or
-- take(program, nil, sentence, whether it refuses), for each. If take returns true, another answer is to come. seconds:
-- what the programs need for their work, or nil. signals: they end the wait; an object of sysprof.base.interrupts, or
-- nil. Returns whether they did; then programs without an answer are closed.
function requests.collect(list, take, seconds, signals)
  local waiting, begun = {}, system.now()
  seconds = (seconds or 0) + requests.patience()
  for _, program in ipairs(list) do waiting[program] = true end
  while next(waiting) and system.now() < begun + seconds do
    local fds = { signals and signals.fd }
    for program in pairs(waiting) do fds[#fds + 1] = program.fd end
    local ready, is_late = system.wait(fds, STEP_SECONDS), system.now() > begun + USUAL_SECONDS
    if signals and ready[signals.fd] and signals.take() then
      for program in pairs(waiting) do requests.close(program) end
      return true
    end
    for program in pairs(waiting) do
      local answer, why, is_refusal = news(program, ready[program.fd], is_late)
      if (answer or why) and not take(program, answer, why, is_refusal) then waiting[program] = nil end
    end
  end
  for _, program in ipairs(list) do	-- In their order.
    if waiting[program] then take(program, nil, requests.no_answer(program, seconds)) end
  end
  return false
end

-- Connects anew to programs that have closed their VMs, if they open the next ones soon. Returns those that did.
function requests.reopen(list)
  for _, program in ipairs(list) do requests.close(program) end
  programs.await(list)
  local opened = {}
  for _, program in ipairs(list) do
    program.sentence = nil
    opened[#opened + 1] = program.fd and program or nil
  end
  return opened
end

-- Sends a request with a new file to each program of a list, and collects their answers as above. Asks one that has
-- just closed its VM once more. Returns whether signals ended that.
function requests.ask_for_files(list, verb, values, take, signals)
  local function ask(some, again)
    local asked, left, why_of = {}, {}, {}
    local function took(program, answer, why, is_refusal)
      if answer or not (again and program.has_left) then return take(program, answer, why, is_refusal) end
      left[#left + 1], why_of[program] = program, why
    end
    for _, program in ipairs(some) do
      local ok, why = requests.send_file(program, verb, values)
      if ok then asked[#asked + 1] = program else took(program, nil, why) end
    end
    return left, why_of, requests.collect(asked, took, nil, signals)
  end
  local left, why_of, is_interrupted = ask(list, true)
  if is_interrupted then return true end
  local opened = requests.reopen(left)
  for _, program in ipairs(left) do
    if program.fd then program.has_left = false else take(program, nil, why_of[program]) end
  end
  return select(3, ask(opened, false))
end

-- Sends a short request to each program of a list, and closes them. Calls take as above.
function requests.ask(list, verb, take)
  local asked = {}
  for _, program in ipairs(list) do
    local ok, why = requests.send(program, verb)
    if ok then asked[#asked + 1] = program else take(program, nil, why) end
  end
  requests.collect(asked, take)
  for _, program in ipairs(list) do requests.close(program) end
end

return requests
