----------------------------------------------------------------------------
-- Files that are not profiles: tells from the first bytes of an input what it is.
----------------------------------------------------------------------------

local text = require("sysprof.base.text")

local otherfiles = {}

-- Bytes that tell() looks at.
otherfiles.SIZE = 512

local RECORD = "record a profile with luajit-sysprof run"

-- Patterns of beginnings in lower case, what such a file is, and what to do.
local KINDS = {
  { "^%s*<!doctype html", "an HTML page", "give the .bin file" },
  { "^%s*<html", "an HTML page", "give the .bin file" },
  { "^%s*<svg", "an SVG picture", "give the .bin file" },
  { "^%s*<%?xml", "an XML file", "give the .bin file" },
  { "^\31\139", "compressed by gzip", "give the .bin file, or decompress it" },
  { "^\2537zxz", "compressed by xz", "decompress it" },
  { "^%(\181/\253", "compressed by zstd", "decompress it" },
  { "^\127elf", "a program or a library", RECORD },
  { "^\27lj", "compiled Lua code", RECORD },
  { "^perfile2", "a file of perf", "give the .bin file" },
  { "^ljh%c", "a heap snapshot", "luajit-sysprof heap reads it" },
  { "^%s*[%[{]%s*\"", "a JSON file", "give the .bin file" },
}

-- Words that begin a line of Lua code.
local LUA_WORDS = { "^local%s", "^function%s", "^return%s", "^require%s*[(\"']", "^%-%-" }

-- Whether a text is Lua code: one of its lines begins so.
local function is_lua(s)
  for line in s:gmatch("[^\r\n]+") do
    for _, word in ipairs(LUA_WORDS) do
      if line:find(word) then return true end
    end
  end
  return s:find("^#![^\n]*lua") ~= nil
end

-- Whether all lines that the input has as a whole are stacks with a number.
local function is_folded(s)
  local lines = 0
  for line in text.parts(s:match("^(.*)\n") or "", "\n") do
    if not line:find("^%S.* %d+$") then return false end
    lines = lines + 1
  end
  return lines > 0
end

-- Returns what an input is that begins with a text, and what to do, as a phrase; nil if that is unknown.
function otherfiles.tell(head)
  local lower = head:lower()
  for _, kind in ipairs(KINDS) do
    if lower:find(kind[1]) then return ("it is %s; %s"):format(kind[2], kind[3]) end
  end
  if head:find("[%z\1-\8\14-\31]") then return nil end
  if is_lua(head) then return "it is a Lua script; " .. RECORD end
  if is_folded(head) then return "it is folded text; give the .bin file" end
  return head:find("%S") and "it is a text file; give the .bin file" or nil
end

return otherfiles
