----------------------------------------------------------------------------
-- Printable and escaped text: clean UTF-8, JSON, HTML, folded stacks.
--
-- A program chooses the names in a stream, so they can hold any bytes. clean() returns
-- valid UTF-8 on one line. Control characters, and characters that show nothing or change
-- the direction of text, become "?". The other functions escape clean text for one output each.
----------------------------------------------------------------------------

local bit = require("bit")
local ffi = require("ffi")

local text = {}

local ROOM = 16			-- Bytes that one character takes at most, with what moves its line.
local PIECE = 2^16		-- Bytes of a piece.
local NEWLINE, SPACE = 10, 32

local function is_tail(c) return c >= 0x80 and c < 0xc0 end

-- Returns the length and the code of the valid UTF-8 sequence at p[i]. Returns nil for an invalid sequence.
-- A zero byte follows the text: it ends a sequence that is cut.
local function utf8_at(p, i)
  local a = p[i]
  if a < 0x80 then return 1, a end
  local b = p[i + 1]
  if a < 0xc2 or a > 0xf4 or not is_tail(b) then return nil end
  if a < 0xe0 then return 2, (a - 0xc0) * 0x40 + b - 0x80 end
  local c = p[i + 2]
  if not is_tail(c) or (a == 0xe0 and b < 0xa0) or (a == 0xed and b >= 0xa0) then
    return nil
  end
  if a < 0xf0 then return 3, (a - 0xe0) * 0x1000 + (b - 0x80) * 0x40 + c - 0x80 end
  local d = p[i + 3]
  if not is_tail(d) or (a == 0xf0 and b < 0x90) or (a == 0xf4 and b >= 0x90) then
    return nil
  end
  return 4, (a - 0xf0) * 0x40000 + (b - 0x80) * 0x1000 + (c - 0x80) * 0x40 + d - 0x80
end

-- First and last codes that show nothing or change their line: control characters, line breaks, Unicode's
-- Default_Ignorable_Code_Point, direction and annotation characters. The profiler's lj_cleantext has the same.
local HIDDEN = {
  { 0, 0x1f }, { 0x7f, 0x9f }, { 0xad, 0xad }, { 0x34f, 0x34f }, { 0x61c, 0x61c }, { 0x115f, 0x1160 },
  { 0x17b4, 0x17b5 }, { 0x180b, 0x180f }, { 0x200b, 0x200f }, { 0x2028, 0x202e }, { 0x2060, 0x206f },
  { 0x3164, 0x3164 }, { 0xfe00, 0xfe0f }, { 0xfeff, 0xfeff }, { 0xffa0, 0xffa0 }, { 0xfff0, 0xfffb },
  { 0x1bca0, 0x1bca3 }, { 0x1d173, 0x1d17a }, { 0xe0000, 0xe0fff },
}
local ranges = ffi.new("int32_t[?][2]", #HIDDEN, HIDDEN)
local JOINING_SCRIPTS = 0x600	-- Arabic and later ones, symbols and emoji too.

-- Whether a character shows nothing or changes its line. Joiners and variation selectors are part of the writing
-- behind characters of some scripts and symbols. before: the code of the character before it.
local function is_hidden(code, before)
  local i = 0
  while i < #HIDDEN and code > ranges[i][1] do i = i + 1 end
  if i == #HIDDEN or code < ranges[i][0] then return false end
  local joins = code == 0x200c or code == 0x200d or code >= 0xfe00 and code <= 0xfe0f
  return not (joins and before >= JOINING_SCRIPTS)
end

local HEX = ffi.new("uint8_t[17]", "0123456789abcdef")
local piece = ffi.new("uint8_t[?]", PIECE)

-- Returns a copy of a text, with a zero byte behind it. A pointer into the text itself would not keep it.
function text.buffer(s)
  local buf = ffi.new("uint8_t[?]", #s + 1)
  ffi.copy(buf, s)
  return buf
end

-- Cleans n bytes at p from byte i on, until the piece is full. has_lines: newlines stay. is_moved: four spaces stand
-- before lines that begin with neither a digit nor a space. before: the code of the character before i, or 0. Returns
-- where it stopped, the bytes in the piece, and the code of the last character.
local function fill_piece(p, i, n, before, has_lines, is_moved)
  local at = 0
  while i < n and at <= PIECE - ROOM do
    local c = p[i]
    if is_moved and c ~= NEWLINE and c ~= SPACE and (c < 0x30 or c > 0x39) and (i == 0 or p[i - 1] == NEWLINE) then
      for k = at, at + 3 do piece[k] = SPACE end
      at = at + 4
    end
    if c >= SPACE and c < 0x7f or has_lines and c == NEWLINE then
      piece[at] = c
      i, at, before = i + 1, at + 1, c
    else
      local len, code = utf8_at(p, i)
      if not len then
	piece[at], piece[at + 1] = 0x5c, 0x78
	piece[at + 2], piece[at + 3] = HEX[bit.rshift(c, 4)], HEX[bit.band(c, 15)]
	i, at, before = i + 1, at + 4, 0
      elseif is_hidden(code, before) then
	piece[at] = 0x3f
	i, at, before = i + len, at + 1, 0
      else
	for k = 0, len - 1 do piece[at + k] = p[i + k] end
	i, at, before = i + len, at + len, code
      end
    end
  end
  return i, at, before
end

-- Hidden characters become "?", bytes of invalid UTF-8 become "\xNN".
function text.clean(s)
  if not s:find("[%c\127-\255]") then return s end
  local p, n, parts = text.buffer(s), #s, {}
  local i, before = 0, 0
  repeat
    local stop, at, last = fill_piece(p, i, n, before)
    i, before, parts[#parts + 1] = stop, last, ffi.string(piece, at)
  until i >= n
  return #parts > 1 and table.concat(parts) or parts[1]
end

-- Writes clean lines in pieces. is_moved: moves those to the right that begin with neither a digit nor a space. A
-- string for each line would take long: LuaJIT compares long strings that are alike.
function text.write_lines(s, write, is_moved)
  local p, n = text.buffer(s), #s
  local i, before = 0, 0
  while i < n do
    local stop, at, last = fill_piece(p, i, n, before, true, is_moved)
    i, before = stop, last
    write(ffi.string(piece, at))
  end
end

-- Returns as much of s as max bytes hold, not in the middle of a UTF-8 sequence.
local function beginning(s, max)
  local last = max
  while last > max - 4 and (s:byte(last + 1) or 0) >= 0x80 and s:byte(last + 1) < 0xc0 do
    last = last - 1
  end
  return s:sub(1, last)
end

-- Returns a clean text of about max bytes. One name can stand in many others.
function text.short(s, max)
  if #s <= max then return text.clean(s) end
  return text.clean(beginning(s, max)) .. "..."
end

-- Returns a number of things as text. word: of one thing.
function text.plural(n, word)
  return ("%.0f %s%s"):format(n, word, n == 1 and "" or "s")
end

-- The same for a word in the plural, such as waits.
function text.counted(n, words)
  if n == 1 then words = words:gsub("shes$", "shs"):gsub("s$", "") end
  return ("%.0f %s"):format(n, words)
end

-- Returns up to n items of a list from the first on, with commas.
function text.listed(list, first, n)
  return table.concat(list, ", ", first, math.min(#list, first + n - 1)) .. (#list >= first + n and ", ..." or "")
end

-- Returns an argument as a shell takes it.
function text.quoted(s)
  return s:find("^[%w%._/=,:+@-]+$") and s or ("'%s'"):format((s:gsub("'", "'\\''")))
end

-- Patterns here take linear time on any text: one that repeats begins with "^", or with a byte that stops the
-- repetition before it.

-- Returns a text without spaces and other white space at its end.
function text.without_end(s)
  return s:match("^(.*%S)") or ""
end

-- Returns an iterator over the parts of a text between characters of one kind.
function text.parts(s, separator)
  local at = 1
  return function()
    if not at then return nil end
    local stop = s:find(separator, at, true)
    local part = s:sub(at, stop and stop - 1)
    at = stop and stop + 1
    return part
  end
end

-- Returns the last part of a path, "" behind a slash.
function text.base_name(path)
  return path:match("^.*/(.*)$") or path
end

-- Returns the name of a file by its path, nil without one.
function text.file_name(path)
  path = path:match("^(.*[^/])")
  return path and text.base_name(path)
end

-- Returns a short beginning of a source text: max bytes of its first line
-- that has something in it.
function text.excerpt(s, max)
  local first = s:find("%S") or #s + 1
  local stop = s:find("[\r\n]", first) or #s + 1
  local line = s:sub(first, stop - 1)
  local cut = #line > max or s:find("%S", stop) ~= nil
  if #line > max then line = beginning(line, max) end
  return text.clean(line) .. (cut and "..." or "")
end

-- For a frame of a folded stack.
function text.folded(s)
  return (s:gsub(";", ":"))
end

-- Of bytes, for people.
function text.hex_bytes(s)
  return (s:gsub(".", function(c) return ("%02x"):format(c:byte()) end))
end

-- Of an address.
function text.hex(number)
  if number < 2^31 then return ("0x%x"):format(number) end
  return ("0x%x%08x"):format(math.floor(number / 2^32), number % 2^32)
end

local html_entities = {
  ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;", ['"'] = "&quot;",
  ["'"] = "&#39;",
}

function text.html(s)
  return (s:gsub("[&<>\"']", html_entities))
end

local json_escapes = {}
for c = 0, 127 do json_escapes[string.char(c)] = ("\\u%04x"):format(c) end

-- A JSON string that can also stand in a script element of an HTML page.
function text.json(s)
  return '"' .. text.json_part(s) .. '"'
end

-- The same without the quotes.
function text.json_part(s)
  if not s:find('["\\<>&%c\127]') then return s end	-- Each string takes long, see write_lines().
  return (s:gsub('["\\<>&%c\127]', json_escapes))
end

return text
