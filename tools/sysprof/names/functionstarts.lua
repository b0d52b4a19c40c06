----------------------------------------------------------------------------
-- Starts of functions, from the unwind tables of an ELF file.
--
-- A stripped file still has .eh_frame: an entry for each function, or part of one, with its
-- start and size. .eh_frame_hdr has a sorted table of the entries. The table only leads to an
-- entry. The entry must contain the address. Formats: Linux Standard Base, "Exception Frames".
----------------------------------------------------------------------------

local limits = require("sysprof.base.limits")

local functionstarts = {}

local HEADER_SIZE, ROW_SIZE = 12, 8
local HEADER = "^\1.\3\59"	-- Version, .eh_frame, 4 bytes of count, rows of 4 bytes from here.
local PC_RELATIVE = 0x10
local FORMAT = { [0x00] = 8, [0x03] = 4, [0x04] = 8, [0x0b] = 4, [0x0c] = 8 }	-- Bytes.
local NUMBER_MAX = limits.NUMBER_BYTES

local function u32(s, at)
  local a, b, c, d = s:byte(at + 1, at + 4)
  return d and a + b * 2^8 + c * 2^16 + d * 2^24
end

local function i32(s, at)
  local v = u32(s, at)
  return v and v >= 2^31 and v - 2^32 or v
end

-- Returns the position behind the LEB128 at a position, or nil.
local function skip_number(s, at)
  for i = at, at + NUMBER_MAX - 1 do
    local byte = s:byte(i + 1)
    if not byte then return nil end
    if byte < 128 then return i + 1 end
  end
end

-- Returns a value of this many bytes. With a sign if it is relative.
local function value(s, at, size, signed)
  local low, high = u32(s, at), 0
  if size == 8 then high = (signed and i32 or u32)(s, at + 4) end
  if size == 4 and signed then low = i32(s, at) end
  return low and high and low + high * 2^32
end

-- Returns the encoding of addresses in the entries of a common entry, or nil.
local function encoding(s, at)
  local length, zero, version = u32(s, at), u32(s, at + 4), s:byte(at + 9)
  if not version or length >= 0xfffffff0 or zero ~= 0 or (version ~= 1 and version ~= 3) then
    return nil
  end
  local entry = s:sub(at + 1, at + 4 + math.min(length, limits.UNWIND_ENTRY))
  local augmentation, pos = entry:match("^([^%z]*)%z()", 10)
  if augmentation == "" then return 0 end
  if not augmentation or not augmentation:find("^z[RLSP]*$") then return nil end
  -- Alignments, number of the return address' register, length of what follows.
  pos = skip_number(entry, pos - 1)
  pos = pos and skip_number(entry, pos)
  if pos and version == 1 then pos = pos + 1 else pos = pos and skip_number(entry, pos) end
  pos = pos and skip_number(entry, pos)
  for what in augmentation:gmatch("[RLP]") do
    local byte = pos and entry:byte(pos + 1)
    if not byte or what == "R" then return byte end
    local size = what == "P" and FORMAT[byte % 16] or 0
    pos = size and pos + 1 + size
  end
  return 0
end

-- Returns where the code of the entry at a position begins and ends, or nil.
local function range(s, at, base)
  local length, back = u32(s, at), u32(s, at + 4)
  if not back or length >= 0xfffffff0 or at + 4 + length > #s or back == 0 or back > at + 4 then
    return nil
  end
  local code = encoding(s, at + 4 - back)
  local size = code and FORMAT[code % 16]
  local relative = code and code - code % 16
  if not size or (relative ~= 0 and relative ~= PC_RELATIVE) or 4 + 2 * size > length then
    return nil
  end
  local from = value(s, at + 8, size, relative ~= 0)
  local bytes = value(s, at + 8 + size, size, false)
  if relative ~= 0 then from = from + base + at + 8 end
  return from, from + bytes
end

-- Returns a function find(addr) that returns the start of the function that contains an address
-- of the file, or nil. Returns nil if the file has no such tables.
function functionstarts.new(file)
  local index, frames = file:section(".eh_frame_hdr"), file:section(".eh_frame")
  local rows, entries = index and file:bytes(index), frames and file:bytes(frames)
  if not rows or not entries or not rows:find(HEADER) then return nil end
  local n = u32(rows, 8)
  if not n or HEADER_SIZE + n * ROW_SIZE > #rows then return nil end
  return function(addr)
    local low, high = 0, n	-- The first row above addr.
    while low < high do
      local middle = math.floor((low + high) / 2)
      if index.first + i32(rows, HEADER_SIZE + middle * ROW_SIZE) > addr then
	high = middle
      else
	low = middle + 1
      end
    end
    if low == 0 then return nil end
    local at = index.first + i32(rows, HEADER_SIZE + (low - 1) * ROW_SIZE + 4) - frames.first
    if at < 0 then return nil end
    local from, to = range(entries, at, frames.first)
    return from and from <= addr and addr < to and from or nil
  end
end

return functionstarts
