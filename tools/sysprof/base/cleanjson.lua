----------------------------------------------------------------------------
-- JSON documents of a program: checked token by token, and written anew.
--
-- So no text of the program leaves its document. Strings become clean; an object has each key once.
----------------------------------------------------------------------------

local limits = require("sysprof.base.limits")
local text = require("sysprof.base.text")

local LINE_DEPTH = 3		-- Objects at this depth begin a line.

local ESCAPES = { ['"'] = '"', ["\\"] = "\\", ["/"] = "/", b = "\b", f = "\f", n = "\n", r = "\r", t = "\t" }
local WORDS = { ["true"] = true, ["false"] = true, ["null"] = true }

local json = {}

-- Returns a character of the basic plane in UTF-8. Half of a pair becomes "?".
local function character(code)
  if code < 0x80 then return string.char(code) end
  if code < 0x800 then return string.char(0xc0 + math.floor(code / 64), 0x80 + code % 64) end
  if code >= 0xd800 and code < 0xe000 then return "?" end
  return string.char(0xe0 + math.floor(code / 4096), 0x80 + math.floor(code / 64) % 64, 0x80 + code % 64)
end

-- Returns the string that begins at a quote, and the position behind it; or nil.
local function read_string(s, at)
  local parts, i = {}, at + 1
  while true do
    local stop = s:find('["\\]', i)
    if not stop then return nil end
    parts[#parts + 1] = s:sub(i, stop - 1)
    if s:byte(stop) == 34 then return table.concat(parts), stop + 1 end
    local escape, code = s:sub(stop + 1, stop + 1), s:match("^u(%x%x%x%x)", stop + 1)
    local c = code and character(tonumber(code, 16)) or ESCAPES[escape]
    if not c then return nil end
    parts[#parts + 1], i = c, stop + (code and 6 or 2)
  end
end

-- Returns the number or word that begins at a position, and the position behind it; or nil.
local function read_atom(s, at)
  local atom = s:sub(at, at + limits.JSON_NUMBER):match("^[%w+.-]+")
  if not atom or #atom > limits.JSON_NUMBER then return nil end
  local whole = atom:gsub("[eE][+-]?%d+$", ""):gsub("^(%-?%d+)%.%d+$", "%1")
  if not WORDS[atom] and not (whole:find("^%-?%d+$") and not whole:find("^%-?0%d")) then return nil end
  return atom, at + #atom
end

local function skip(s, at)
  return s:match("^[ \t\r\n]*()", at)
end

local write_value

-- Copies what stands between brackets. item(at) copies one item and returns the position behind it, or nil. Returns the
-- position behind the end; or nil and where it is wrong.
local function write_items(s, out, at, close, item)
  at = skip(s, at)
  if s:sub(at, at) ~= close then
    while true do
      local after, wrong = item(at)
      if not after then return nil, wrong end
      at = skip(s, after)
      if s:sub(at, at) ~= "," then break end
      out[#out + 1], at = ",", skip(s, at + 1)
    end
  end
  if s:sub(at, at) ~= close then return nil, at end
  out[#out + 1] = close
  return at + 1
end

local function write_object(s, out, at, depth)
  local keys, n = {}, 0
  out[#out + 1] = depth == LINE_DEPTH and "\n{" or "{"
  return write_items(s, out, at + 1, "}", function(i)
    local key, after
    if s:sub(i, i) == '"' then key, after = read_string(s, i) end
    after = key and skip(s, after)
    n = n + 1
    if not after or s:sub(after, after) ~= ":" or keys[key] or n > limits.JSON_KEYS then return nil, i end
    keys[key], out[#out + 1] = true, text.json(text.clean(key)) .. ":"
    return write_value(s, out, skip(s, after + 1), depth + 1)
  end)
end

-- Copies a value. Returns the position behind it; or nil and where it is wrong.
function write_value(s, out, at, depth)
  local c = s:sub(at, at)
  if depth > limits.JSON_DEPTH then return nil, at end
  if c == "{" then return write_object(s, out, at, depth) end
  if c == "[" then
    out[#out + 1] = c
    return write_items(s, out, at + 1, "]", function(i) return write_value(s, out, i, depth + 1) end)
  end
  local is_string = c == '"'
  local value, after = (is_string and read_string or read_atom)(s, at)
  if not value then return nil, at end
  out[#out + 1] = is_string and text.json(text.clean(value)) or value
  return after
end

-- Returns objects, one behind the other, as a list in JSON; or nil and which byte is wrong.
function json.list(s)
  local out, at = {}, skip(s, 1)
  while at <= #s do
    if s:sub(at, at) ~= "{" then return nil, at end
    out[#out + 1] = out[1] and ",\n" or ""
    local after, wrong = write_object(s, out, at, 1)
    if not after then return nil, wrong end
    at = skip(s, after)
  end
  return "[" .. table.concat(out) .. "]"
end

return json
