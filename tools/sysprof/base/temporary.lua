----------------------------------------------------------------------------
-- Temporary files, in the folder that TMPDIR names.
----------------------------------------------------------------------------

local ffi = require("ffi")
local files = require("sysprof.base.files")

ffi.cdef [[
int mkstemp(char *);
int close(int);
int fcntl(int, int, ...);
]]

local F_SETFD, FD_CLOEXEC = 2, 1

local temporary = {}

-- Returns the folder of temporary files.
function temporary.folder()
  return os.getenv("TMPDIR") or "/tmp"
end

-- Returns the path and a descriptor of a new file, or nil and a message.
local function new_file()
  local path = temporary.folder() .. "/luajit-sysprof-XXXXXX"
  local buf = ffi.new("char[?]", #path + 1, path)
  local fd = ffi.C.mkstemp(buf)
  if fd < 0 then
    return nil, ("no temporary file in %s: %s; TMPDIR names another folder"):format(temporary.folder(), files.reason())
  end
  ffi.C.fcntl(fd, F_SETFD, ffi.cast("int", FD_CLOEXEC))
  return ffi.string(buf), fd
end

-- Returns the path of a new file, or nil and a message.
function temporary.named()
  local path, fd = new_file()
  if path then ffi.C.close(fd) end
  return path, not path and fd or nil
end

-- Returns a path of a new file without a name, which ends with this process, and its descriptor; or nil and a message.
-- Without procfs the file has a name, and no descriptor. procfs may be that of another PID namespace, where this
-- process has another number.
function temporary.unnamed()
  local path, fd = new_file()
  if not path then return nil, fd end
  local link = ("%s/fd/%d"):format(files.real_path("/proc/self") or "/proc/self", fd)
  local there, itself = files.stat(link), files.stat_of(fd)
  if not there or not itself or there.id ~= itself.id then
    ffi.C.close(fd)
    return path
  end
  os.remove(path)
  return link, fd
end

return temporary
