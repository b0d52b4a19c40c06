----------------------------------------------------------------------------
-- Source files of Lua code, printable, and whether they are those of the profile.
----------------------------------------------------------------------------

local files = require("sysprof.base.files")
local selfreport = require("sysprof.show.selfreport")
local text = require("sysprof.base.text")

local TAB = 8
local SOURCE_MAX = 16 * 2^20	-- Bytes of a file.

local source = { MISSING = "[not in this file]" }

-- -- Which chunks ----------------------------------------------------------

-- A path without what says only where it begins.
local function plain_path(path)
  local rest = path
  repeat
    path = rest
    rest = path:gsub("^%.%.?/+", "")
  until rest == path
  return path
end

local function is_suffix(path, suffix)
  return path == suffix or
	 (suffix ~= "" and path:sub(-#suffix - 1) == "/" .. suffix)
end

-- Returns the set of chunk names that mean the file, and a sorted list of their paths.
-- The chunk with the same path counts alone. Otherwise one path must end in the other.
function source.chunks(profile, path)
  local exact, set, list = false, {}, {}
  for _, f in pairs(profile.lfuncs) do
    exact = exact or f.chunk == "@" .. path
  end
  local wanted = plain_path(path)
  for _, f in pairs(profile.lfuncs) do
    local chunk = f.chunk:match("^@(.+)$")
    if chunk and not set[f.chunk] then
      local own = plain_path(chunk)
      if exact and chunk == path or
	 not exact and (is_suffix(own, wanted) or is_suffix(wanted, own)) then
	set[f.chunk], list[#list + 1] = true, chunk
      end
    end
  end
  table.sort(list)
  return set, list
end

-- -- Lines -----------------------------------------------------------------

-- Makes a line of a source text printable.
local function clean_line(line)
  local column = 0
  line = line:gsub("\r$", ""):gsub("([^\t]*)\t", function(before)
    column = column + #before
    local spaces = TAB - column % TAB
    column = column + spaces
    return before .. (" "):rep(spaces)
  end)
  return text.clean(line)
end

-- Returns the lines of a file, or nil and a message.
function source.lines(path)
  local file, err = io.open(path, "rb")
  if not file then return nil, err end
  local s, why = file:read(SOURCE_MAX + 1)
  file:close()
  if why then return nil, path .. ": " .. why end
  s = s or ""
  if #s > SOURCE_MAX then
    return nil, ("%s: it has more than %d bytes, expected a Lua file"):format(path, SOURCE_MAX)
  end
  if s:sub(-1) ~= "\n" then s = s .. "\n" end
  local lines = {}
  for line in s:gmatch("([^\n]*)\n") do lines[#lines + 1] = clean_line(line) end
  return lines
end

-- Returns a sentence if a file has changed since the profile began, or nil.
function source.warning(path, profile)
  local st, start = files.stat(path), selfreport.start_time(profile)
  if not st or not start or st.mtime <= start then return nil end
  return ("%s is newer than the profile: costs may stand beside other lines"):format(path)
end

return source
