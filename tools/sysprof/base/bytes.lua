----------------------------------------------------------------------------
-- ULEB128 numbers, strings, CRC-32 and hashes of a byte buffer; texts of numbers.
--
-- Functions that read take an FFI pointer and positions. They make no object per byte, and
-- the JIT compiles them. They do not check bounds: callers keep ULEB_MAX bytes of room
-- behind the data, and compare the returned position with the end.
----------------------------------------------------------------------------

local ffi = require("ffi")
local bit = require("bit")
local limits = require("sysprof.base.limits")
local band, bxor, bnot, tobit = bit.band, bit.bxor, bit.bnot, bit.tobit
local rshift = bit.rshift
local char = string.char

ffi.cdef("int memcmp(const void *, const void *, size_t);")
local memcmp = ffi.C.memcmp

local ULEB_MAX = limits.NUMBER_BYTES

local LARGEST = 2^63 - 1024	-- What a number in ULEB128 may be, as a double.

local word_ptr = ffi.typeof("const int32_t *")

-- -- ULEB128 ---------------------------------------------------------------

local function uleb_long(buf, pos)
  local v, mul = 0, 1
  for i = pos, pos + ULEB_MAX - 1 do
    local b = buf[i]
    if b < 128 then return v + b * mul, i + 1 end
    v = v + (b - 128) * mul
    mul = mul * 128
  end
  return math.huge, pos + ULEB_MAX
end

-- Returns the number at pos and the position after it. The number is exact
-- below limits.NUMBER, rounded above, and infinite if it is too long.
local function uleb(buf, pos)
  local b0 = buf[pos]
  if b0 < 128 then return b0, pos + 1 end
  local b1 = buf[pos + 1]
  if b1 < 128 then return b0 - 128 + b1 * 128, pos + 2 end
  return uleb_long(buf, pos)
end

-- Returns a number from 0 on, also a uint64_t, in ULEB128.
local function uleb_text(n)
  if type(n) == "number" and not (n < LARGEST) then n = LARGEST end
  if n < 128 then return char(tonumber(n)) end
  local out = {}
  while n >= 128 do
    local low = n % 128
    out[#out + 1] = char(tonumber(low) + 128)
    n = (n - low) / 128
  end
  out[#out + 1] = char(tonumber(n))
  return table.concat(out)
end

-- -- Numbers of 16 and 32 bits, the lowest byte first ----------------------

local function u16_text(n)
  return char(band(n, 255), band(rshift(n, 8), 255))
end

local function u32_text(n)
  return u16_text(n) .. u16_text(rshift(n, 16))
end

local function u32(buf, pos)
  return buf[pos] + buf[pos+1] * 2^8 + buf[pos+2] * 2^16 + buf[pos+3] * 2^24
end

-- -- CRC-32 (IEEE 802.3), eight bytes at a time ----------------------------

local crc_table = ffi.new("int32_t[?]", 8 * 256)

for i = 0, 255 do
  local c = i
  for _ = 1, 8 do
    c = band(c, 1) ~= 0 and bxor(rshift(c, 1), 0xedb88320) or rshift(c, 1)
  end
  crc_table[i] = c
end
for i = 256, 8 * 256 - 1 do
  local c = crc_table[i - 256]
  crc_table[i] = bxor(rshift(c, 8), crc_table[band(c, 255)])
end

local function crc32_bytes(crc, buf, first, stop)
  for i = first, stop - 1 do
    crc = bxor(rshift(crc, 8), crc_table[band(bxor(crc, buf[i]), 255)])
  end
  return crc
end

-- Continues the checksum crc (0 to begin) with the bytes from first to
-- before stop. Compare results with each other only after bit.tobit.
local function crc32(crc, buf, first, stop)
  local t = crc_table
  local words = ffi.abi("le") and rshift(stop - first, 3) or 0
  local w = ffi.cast(word_ptr, buf + first)
  crc = bnot(crc)
  for i = 0, words * 2 - 1, 2 do
    local a, b = bxor(crc, w[i]), w[i + 1]
    crc = bxor(t[1792 + band(a, 255)], t[1536 + band(rshift(a, 8), 255)],
	       t[1280 + band(rshift(a, 16), 255)], t[1024 + rshift(a, 24)],
	       t[768 + band(b, 255)], t[512 + band(rshift(b, 8), 255)],
	       t[256 + band(rshift(b, 16), 255)], t[rshift(b, 24)])
  end
  return bnot(crc32_bytes(crc, buf, first + words * 8, stop))
end

-- -- Random numbers --------------------------------------------------------

-- Numbers that nobody can foresee.
local function random_numbers(n)
  local file, list = io.open("/dev/urandom", "rb"), {}
  local s = file and file:read(4 * n) or ""
  if file then file:close() end
  for i = 1, n do
    local a, b, c, d = s:byte(4 * i - 3, 4 * i)
    list[i] = tobit(d and a + b * 2^8 + c * 2^16 + d * 2^24 or os.time() * i + os.clock() * 1e6)
  end
  return list
end

-- -- Strings ---------------------------------------------------------------

-- The hash of LuaJIT's string table sees some bytes of a long string only, so it compares those of one length with each
-- other, each time that one is made. The profile chooses its names. So the reader counts these comparisons, and cuts
-- names above a limit. What a cut name ends in tells it from others.
local LONG = 128		-- Bytes from which on LuaJIT does so.
local KEPT = 100		-- Bytes of a cut name.
local PRIME = 2^26 - 5		-- Products below 2^52 are exact.

local half_ptr = ffi.typeof("const uint16_t *")
local FACTOR = random_numbers(1)[1] % PRIME
local known, of_length, left	-- Strings by their value; their number by length; comparisons that may come.

-- Names that are made from now on are compared with each other only.
local function forget_strings()
  known, of_length, left = {}, {}, limits.ALIKE
end

-- Returns the value of the polynomial that the bytes are, at a random number. Different texts rarely have one value.
local function value_of(buf, first, len)
  local w, h = ffi.cast(half_ptr, buf + first), len % 2 == 1 and buf[first + len - 1] or 0
  for i = 0, rshift(len, 1) - 1 do
    h = h * FACTOR + w[i]
    h = h - math.floor(h / PRIME) * PRIME
  end
  return len * 2^26 + h
end

local function long_string(buf, first, len)
  local value = value_of(buf, first, len)
  if not known[value] then
    local n = of_length[len] or 0
    if left < n then
      local stop = first + KEPT
      while stop > first and band(buf[stop], 0xc0) == 0x80 do stop = stop - 1 end	-- Between characters.
      return ffi.string(buf + first, stop - first) .. "..." .. bit.tohex(crc32(0, buf, first, first + len))
    end
    known[value], of_length[len], left = true, n + 1, left - n
  end
  return ffi.string(buf + first, len)
end

-- Returns the string at pos and the position after it, or nil if it would
-- end behind stop.
local function str(buf, pos, stop)
  local len, first = uleb(buf, pos)
  if not (first <= stop and len <= stop - first) then return nil end
  return len < LONG and ffi.string(buf + first, len) or long_string(buf, first, len), first + len
end

-- -- Equal bytes -----------------------------------------------------------

-- Whether len bytes of two buffers are equal.
local function same(a, apos, b, bpos, len)
  return memcmp(a + apos, b + bpos, len) == 0
end

local function mix(h, word)
  h = tobit(bxor(h, word) * 648053)
  return bxor(h, rshift(h, 15))
end

-- Returns a number of 32 bits for a whole number key and some of len bytes, at
-- least one. It differs between machines.
local function hash(key, buf, pos, len)
  local h = tobit(key * 40503 + len)
  if len < 4 then
    local mid = rshift(len, 1)
    h = mix(h, buf[pos] + buf[pos + mid] * 256 + buf[pos + len - 1] * 65536)
  else
    local w, stop = ffi.cast(word_ptr, buf + pos), ffi.cast(word_ptr, buf + pos + len)
    h = mix(mix(h, w[0]), stop[-1])
    if len > 8 then
      h = mix(mix(h, w[1]), stop[-2])
      local mid = ffi.cast(word_ptr, buf + pos + rshift(len, 1))
      h = mix(mix(h, mid[-1]), mid[0])
    end
  end
  h = tobit(h * 719393)
  return bxor(h, rshift(h, 16))
end

forget_strings()

return {
  same = same,
  hash = hash,
  ULEB_MAX = ULEB_MAX,
  uleb = uleb,
  uleb_text = uleb_text,
  u16_text = u16_text,
  u32_text = u32_text,
  u32 = u32,
  str = str,
  forget_strings = forget_strings,
  random_numbers = random_numbers,
  crc32 = crc32,
}
