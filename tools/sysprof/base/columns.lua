----------------------------------------------------------------------------
-- Columns that clean UTF-8 text takes on a terminal.
----------------------------------------------------------------------------

-- First and last characters that take no column, and those that take two, in order.
local NONE = { 0x300, 0x36f, 0x483, 0x489, 0x591, 0x5bd, 0x610, 0x61a, 0x64b, 0x65f, 0xe31, 0xe31, 0xe34, 0xe3a,
	       0xe47, 0xe4e, 0x1ab0, 0x1aff, 0x1dc0, 0x1dff, 0x200b, 0x200d, 0x20d0, 0x20ff, 0xfe00, 0xfe0f,
	       0xfe20, 0xfe2f, 0xfeff, 0xfeff, 0xe0100, 0xe01ef }
local TWO = { 0x1100, 0x115f, 0x231a, 0x231b, 0x2e80, 0x303e, 0x3041, 0xa4cf, 0xa960, 0xa97c, 0xac00, 0xd7a3,
	      0xf900, 0xfaff, 0xfe30, 0xfe6f, 0xff00, 0xff60, 0xffe0, 0xffe6, 0x1f300, 0x1f64f, 0x1f680, 0x1f6ff,
	      0x1f900, 0x1f9ff, 0x20000, 0x3fffd }

local CHARACTER = "[%z\1-\127\194-\244][\128-\191]*"

local columns = {}

local function is_in(ranges, code)
  for i = 1, #ranges, 2 do
    if code <= ranges[i + 1] then return code >= ranges[i] end
  end
  return false
end

-- Returns how many columns a character takes.
local function of_character(s)
  if #s == 1 then return 1 end
  local a, b, c, d = s:byte(1, 4)
  local code = d and a % 8 * 2^18 + b % 64 * 2^12 + c % 64 * 2^6 + d % 64 or
	       c and a % 16 * 2^12 + b % 64 * 2^6 + c % 64 or a % 32 * 2^6 + b % 64
  return is_in(NONE, code) and 0 or is_in(TWO, code) and 2 or 1
end

-- Returns how many columns a text takes.
function columns.of(s)
  if not s:find("[\128-\255]") then return #s end
  local n = 0
  for character in s:gmatch(CHARACTER) do n = n + of_character(character) end
  return n
end

-- Returns the beginning of a text that takes at most n columns, and how many it takes.
function columns.cut(s, n)
  if not s:find("[\128-\255]") then return s:sub(1, math.max(n, 0)), math.min(#s, math.max(n, 0)) end
  local used, out = 0, {}
  for character in s:gmatch(CHARACTER) do
    local its = of_character(character)
    if used + its > n then break end
    used, out[#out + 1] = used + its, character
  end
  return table.concat(out), used
end

-- Returns the end of a text that takes at most n columns.
function columns.tail(s, n)
  local all, at = columns.of(s), 1
  while all > n do
    local _, last = s:find(CHARACTER, at)
    all, at = all - of_character(s:sub(at, last)), last + 1
  end
  return s:sub(at)
end

-- Returns a text of exactly n columns: cut, or with spaces behind it.
function columns.fit(s, n)
  local cut, used = columns.cut(s, n)
  return cut .. (" "):rep(n - used)
end

return columns
