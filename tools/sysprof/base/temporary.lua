----------------------------------------------------------------------------
-- Temporary files, in the folder that TMPDIR names.
----------------------------------------------------------------------------

local bit = require("bit")
local ffi = require("ffi")
local files = require("sysprof.base.files")
local system = require("sysprof.base.system")

ffi.cdef [[
int mkstemp(char *);
char *mkdtemp(char *);
]]

local F_SETFD, FD_CLOEXEC = 2, 1
local WRITE_BY_ALL, STICKY = 2, 512	-- In the mode of a folder.

local temporary = {}

-- Returns the folder of temporary files.
function temporary.folder()
  return os.getenv("TMPDIR") or "/tmp"
end

-- Returns what to say of a file that could not be made or written.
function temporary.problem(reason)
  return ("no temporary file in %s: %s; TMPDIR names another folder"):format(temporary.folder(), reason)
end

-- Closes the descriptor of a new file. Returns its path; or nil and a message, where all users may replace the file.
local function keep_path(path, fd)
  local st = files.stat(temporary.folder())
  system.close(fd)
  if st and (bit.band(st.mode, WRITE_BY_ALL) == 0 or bit.band(st.mode, STICKY) ~= 0) then return path end
  os.remove(path)
  return nil, ("no temporary file in %s: all users may replace it there; 'chmod +t' ends that, or TMPDIR names " ..
	       "another folder"):format(temporary.folder())
end

-- Returns the path and a descriptor of a new file, or nil and a message.
local function new_file()
  local path = temporary.folder() .. "/luajit-sysprof-XXXXXX"
  local buf = ffi.new("char[?]", #path + 1, path)
  local fd = ffi.C.mkstemp(buf)
  if fd < 0 then return nil, temporary.problem(files.reason()) end
  ffi.C.fcntl(fd, F_SETFD, ffi.cast("int", FD_CLOEXEC))
  return ffi.string(buf), fd
end

-- Returns the path of a new file, or nil and a message.
function temporary.named()
  local path, fd = new_file()
  if not path then return nil, fd end
  return keep_path(path, fd)
end

-- Returns the path of a new folder of this user alone, or nil and a message.
function temporary.new_folder()
  local path = temporary.folder() .. "/luajit-sysprof-XXXXXX"
  local buf = ffi.new("char[?]", #path + 1, path)
  if ffi.C.mkdtemp(buf) == nil then return nil, temporary.problem(files.reason()) end
  return ffi.string(buf)
end

-- Returns the path by which procfs shows a file of this process, or nil. procfs may be that of another PID namespace,
-- where this process has another number.
local function link_of(fd)
  local link = ("%s/fd/%d"):format(files.real_path("/proc/self") or "/proc/self", fd)
  local there, itself = files.stat(link), files.stat_of(fd)
  return there and itself and there.id == itself.id and link or nil
end

-- Returns the path of a new file, or nil and a message. Where procfs shows this process, the file has no name and
-- ends with it.
function temporary.new()
  local path, fd = new_file()
  if not path then return nil, fd end
  local link = link_of(fd)
  if not link then return keep_path(path, fd) end
  os.remove(path)
  return link
end

-- Returns the path and the descriptor of a new file without a name; or nil and a message.
function temporary.unnamed()
  local path, fd = new_file()
  if not path then return nil, fd end
  os.remove(path)
  local link = link_of(fd)
  if link then return link, fd end
  system.close(fd)
  return nil, "/proc does not show this process; mount procfs there"
end

return temporary
