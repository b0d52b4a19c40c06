----------------------------------------------------------------------------
-- gzip file (RFC 1952) with one member.
--
-- The zlib of this machine compresses. Without zlib the bytes are stored.
----------------------------------------------------------------------------

local bit = require("bit")
local ffi = require("ffi")
local bytes = require("sysprof.base.bytes")

local u16, u32 = bytes.u16_text, bytes.u32_text

local LIBRARIES = { "libz.so.1", "z" }
local LEVEL = 6
local ZLIB_HEAD, ZLIB_TAIL = 2, 4	-- Around the deflated bytes (RFC 1950).
local STORED_BYTES = 65535		-- Bytes of a stored block (RFC 1951).

ffi.cdef [[
unsigned long compressBound(unsigned long);
int compress2(uint8_t *, unsigned long *, const uint8_t *, unsigned long, int);
]]

local library	-- false: not found.

local function load_library()
  for _, name in ipairs(LIBRARIES) do
    local ok, lib = pcall(ffi.load, name)
    if ok and pcall(function() return lib.compress2 end) then return lib end
  end
  return false
end

-- Returns the deflated bytes, or nil without zlib.
local function deflate(s)
  if library == nil then library = load_library() end
  if not library then return nil end
  local size = ffi.new("unsigned long[1]", library.compressBound(#s))
  local out = ffi.new("uint8_t[?]", size[0])
  if library.compress2(out, size, s, #s, LEVEL) ~= 0 then return nil end
  return ffi.string(out + ZLIB_HEAD, size[0] - ZLIB_HEAD - ZLIB_TAIL)
end

-- Returns the bytes in stored blocks; no bytes give one empty block.
local function store(s)
  local out, at = {}, 1
  repeat
    local part = s:sub(at, at + STORED_BYTES - 1)
    at = at + #part
    out[#out + 1] = (at > #s and "\1" or "\0") .. u16(#part) .. u16(STORED_BYTES - #part)
    out[#out + 1] = part
  until at > #s
  return table.concat(out)
end

local gzip = {}

-- No time and no name in the header: equal data give equal files. comment: text in the header. stored: does
-- without zlib.
function gzip.compress(s, comment, stored)
  local crc = bytes.crc32(0, ffi.cast("const uint8_t *", s), 0, #s)
  return "\31\139\8\16\0\0\0\0\0\255" .. comment .. "\0" .. (not stored and deflate(s) or store(s)) ..
	 u32(bit.tobit(crc)) .. u32(bit.tobit(#s % 2^32))
end

return gzip
