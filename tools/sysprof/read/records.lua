----------------------------------------------------------------------------
-- Record decoder: definitions, stacks and samples of a chunk.
--
-- decode() hands definitions to methods of sysprof.model.profile, and each sample to
-- profile.add. A chunk refers to stacks that it defines, or that the ones before did
-- (sysprof.read.chunkstacks).
-- Each number is checked against the end of its record; the first record that does not
-- fit ends the chunk. Labels, texts, marks and things that end are checked, and passed over.
--
-- Most of a stream is samples and stacks. One loop reads them, which the JIT compiles as a
-- whole. The frames of a stack are decoded once.
----------------------------------------------------------------------------

local ffi = require("ffi")
local bit = require("bit")
local G = require("sysprof.base.grammar")
local bytes = require("sysprof.base.bytes")
local chunkstacks = require("sysprof.read.chunkstacks")
local loadmap = require("sysprof.read.loadmap")
local seen = require("sysprof.read.seen")
local stacks = require("sysprof.model.stacks")
local units = require("sysprof.model.units")

local band, rshift = bit.band, bit.rshift
local uleb, str = bytes.uleb, bytes.str
local EXACT_MAX = bytes.EXACT_MAX

-- What a difference is written as must be below; for bit.band() to be exact,
-- and in a frame for the number that has its kind, too.
local SIGNED_MAX, NEAR_MAX = 2^51, 2^49

local NONE = chunkstacks.NONE
local STACK, LENGTH = G.SPF_STACK, G.SPF_STACK_LENGTH
local SAMPLE, STATE = G.SPF_SAMPLE, G.SPF_SAMPLE_STATE
local WEIGHT_USUAL = G.SPF_SAMPLE_WEIGHT_USUAL
local EVENT = G.SPF_SAMPLE_EVENT
local EVENT_SHIFT = 4
local LABELLED, LABELLED_ID = G.SPF_LABELLED, G.SPF_LABELLED_ID
local STATE_MAX = G.SPF_VMST__MAX
local WORK = G.SPF_FRAME_WORK
local HOST, NEAR, CFUNC = G.SPF_FRAME_HOST, G.SPF_FRAME_NEAR, G.SPF_FRAME_CFUNC
local LFUNC, LSAME = G.SPF_FRAME_LFUNC, G.SPF_FRAME_LSAME

local times = ffi.typeof("double[?]")

-- By kind of a frame: whether a second number follows.
local has_second = {}
for kind = 0, 15 do has_second[kind] = false end
has_second[G.SPF_FRAME_LFUNC] = true
has_second[G.SPF_FRAME_CUT] = true
has_second[G.SPF_FRAME_TRACE] = true
has_second[WORK] = true
has_second[G.SPF_FRAME_REPEAT] = true

-- Most frames of a stack that is believed. It bounds the work on a stream made up of
-- stacks that share almost all of their frames.
local LENGTH_MAX = 16384

-- A difference that may be negative, from the number that it is written as.
local function signed(n)
  local odd = band(n, 1)
  return (n - odd) / 2 * (1 - 2 * odd) - odd
end

-- -- Definitions -----------------------------------------------------------

-- Each gets the decoder's state, the buffer and the payload's first and last
-- position + 1. Returns nil if the payload is not as expected.
local define = {}

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

local function set_context(d, tid, time, step)
  d.now, d.step = time, step
  for event = 0, G.SPF_EVENTS_MAX - 1 do d.last_of[event] = time end
  d.profile:set_thread(tid)
end

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
  local fields = 0
  while pos < stop do
    local kind
    kind, pos = uleb(buf, pos)
    if pos > stop or kind >= G.SPF_FIELD__MAX or fields == G.SPF_FIELDS_MAX then return nil end
    name, pos = str(buf, pos, stop)
    if not name then return nil end
    fields = fields + 1
  end
  d.usual[index] = d.version > 3 and not units.of(unit).is_cpu and period or 0
  d.fields[index] = fields
  d.profile:set_event(index, name, unit, period)
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

define[G.SPF_MODULE] = function(d, buf, pos, stop)
  local first, last, bias, buildid, path
  first, last, pos = pair(buf, pos, stop)
  if not first then return nil end
  bias, pos = uleb(buf, pos)
  if pos > stop then return nil end
  buildid, pos = str(buf, pos, stop)
  if not buildid then return nil end
  path = str(buf, pos, stop)
  if not path then return nil end
  -- Cached addresses may be other code now.
  if d.map:define(first, last, bias, buildid, path) then d.seen:clear() end
  return true
end

define[G.SPF_LFUNC] = function(d, buf, pos, stop)
  local fid, first, last, chunk, name
  fid, first, pos = pair(buf, pos, stop)
  if not fid then return nil end
  last, pos = uleb(buf, pos)
  if pos > stop then return nil end
  chunk, pos = str(buf, pos, stop)
  if not chunk then return nil end
  name = str(buf, pos, stop)
  if not name then return nil end
  d.profile:set_lfunc(fid, first, last, chunk, name)
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

define[G.SPF_COUNTERS] = function(d, buf, pos, stop)
  while pos < stop do
    local id, value
    id, value, pos = pair(buf, pos, stop)
    if not id then return nil end
    d.profile:set_counter(id, value)
  end
  return true
end

define[G.SPF_TEXT] = function(_, buf, pos, stop)
  local _, at = uleb(buf, pos)
  return at <= stop and str(buf, at, stop) ~= nil
end

define[G.SPF_LABELS] = function(_, buf, pos, stop)
  local text
  _, pos = uleb(buf, pos)
  while pos < stop do
    for _ = 1, 2 do
      text, pos = str(buf, pos, stop)
      if not text then return nil end
    end
  end
  return pos == stop
end

-- Numbers up to the end.
local function numbers(_, buf, pos, stop)
  while pos < stop do _, pos = uleb(buf, pos) end
  return pos == stop
end

define[G.SPF_MARK] = numbers
define[G.SPF_ENDED] = numbers

define[G.SPF_END] = function(d)
  d.ended = true
  return true
end

-- -- Stacks ----------------------------------------------------------------

-- Reads a frame on a node; returns its number in the profile and the next
-- position, or nil.
local function read_frame(all, map, node, buf, pos)
  local kind = band(buf[pos], 15)
  local extra, payload = 0
  payload, pos = uleb(buf, pos)
  if has_second[kind] then extra, pos = uleb(buf, pos) end
  payload = (payload - kind) / 16
  if kind == NEAR then
    local above = all:leafmost_host(node)
    if not above or payload >= NEAR_MAX then return nil, pos end
    kind, payload = HOST, map:origin(all.payload[above]) + signed(payload)
    if payload < 0 then return nil, pos end
    payload = map:place(payload)
  elseif kind == HOST or kind == CFUNC then
    payload = map:place(payload)
  elseif kind == LSAME then
    local above = all:leafmost_lua(node)
    if not above or payload >= NEAR_MAX then return nil, pos end
    kind, payload, extra = LFUNC, all.payload[above], all.extra[above] + signed(payload)
    if extra < 0 then return nil, pos end
  elseif kind == WORK then	-- See sysprof.model.stacks.
    payload, extra = extra, payload
  end
  return all:frame(kind, payload, extra), pos
end

-- Returns the node of a stack with the frames from pos to before stop, too.
local function push_frames(d, node, buf, pos, stop)
  local all, map = d.profile.stacks, d.map
  while pos < stop do
    local frame
    frame, pos = read_frame(all, map, node, buf, pos)
    node = frame and all:push(node, frame)
    if not node or pos > stop or all:length(node) > LENGTH_MAX then return nil end
  end
  return node
end

-- The same, and remembers it. h is what seen:find() gave.
local function push_new(d, node, buf, pos, stop, h)
  local top = push_frames(d, node, buf, pos, stop)
  if top then d.seen:put(node, buf, pos, stop - pos, h, top) end
  return top
end

local function undefined_stack(d)
  local all = d.profile.stacks
  d.undefined = d.undefined + 1
  return all:push(0, all:frame(stacks.UNDEFINED, 0, 0))
end

-- -- Chunk -----------------------------------------------------------------

-- Reads a definition of any other kind; returns the position behind it, or nil
-- if it does not fit.
local function read_other(d, tag, buf, pos, stop)
  local len
  len, pos = uleb(buf, pos + 1)
  if pos > stop or len > stop - pos then return nil end
  local handler = define[tag]
  if handler and not handler(d, buf, pos, pos + len) then return nil end
  return pos + len
end

-- Reads records up to stop or an SPF_END. Returns the position of what follows,
-- or of the record that does not fit and true.
--
-- This is the hot loop. A function that the loop calls several times gets hot before the
-- loop, and then the JIT compiles the two separately. So the loop reads numbers of up to two
-- bytes, which are the most frequent, without a call.
local function read_records(d, buf, pos, stop)
  local add, ids, now, step, last_of = d.profile.add, d.ids, d.now, d.step, d.last_of
  local all, known, usual, fields = d.profile.stacks, d.seen, d.usual, d.fields
  local in_tag = d.version > 3 and G.SPF_EVENT_IN_TAG or G.SPF_EVENTS_MAX
  while pos < stop do
    local tag, at = buf[pos], pos
    local b1, b2 = buf[pos + 1], buf[pos + 2]
    if tag >= SAMPLE then
      local event = rshift(band(tag, EVENT), EVENT_SHIFT)
      local time, weight, lua, host
      if event >= in_tag then
	event, pos = uleb(buf, pos + 1)
	event, pos = event + in_tag, pos - 1
	if event >= G.SPF_EVENTS_MAX then return at, true end
	b1, b2 = buf[pos + 1], buf[pos + 2]
      end
      if b1 < 128 then time, pos = b1, pos + 2
      elseif b2 < 128 then time, pos = b1 - 128 + b2 * 128, pos + 3
      else time, pos = uleb(buf, pos + 1) end
      weight = 0
      if band(tag, WEIGHT_USUAL) == 0 then
	weight, b2 = buf[pos], buf[pos + 1]
	if weight < 128 then pos = pos + 1
	elseif b2 < 128 then weight, pos = weight - 128 + b2 * 128, pos + 2
	else weight, pos = uleb(buf, pos) end
      end
      for _ = 1, fields[event] do
	local _
	_, pos = uleb(buf, pos)
      end
      lua, b2 = buf[pos], buf[pos + 1]
      if lua < 128 then pos = pos + 1
      elseif b2 < 128 then lua, pos = lua - 128 + b2 * 128, pos + 2
      else lua, pos = uleb(buf, pos) end
      host, b2 = buf[pos], buf[pos + 1]
      if host < 128 then pos = pos + 1
      elseif b2 < 128 then host, pos = host - 128 + b2 * 128, pos + 2
      else host, pos = uleb(buf, pos) end
      if pos > stop or not (time + weight + lua + host < SIGNED_MAX) or
	 band(tag, STATE) >= STATE_MAX then
	return at, true
      end
      now = now + step + signed(time)		-- NaN if there was no SPF_CONTEXT.
      local expected = usual[event]
      if expected == 0 then expected = now - last_of[event] end
      weight = expected + signed(weight)
      last_of[event] = now
      if not (now >= 0 and weight >= 0 and now + weight < EXACT_MAX) then
	return at, true
      end
      lua, host = ids:get2(lua, host)
      if lua == NONE then lua = undefined_stack(d) end
      if host == NONE then host = undefined_stack(d) end
      if not add(now, weight, band(tag, STATE), lua, host, event) then
	return at, true
      end
    elseif tag >= STACK then
      local last, base, keep = tag - STACK
      pos = pos + 1
      if last == LENGTH then
	last, pos = uleb(buf, pos)
	last = last + LENGTH
      end
      last = pos + last
      if not (last <= stop) then return at, true end
      base, b2 = buf[pos], buf[pos + 1]
      if base < 128 then pos = pos + 1
      elseif b2 < 128 then base, pos = base - 128 + b2 * 128, pos + 2
      else base, pos = uleb(buf, pos) end
      keep, b2 = buf[pos], buf[pos + 1]
      if keep < 128 then pos = pos + 1
      elseif b2 < 128 then keep, pos = keep - 128 + b2 * 128, pos + 2
      else keep, pos = uleb(buf, pos) end
      local node = ids:get(base)
      if pos > last or node == NONE or keep > all:depth(node) then
	return at, true
      end
      node = all:outermost(node, keep)
      if pos < last then
	local top, h = known:find(node, buf, pos, last - pos)
	node = top or push_new(d, node, buf, pos, last, h)
	if not node then return at, true end
	pos = last
      end
      ids:add(node)
    elseif tag >= LABELLED then
      pos = pos + 1
      if tag - LABELLED == LABELLED_ID then
	local _
	_, pos = uleb(buf, pos)
      end
      if pos > stop then return at, true end
    else
      d.now = now
      pos = read_other(d, tag, buf, pos, stop)
      now, step = d.now, d.step
      if not pos then return at, true end
      if d.ended then break end
    end
  end
  return pos, false
end

local records = {}
local methods = {}
local mt = { __index = methods }

-- Returns a decoder of the chunks of a session. version: of the stream.
function records.new(profile, version)
  return setmetatable({
    profile = profile,
    version = version,
    usual = times(G.SPF_EVENTS_MAX),	-- Weight that is written as 0; 0: the time.
    fields = times(G.SPF_EVENTS_MAX),	-- Number of the fields of a sample.
    map = loadmap.new(profile),
    seen = seen.strings(),	-- Node by node and the frames put on it.
    -- Of the current chunk.
    known = chunkstacks.new(),	-- Node by ref to a stack.
    ids = nil,			-- The same, or chunkstacks.unknown.
    now = 0/0,			-- Time of the last sample.
    step = 0,			-- What times are less, see SPF_CONTEXT.
    last_of = times(G.SPF_EVENTS_MAX),	-- Time of the last sample by event.
    ended = false,		-- SPF_END was there.
    undefined = 0,		-- Stacks of samples that are not defined.
  }, mt)
end

-- Reads the SPF_CONTEXT that a chunk begins with. Returns a table and the position
-- behind it, or nil for another record or one that does not fit.
function records.context(buf, pos, stop)
  if pos == stop or buf[pos] ~= G.SPF_CONTEXT then return nil end
  local len, first = uleb(buf, pos + 1)
  if not (len <= stop - first) then return nil end
  local tid, time, session, step, before, since = read_context(buf, first, first + len)
  if not tid then return nil end
  return { tid = tid, time = time, session = session, step = step, before = before,
	   since = since }, first + len
end

-- Decodes the records from pos to before stop into the profile. context: what
-- records.context() has read before pos, or nil. follows: no chunk is missing since
-- the last one. Returns the position of the record that does not fit its length or its
-- place, or nil.
function methods:decode(buf, pos, stop, context, follows)
  local before, known = context and context.before or 0, self.known
  if before == 0 then
    self.ids = known:clear()
  elseif not (follows and before == known:count()) then
    self.ids = chunkstacks.unknown
    known:clear()
  end
  self.now, self.ended, self.undefined = 0/0, false, 0
  if context then set_context(self, context.tid, context.time, context.step) end
  local bad
  pos, bad = read_records(self, buf, pos, stop)
  if bad or pos < stop then return pos end
end

return records
