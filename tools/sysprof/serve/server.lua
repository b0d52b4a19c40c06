----------------------------------------------------------------------------
-- HTTP server: one loop serves all connections. No connection blocks another one.
--
-- A connection reads its request, waits for its job if the answer takes time, writes the answer, and waits until the
-- other side has taken it. Each step has a limit in time, and the number of connections has one.
----------------------------------------------------------------------------

local asker = require("sysprof.serve.asker")
local http = require("sysprof.serve.http")
local jobs = require("sysprof.serve.jobs")
local limits = require("sysprof.base.limits")
local processes = require("sysprof.live.processes")
local system = require("sysprof.base.system")
local tcp = require("sysprof.serve.tcp")
local token = require("sysprof.serve.token")

local STEP_SECONDS = 60
local REST_SECONDS = 0.1	-- After a connection that could not be taken, because descriptors are missing.

local TEXT = "text/plain; charset=utf-8"

local server = {}
local methods = {}
local mt = { __index = methods }

-- -- One connection: reading -> (waiting -> working) -> writing -> closing --

function methods:close(c)
  if c.job then jobs.kill(c.job) end
  if c.file then system.close(c.file) end
  c.job, c.file = nil, nil
  self.all[c] = nil
  self.count = self.count - 1
  system.close(c.fd)
end

-- The answer is a text, or a file of this size.
local function answer(c, status, content_type, body, file, size, name)
  c.state, c.limit = "writing", system.now() + limits.WRITE_SECONDS
  c.out = http.head(status, content_type, file and size or body and #body, name)
  c.out_at, c.file, c.file_at = 0, file, 0
  if c.is_head and file then
    system.close(file)
    c.file = nil
  elseif not c.is_head then
    c.out = c.out .. (body or "")
  end
end

local function refuse(c, status, sentence)
  answer(c, status, TEXT, sentence .. "\n")
end

-- Returns why the address of a request is refused, or nil. Moves the token from its path into its prefix. Who knows the
-- token may call this machine by any name.
function methods:wrong_address(request)
  if not self.token then return asker.wrong_host(request.fields, self.host) end
  local rest = token.rest_of(request.path, self.token)
  if not rest then return "expected the token in the address; luajit-sysprof serve printed it" end
  request.path, request.prefix = rest, "/" .. self.token
end

-- Takes a whole request.
function methods:dispatch(c, header)
  local request, status, sentence = http.parse(header)
  c.is_head = request and request.method == "HEAD" or false
  if not request then return refuse(c, status, sentence) end
  local wrong = self:wrong_address(request)
  if wrong then return refuse(c, 403, wrong) end
  local result = self.handle(request)
  wrong = asker.wrong_site(request.fields, result.acts, self.token ~= nil)
  if wrong then return refuse(c, 403, wrong) end
  if not result.job then
    return answer(c, result.status, result.type or TEXT, result.body)
  elseif c.is_head then
    return answer(c, 200, result.type)
  end
  local waiting = 0
  for _, other in ipairs(self.queue) do waiting = waiting + (other.records and 1 or 0) end
  if result.records and waiting >= limits.REQUESTS_WAITING then
    return refuse(c, 503, limits.sentence("REQUESTS_WAITING"))
  end
  c.state, c.limit, c.work, c.records, c.after = "waiting", math.huge, result.job, result.records, 0
  self.queue[#self.queue + 1] = c
end

function methods:read(c)
  local s = tcp.receive(c.fd)
  if not s then return end
  if s == "" then return self:close(c) end	-- Nobody waits for the answer.
  if c.state == "closing" then return end
  if c.state ~= "reading" then
    c.after = c.after + #s
    if c.after > limits.AFTER_REQUEST then self:close(c) end
    return
  end
  c.input = c.input .. s
  local header, len = http.whole_header(c.input)
  if (len or #c.input) > limits.HEADER then
    refuse(c, 431, limits.sentence("HEADER"))
  elseif header then
    c.input = ""
    self:dispatch(c, header)
  end
end

function methods:write(c)
  if c.out_at == #c.out then
    c.out = c.file and tcp.part_of_file(c.file, c.file_at) or ""
    c.out_at, c.file_at = 0, c.file_at + #c.out
    if c.out == "" then
      tcp.finish(c.fd)
      c.state, c.limit = "closing", system.now() + limits.CLOSE_SECONDS
      if c.file then system.close(c.file) end
      c.file = nil
      return
    end
  end
  local n = tcp.send(c.fd, c.out, c.out_at)
  if not n then return self:close(c) end
  if n > 0 then c.limit = system.now() + limits.WRITE_SECONDS end
  c.out_at = c.out_at + n
end

-- Ends a step that takes too long.
function methods:expire(c)
  if c.state == "reading" and c.input ~= "" then
    return refuse(c, 408, limits.sentence("HEADER_SECONDS"))
  end
  self:close(c)
end

-- Takes a new connection.
function methods:accept()
  local fd = tcp.accept(self.listener)
  if not fd then
    self.rests_until = system.now() + REST_SECONDS
    return
  end
  local c = { fd = fd, state = "reading", limit = system.now() + limits.HEADER_SECONDS, input = "", is_head = false }
  local busy = 0
  for other in pairs(self.all) do busy = busy + (other.state ~= "closing" and 1 or 0) end
  self.all[c], self.count = true, self.count + 1
  if busy >= limits.CONNECTIONS then
    refuse(c, 503, limits.sentence("CONNECTIONS"))
  end
end

-- -- Jobs ------------------------------------------------------------------

-- Starts the jobs whose turn it is. A program takes one recording at a time.
function methods:start_jobs()
  local recordings, others, foreign = 0, 0, { self.listener, self.signals.fd }
  for c in pairs(self.all) do
    foreign[#foreign + 1] = c.fd
    foreign[#foreign + 1] = c.file
    if c.job then
      foreign[#foreign + 1] = c.job.fd
      foreign[#foreign + 1] = c.job.file
      if c.records then recordings = recordings + 1 else others = others + 1 end
    end
  end
  local left = {}
  for _, c in ipairs(self.queue) do
    local can_start = c.records and recordings == 0 or not c.records and others < limits.JOBS
    if not self.all[c] then can_start = false
    elseif not can_start then
      left[#left + 1] = c
      if c.records and not c.has_told then
	c.has_told = true
	self.note("a request waits: another one records")
      end
    end
    if can_start then
      local job, why = jobs.start(c.work, self.pid, foreign)
      if job then
	c.job, c.state = job, "working"
	foreign[#foreign + 1], foreign[#foreign + 2] = job.fd, job.file
	if c.records then recordings = recordings + 1 else others = others + 1 end
      else
	refuse(c, 503, why)
      end
    end
  end
  self.queue = left
end

function methods:take(c)
  local status, what, file, size, name = jobs.take(c.job)
  if not status then return end
  c.job = nil
  if file then answer(c, status, what, nil, file, size, name) else refuse(c, status, what) end
end

-- -- The loop --------------------------------------------------------------

-- Waits, and does a step of each connection that is ready. Returns whether a signal ends the server.
function methods:step()
  local readable, writable, of, limit = { self.signals.fd }, {}, {}, system.now() + STEP_SECONDS
  if self.rests_until > system.now() then
    limit = self.rests_until
  elseif self.count < limits.SOCKETS then
    readable[2] = self.listener
  end
  for c in pairs(self.all) do
    local list = c.state == "writing" and writable or readable
    list[#list + 1], of[c.fd], limit = c.fd, c, math.min(limit, c.limit)
    if c.job then readable[#readable + 1], of[c.job.fd] = c.job.fd, c end
  end
  local ready = system.wait(readable, limit - system.now(), writable)
  for fd, c in pairs(of) do
    if ready[fd] and self.all[c] then
      if fd ~= c.fd then self:take(c)
      elseif c.state == "writing" then self:write(c)
      else self:read(c)
      end
    end
  end
  local now = system.now()
  for _, c in pairs(of) do
    if self.all[c] and now >= c.limit then self:expire(c) end
  end
  if ready[self.listener] then self:accept() end
  self:start_jobs()
  return ready[self.signals.fd] and self.signals.take()
end

-- Serves until a signal comes. where: { fd= } of a listening socket, { host= } its name, or nil, { token= } with which
-- paths begin, or nil, { note= } says a sentence; signals: of sysprof.base.interrupts. handle(request) returns
-- { status=, type=, body= }, or { job=, type=, acts=, records= }: job is the work of sysprof.serve.jobs, acts tells
-- that programs do something for it, records that no other such job may run.
function server.run(where, signals, handle)
  local listener = where.fd
  local self = setmetatable({ listener = listener, host = where.host, token = where.token, note = where.note,
			      signals = signals, handle = handle, pid = processes.own_pid(), all = {}, count = 0,
			      queue = {}, rests_until = 0 }, mt)
  repeat until self:step()
  local list = {}
  for c in pairs(self.all) do list[#list + 1] = c end
  for _, c in ipairs(list) do self:close(c) end
  system.close(listener)
end

return server
