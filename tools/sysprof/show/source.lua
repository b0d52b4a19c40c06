----------------------------------------------------------------------------
-- Source files of Lua code, printable, and whether they are those of the profile.
----------------------------------------------------------------------------

local bit = require("bit")
local files = require("sysprof.base.files")
local limits = require("sysprof.base.limits")
local regular = require("sysprof.base.regular")
local selfreport = require("sysprof.show.selfreport")
local sort = require("sysprof.base.sort")
local text = require("sysprof.base.text")

local TAB = 8
local CHUNKS = 5	-- Paths that a message names.
local SOURCE_MAX = limits.SOURCE
local READ_BY_OTHERS, SEARCH_BY_OTHERS = 4, 1	-- In the mode of a file, and of a folder.

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

-- Returns the path of the source that a user means by a path, and whether the user named it: without such a file, it is
-- the file of the profile's only chunk that the path means. A third result names the chunks if there are several.
function source.find(profile, path)
  local _, list = source.chunks(profile, path)
  if files.stat(path) or #list == 0 then return path, true end
  if #list == 1 then return list[1], false end
  return path, true, "the profile names " .. text.listed(list, 1, CHUNKS)
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

-- Is a file below the working folder, by a path without links?
local function is_below(file)
  local here, path = files.real_path("."), file:real_path()
  return here ~= nil and here ~= "/" and path ~= nil and path:sub(1, #here + 1) == here .. "/"
end

-- May all users reach a file? Some folder above it may be closed to others.
local function is_reachable(file)
  local folder = file:real_path()
  while folder and folder ~= "" do
    folder = folder:match("^(.*)/[^/]*$")
    local st = folder and files.stat(folder == "" and "/" or folder)
    if not st or bit.band(st.mode, SEARCH_BY_OTHERS) == 0 then return false end
  end
  return folder ~= nil
end

-- Returns why a file that only the profile names is not shown, or nil. A profile may name any file that its reader may
-- read, and the listing may go to others. A second name below the working folder can be that of a foreign file.
local function refusal(file)
  if bit.band(file.mode, READ_BY_OTHERS) ~= 0 and is_reachable(file) then return nil end
  if file.links == 1 and is_below(file) then return nil end
  return "only some users may read it, and only the profile names it; expected it below this folder, or on the " ..
	 "command line"
end

-- Returns the lines of a regular file, or nil and a message. is_named: the user has named the file.
function source.lines(path, is_named)
  local file, why = regular.open(path)
  if not file then return nil, ("%s: %s"):format(path, why) end
  why = not is_named and refusal(file)
  why = why and ("%s: %s"):format(path, why) or file.size > SOURCE_MAX and limits.sentence("SOURCE", path)
  local s = not why and file:read(0, file.size)
  file:close()
  if not s then return nil, why end
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
