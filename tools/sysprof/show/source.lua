----------------------------------------------------------------------------
-- Source files of Lua code, printable, and whether they are those of the profile.
----------------------------------------------------------------------------

local files = require("sysprof.base.files")
local limits = require("sysprof.base.limits")
local selfreport = require("sysprof.show.selfreport")
local sort = require("sysprof.base.sort")
local text = require("sysprof.base.text")

local TAB = 8
local SOURCE_MAX = limits.SOURCE

local source = { MISSING = "[not in this file]" }

-- -- Which chunks ----------------------------------------------------------

-- A path without what says only where it begins.
local function plain_path(path)
  local at, last = 1, nil
  repeat
    at = last and last + 1 or at
    last = select(2, path:find("^%.%.?/+", at))
  until not last
  return path:sub(at)
end

local function is_suffix(path, suffix)
  return path == suffix or
	 (suffix ~= "" and path:sub(-#suffix - 1) == "/" .. suffix)
end

-- Returns the set of chunk names that mean the file, and a sorted list of their paths.
-- The chunk with the same path counts alone. Otherwise one path must end in the other.
function source.chunks(profile, path)
  local exact, set, list = false, {}, {}
  for _, f in profile.lfuncs:each() do
    exact = exact or f.chunk == "@" .. path
  end
  local wanted = plain_path(path)
  for _, f in profile.lfuncs:each() do
    local chunk = f.chunk:match("^@(.+)$")
    if chunk and not set[f.chunk] then
      local own = plain_path(chunk)
      if exact and chunk == path or
	 not exact and (is_suffix(own, wanted) or is_suffix(wanted, own)) then
	set[f.chunk], list[#list + 1] = true, chunk
      end
    end
  end
  sort(list)
  return set, list
end

-- -- Lines -----------------------------------------------------------------

-- Makes a line of a source text printable.
local function clean_line(line)
  local column, out, from = 0, {}, 1
  if line:sub(-1) == "\r" then line = line:sub(1, -2) end
  for tab in line:gmatch("()\t") do
    column = column + tab - from
    local spaces = TAB - column % TAB
    column = column + spaces
    out[#out + 1], from = line:sub(from, tab - 1) .. (" "):rep(spaces), tab + 1
  end
  return text.clean(table.concat(out) .. line:sub(from))
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
    return nil, limits.sentence("SOURCE", path)
  end
  local lines = {}
  for line in text.parts(s, "\n") do lines[#lines + 1] = clean_line(line) end
  if s:sub(-1) == "\n" then lines[#lines] = nil end
  return lines
end

-- Returns a sentence if a file has changed since the profile began, or nil.
function source.warning(path, profile)
  local st, start = files.stat(path), selfreport.start_time(profile)
  if not st or not start or st.mtime <= start then return nil end
  return ("%s is newer than the profile: costs may stand beside other lines"):format(path)
end

return source
