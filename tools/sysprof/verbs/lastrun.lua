----------------------------------------------------------------------------
-- Last recording of a folder: which profile 'run' or 'record' wrote, when it was started there.
--
-- A small file of the user keeps the last recordings, by XDG's rules for the state of programs. Without a
-- home of this user's own there is none.
----------------------------------------------------------------------------

local files = require("sysprof.base.files")
local ffi = require("ffi")
local users = require("sysprof.base.users")

ffi.cdef [[
int mkdir(const char *, unsigned int);
int getpid(void);
]]

local LINES = 200	-- That are kept.
local PATHS = 50	-- Of a recording: the program's, and those of its children.
local PRIVATE = 448	-- rwx------.
local FOLDER, FILE = "/luajit-sysprof", "/last"
local LINE = "([%d:]+) (/[^\n]*)\n"

local lastrun = {}

-- Returns the folder of the state, if it can exist and is ours.
local function state_folder()
  local home, named = os.getenv("HOME"), os.getenv("XDG_STATE_HOME")
  local top = named and named:find("^/") and named or home and home:find("^/") and home .. "/.local/state"
  local owner = top and files.stat(named == top and top or home)
  return owner and owner.kind == "folder" and owner.uid == users.own() and top or nil
end

-- Returns the lines of other folders, and the paths of this one.
local function read(folder, here)
  local lines, paths = {}, {}
  for id, to in (files.text(folder .. FOLDER .. FILE) or ""):gmatch(LINE) do
    if id == here then paths[#paths + 1] = to
    elseif #lines < LINES then lines[#lines + 1] = id .. " " .. to .. "\n" end
  end
  return lines, paths
end

local function here()
  local st = files.stat(".")
  return st and st.id
end

-- Makes the folder.
local function make(path)
  for last in path:gmatch("()/") do
    if last > 1 then ffi.C.mkdir(path:sub(1, last - 1), PRIVATE) end
  end
  ffi.C.mkdir(path, PRIVATE)
end

-- Remembers the profiles of a recording, the program's first. A failure loses only that.
function lastrun.note(paths)
  local folder, id = state_folder(), here()
  if not folder or not id then return end
  local own = {}
  for i = 1, math.min(#paths, PATHS) do
    local real = files.real_path(paths[i])
    if real and not real:find("\n", 1, true) then own[#own + 1] = id .. " " .. real .. "\n" end
  end
  local lines = read(folder, id)
  make(folder .. FOLDER)
  local new = ("%s%s.%d"):format(folder .. FOLDER, FILE, ffi.C.getpid())
  local file = files.open(new, "wb")
  if not file then return end
  file:write(table.concat(own), table.concat(lines))
  if not file:close() or not os.rename(new, folder .. FOLDER .. FILE) then os.remove(new) end
end

-- Returns the paths of the last recording that was started in this folder: a list that may be empty.
function lastrun.paths()
  local folder, id = state_folder(), here()
  if not folder or not id then return {} end
  local _, paths = read(folder, id)
  return paths
end

return lastrun
