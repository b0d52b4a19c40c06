----------------------------------------------------------------------------
-- Sysprof reader: gzip (RFC 1952), one member.
--
-- Deflate (RFC 1951) in one block with the fixed Huffman codes. Repeats are
-- found by a hash of three bytes and a short chain of places with that hash.
----------------------------------------------------------------------------

local bit = require("bit")
local ffi = require("ffi")
local bytes = require("sysprof.base.bytes")

local band, bor, bxor = bit.band, bit.bor, bit.bxor
local lshift, rshift = bit.lshift, bit.rshift

local WINDOW = 32768	-- Farthest distance of a repeat.
local MATCH_MIN, MATCH_MAX = 3, 258
local CHAIN = 24	-- Places that are tried.
local HASH_BITS = 15

local byte_array = ffi.typeof("uint8_t[?]")
local int_array = ffi.typeof("int32_t[?]")

-- -- Codes -----------------------------------------------------------------

-- The codes of lengths and distances: the first value of each, and how many
-- bits follow it.
local function ranges(first, count, bits_of)
  local base, bits = {}, {}
  for i = 0, count - 1 do
    base[i], bits[i] = first, bits_of(i)
    first = first + lshift(1, bits[i])
  end
  return base, bits
end

local len_base, len_bits = ranges(3, 28, function(i)
  return i < 8 and 0 or rshift(i, 2) - 1
end)
len_base[28], len_bits[28] = 258, 0
local dist_base, dist_bits = ranges(1, 30, function(i)
  return i < 4 and 0 or rshift(i, 1) - 1
end)

-- Code by value: the last one whose first value is not larger.
local len_code, dist_code = {}, int_array(WINDOW + 1)
for code = 0, 28 do
  for len = len_base[code], code < 28 and len_base[code + 1] - 1 or 258 do
    len_code[len] = code
  end
end
for code = 0, 29 do
  for dist = dist_base[code], code < 29 and dist_base[code + 1] - 1 or WINDOW do
    dist_code[dist] = code
  end
end

local function reversed(code, n)
  local out = 0
  for _ = 1, n do
    out = bor(lshift(out, 1), band(code, 1))
    code = rshift(code, 1)
  end
  return out
end

-- The fixed codes of literals and lengths, and of distances, first bit lowest.
local symbol_bits, symbol_len, dist_symbol = int_array(288), int_array(288), int_array(30)
for i = 0, 287 do
  local code, n
  if i < 144 then code, n = 0x30 + i, 8
  elseif i < 256 then code, n = 0x190 + i - 144, 9
  elseif i < 280 then code, n = i - 256, 7
  else code, n = 0xc0 + i - 280, 8 end
  symbol_bits[i], symbol_len[i] = reversed(code, n), n
end
for i = 0, 29 do dist_symbol[i] = reversed(i, 5) end

-- -- Deflate ---------------------------------------------------------------

-- Writes bits into out, lowest first. Returns put(value, n), n up to 16, and
-- flush(), which returns the number of bytes.
local function bit_writer(out)
  local acc, have, at = 0, 0, 0
  local function put(value, n)
    acc = bor(acc, lshift(value, have))
    have = have + n
    while have >= 8 do
      out[at] = band(acc, 255)
      acc, have, at = rshift(acc, 8), have - 8, at + 1
    end
  end
  local function flush()
    if have > 0 then
      out[at] = band(acc, 255)
      at = at + 1
    end
    return at
  end
  return put, flush
end

local function hash(buf, i)
  local h = bxor(buf[i], lshift(buf[i + 1], 5), lshift(buf[i + 2], 10))
  return band(h, 2^HASH_BITS - 1)
end

local function match_length(buf, a, b, max)
  local n = 0
  while n < max and buf[a + n] == buf[b + n] do n = n + 1 end
  return n
end

-- Returns the compressed bytes. buf has two bytes more than size.
local function deflate(buf, size)
  local out = byte_array(size + rshift(size, 3) + 64)
  local put, flush = bit_writer(out)
  local head, before = int_array(2^HASH_BITS), int_array(WINDOW)
  ffi.fill(head, ffi.sizeof(head), 0xff)
  local function note(i)
    local h = hash(buf, i)
    before[band(i, WINDOW - 1)], head[h] = head[h], i
  end
  local function symbol(s) put(symbol_bits[s], symbol_len[s]) end
  put(1, 1)	-- The last block,
  put(1, 2)	-- with fixed codes.
  local i = 0
  while i < size do
    local best, from = MATCH_MIN - 1, -1
    local max = math.min(MATCH_MAX, size - i)
    if max >= MATCH_MIN then
      local place, tries = head[hash(buf, i)], CHAIN
      while place >= 0 and i - place < WINDOW and tries > 0 do
	if buf[place + best] == buf[i + best] then
	  local n = match_length(buf, place, i, max)
	  if n > best then
	    best, from = n, place
	    if n == max then break end
	  end
	end
	place, tries = before[band(place, WINDOW - 1)], tries - 1
      end
    end
    if from < 0 then
      symbol(buf[i])
      best = 1
    else
      local code, dist = len_code[best], i - from
      symbol(257 + code)
      put(best - len_base[code], len_bits[code])
      code = dist_code[dist]
      put(dist_symbol[code], 5)
      put(dist - dist_base[code], dist_bits[code])
    end
    for k = i, i + best - 1 do note(k) end
    i = i + best
  end
  symbol(256)
  return ffi.string(out, flush())
end

-- -- API -------------------------------------------------------------------

local gzip = {}

local function u32(n)
  return string.char(band(n, 255), band(rshift(n, 8), 255),
		     band(rshift(n, 16), 255), band(rshift(n, 24), 255))
end

-- No time and no name in the header: equal data give equal files.
local HEADER = "\31\139\8\0\0\0\0\0\2\3"

-- Returns s as a gzip file.
function gzip.compress(s)
  local size = #s
  local buf = byte_array(size + 8)
  ffi.copy(buf, s, size)
  return HEADER .. deflate(buf, size) .. u32(bytes.crc32(0, buf, 0, size)) ..
	 u32(bit.tobit(size % 2^32))
end

return gzip
