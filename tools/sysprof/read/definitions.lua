----------------------------------------------------------------------------
-- Definitions of a chunk: what its stacks and samples refer to, and facts.
--
-- Each number and string is checked against the end of its record. Texts are checked, and
-- passed over.
----------------------------------------------------------------------------

local ffi = require("ffi")
local G = require("sysprof.base.grammar")
local bytes = require("sysprof.base.bytes")
local events = require("sysprof.model.events")
local fields = require("sysprof.read.fields")
local labels = require("sysprof.model.labels")
local limits = require("sysprof.base.limits")
local numbers = require("sysprof.read.numbers")
local things = require("sysprof.read.things")
local units = require("sysprof.model.units")

local uleb, str = bytes.uleb, bytes.str
local sentence = limits.sentence

local NAME_MAX = limits.EVENT_NAME
local HASH = 8	-- Bytes of a <U64>.

local definitions = {}

-- By tag. Each gets the decoder's state (sysprof.read.records), the buffer and the payload's
-- first and last position + 1. Returns nil if the payload is not as expected; nil and a sentence if there is no room
-- for what it defines.
local define = {}
definitions.by_tag = define

-- Reads two numbers by functions of sysprof.read.numbers; returns them and the next position, or nil.
local function pair(read_a, read_b, buf, pos, stop)
  local a, b
  a, pos = read_a(buf, pos, stop)
  if not a then return nil end
  b, pos = read_b(buf, pos, stop)
  if b then return a, b, pos end
end

-- Reads a number and a text; returns them and the next position, or nil.
local function number_and_text(read, buf, pos, stop)
  local number, at = read(buf, pos, stop)
  if not number then return nil end
  local text, behind = str(buf, at, stop)
  if text then return number, text, behind end
end

-- Returns nil, and why names have no room.
local function no_room(d)
  return nil, d.profile.room:sentence("DEFINITIONS")
end

define[G.SPF_META] = function(d, buf, pos, stop)
  local key, value
  key, pos = str(buf, pos, stop)
  if not key then return nil end
  value = str(buf, pos, stop)
  if not value then return nil end
  if not d.profile:set_meta(key, value) then return nil, sentence("META_KEYS") end
  return true
end

-- Reads the payload of an SPF_CONTEXT; returns its numbers, or nil.
local function read_context(buf, pos, stop)
  local tid, time, at = pair(numbers.id, numbers.time, buf, pos, stop)
  if not tid then return nil end
  local rest = { 0, 0, 0, 0 }
  for i = 1, #rest do
    if at < stop then rest[i], at = numbers.id(buf, at, stop) end
    if not at then return nil end
  end
  return tid, time, unpack(rest)
end
definitions.read_context = read_context

-- The samples that follow are of this thread, and of times from this one on. Returns nil and a sentence if there are
-- too many threads.
local function set_context(d, tid, time, step)
  d.now, d.step = time, step
  for event = 0, G.SPF_EVENTS_MAX - 1 do d.last_of[event] = time end
  if not d.profile:set_thread(tid) then return nil, sentence("THREADS") end
  return true
end
definitions.set_context = set_context

define[G.SPF_CONTEXT] = function(d, buf, pos, stop)
  local tid, time, _, step = read_context(buf, pos, stop)
  if not tid then return nil end
  local ok, why = set_context(d, tid, time, step)
  d.why = why or d.why
  return ok	-- The samples that follow would be of another thread.
end

define[G.SPF_EVENT] = function(d, buf, pos, stop)
  local index, name, unit, period
  index, name, pos = number_and_text(numbers.id, buf, pos, stop)
  if not index or index >= G.SPF_EVENTS_MAX then return nil end
  unit, period, pos = pair(numbers.id, numbers.period, buf, pos, stop)
  if not unit then return nil end
  name = name:sub(1, NAME_MAX)
  local kinds, names, n = {}, {}, 0
  while pos < stop do
    if n == G.SPF_FIELDS_MAX then return nil end
    n = n + 1
    kinds[n], pos = uleb(buf, pos)
    if pos > stop then return nil end
    names[n], pos = str(buf, pos, stop)
    if not names[n] then return nil end
    names[n] = names[n]:sub(1, NAME_MAX)
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
  local tid, name = number_and_text(numbers.id, buf, pos, stop)
  if not tid then return nil end
  if not d.profile:set_thread_name(tid, name) then return no_room(d) end
  return true
end

-- Reads three numbers and two strings; returns nothing if they do not fit. Returns them and the next position.
local function numbers_and_strings(read_a, read, buf, pos, stop)
  local a, b, c, text, more
  a, b, pos = pair(read_a, read, buf, pos, stop)
  if not a then return end
  c, text, pos = number_and_text(read, buf, pos, stop)
  if not c then return end
  more, pos = str(buf, pos, stop)
  if more then return a, b, c, text, more, pos end
end

define[G.SPF_MODULE] = function(d, buf, pos, stop)
  local address = numbers.address
  local first, last, bias, buildid, path = numbers_and_strings(address, address, buf, pos, stop)
  if not first then return nil end
  local has_room, changed = d.map:define(first, last, bias, buildid, path)
  if not has_room then return nil, sentence("MODULES") end
  if changed then d.seen:clear() end	-- Cached addresses may be other code now.
  return true
end

define[G.SPF_LFUNC] = function(d, buf, pos, stop)
  local fid, first, last, chunk, name, at = numbers_and_strings(numbers.id, numbers.line, buf, pos, stop)
  if not fid then return nil end
  local path
  if at < stop then
    path = str(buf, at, stop)
    if not path then return nil end
  end
  if not d.profile:set_lfunc(fid, first, last, chunk, name, path ~= "" and path or nil) then return no_room(d) end
  return true
end

define[G.SPF_BODY] = function(d, buf, pos, stop)
  while pos < stop do
    local fid
    fid, pos = numbers.id(buf, pos, stop)
    if not fid or stop - pos < HASH then return nil end
    if not d.profile:set_body(fid, ffi.string(buf + pos, HASH)) then return no_room(d) end
    pos = pos + HASH
  end
  return true
end

define[G.SPF_FFUNC] = function(d, buf, pos, stop)
  local ffid, name = number_and_text(numbers.id, buf, pos, stop)
  if not ffid then return nil end
  if not d.profile:set_ffunc(ffid, name) then return no_room(d) end
  return true
end

define[G.SPF_HSYM] = function(d, buf, pos, stop)
  local symaddr, name, at = number_and_text(numbers.address, buf, pos, stop)
  if not symaddr then return nil end
  local addr = symaddr
  while at < stop do
    local diff
    diff, at = numbers.address(buf, at, stop)
    if not diff then return nil end
    addr = addr + diff
    local place = d.map:place(addr)
    if not d.profile:set_hsym(place, place - (addr - symaddr), name) then return no_room(d) end
  end
  return true
end

define[G.SPF_CFUNC] = function(d, buf, pos, stop)
  local addr, number, at = pair(numbers.address, numbers.id, buf, pos, stop)
  local name = addr and str(buf, at, stop)
  if not name then return nil end
  if not d.profile:set_cfunc(d.map:place(addr), number, name) then return no_room(d) end
  return true
end

define[G.SPF_COUNTERS] = function(d, buf, pos, stop)
  while pos < stop do
    local id, value
    id, value, pos = pair(numbers.id, numbers.counter, buf, pos, stop)
    if not id then return nil end
    if not d.profile:set_counter(id, value) then return no_room(d) end
  end
  return true
end

define[G.SPF_TEXT] = function(d, buf, pos, stop)
  local id, text = number_and_text(numbers.id, buf, pos, stop)
  if not id then return nil end
  local have = d.texts[id]
  if not d.profile:take_name(#text, have and #have) then return no_room(d) end
  d.texts[id] = text
  return true
end

-- The next sample of an event has the text with this id in the field of a name. Returns whether there is room.
function definitions.use_text(d, index, name, id)
  local text = d.texts[id]
  if not text and id ~= 0 then d.undefined_texts = d.undefined_texts + 1 end
  return d.profile:set_text(index, name, text)
end

define[G.SPF_LABELS] = function(d, buf, pos, stop)
  local list = {}
  local id
  id, pos = numbers.id(buf, pos, stop)
  if not id then return nil end
  while pos < stop do
    if #list == limits.LABELS then return nil, sentence("LABELS") end
    local key, value
    key, pos = str(buf, pos, stop)
    if not key then return nil end
    value, pos = str(buf, pos, stop)
    if not value then return nil end
    -- The reader adds ages itself.
    list[#list + 1] = { key == labels.AGE and key .. "_" or key, value }
  end
  local set, fits = d.profile.label_sets:set(list)
  if d.labels[id] == nil and not d.profile:take_name(0) then return no_room(d) end
  d.labels[id] = set or false
  if not fits then return nil, d.profile:refusal() end
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
  local time, kind, at = pair(numbers.time, numbers.id, buf, pos, stop)
  if not time then return nil end
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
  local index, how, at = pair(numbers.id, numbers.id, buf, pos, stop)
  if not index or index >= G.SPF_EVENTS_MAX then return nil end
  local f = d.fields[index]
  local event = f and events.of_index(d.profile.session, index)
  while at < stop do
    local thing, age
    thing, age, at = pair(numbers.id, numbers.age, buf, at, stop)
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
