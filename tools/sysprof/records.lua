----------------------------------------------------------------------------
-- Sysprof reader: the records of a chunk.
--
-- decode() goes once through the records and hands everything to a profile
-- (sysprof.profile): definitions by its methods, each sample by profile.add.
-- What a chunk refers to is defined in it, so stack ids are resolved by a
-- table that lives as long as the chunk. Every number is checked against the
-- end of its record; the first record that does not fit ends the chunk.
----------------------------------------------------------------------------

local bit = require("bit")
local G = require("sysprof.grammar")
local bytes = require("sysprof.bytes")
local stacks = require("sysprof.stacks")

local band = bit.band
local uleb, str = bytes.uleb, bytes.str
local EXACT_MAX = bytes.EXACT_MAX

local SAMPLE, STATE = G.SPF_SAMPLE, G.SPF_SAMPLE_STATE
local WEIGHT_IS_TIME = G.SPF_SAMPLE_WEIGHT_IS_TIME
local RESERVED = G.SPF_SAMPLE_RESERVED
local STATE_MAX = G.SPF_VMST__MAX
local WORK = G.SPF_FRAME_WORK

-- By kind of a frame: whether a second number follows.
local has_second = {}
for kind = 0, 15 do has_second[kind] = false end
has_second[G.SPF_FRAME_LFUNC] = true
has_second[G.SPF_FRAME_CUT] = true
has_second[G.SPF_FRAME_TRACE] = true
has_second[WORK] = true

-- Deepest stack that is believed. It bounds the work on a stream made up of
-- stacks that share almost all of their frames.
local DEPTH_MAX = 16384

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

define[G.SPF_CONTEXT] = function(d, buf, pos, stop)
  local tid, time = pair(buf, pos, stop)
  if not tid or tid >= EXACT_MAX or time >= EXACT_MAX then return nil end
  d.now = time
  d.profile:set_thread(tid)
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
  d.profile:set_module(first, last, bias, buildid, path)
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
  local addr, symaddr, name
  addr, symaddr, pos = pair(buf, pos, stop)
  if not addr then return nil end
  name = str(buf, pos, stop)
  if not name then return nil end
  d.profile:set_hsym(addr, symaddr, name)
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

define[G.SPF_END] = function(d)
  d.ended = true
  return true
end

-- Reads a frame; returns its number in the profile and the next position.
local function read_frame(all, buf, pos)
  local kind = band(buf[pos], 15)
  local extra, payload = 0
  payload, pos = uleb(buf, pos)
  if has_second[kind] then extra, pos = uleb(buf, pos) end
  payload = (payload - kind) / 16
  -- See sysprof.stacks.
  if kind == WORK then payload, extra = extra, payload end
  return all:frame(kind, payload, extra), pos
end

define[G.SPF_STACK] = function(d, buf, pos, stop)
  local id, base, keep
  id, base, pos = pair(buf, pos, stop)
  if not id or id >= EXACT_MAX or id == 0 then return nil end
  keep, pos = uleb(buf, pos)
  local all, node = d.profile.stacks, d.nodes[base]
  if pos > stop or not node or keep > all.depth[node] then return nil end
  node = all:outermost(node, keep)
  while pos < stop do
    local frame
    frame, pos = read_frame(all, buf, pos)
    node = frame and all:push(node, frame)
    if not node or pos > stop or all.depth[node] > DEPTH_MAX then return nil end
  end
  d.nodes[id] = node
  return true
end

-- -- Samples ---------------------------------------------------------------

local function undefined_stack(d)
  local all = d.profile.stacks
  d.undefined = d.undefined + 1
  return all:push(0, all:frame(stacks.UNDEFINED, 0, 0))
end

-- Reads samples as long as there are some. Returns the position of what
-- follows, or of the sample that does not fit and true.
local function read_samples(d, buf, pos, stop)
  local add, nodes, now = d.profile.add, d.nodes, d.now
  while pos < stop do
    local tag, at = buf[pos], pos
    if tag < SAMPLE then break end
    local time, weight, lua, host
    time, pos = uleb(buf, pos + 1)
    weight = time
    if band(tag, WEIGHT_IS_TIME) == 0 then weight, pos = uleb(buf, pos) end
    lua, pos = uleb(buf, pos)
    host, pos = uleb(buf, pos)
    now = now + time
    if pos > stop or now + weight + lua + host >= EXACT_MAX or
       band(tag, RESERVED) ~= 0 or band(tag, STATE) >= STATE_MAX then
      return at, true
    end
    if not add(now, weight, band(tag, STATE),
	       nodes[lua] or undefined_stack(d),
	       nodes[host] or undefined_stack(d)) then
      return at, true
    end
  end
  d.now = now
  return pos, false
end

-- -- Chunk -----------------------------------------------------------------

-- Decodes the records from pos to before stop into profile. Returns a table:
-- ended: true if SPF_END was there; undefined: how many stacks of samples are
-- not defined in the chunk; failed: position of the record that does not fit
-- its length or its place, or nil.
local function decode(profile, buf, pos, stop)
  local d = {
    profile = profile,
    now = nil,			-- Time of the last sample, none yet.
    nodes = { [0] = 0 },	-- Id of a stack to node.
    ended = false, undefined = 0, failed = nil,
  }
  while pos < stop do
    local tag, at = buf[pos], pos
    if d.ended then
      d.failed = at
      return d
    elseif tag >= SAMPLE then
      local bad = d.now == nil
      if not bad then pos, bad = read_samples(d, buf, pos, stop) end
      if bad then
	d.failed = pos
	return d
      end
    else
      local len
      len, pos = uleb(buf, pos + 1)
      if pos > stop or len > stop - pos then
	d.failed = at
	return d
      end
      local handler = define[tag]
      if handler and not handler(d, buf, pos, pos + len) then
	d.failed = at
	return d
      end
      pos = pos + len
    end
  end
  return d
end

return { decode = decode }
