----------------------------------------------------------------------------
-- Last recording of a folder: which profiles 'run' or 'record' wrote, when it was started there.
--
-- A small file of the user keeps them, by XDG's rules for the state of programs. Each step to it is a descriptor, of a
-- folder of this user that nobody else may write. Otherwise there is no such file, and nothing is remembered.
----------------------------------------------------------------------------

local bit = require("bit")
local ffi = require("ffi")
local files = require("sysprof.base.files")
local system = require("sysprof.base.system")
local users = require("sysprof.base.users")

ffi.cdef [[
int getpid(void);
int mkdirat(int, const char *, unsigned int);
int renameat(int, const char *, int, const char *);
int unlinkat(int, const char *, int);
int flock(int, int);
]]

local C = ffi.C
local LINES = 200	-- That are kept.
local PATHS = 50	-- Of a recording: the program's, and those of its children.
local BYTES = 2^18	-- Of the file.
local PRIVATE, PRIVATE_FILE = 448, 384	-- rwx------, rw-------.
local WRITE_BY_OTHERS = 18	-- Of the group and of all, in the mode of a folder.
local AT_FDCWD = -100
local LOCK_EX_NB = 6
local LOCK_TRIES, LOCK_SECONDS = 100, 0.01
local O_FOLDER = system.O_DIRECTORY + system.O_CLOEXEC
local O_STEP = O_FOLDER + system.O_NOFOLLOW
local O_READ = system.O_NOFOLLOW + system.O_NONBLOCK + system.O_CLOEXEC
local O_NEW = system.O_WRONLY + system.O_CREAT + system.O_EXCL + system.O_NOFOLLOW + system.O_CLOEXEC
local FILE = "last"
local LINE = "^(/[^\t\n]*)\t(/[^\t\n]*)$"

local lastrun = {}

-- Returns the descriptor if it is of a folder of this user alone, or closes it.
local function own(fd)
  local st = fd >= 0 and files.stat_of(fd)
  if st and st.uid == users.own() and bit.band(st.mode, WRITE_BY_OTHERS) == 0 then return fd end
  if fd >= 0 then system.close(fd) end
end

-- Returns a descriptor of the folder of the state, or nil. is_new: makes it.
local function open_folder(is_new)
  local home, state = os.getenv("HOME"), os.getenv("XDG_STATE_HOME")
  local is_named = state and state:find("^/")
  local top = is_named and state or home and home:find("^/") and home
  local fd = top and own(C.openat(AT_FDCWD, top, O_FOLDER))
  for _, name in ipairs(is_named and { "luajit-sysprof" } or { ".local", "state", "luajit-sysprof" }) do
    if not fd then return nil end
    if is_new then C.mkdirat(fd, name, ffi.cast("unsigned int", PRIVATE)) end
    local next_one = own(C.openat(fd, name, O_STEP))
    system.close(fd)
    fd = next_one
  end
  return fd
end

-- Returns the text of the file in a folder, "" if there is none of this user's.
local function text_in(folder)
  local fd = C.openat(folder, FILE, O_READ)
  if fd < 0 then return "" end
  local st, buf = files.stat_of(fd), ffi.new("char[?]", BYTES)
  local n = -1
  if st and st.kind == "file" and st.uid == users.own() then n = tonumber(C.read(fd, buf, BYTES)) end
  system.close(fd)
  return n > 0 and ffi.string(buf, n) or ""
end

-- Returns the lines of other folders, and the paths of this one.
local function read(folder, here)
  local lines, paths = {}, {}
  for line in text_in(folder):gmatch("[^\n]+") do
    local of, to = line:match(LINE)
    if of == here then paths[#paths + 1] = #paths < PATHS and to or nil
    elseif of and #lines < LINES then lines[#lines + 1] = line .. "\n" end
  end
  return lines, paths
end

local function here()
  return files.real_path(".")
end

-- Keeps other commands from changing the file, until the folder is closed. Some file systems have no locks.
local function lock(folder)
  for _ = 1, LOCK_TRIES do
    if C.flock(folder, LOCK_EX_NB) == 0 or ffi.errno() ~= system.EAGAIN then return end
    system.wait({}, LOCK_SECONDS)
  end
end

-- Remembers the profiles of a recording, the program's first. A failure loses only that.
function lastrun.note(paths)
  local folder, own_path = open_folder(true), here()
  if not folder then return end
  lock(folder)
  local new, list = ("%s.%d"):format(FILE, C.getpid()), {}
  for i = 1, math.min(#paths, PATHS) do
    local line = ("%s\t%s"):format(own_path or "", files.real_path(paths[i]) or "")
    if line:find(LINE) then list[#list + 1] = line .. "\n" end
  end
  local text = table.concat(list) .. table.concat((read(folder, own_path)))
  local fd = #list > 0 and #text < BYTES and C.openat(folder, new, O_NEW, ffi.cast("int", PRIVATE_FILE)) or -1
  if fd >= 0 then
    local ok = system.write(fd, text)
    system.close(fd)
    if not ok or C.renameat(folder, new, folder, FILE) ~= 0 then C.unlinkat(folder, new, 0) end
  end
  system.close(folder)
end

-- Returns the paths of the last recording that was started in this folder: a list that may be empty.
function lastrun.paths()
  local folder, own_path = open_folder(false), here()
  if not folder then return {} end
  local _, paths = read(folder, own_path)
  system.close(folder)
  return paths
end

return lastrun
