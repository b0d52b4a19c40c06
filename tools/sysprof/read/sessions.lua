----------------------------------------------------------------------------
-- Sessions of a stream.
--
-- Each session is decoded into its own profile, because its ids have a meaning only there.
-- When the session has ended, its profile is added to the first ended session's. So memory
-- holds only sessions that run at the same time.
----------------------------------------------------------------------------

local G = require("sysprof.base.grammar")
local limits = require("sysprof.base.limits")
local merge = require("sysprof.model.merge")
local numbermap = require("sysprof.base.numbermap")
local profile = require("sysprof.model.profile")
local records = require("sysprof.read.records")

-- What a decoder counts in a chunk that has no definition.
local UNDEFINED = { { "undefined", "stacks of samples" }, { "undefined_labels", "sets of labels" },
		    { "undefined_texts", "texts of samples" } }

local sessions = {}
local methods = {}
local mt = { __index = methods }

-- version: of the stream. options: see sysprof.model.profile.
function sessions.new(version, options)
  return setmetatable({
    version = version,
    options = options,
    by_number = numbermap.new(), list = {},
    merged = nil,	-- Profile of the sessions that have ended.
    add = nil,		-- Adds another profile to it.
    damages = 0,	-- Damaged places so far.
    problems = {}, unlisted = 0,	-- { offset, text }, and how many more there are.
    ended = 0,		-- Sessions that have ended.
    full = {},		-- Set of the sentences on limits that were reported.
  }, mt)
end

function methods:problem(offset, text)
  if #self.problems < limits.PROBLEMS then
    self.problems[#self.problems + 1] = { offset, text }
  else
    self.unlisted = self.unlisted + 1
  end
end

-- The input is damaged at a place.
function methods:damage(offset, text)
  self.damages = self.damages + 1
  self:problem(offset, text)
end

-- A limit was reached at a place. Each sentence is reported once.
function methods:report_limit(offset, sentence)
  if not self.full[sentence] then self:problem(offset, sentence) end
  self.full[sentence] = true
end

local function session_of(self, number, offset)
  local s = self.by_number[number]
  if s then return s end
  local limit = #self.list == limits.SESSIONS and "SESSIONS" or
		#self.list - self.ended >= limits.OPEN_SESSIONS and "OPEN_SESSIONS" or nil
  if limit then
    self:report_limit(offset, limits.sentence(limit))
    return nil
  end
  s = {
    text = number > 0 and (" of session %.0f"):format(number) or "",
    due = nil,		-- Number of its next chunk; nil before the first one.
    damages = 0,	-- Damaged places before its last chunk.
    decoder = records.new(profile.new(self.options), self.version), -- Until its end.
    bad = {},		-- { number, offset of the first chunk } by UNDEFINED.
    late = false,	-- A chunk follows its end.
  }
  self.by_number[number], self.list[#self.list + 1] = s, s
  return s
end

-- Reports a chunk with an unexpected number. After a reported damage, the number after that
-- is expected, too. since: 1 if a session may begin with the chunk. Returns false if the
-- chunk must not be used: its samples are counted already.
local function check_seq(self, s, offset, seq, since)
  local due, damaged = s.due or since == 1 and seq or 0, s.damages < self.damages
  if not s.decoder then
    if not s.late then
      self:problem(offset, "a chunk follows the end of the stream" .. s.text)
    end
    s.late = true
    return false
  elseif seq < due then
    self:problem(offset, ("expected chunk number %.0f%s, found %.0f, which is " ..
			  "left out"):format(due, s.text, seq))
    return false
  elseif seq > due and not (damaged and seq == due + 1) then
    self:problem(offset, ("expected chunk number %.0f%s, found %.0f, those " ..
			  "between are missing"):format(due, s.text, seq))
  end
  return true
end

-- Adds a session's profile to the others.
local function take_over(self, s, offset)
  local p = s.decoder.profile
  s.decoder:finish()
  s.decoder = nil
  local why = p:refusal()
  if why then self:report_limit(offset, why) end
  for _, what in ipairs(UNDEFINED) do
    local bad = s.bad[what]
    if bad then
      self:problem(bad[2], ("from this chunk on, %d %s are not defined"):format(bad[1], what[2]))
    end
  end
  if not self.merged then
    self.merged = p
    return
  end
  self.add = self.add or merge.into(self.merged, true)
  local missing = self.add(p)
  if missing then self:report_limit(offset, missing) end
end

-- Decodes a chunk: its records from first to before stop, its offset. Its first
-- record names its session; without a number it is session 0.
function methods:chunk(buf, seq, first, stop, offset)
  local context, rest = records.context(buf, first, stop)
  local s = session_of(self, context and context.session or 0, offset)
  if not s or not check_seq(self, s, offset, seq, context and context.since) then return end
  local decoder = s.decoder
  local failed, why = decoder:decode(buf, rest or first, stop, context, seq == s.due)
  s.due, s.damages = seq + 1, self.damages
  for _, what in ipairs(UNDEFINED) do
    local n = decoder[what[1]]
    if n > 0 then
      s.bad[what] = s.bad[what] or { 0, offset }
      s.bad[what][1] = s.bad[what][1] + n
    end
  end
  if why then
    self:report_limit(offset, why)
  elseif failed then
    self:problem(offset + G.SPF_CHUNK_HEADER + failed - first, limits.sentence("NUMBER_BYTES", stop - failed))
  end
  if decoder.ended then
    self.ended = self.ended + 1
    take_over(self, s, offset)
  end
end

-- Returns how many sessions go on after a dump, which is the last that they have written.
local function count_dumped(self)
  local n = 0
  for _, s in ipairs(self.list) do
    if s.decoder and s.decoder:is_dumped() then n = n + 1 end
  end
  return n
end

-- Says what the sessions lack at the end of the input; cut: that this was said.
local function check_end(self, offset, cut)
  local missing, all = #self.list - self.ended - count_dumped(self), #self.list
  if cut or (missing == 0 and all > 0) then return end
  local which = all > 1 and (" of %d of %d sessions"):format(missing, all) or ""
  if #self.problems > 0 then
    self:problem(offset, "the end record" .. which .. " is missing")
  else
    self:problem(offset, ("the stream ends here without an end record%s: a signal " ..
      "such as SIGKILL, SIGTERM or SIGPIPE, _exit or exec ended the program, it closed the file, the file was cut, " ..
      "or it is still being written"):format(which))
  end
end

-- Returns the profile of all sessions. offset: end of the input; cut: it was
-- reported that a chunk is cut there, or that reading failed.
function methods:finish(offset, cut)
  check_end(self, offset, cut)
  local goes_on = count_dumped(self) > 0
  for _, s in ipairs(self.list) do
    if s.decoder then take_over(self, s, offset) end
  end
  local p = self.merged or profile.new(self.options)
  p.goes_on = goes_on
  for _, problem in ipairs(self.problems) do p:add_problem(problem[1], problem[2]) end
  p.unlisted = p.unlisted + self.unlisted
  return p
end

return sessions
