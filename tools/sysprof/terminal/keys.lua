----------------------------------------------------------------------------
-- Keys of a terminal: names of what was pressed, from the bytes that it sends.
----------------------------------------------------------------------------

local text = require("sysprof.base.text")

local NAMES = {
  ["\27[A"] = "up", ["\27[B"] = "down", ["\27[5~"] = "page up", ["\27[6~"] = "page down",
  ["\27[H"] = "home", ["\27[F"] = "end",
  ["\27[1~"] = "home", ["\27[4~"] = "end", ["\27[7~"] = "home", ["\27[8~"] = "end",
  ["\27[C"] = "right", ["\27[D"] = "left", ["\27[Z"] = "back tab",
  ["\r"] = "enter", ["\n"] = "enter", ["\127"] = "backspace", ["\8"] = "backspace", ["\t"] = "tab", ["\21"] = "clear",
}
for c in ("ABCDHF"):gmatch(".") do NAMES["\27O" .. c] = NAMES["\27[" .. c] end

local SEQUENCE_BYTES = 32

local keys = {}

-- Returns the length of the first key in s, or nil if more bytes must come.
local function length(s)
  local first = s:byte()
  if first >= 0xc2 and first < 0xf5 then
    local n = first < 0xe0 and 2 or first < 0xf0 and 3 or 4
    local tail = #s:match("^.([\128-\191]*)")
    return tail >= n - 1 and n or #s > tail + 1 and tail + 1 or nil
  elseif first ~= 27 then
    return 1
  elseif #s == 1 then
    return nil
  elseif s:find("^\27%[") then
    local _, last = s:find("^\27%[[\32-\63]*[\64-\126]")
    return last or (#s > SEQUENCE_BYTES or s:find("^\27%[[\32-\63]*[^\32-\63]")) and #s or nil
  elseif s:find("^\27O") then
    return #s > 2 and 3 or nil
  end
  return 1
end

-- Returns an object that knows the bytes of a key that have come so far.
function keys.new()
  local self, rest = {}, ""

  -- Is a key begun?
  function self.is_open() return rest ~= "" end

  -- Returns a list of keys: a name of NAMES, "escape", or a character. is_all: the rest comes no more.
  function self.take(bytes, is_all)
    local list = {}
    rest = rest .. bytes
    while rest ~= "" do
      local n = length(rest) or is_all and #rest
      if not n then break end
      local key = rest:sub(1, n)
      rest = rest:sub(n + 1)
      key = NAMES[key] or key == "\27" and "escape" or text.clean(key) == key and key or nil
      if key then list[#list + 1] = key end
    end
    return list
  end

  return self
end

return keys
