----------------------------------------------------------------------------
-- Record decoder: stacks and samples of a chunk.
--
-- decode() hands each sample to profile.add of sysprof.model.profile, and definitions to
-- sysprof.read.definitions. A chunk refers to stacks that it defines, or that the ones before did
-- (sysprof.read.chunkstacks).
-- Each number is checked against the end of its record; the first record that does not
-- fit ends the chunk.
--
-- Most of a stream is samples and stacks. One loop reads them, which the JIT compiles as a
-- whole. The frames of a stack are decoded once.
----------------------------------------------------------------------------

local ffi = require("ffi")
local bit = require("bit")
local G = require("sysprof.base.grammar")
local bytes = require("sysprof.base.bytes")
local chunkstacks = require("sysprof.read.chunkstacks")
local definitions = require("sysprof.read.definitions")
local events = require("sysprof.model.events")
local fields = require("sysprof.read.fields")
local limits = require("sysprof.base.limits")
local loadmap = require("sysprof.read.loadmap")
local numbermap = require("sysprof.base.numbermap")
local seen = require("sysprof.read.seen")
local stacks = require("sysprof.model.stacks")
local things = require("sysprof.read.things")

local band, rshift = bit.band, bit.rshift
local uleb = bytes.uleb
local EXACT_MAX, WEIGHT_MAX = limits.NUMBER, limits.WEIGHT

-- What a difference is written as must be below; for bit.band() to be exact,
-- and in a frame for the number that has its kind, too. Weights may be larger.
local SIGNED_END, NEAR_END = 2^51, 2^49

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
local CLOSURE, LFUNC, LSAME = G.SPF_FRAME_CLOSURE, G.SPF_FRAME_LFUNC, G.SPF_FRAME_LSAME

local times = ffi.typeof("double[?]")

-- By kind of a frame: whether a second number follows.
local has_second = {}
for kind = 0, 15 do has_second[kind] = false end
has_second[G.SPF_FRAME_LFUNC] = true
has_second[G.SPF_FRAME_CUT] = true
has_second[G.SPF_FRAME_TRACE] = true
has_second[WORK] = true
has_second[G.SPF_FRAME_REPEAT] = true
has_second[CLOSURE] = true

-- It bounds the work on a stream made up of stacks that share almost all of their frames.
local LENGTH_MAX = limits.STACK_FRAMES

-- A difference that may be negative, from the number that it is written as.
local function signed(n)
  local odd = band(n, 1)
  return (n - odd) / 2 * (1 - 2 * odd) - odd
end

-- The same of a number of any size, by the first byte that writes it: above 2^53 numbers are rounded.
local function signed_wide(n, first)
  return band(first, 1) == 0 and n / 2 or -(n + 1) / 2
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
    if not above or payload >= NEAR_END then return nil, pos end
    kind, payload = HOST, map:origin(all.payload[above]) + signed(payload)
    if payload < 0 then return nil, pos end
    payload = map:place(payload)
  elseif kind == HOST or kind == CFUNC then
    payload = map:place(payload)
  elseif kind == CLOSURE then
    kind, payload = CFUNC, map:place(payload)
    if extra >= stacks.CLOSURES then extra = 0 end
  elseif kind == LSAME then
    local above = all:leafmost_lua(node)
    if not above or payload >= NEAR_END then return nil, pos end
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
    if not node or pos > stop then return nil end
    if all:length(node) > LENGTH_MAX then
      d.why = limits.sentence("STACK_FRAMES")
      return nil
    end
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

local define = definitions.by_tag

-- Reads a definition of any kind; returns the position behind it, or nil
-- if it does not fit.
local function read_other(d, tag, buf, pos, stop)
  local len
  len, pos = uleb(buf, pos + 1)
  if pos > stop or len > stop - pos then return nil end
  local handler = define[tag]
  if handler then
    local ok, why = handler(d, buf, pos, pos + len)
    if not ok and not why then return nil end
    d.why = d.why or why	-- A definition at a limit is left out.
  end
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
  local all, known, usual, has_fields = d.profile.stacks, d.seen, d.usual, d.has_fields
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
	b1, b2 = buf[pos], buf[pos + 1]
	if b1 < 128 then weight, pos = b1, pos + 1
	elseif b2 < 128 then weight, pos = b1 - 128 + b2 * 128, pos + 2
	else weight, pos = uleb(buf, pos) end
      end
      if has_fields and d.fields[event] then
	local f = d.fields[event]
	pos = fields.read(f, buf, pos, stop)
	if not pos then return at, true end
	if f.text and not definitions.use_text(d, event, f.text_name, f.text_id) then return at, true end
      end
      lua, b2 = buf[pos], buf[pos + 1]
      if lua < 128 then pos = pos + 1
      elseif b2 < 128 then lua, pos = lua - 128 + b2 * 128, pos + 2
      else lua, pos = uleb(buf, pos) end
      host, b2 = buf[pos], buf[pos + 1]
      if host < 128 then pos = pos + 1
      elseif b2 < 128 then host, pos = host - 128 + b2 * 128, pos + 2
      else host, pos = uleb(buf, pos) end
      if pos > stop or not (time + lua + host < SIGNED_END) or band(tag, STATE) >= STATE_MAX then
	return at, true
      end
      now = now + step + signed(time)		-- NaN if there was no SPF_CONTEXT.
      local expected = usual[event]
      if expected == 0 then expected = now - last_of[event] end
      if weight < SIGNED_END then weight = expected + signed(weight)
      else weight = expected + signed_wide(weight, b1) end
      last_of[event] = now
      if not (now >= 0 and weight >= 0 and now < EXACT_MAX and weight < WEIGHT_MAX) then
	return at, true
      end
      lua, host = ids:get2(lua, host)
      if lua == NONE then lua = undefined_stack(d) end
      if host == NONE then host = undefined_stack(d) end
      local fits, slot = add(now, weight, band(tag, STATE), lua, host, event)
      if not fits then
	if slot then d.why = limits.sentence("WEIGHT") end
	return at, true
      end
      if has_fields and d.fields[event] and slot then
	local kept, why = fields.keep(d.fields[event], d.profile, slot, event, weight)
	if not kept then
	  d.why = why
	  return at, true
	end
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
      local id, more = tag - LABELLED, 0
      pos = pos + 1
      if id == LABELLED_ID then more, pos = uleb(buf, pos) end
      if pos > stop then return at, true end
      definitions.use_labels(d, id + more)
    else
      d.now = now
      pos = read_other(d, tag, buf, pos, stop)
      now, step, has_fields = d.now, d.step, d.has_fields
      if not pos then return at, true end
      if d.ended then break end
    end
  end
  return pos, false
end

-- Id 0 is no labels.
local function labels_by_id()
  local map = numbermap.new()
  map[0] = false
  return map
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
    fields = {}, has_fields = false,	-- Of samples, by event; whether there are any.
    map = loadmap.new(profile),
    seen = seen.strings(),	-- Node by node and the frames put on it.
    -- Of the current chunk.
    known = chunkstacks.new(),	-- Node by ref to a stack.
    ids = nil,			-- The same, or chunkstacks.unknown.
    now = 0/0,			-- Time of the last sample.
    step = 0,			-- What times are less, see SPF_CONTEXT.
    last_of = times(G.SPF_EVENTS_MAX),	-- Time of the last sample by event.
    labels = labels_by_id(),	-- Sets by id; false for one without labels.
    texts = numbermap.new(),	-- By id.
    ended = false,		-- SPF_END was there.
    why = nil,			-- Sentence on a limit that was reached.
    -- Times of the last samples before the last dump: of one that counts, and of another.
    dumped_at = nil, dumped_passed = nil,
    undefined = 0,		-- Stacks of samples that are not defined,
    undefined_labels = 0,	-- sets of labels,
    undefined_texts = 0,	-- and texts.
  }, mt)
end

-- Reads the SPF_CONTEXT that a chunk begins with. Returns a table and the position
-- behind it, or nil for another record or one that does not fit.
function records.context(buf, pos, stop)
  if pos == stop or buf[pos] ~= G.SPF_CONTEXT then return nil end
  local len, first = uleb(buf, pos + 1)
  if not (len <= stop - first) then return nil end
  local tid, time, session, step, before, since = definitions.read_context(buf, first, first + len)
  if not tid then return nil end
  return { tid = tid, time = time, session = session, step = step, before = before,
	   since = since }, first + len
end

-- The session has ended: its profile gets what is left of the things that samples began.
function methods:finish()
  for index = 0, G.SPF_EVENTS_MAX - 1 do
    local f = self.fields[index]
    if f and f.thing_name then
      things.finish(f.things, events.of_index(self.profile.session, index), self.profile)
    end
  end
end

-- Returns whether no sample follows the last dump. Then nothing is missing, and the profile goes on.
function methods:is_dumped()
  return self.dumped_at == self.profile.last_time and self.dumped_passed == self.profile.last_passed
end

-- Decodes the records from pos to before stop into the profile. context: what
-- records.context() has read before pos, or nil. follows: no chunk is missing since
-- the last one. Returns the position of the record that does not fit its length or its
-- place, or nil; and a sentence on a limit that was reached, or nil.
function methods:decode(buf, pos, stop, context, follows)
  local before, known = context and context.before or 0, self.known
  if before == 0 then
    self.ids = known:clear()
  elseif not (follows and before == known:count()) then
    self.ids = chunkstacks.unknown
    known:clear()
  end
  self.now, self.ended, self.why = 0/0, false, nil
  self.undefined, self.undefined_labels, self.undefined_texts = 0, 0, 0
  self.profile:set_labels(nil)
  if context then
    local ok, why = definitions.set_context(self, context.tid, context.time, context.step)
    if not ok then return pos, why end
  end
  local bad
  pos, bad = read_records(self, buf, pos, stop)
  local why = self.why or self.profile:refusal()
  if bad or pos < stop then return pos, why end
  return nil, why
end

return records
