----------------------------------------------------------------------------
-- Windows: short recordings of live programs, one behind the other.
--
-- A program's next window begins as soon as it has told that the last one is complete. Nothing here waits, except
-- windows.open().
----------------------------------------------------------------------------

local limits = require("sysprof.base.limits")
local processes = require("sysprof.live.processes")
local programs = require("sysprof.live.programs")
local recording = require("sysprof.live.recording")
local requests = require("sysprof.live.requests")
local system = require("sysprof.base.system")

local RETRY_SECONDS = 1
local GIVE_UP_SECONDS = 10	-- After this time without a connection.
local LATE_SECONDS = 3		-- A window that is not complete so long after its end is worth a note.
local SENTENCES = 5		-- On programs that have ended, if others come.

local windows = {}
local methods = {}
local mt = { __index = methods }

local function name_of(its) return programs.name(its.facts) end

local function remove(self, its, sentence)
  requests.close(its)
  its.ended = sentence
  for i, other in ipairs(self.list) do
    if other == its then table.remove(self.list, i) end
  end
  self.sentences[#self.sentences + 1] = sentence
end

local function retry(its, sentence)
  requests.close(its)
  its.note, its.due = sentence, system.now() + RETRY_SECONDS
end

-- Connects to a program again. Returns whether that worked.
local function connect(self, its)
  local opened = programs.open_all({ its.pid })[1]
  local why = opened.sleeps and requests.no_vm(its) or opened.sentence
  if opened.fd then
    its.fd, its.facts, its.lost_since = opened.fd, opened.facts, nil
    return true
  elseif processes.has_ended(its.pid) then
    remove(self, its, name_of(its) .. " has ended")
    return false
  end
  its.lost_since = its.lost_since or system.now()
  if programs.stopped(its.facts) then its.lost_since = nil end
  if its.lost_since and system.now() > its.lost_since + GIVE_UP_SECONDS then
    remove(self, its, why)
  else
    retry(its, why)
  end
  return false
end

-- Begins the window of a program.
local function begin(self, its)
  its.due = nil
  if not its.fd and not connect(self, its) then return end
  local ok, why = requests.send_file(its, "record", self.values)
  if ok then
    its.begun, its.is_accepted, its.is_late = system.now(), false, false
    return
  end
  if processes.has_ended(its.pid) then return remove(self, its, name_of(its) .. " has ended") end
  retry(its, why)
end

-- The window of a program is over. answer: "done", or nil if it broke off. why: a sentence, or nil.
local function finish(self, its, answer, why, is_closed, take)
  local path, file = its.path, its.file
  local is_early = is_closed or system.now() < its.begun + self.seconds	-- The program may be ending.
  requests.close(its)
  its.path, its.file = nil, nil
  if answer then
    local said = answer.errors[1] or answer.notes[1]
    its.note = said and ("%s: %s"):format(name_of(its), said) or nil
    its.has_failed = answer.errors[1] ~= nil
  else
    its.note = why
  end
  if is_early and requests.has_ended(its) or processes.has_ended(its.pid) then
    remove(self, its, name_of(its) .. " has ended")
  elseif answer and not is_early and not self.is_once then
    begin(self, its)
  elseif not self.is_once then
    its.due = system.now() + RETRY_SECONDS
  end
  take(its, path)
  system.close(file)
end

-- -- API -------------------------------------------------------------------

-- list: of programs.open_all(). values: of the requests. seconds: of a window. Waits for the first answers of all
-- programs. Returns an object with: list, the programs that are left; sentences, why others are not.
function windows.open(list, values, seconds)
  local self = setmetatable({ list = {}, values = values, seconds = seconds, sentences = {} }, mt)
  for i, its in ipairs(list) do self.list[i] = its end
  for _, its in ipairs(list) do begin(self, its) end
  local asked = {}
  for _, its in ipairs(list) do
    if its.path then
      asked[#asked + 1] = its
    elseif not its.ended and not its.has_left then
      remove(self, its, its.note)
    end
  end
  requests.collect(asked, function(its, answer, why)
    if answer and answer.kind == "ok" then
      its.is_accepted = true
      if answer.notes[1] then its.note = ("%s: %s"):format(name_of(its), answer.notes[1]) end
    elseif its.has_left and not processes.has_ended(its.pid) then
      system.close(its.file)
      its.path, its.file = nil, nil
      retry(its, why)
    else
      system.close(its.file)
      local refusal = answer and (answer.errors[1] or answer.notes[1])
      remove(self, its, why or ("%s: %s"):format(name_of(its), refusal or "the recording ended at once"))
    end
  end)
  return self
end

-- Also records an opened program from now on.
function methods:add(its)
  while #self.sentences > SENTENCES do table.remove(self.sentences, 1) end
  self.list[#self.list + 1] = its
  begin(self, its)
end

-- Returns the descriptors of the programs' connections.
function methods:fds()
  local list = {}
  for _, its in ipairs(self.list) do
    if its.path then list[#list + 1] = its.fd end
  end
  return list
end

-- Takes what programs have sent, and begins windows that are due. Calls take(program, path) for each window that is
-- over, with its profile.
function methods:step(ready, take)
  for _, its in ipairs { unpack(self.list) } do
    local too_long = its.path and recording.too_long(its, limits.WINDOW_BYTES)
    if too_long then
      system.close(its.file)
      its.path, its.file = nil, nil
      remove(self, its, too_long)
    elseif its.path and ready[its.fd] then
      local answer, why, is_closed = requests.receive(its)
      if answer and answer.kind == "ok" and not its.is_accepted then
	its.is_accepted = true
      elseif answer or why then
	if answer and answer.kind == "ok" then answer, why = nil, name_of(its) .. " sent a second answer" end
	finish(self, its, answer, why, is_closed, take)
      end
    elseif its.path and system.now() > its.begun + self.seconds + LATE_SECONDS then
      its.note, its.is_late = requests.no_answer(its, LATE_SECONDS), true
    elseif its.due and system.now() >= its.due then
      begin(self, its)
    end
  end
end

-- Returns a sentence on a program that does not record as asked, or nil.
function methods:note()
  for _, its in ipairs(self.list) do
    if its.note then return its.note end
  end
  return self.sentences[#self.sentences]
end

-- Ends all windows.
function methods:close()
  for _, its in ipairs(self.list) do
    requests.close(its)
    if its.file then system.close(its.file) end
    its.file = nil
  end
end

return windows
