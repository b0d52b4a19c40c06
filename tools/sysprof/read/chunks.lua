----------------------------------------------------------------------------
-- Chunk scanner: finds the undamaged chunks of a stream.
--
-- next() returns one chunk after the other and passes over prologues. It skips other bytes
-- up to the next chunk and reports them with their offset; likewise a chunk that the end
-- of the input cuts. Each byte is returned in a chunk, or part of a prologue, or reported.
----------------------------------------------------------------------------

local bit = require("bit")
local G = require("sysprof.base.grammar")
local bytes = require("sysprof.base.bytes")
local limits = require("sysprof.base.limits")

local crc32, u32, tobit = bytes.crc32, bytes.u32, bit.tobit

local HEADER = G.SPF_CHUNK_HEADER
local M0, M1, M2 = G.MAGIC_CHUNK:byte(1, 3)
local MAGIC_SIZE = #G.MAGIC_CHUNK + 1	-- With the version.
local SEQ, PAYLEN, CRC = 4, 8, 12	-- Offsets in the header.

local CUT = "the file is cut or still being written, "

-- Bounds memory, and the work that a damaged length can cause.
local CHUNK_MAX = limits.CHUNK

local chunks = {}
local methods = {}
local mt = { __index = methods }

-- version, prologue: of the stream. report(offset, text) is called for each damaged place.
function chunks.new(input, version, prologue, report)
  return setmetatable({
    input = input, version = version, prologue = prologue, report = report,
    work = limits.DAMAGED,	-- Bytes that may yet be summed up in vain: these,
				-- and as many as are in whole chunks.
    cut = false,		-- The end of the input cut a chunk.
  }, mt)
end

local function is_magic(buf, pos, version)
  return buf[pos] == M0 and buf[pos+1] == M1 and
	 buf[pos+2] == M2 and buf[pos+3] == version
end

-- Returns the number of bytes at the front of the window that fit a prologue.
local function in_prologue(self)
  local input, prologue, same = self.input, self.prologue, 0
  local have = math.min(input:need(#prologue), #prologue)
  while same < have and input.buf[input.pos + same] == prologue:byte(same + 1) do
    same = same + 1
  end
  return same
end

-- Checks the front of the window. Returns the length of the payload if a whole chunk is
-- there. Else returns nil and a problem, and another problem in case that the input does
-- not end here.
local function chunks_check(self)
  local input = self.input
  local have = input:need(HEADER)
  local buf, pos = input.buf, input.pos
  if have >= MAGIC_SIZE and not is_magic(buf, pos, self.version) then
    local why = ("expected a chunk that begins with '%s'"):format(G.MAGIC_CHUNK)
    if in_prologue(self) < have then return nil, why end
    return nil, (CUT .. "%d of the %d bytes of this prologue are missing")
		:format(#self.prologue - have, #self.prologue), why
  elseif have < HEADER then
    return nil, (CUT .. "%d bytes into the header of a chunk, at least %d bytes " ..
		 "are missing"):format(have, HEADER - have),
	   "expected the header of a chunk"
  end
  local len = u32(buf, pos + PAYLEN)
  if len >= CHUNK_MAX then
    return nil, limits.sentence("CHUNK", len)
  end
  have = input:need(HEADER + len)
  if have < HEADER + len then
    return nil, (CUT .. "%d of the %d bytes of this chunk are missing")
		:format(HEADER + len - have, HEADER + len),
	   ("the chunk says it has %d bytes, more than follow"):format(len)
  end
  buf, pos = input.buf, input.pos
  local crc = crc32(0, buf, pos + HEADER, pos + HEADER + len)
  crc = crc32(crc, buf, pos + SEQ, pos + CRC)
  if tobit(crc) ~= tobit(u32(buf, pos + CRC)) then
    self.work = self.work - len
    return nil, "the chunk is damaged, its checksum does not match"
  end
  return len
end

-- Drops bytes up to the next magic, at least one. False at the end, or when it has searched enough.
local function chunks_next_magic(self)
  local input, version = self.input, self.version
  input:skip(1)
  while self.searched <= limits.DAMAGED and input:need(HEADER) >= MAGIC_SIZE do
    local buf, pos = input.buf, input.pos
    local stop = input.fill - MAGIC_SIZE
    while pos <= stop and not is_magic(buf, pos, version) do pos = pos + 1 end
    self.work = self.work + 2 * (pos - input.pos)
    self.searched = self.searched + (pos - input.pos)
    input:skip(pos - input.pos)
    if pos <= stop then return true end
  end
  if self.searched <= limits.DAMAGED then input:skip(input.fill - input.pos) end
  return false
end

-- Returns the buffer with the next chunk, the chunk's number, the begin and end of its
-- records in the buffer, and the input's offset of buffer position 0. Returns nil at the
-- end. The buffer is valid until the next call.
function methods:next()
  local input = self.input
  while in_prologue(self) == #self.prologue do input:skip(#self.prologue) end
  if input:need(1) == 0 then return nil end
  local from = input:offset()
  local len, why, why_not_cut = chunks_check(self)
  if not len then
    self.searched = 0	-- Bytes since the last whole chunk.
    while not len and self.work >= 0 and chunks_next_magic(self) do
      len = chunks_check(self)
    end
    local skipped = input:offset() - from
    if len then
      self.report(from, ("%s, skipped %.0f bytes")
			:format(why_not_cut or why, skipped))
    elseif self.work < 0 or self.searched > limits.DAMAGED then
      self.report(from, limits.sentence("DAMAGED", why))
    elseif why_not_cut then
      self.cut = true
      self.report(from, why)
    else
      self.report(from, ("%s, nothing usable in the %.0f bytes up to the end")
			:format(why, skipped))
    end
    if not len then return nil end
  end
  self.work = self.work + len
  local buf, pos = input.buf, input.pos
  input:skip(HEADER + len)
  return buf, u32(buf, pos + SEQ), pos + HEADER, pos + HEADER + len, input.base
end

return chunks
