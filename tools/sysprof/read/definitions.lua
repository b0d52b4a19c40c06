----------------------------------------------------------------------------
-- Definitions of a chunk: what its stacks and samples refer to, and facts.
--
-- Each number and string is checked against the end of its record. Texts are checked, and
-- passed over.
----------------------------------------------------------------------------

local G = require("sysprof.base.grammar")
local bytes = require("sysprof.base.bytes")
local events = require("sysprof.model.events")
local fields = require("sysprof.read.fields")
local things = require("sysprof.read.things")
local units = require("sysprof.model.units")

local uleb, str = bytes.uleb, bytes.str
local EXACT_MAX = bytes.EXACT_MAX

local definitions = {}

-- By tag. Each gets the decoder's state (sysprof.read.records), the buffer and the payload's
-- first and last position + 1. Returns nil if the payload is not as expected.
local define = {}
definitions.by_tag = define

-- Reads two numbers; returns them and the next position, or nil.
local function pair(buf, pos, stop)
  local a, b
  a, pos = uleb(buf, pos)
  b, pos = uleb(buf, pos)
  if pos > stop then return nil end
  return a, b, pos
end

define[G.SPF_META] = function(d, buf, pos, stop)
  local key, value
  key, pos = str(buf, pos, stop)
  if not key then return nil end
  value = str(buf, pos, stop)
  if not value then return nil end
  d.profile:set_meta(key, value)
  return true
end

-- Reads the payload of an SPF_CONTEXT; returns its numbers, or nil.
local function read_context(buf, pos, stop)
  local session, step, before, since = 0, 0, 0, 0
  local tid, time, at = pair(buf, pos, stop)
  if not tid or tid >= EXACT_MAX or time >= EXACT_MAX then return nil end
  if at < stop then session, at = uleb(buf, at) end
  if at < stop then step, at = uleb(buf, at) end
  if at < stop then before, at = uleb(buf, at) end
  if at < stop then since, at = uleb(buf, at) end
  if at > stop or not (session < EXACT_MAX and step < EXACT_MAX) then return nil end
  return tid, time, session, step, before, since
end
definitions.read_context = read_context

-- The samples that follow are of this thread, and of times from this one on.
local function set_context(d, tid, time, step)
  d.now, d.step = time, step
  for event = 0, G.SPF_EVENTS_MAX - 1 do d.last_of[event] = time end
  d.profile:set_thread(tid)
end
definitions.set_context = set_context

define[G.SPF_CONTEXT] = function(d, buf, pos, stop)
  local tid, time, _, step = read_context(buf, pos, stop)
  if not tid then return nil end
  set_context(d, tid, time, step)
  return true
end

define[G.SPF_EVENT] = function(d, buf, pos, stop)
  local index, name, unit, period
  index, pos = uleb(buf, pos)
  if pos > stop or index >= G.SPF_EVENTS_MAX then return nil end
  name, pos = str(buf, pos, stop)
  if not name then return nil end
  unit, period, pos = pair(buf, pos, stop)
  if not unit then return nil end
  local kinds, names, n = {}, {}, 0
  while pos < stop do
    if n == G.SPF_FIELDS_MAX then return nil end
    n = n + 1
    kinds[n], pos = uleb(buf, pos)
    if pos > stop or kinds[n] >= G.SPF_FIELD__MAX then return nil end
    names[n], pos = str(buf, pos, stop)
    if not names[n] then return nil end
  end
  d.usual[index] = d.version > 3 and not units.of(unit).is_cpu and period or 0
  local f, old = fields.new(kinds, names), d.fields[index]
  local event = old and events.of_index(d.profile.session, index)
  if d.profile:set_event(index, name, unit, period, f.count_name, f.thing_name, f.text_name) then
    f = fields.new(kinds, names, old)
  elseif old and old.thing_name then
    things.finish(old.things, event, d.profile)
  end
  d.fields[index], d.has_fields = n > 0 and f or nil, d.has_fields or n > 0
  return true
end

define[G.SPF_THREAD] = function(d, buf, pos, stop)
  local tid, name
  tid, pos = uleb(buf, pos)
  if pos > stop or tid >= EXACT_MAX then return nil end
  name = str(buf, pos, stop)
  if not name then return nil end
  d.profile:set_thread_name(tid, name)
  return true
end

-- Reads three numbers and two strings; returns nothing if they do not fit. Returns them and the next position.
local function numbers_and_strings(buf, pos, stop)
  local a, b, c, text, more
  a, b, pos = pair(buf, pos, stop)
  if not a then return end
  c, pos = uleb(buf, pos)
  if pos > stop then return end
  text, pos = str(buf, pos, stop)
  if not text then return end
  more, pos = str(buf, pos, stop)
  if more then return a, b, c, text, more, pos end
end

define[G.SPF_MODULE] = function(d, buf, pos, stop)
  local first, last, bias, buildid, path = numbers_and_strings(buf, pos, stop)
  if not first then return nil end
  -- Cached addresses may be other code now.
  if d.map:define(first, last, bias, buildid, path) then d.seen:clear() end
  return true
end

define[G.SPF_LFUNC] = function(d, buf, pos, stop)
  local fid, first, last, chunk, name, at = numbers_and_strings(buf, pos, stop)
  if not fid then return nil end
  local path
  if at < stop then
    path = str(buf, at, stop)
    if not path then return nil end
  end
  d.profile:set_lfunc(fid, first, last, chunk, name, path ~= "" and path or nil)
  return true
end

define[G.SPF_FFUNC] = function(d, buf, pos, stop)
  local ffid, name
  ffid, pos = uleb(buf, pos)
  if pos > stop then return nil end
  name = str(buf, pos, stop)
  if not name then return nil end
  d.profile:set_ffunc(ffid, name)
  return true
end

define[G.SPF_HSYM] = function(d, buf, pos, stop)
  local symaddr, name
  symaddr, pos = uleb(buf, pos)
  if pos > stop then return nil end
  name, pos = str(buf, pos, stop)
  if not name then return nil end
  local addr = symaddr
  while pos < stop do
    local diff
    diff, pos = uleb(buf, pos)
    addr = addr + diff
    if pos > stop or addr == math.huge then return nil end
    local place = d.map:place(addr)
    d.profile:set_hsym(place, place - (addr - symaddr), name)
  end
  return true
end

define[G.SPF_CFUNC] = function(d, buf, pos, stop)
  local addr, number, at = pair(buf, pos, stop)
  local name = addr and str(buf, at, stop)
  if not name then return nil end
  d.profile:set_cfunc(d.map:place(addr), number, name)
  return true
end

define[G.SPF_COUNTERS] = function(d, buf, pos, stop)
  while pos < stop do
    local id, value
    id, value, pos = pair(buf, pos, stop)
    if not id then return nil end
    d.profile:set_counter(id, value)
  end
  return true
end

define[G.SPF_TEXT] = function(d, buf, pos, stop)
  local id, at = uleb(buf, pos)
  local text = at <= stop and str(buf, at, stop)
  if not text then return nil end
  d.texts[id] = text
  return true
end

-- The next sample of an event has the text with this id in the field of a name.
function definitions.use_text(d, index, name, id)
  local text = d.texts[id]
  if not text and id ~= 0 then d.undefined_texts = d.undefined_texts + 1 end
  d.profile:set_text(index, name, text)
end

define[G.SPF_LABELS] = function(d, buf, pos, stop)
  local list = {}
  local id, at = uleb(buf, pos)
  pos = at
  while pos < stop do
    local key, value
    key, pos = str(buf, pos, stop)
    if not key then return nil end
    value, pos = str(buf, pos, stop)
    if not value then return nil end
    list[#list + 1] = { key, value }
  end
  if pos > stop then return nil end
  d.labels[id] = d.profile.label_sets:set(list) or false
  return true
end

-- The samples that follow in the chunk have the labels with this id.
function definitions.use_labels(d, id)
  local set = d.labels[id]
  if set == nil then d.undefined_labels = d.undefined_labels + 1 end
  d.profile:set_labels(set or nil)
end

-- Arguments of a mark are passed over.
define[G.SPF_MARK] = function(d, buf, pos, stop)
  local time, kind, at = pair(buf, pos, stop)
  if not time or not (time < EXACT_MAX) then return nil end
  while at < stop do
    local _
    _, at = uleb(buf, at)
  end
  if at > stop then return nil end
  d.profile:add_mark(time, kind)
  if kind == G.SPF_MARK_DUMP then
    d.dumped_at, d.dumped_passed = d.profile.last_time, d.profile.last_passed
  end
  return true
end

define[G.SPF_ENDED] = function(d, buf, pos, stop)
  local index, how, at = pair(buf, pos, stop)
  if not index or index >= G.SPF_EVENTS_MAX then return nil end
  local f = d.fields[index]
  local event = f and events.of_index(d.profile.session, index)
  while at < stop do
    local thing, age
    thing, age, at = pair(buf, at, stop)
    if not thing then return nil end
    if f then things.ended(f.things, event, how, thing, age) end
  end
  return true
end

define[G.SPF_END] = function(d)
  d.ended = true
  return true
end

return definitions
