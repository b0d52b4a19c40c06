----------------------------------------------------------------------------
-- Profile in memory: stacks with their counts, names, counters.
--
-- sysprof.read.reader fills it, sysprof.show.view looks at it. Samples are counted by
-- thread, event, labels, state of the VM, Lua stack and host stack. Joining and naming wait
-- until the profile is looked at, because names come at the end of a stream.
--
-- A profile holds one session, unless sysprof.model.merge adds others. Each session keeps
-- its own facts, counters and events.
----------------------------------------------------------------------------

local G = require("sysprof.base.grammar")
local activity = require("sysprof.model.activity")
local columns = require("sysprof.model.columns")
local events = require("sysprof.model.events")
local labels = require("sysprof.model.labels")
local leafwork = require("sysprof.model.leafwork")
local limits = require("sysprof.base.limits")
local marks = require("sysprof.model.marks")
local numbermap = require("sysprof.base.numbermap")
local ranges = require("sysprof.base.ranges")
local room = require("sysprof.model.room")
local sentences = require("sysprof.model.sentences")
local slots = require("sysprof.model.slots")
local spread = require("sysprof.model.spread")
local stacks = require("sysprof.model.stacks")
local startcode = require("sysprof.model.startcode")
local timeline = require("sysprof.model.timeline")
local units = require("sysprof.model.units")

local BUILTIN = "=builtin"	-- Chunk of builtins made of bytecode.
local EXACT_MAX, WEIGHT_MAX = limits.NUMBER, limits.WEIGHT
local NAME_BYTES = 128	-- Of memory that a definition takes, beside its text.

-- Counters that do not add up.
local LARGEST = { [G.SPF_COUNTER_HANDLER_MAX_NS] = true,
		  [G.SPF_COUNTER_HANDLER_P99_NS] = true }

local profile = {}
local methods = {}
local mt = { __index = methods }

-- Returns the number of the lane of a thread's samples of an event with a set of labels, which
-- may be nil; nil without room.
local function lane_of(p, thread, event, set)
  local lanes = thread.lanes
  if set then
    lanes = thread.labelled[set] or {}
    thread.labelled[set] = lanes
  end
  local lane = lanes[event]
  if not lane then
    lane = p.slots:new_lane(thread, event, set)
    lanes[event] = lane
  end
  return lane
end

-- Returns the state of the VM in a sample. The state in the stream says nothing about a stack that nobody has seen.
local function state_of(p, state, lua, host)
  return leafwork.is_unseen(p.stacks, lua, host) and slots.UNKNOWN or state
end

-- Returns the function that counts a sample, which is the hot spot of the
-- reader. It returns false if there are too many distinct samples, and the slot
-- that was counted.
local function profile_adder(p)
  local sums = p.slots
  local add = sums.add
  return function(now, weight, state, lua, host, event)
    local lane = p.lanes[event]
    if not lane then
      lane = lane_of(p, p.thread, events.of_index(p.session, event), p.labels)
      if not lane then return false end
      p.lanes[event] = lane
    end
    local slot, sum = add(sums, lane, state_of(p, state, lua, host), lua, host, 1, weight)
    if not slot then return false end
    p.last_time = now
    if now > p.end_time then p.end_time = now end
    return sum < WEIGHT_MAX, slot
  end
end

-- options, all off if missing:
--   timeline   keep each sample's time, weight and slot (sysprof.model.timeline)
--   activity   note what threads do over time (sysprof.model.activity, sysprof.model.columns)
--   spread     note how chance spreads amounts (sysprof.model.spread)
--   live       of a program that runs: less room (sysprof.model.room)
--   from, to   count only samples in [from, to), microseconds since the start; of waits the part in it
function profile.new(options)
  local account = room.account(options)
  local p = setmetatable({
    room = account,	-- See sysprof.model.room.
    stacks = stacks.new(account),
    slots = slots.new(account),	-- Samples, counted.
    sessions = {},	-- { meta = , counters = , events = , tids = set of sampled threads }
    thread_list = {},	-- See sysprof.names.threads; those that have samples.
    threads = numbermap.new(), thread_names = numbermap.new(),	-- Of the session, by id.
    label_sets = labels.new(account),
    session = nil, thread = nil, labels = nil,	-- Of the samples that follow,
    lanes = {},		-- and their lanes by index of the event.
    size = 0,		-- Bytes of the stream, of all that were added up.
    last_time = 0,	-- Microseconds from the start to the last sample in the stream,
    end_time = 0,	-- and to the latest one.
    -- Definitions.
    meta = {}, meta_keys = {},	-- Value by key, of all sessions; keys in order.
    sentences = nil,		-- The limits of several sessions, see sysprof.model.sentences.
    modules = {},		-- In order of definition.
    module_keys = {}, ranges = ranges.new(),	-- Set of them; their numbers by address.
    -- By id or address; see sysprof.base.numbermap.
    lfunc_count = 0, lfuncs = numbermap.new(), ffuncs = numbermap.new(), hsyms = numbermap.new(),
    cfuncs = numbermap.new(),	-- Lua's names of C functions, see cfunc_name().
    counters = {},	-- Of all sessions together.
    versions = {},	-- Files with several versions of functions, see sysprof.model.versions.
    -- What the reader found out about the input.
    version = nil,	-- Of the stream.
    complete = true,	-- The whole input was read and nothing is missing.
    problems = {},	-- Losses and damage: { offset = , text = },
    unlisted = 0,	-- and how many more there are.
    goes_on = false,	-- It ends with a dump of a running profile.
    last_passed = nil,	-- Time of the last sample that was not asked for.
    late = {},		-- Arguments by SPF_WORK_* of sums, by event of a session; only of a part of the time.
    whole = true,	-- All times were asked for.
    timeline = nil,	-- See sysprof.model.timeline,
    activity = nil,	-- sysprof.model.activity,
    columns = nil,	-- sysprof.model.columns,
    spread = nil,	-- and sysprof.model.spread.
    marks = nil, from = 0, to = math.huge,	-- And the times that they count in.
  }, mt)
  p.add = profile_adder(p)
  p:add_session()
  activity.attach(p, options or {})
  columns.attach(p, options or {})
  spread.attach(p, options or {})
  timeline.attach(p, options or {})
  p.marks = marks.new(p.timeline ~= nil)
  return p
end

-- -- Definitions -----------------------------------------------------------

-- Begins another session.
function methods:add_session()
  self.session = { meta = {}, counters = {}, events = {}, tids = numbermap.new() }
  self.sessions[#self.sessions + 1] = self.session
end

-- The functions of this part that return something return whether there is room.

-- Takes room for a definition with so many bytes of text, in place of an old one or nil.
function methods:take_name(bytes, old)
  return self.room:take("DEFINITIONS", bytes - (old or -NAME_BYTES))
end

local function bytes_of(text) return text and #text end

-- Different values of several sessions are listed. Their limits are sentences.
function methods:set_meta(key, value)
  value = value:sub(1, limits.META_VALUE)
  if key == "command" then value = startcode.without(value) end
  local have = self.meta[key]
  if have == nil and #self.meta_keys == limits.META_KEYS then return false end
  self.session.meta[key] = value
  if have == nil then
    self.meta_keys[#self.meta_keys + 1] = key
    self.meta[key] = value
  elseif #self.sessions == 1 then
    self.meta[key] = value
  elseif key == "limit" then
    self.sentences = self.sentences or sentences.new(have)
    self.meta[key] = self.sentences:add(value)
  elseif #have < limits.META_LIST and not (", " .. have .. ", "):find(", " .. value .. ", ", 1, true) then
    self.meta[key] = have .. ", " .. value
  end
  return true
end

-- What causes the samples of an index, from here on. unit: SPF_UNIT_*. second: what their
-- second weights count, thing: what they begin, text: the key of their label, or nil. Returns
-- true if it was so before.
function methods:set_event(index, name, unit, period, second, thing, text)
  local session = self.session
  local e = session.events[index]
  if e and e.name == name and e.unit == unit then
    e.period, e.second, e.thing = period, e.second or second, e.thing or thing
    e.text = e.text or text
    return true
  end
  session.events[index] = { session = session, index = index, name = name,
			    unit = unit, period = period, second = second, thing = thing,
			    text = text }
  self.lanes = {}
end

function methods:new_thread(tid, name)
  if not self.room:take("THREADS") then return nil end
  local thread = { tid = tid, name = name, lanes = {}, labelled = {} }
  self.thread_list[#self.thread_list + 1] = thread
  return thread
end

-- The samples that follow are of this thread.
function methods:set_thread(tid)
  local thread = self.threads[tid]
  if not thread then
    thread = self:new_thread(tid, self.thread_names[tid])
    if not thread then return false end
    self.threads[tid] = thread
  end
  self.session.tids[tid] = true
  if thread ~= self.thread then self.thread, self.lanes = thread, {} end
  return true
end

-- The samples that follow have the labels of this set, or none.
function methods:set_labels(set)
  if set ~= self.labels then self.labels, self.lanes = set, {} end
end

-- The next sample of an event has one more label, unless the value is nil.
function methods:set_text(index, key, value)
  local lanes = self.lanes
  local texts = lanes.texts or {}	-- Lanes by index and value.
  local lane_with = texts[index] or {}
  lanes.texts, texts[index] = texts, lane_with
  local lane = lane_with[value or false]
  if not lane then
    local set = self.labels
    local fits = true
    if value then set, fits = self.label_sets:with(set, key, value) end
    lane = fits and lane_of(self, self.thread, events.of_index(self.session, index), set)
    if not lane then return false end
    lane_with[value or false] = lane
  end
  lanes[index] = lane
  return true
end

function methods:set_thread_name(tid, name)
  if not self:take_name(#name, bytes_of(self.thread_names[tid])) then return false end
  self.thread_names[tid] = name
  if self.threads[tid] then self.threads[tid].name = name end
  return true
end

-- The same module is defined again and again, with each list of modules.
function methods:set_module(first, last, bias, buildid, path)
  local list = self.modules
  local key = ("%.0f\0%.0f\0%.0f\0%d\0"):format(first, last, bias, #buildid) .. buildid .. path
  if self.module_keys[key] then return true end
  if not (self.room:take("ALL_MODULES") and self:take_name(#key)) then return false end
  list[#list + 1] = { first = first, last = last, bias = bias,
		      buildid = buildid, path = path }
  self.module_keys[key] = true
  if first < last and last < EXACT_MAX then self.ranges:put(first, last, #list) end
  return true
end

-- Returns the module that an address lies in and its number, or nil. The latest one counts: libraries come and go.
function methods:module_at(addr)
  local range = self.ranges:find(addr)
  if range then return self.modules[range.value], range.value end
end

-- A function may be described before its name is known, and again later. path: where the program keeps it under
-- another name, or nil.
function methods:set_lfunc(fid, firstline, lastline, chunk, name, path)
  local f = self.lfuncs[fid]
  if f and name == "" and f.chunk == chunk and f.firstline == firstline then name, path = f.name, f.path end
  local bytes = #chunk + #name + (bytes_of(path) or 0)
  if not self:take_name(bytes, f and #f.chunk + #f.name + (bytes_of(f.path) or 0)) then return false end
  if f and (f.chunk ~= chunk or f.firstline ~= firstline) then f.body = nil end
  if not f then
    f, self.lfunc_count = { at = self.lfunc_count }, self.lfunc_count + 1	-- In the order in which they became known.
    self.lfuncs[fid] = f
  end
  f.firstline, f.lastline, f.chunk, f.name, f.path = firstline, lastline, chunk, name, path
  return true
end

-- Sets the hash of the body of a known function, a string.
function methods:set_body(fid, hash)
  local f = self.lfuncs[fid]
  if f and not f.body and not self:take_name(#hash) then return false end
  if f then f.body = hash end
  return true
end

-- Is it a builtin made of bytecode, such as table.remove?
function methods:is_builtin(fid)
  local f = self.lfuncs[fid]
  return f ~= nil and f.chunk == BUILTIN
end

function methods:set_ffunc(ffid, name)
  if not self:take_name(#name, bytes_of(self.ffuncs[ffid])) then return false end
  self.ffuncs[ffid] = name
  return true
end

function methods:set_hsym(addr, symaddr, name)
  local have = self.hsyms[addr]
  if have and name == "" and have.name ~= "" then return true end
  if not self:take_name(#name, have and #have.name) then return false end
  self.hsyms[addr] = { addr = symaddr, name = name }
  return true
end

-- number: of the closure; 0 for all closures without a name.
function methods:set_cfunc(addr, number, name)
  local names = self.cfuncs[addr]
  if not self:take_name(#name, bytes_of(names and names[number])) then return false end
  if not names then
    names = numbermap.new()
    self.cfuncs[addr] = names
  end
  names[number] = name
  return true
end

-- Returns Lua's name of a C function, nil if it is not known. number: of the closure, or 0.
function methods:cfunc_name(addr, number)
  local names = self.cfuncs[addr]
  return names and (names[number] or names[0])
end

-- The latest value of a session's counter is the one that counts. Nobody knows counters with large ids.
function methods:set_counter(id, value)
  if id >= limits.COUNTERS then return true end
  local own = self.session.counters
  if not own[id] and not self:take_name(0) then return false end
  local before, all = own[id] or 0, self.counters[id] or 0
  own[id] = value
  self.counters[id] = LARGEST[id] and math.max(all, value) or all - before + value
  return true
end

-- file is the name of the input, only where there are several.
function methods:add_problem(offset, text, file)
  self.complete = false
  if #self.problems == limits.PROBLEMS then
    self.unlisted = self.unlisted + 1
    return
  end
  self.problems[#self.problems + 1] = { offset = offset, text = text, file = file }
end

-- Counts the second weight of the last sample, which profile.add has counted in a slot.
-- Returns false if the sum is too large.
function methods:add_second(slot, value)
  if self.timeline then self.timeline:set_second(value) end
  return self.slots:add_second(slot, value) < WEIGHT_MAX
end

-- kind: SPF_MARK_*.
function methods:add_mark(time, kind)
  if time >= self.from and time < self.to then self.marks:add(time, kind) end
end

-- Counts samples of a thread, event and set of labels at once, which profile.add does one by
-- one. Returns their slot; or nil without room; or nil and true where the sum of weights would be too large.
function methods:add_slot(thread, event, set, state, lua, host, samples, weight, second)
  local lane = lane_of(self, thread, event, set)
  local sums, slot, before = self.slots, nil, nil
  if lane then slot, before = sums:add(lane, state, lua, host, 0, 0) end
  if not slot then return nil end
  if sums:samples(slot) > 0 and (before + weight >= WEIGHT_MAX or sums:second(slot) + second >= WEIGHT_MAX) then
    return nil, true
  end
  sums:raise(slot, samples, weight)
  if second > 0 then sums:add_second(slot, second) end
  return slot
end

-- Returns a sentence on a limit that was reached since the last call, or nil.
function methods:refusal()
  return self.room:refusal()
end

-- -- Looking at it ---------------------------------------------------------

-- What is left of things was sampled when it began. So these do not count it.

-- Returns the numbers of samples, and of microseconds of CPU time by the first
-- event that measures it; true if no event measures it.
function methods:totals()
  local samples, all = 0, self.slots
  for i = 1, all:count() do
    if not all:event(i).of then samples = samples + all:samples(i) end
  end
  local list = events.list(self)
  for _, e in ipairs(list) do
    if units.of(e.unit).is_cpu then return samples, e.weight end
  end
  return samples, 0, #list > 0
end

-- Returns the number of samples by state of the VM.
function methods:states()
  local by_state, list = {}, self.slots
  for i = 1, list:count() do
    local state = list:state(i)
    if not list:event(i).of then by_state[state] = (by_state[state] or 0) + list:samples(i) end
  end
  return by_state
end

-- Describes the missing parts in one sentence; nil if the profile is complete.
function methods:problem_text()
  local list = self.problems
  if #list == 0 then return nil end
  local text = {}
  for i = 1, math.min(#list, 2) do
    text[i] = ("%soffset %.0f: %s"):format(list[i].file and list[i].file .. ": " or "",
					   list[i].offset, list[i].text)
  end
  if #list > 2 then
    text[3] = limits.sentence("PROBLEMS", #list - 2 + self.unlisted)
  end
  return table.concat(text, "; ")
end

return profile
