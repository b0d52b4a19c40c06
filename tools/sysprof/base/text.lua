----------------------------------------------------------------------------
-- Printable and escaped text: clean UTF-8, JSON, HTML, folded stacks.
--
-- A program chooses the names in a stream, so they can hold any bytes. clean() returns
-- valid UTF-8 on one line. Control characters, and characters that change the direction
-- of text, become "?". The other functions escape clean text for one output each.
----------------------------------------------------------------------------

local bit = require("bit")
local ffi = require("ffi")

local text = {}

local ROOM = 16			-- Bytes that one character takes at most, with what moves its line.
local PIECE = 2^16		-- Bytes of a piece.
local NEWLINE, SPACE = 10, 32

-- Whether e2 80 c is a line break, or sets the direction of text.
local function is_control_80(c)
  return c == 0x8e or c == 0x8f or c >= 0xa8 and c <= 0xae
end

local function is_tail(c) return c >= 0x80 and c < 0xc0 end

-- Returns the length of the valid UTF-8 sequence at p[i], and whether it is a control
-- character, a line break, or a direction character. Returns nil for an invalid sequence.
-- A zero byte follows the text: it ends a sequence that is cut.
-- Direction characters are U+061C, U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069.
local function utf8_at(p, i)
  local a = p[i]
  if a < 0x80 then return 1, a < SPACE or a == 0x7f end
  local b = p[i + 1]
  if a < 0xc2 or a > 0xf4 or not is_tail(b) then return nil end
  if a < 0xe0 then return 2, (a == 0xc2 and b < 0xa0) or (a == 0xd8 and b == 0x9c) end
  local c = p[i + 2]
  if not is_tail(c) or (a == 0xe0 and b < 0xa0) or (a == 0xed and b >= 0xa0) then
    return nil
  end
  if a < 0xf0 then
    return 3, a == 0xe2 and ((b == 0x80 and is_control_80(c)) or
			     (b == 0x81 and c >= 0xa6 and c <= 0xa9))
  end
  if not is_tail(p[i + 3]) or (a == 0xf0 and b < 0x90) or (a == 0xf4 and b >= 0x90) then
    return nil
  end
  return 4, false
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
-- before lines that begin with neither a digit nor a space. Returns where it stopped, and the bytes in the piece.
local function fill_piece(p, i, n, has_lines, is_moved)
  local at = 0
  while i < n and at <= PIECE - ROOM do
    local c = p[i]
    if is_moved and c ~= NEWLINE and c ~= SPACE and (c < 0x30 or c > 0x39) and (i == 0 or p[i - 1] == NEWLINE) then
      for k = at, at + 3 do piece[k] = SPACE end
      at = at + 4
    end
    if c >= SPACE and c < 0x7f or has_lines and c == NEWLINE then
      piece[at] = c
      i, at = i + 1, at + 1
    else
      local len, control = utf8_at(p, i)
      if not len then
	piece[at], piece[at + 1] = 0x5c, 0x78
	piece[at + 2], piece[at + 3] = HEX[bit.rshift(c, 4)], HEX[bit.band(c, 15)]
	i, at = i + 1, at + 4
      elseif control then
	piece[at] = 0x3f
	i, at = i + len, at + 1
      else
	for k = 0, len - 1 do piece[at + k] = p[i + k] end
	i, at = i + len, at + len
      end
    end
  end
  return i, at
end

-- Control characters become "?", bytes of invalid UTF-8 become "\xNN".
function text.clean(s)
  if not s:find("[%c\127-\255]") then return s end
  local p, n, parts = text.buffer(s), #s, {}
  local i = 0
  repeat
    local stop, at = fill_piece(p, i, n)
    i, parts[#parts + 1] = stop, ffi.string(piece, at)
  until i >= n
  return #parts > 1 and table.concat(parts) or parts[1]
end

-- Writes clean lines in pieces. is_moved: moves those to the right that begin with neither a digit nor a space. A
-- string for each line would take long: LuaJIT compares long strings that are alike.
function text.write_lines(s, write, is_moved)
  local p, n = text.buffer(s), #s
  local i = 0
  while i < n do
    local stop, at = fill_piece(p, i, n, true, is_moved)
    i = stop
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
  return ("%.0f %s"):format(n, n == 1 and words:sub(-1) == "s" and words:sub(1, -2) or words)
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
  return (s:gsub('["\\<>&%c\127]', json_escapes))
end

return text
