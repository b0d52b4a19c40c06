----------------------------------------------------------------------------
-- JSON documents of a program: checked token by token, and written anew.
--
-- So no text of the program leaves its document. Strings become clean; an object has each key once. The work and the
-- memory are bounded by the bytes: nothing is made for a token.
----------------------------------------------------------------------------

local bit = require("bit")
local ffi = require("ffi")
local limits = require("sysprof.base.limits")
local text = require("sysprof.base.text")

local LINE_DEPTH = 3		-- Objects at this depth begin a line.
local PIECE = 2^16		-- Bytes of a piece of the output.
local PART = 4096		-- Bytes of a string that become clean at a time,
local ROOM = 8			-- and those that one character and the rest of a sequence take.
local HALF = 0x3f		-- Of a surrogate pair.

local function code(c) return c:byte() end

local QUOTE, BACKSLASH, COMMA, COLON, U = code '"', code "\\", code ",", code ":", code "u"
local OBJECT, OBJECT_END, ARRAY, ARRAY_END = code "{", code "}", code "[", code "]"
local MINUS, PLUS, DOT, ZERO, NINE, E = code "-", code "+", code ".", code "0", code "9", code "e"

local ESCAPES = ffi.new("uint8_t[256]")	-- 0: none.
for escape, c in pairs { ['"'] = '"', ["\\"] = "\\", ["/"] = "/", b = "\b", f = "\f", n = "\n", r = "\r", t = "\t" } do
  ESCAPES[code(escape)] = code(c)
end
local DIGITS = ffi.new("int8_t[256]", -1)	-- Values of digits; -1: none.
for i = 0, 255 do DIGITS[i] = tonumber(string.char(i):match("%x") or "", 16) or -1 end
local WORDS = { [code "t"] = "true", [code "f"] = "false", [code "n"] = "null" }

local json = {}

-- -- Output ----------------------------------------------------------------

local piece, part = ffi.new("uint8_t[?]", PIECE), ffi.new("uint8_t[?]", PART + ROOM)

local function flush(out)
  if out.n > 0 then out[#out + 1] = ffi.string(piece, out.n) end
  out.n = 0
end

local function put(out, s)
  if out.n + #s > PIECE then flush(out) end
  if #s > PIECE then
    out[#out + 1] = s
  else
    ffi.copy(piece + out.n, s, #s)
    out.n = out.n + #s
  end
end

local function put_byte(out, c)
  if out.n == PIECE then flush(out) end
  piece[out.n] = c
  out.n = out.n + 1
end

-- -- Strings ---------------------------------------------------------------

-- Puts a character of the basic plane into a part, in UTF-8. Returns the bytes of the part.
local function put_character(at, c)
  if c >= 0xd800 and c < 0xe000 then c = HALF end
  if c < 0x80 then
    part[at] = c
    return at + 1
  elseif c < 0x800 then
    part[at], part[at + 1] = 0xc0 + bit.rshift(c, 6), 0x80 + bit.band(c, 63)
    return at + 2
  end
  part[at], part[at + 1] = 0xe0 + bit.rshift(c, 12), 0x80 + bit.band(bit.rshift(c, 6), 63)
  part[at + 2] = 0x80 + bit.band(c, 63)
  return at + 3
end

-- Returns the character that \u tells at p[i], or nil.
local function hex_at(p, i)
  local c = 0
  for k = i, i + 3 do
    local digit = DIGITS[p[k]]
    if digit < 0 then return nil end
    c = c * 16 + digit
  end
  return c
end

-- Decodes a string of n bytes from p[i] on, until the part is full, but not in the middle of a UTF-8 sequence. Returns
-- where it stopped, at the quote of the end or before; and the bytes of the part. Returns nil if the string is wrong.
local function fill_part(p, i, n)
  local at = 0
  while i < n do
    local c = p[i]
    if c == QUOTE then return i, at end
    if at >= PART and (c < 0x80 or c >= 0xc0 or at == PART + 4) then return i, at end
    if c ~= BACKSLASH then
      part[at] = c
      i, at = i + 1, at + 1
    elseif p[i + 1] == U then
      local character = hex_at(p, i + 2)
      if not character then return nil end
      i, at = i + 6, put_character(at, character)
    else
      local character = ESCAPES[p[i + 1]]
      if character == 0 then return nil end
      part[at] = character
      i, at = i + 2, at + 1
    end
  end
  return nil
end

-- Copies the string whose quote stands at p[at]. Returns the position behind it, or nil.
local function copy_string(out, p, at, n)
  local i = at + 1
  put_byte(out, QUOTE)
  repeat
    local stop, bytes = fill_part(p, i, n)
    if not stop then return nil end
    put(out, text.json_part(text.clean(ffi.string(part, bytes))))
    i = stop
  until p[i] == QUOTE
  put_byte(out, QUOTE)
  return i + 1
end

-- -- Numbers and words -----------------------------------------------------

local function skip_digits(p, i, stop)
  while i < stop and p[i] >= ZERO and p[i] <= NINE do i = i + 1 end
  return i
end

-- Returns where the number at p[at] ends, or nil.
local function number_end(p, at)
  local stop = at + limits.JSON_NUMBER + 1
  local first = p[at] == MINUS and at + 1 or at
  local i = skip_digits(p, first, stop)
  if i == first or p[first] == ZERO and i > first + 1 then return nil end
  if p[i] == DOT then
    first = i + 1
    i = skip_digits(p, first, stop)
    if i == first then return nil end
  end
  if bit.bor(p[i], 32) == E then
    first = i + ((p[i + 1] == MINUS or p[i + 1] == PLUS) and 2 or 1)
    i = skip_digits(p, first, stop)
    if i == first then return nil end
  end
  return i < stop and i or nil
end

-- Copies the number or word at p[at]. Returns the position behind it, or nil. What may follow it ends it.
local function copy_atom(out, s, p, at)
  local word = WORDS[p[at]]
  if word then
    if s:sub(at + 1, at + #word) ~= word then return nil end
    put(out, word)
    return at + #word
  end
  local stop = number_end(p, at)
  for i = at, (stop or at) - 1 do put_byte(out, p[i]) end
  return stop
end

-- -- Objects ---------------------------------------------------------------

local function skip(p, at)
  while p[at] == 32 or p[at] == 9 or p[at] == 10 or p[at] == 13 do at = at + 1 end
  return at
end

-- Copies a key and its colon. keys: the clean ones of the object. Returns the position of the value, or nil.
local function copy_key(out, p, at, n, keys)
  if p[at] ~= QUOTE or keys.n >= limits.JSON_KEYS then return nil end
  local stop, bytes = fill_part(p, at + 1, n)
  local colon = stop and p[stop] == QUOTE and skip(p, stop + 1)
  if not colon or p[colon] ~= COLON then return nil end
  local key = text.json(text.clean(ffi.string(part, bytes)))
  for i = 1, keys.n do
    if keys[i] == key then return nil end
  end
  keys.n = keys.n + 1
  keys[keys.n] = key
  put(out, key)
  put_byte(out, COLON)
  return skip(p, colon + 1)
end

-- Returns objects, one behind the other, as a list in JSON, in pieces; or nil and which byte is wrong.
function json.list(s)
  local p, n, out = text.buffer(s), #s, { n = 0 }
  local ends, keys, depth = {}, {}, 0		-- Of the open brackets.
  for i = 1, limits.JSON_DEPTH do keys[i] = { n = 0 } end
  local is_first, is_next = true, false		-- Of a bracket; behind an item of it.
  put_byte(out, ARRAY)
  local at = skip(p, 0)
  while depth > 0 or at < n do
    local c = p[at]
    if depth > 0 and c == ends[depth] and (is_first or is_next) then
      put_byte(out, c)
      at, depth = at + 1, depth - 1
      is_first, is_next = false, true
    elseif depth > 0 and is_next then
      if c ~= COMMA then return nil, at + 1 end
      put_byte(out, c)
      at, is_first, is_next = at + 1, false, false
    else
      if depth == 0 then
	if c ~= OBJECT then return nil, at + 1 end
	if is_next then put(out, ",\n") end
      elseif ends[depth] == OBJECT_END then
	local value = copy_key(out, p, at, n, keys[depth])
	if not value then return nil, at + 1 end
	at, c = value, p[value]
      end
      if depth >= limits.JSON_DEPTH then return nil, at + 1 end
      if c == OBJECT or c == ARRAY then
	depth = depth + 1
	ends[depth], keys[depth].n = c == OBJECT and OBJECT_END or ARRAY_END, 0
	if c == OBJECT and depth == LINE_DEPTH then put(out, "\n") end
	put_byte(out, c)
	at, is_first, is_next = at + 1, true, false
      else
	local stop
	if c == QUOTE then stop = copy_string(out, p, at, n) else stop = copy_atom(out, s, p, at) end
	if not stop then return nil, at + 1 end
	at, is_first, is_next = stop, false, true
      end
    end
    at = skip(p, at)
  end
  put_byte(out, ARRAY_END)
  flush(out)
  return out
end

return json
