----------------------------------------------------------------------------
-- Regular files at paths that others may choose: opened without a wait or an effect, read by descriptor.
--
-- To open a pipe, a terminal or a device could wait, or start something. So open() first takes a descriptor that is
-- only a place (O_PATH), behind which nobody can exchange the file. A lease of another process does not hold it up.
----------------------------------------------------------------------------

local ffi = require("ffi")
local files = require("sysprof.base.files")
local system = require("sysprof.base.system")

ffi.cdef [[
ssize_t pread(int, void *, size_t, long);
long lseek(int, long, int);
]]

local C = ffi.C
local O_PLACE = system.O_PATH + system.O_CLOEXEC
local O_READ = system.O_NONBLOCK + system.O_NOCTTY + system.O_CLOEXEC
local SEEK_DATA, ENXIO = 3, 6
local KEPT_BYTES = 2^20	-- Bytes of a buffer that is used again.

local regular = {}
local methods = {}
local mt = { __index = methods }

-- Opens the file at a place for reading; without procfs, by its path. Returns a descriptor, or nil and the reason.
local function open_place(place, path, id)
  local fd = C.open(("/proc/self/fd/%d"):format(place), O_READ)
  if fd < 0 and ffi.errno() == system.ENOENT then
    fd = C.open(path, O_READ)
    local st = fd >= 0 and files.stat_of(fd)
    if st and st.id ~= id then
      system.close(fd)
      return nil, "another file took its place"
    end
  end
  if fd >= 0 then return fd end
  return nil, files.reason()
end

-- Opens a regular file. Returns an object with the facts of files.stat() and the methods below; or nil, the reason, and
-- whether a file of another kind is there.
function regular.open(path)
  if path:find("%z") then return nil, "No such file or directory" end
  local place = C.open(path, O_PLACE)
  if place < 0 then return nil, files.reason() end
  local self = files.stat_of(place)
  local fd, why = nil, "it is no regular file"
  if self and self.kind == "folder" then why = "Is a directory" end
  local is_regular = self and self.kind == "file"
  if is_regular and self.size == 0 then
    fd = -1	-- Files of procfs have no size either: reading them may wait.
  elseif is_regular then
    fd, why = open_place(place, path, self.id)
  end
  system.close(place)
  if not fd then return nil, why, not is_regular end
  self.fd, self.path = fd, path
  return setmetatable(self, mt)
end

-- Returns the text of a regular file, at most its size and max bytes; or nil and the reason.
function regular.text(path, max)
  local file, why = regular.open(path)
  if not file then return nil, why end
  local s = file:read(0, math.min(file.size, max))
  file:close()
  return s
end

-- Returns at most n bytes at an offset.
function methods:read(offset, n)
  local buf = self.buf
  if not buf or ffi.sizeof(buf) < n then
    buf = ffi.new("char[?]", math.max(n, 1))
    if n <= KEPT_BYTES then self.buf = buf end
  end
  local at = 0
  while at < n do
    local got = tonumber(C.pread(self.fd, buf + at, n - at, offset + at))
    if got == 0 or got < 0 and ffi.errno() ~= system.EINTR then break end
    at = at + math.max(got, 0)
  end
  return ffi.string(buf, at)
end

-- Returns where the next bytes behind a hole are, from an offset on; or nil if the rest is one.
function methods:next_data(offset)
  local at = tonumber(C.lseek(self.fd, offset, SEEK_DATA))
  if at >= 0 then return at end
  return ffi.errno() ~= ENXIO and offset or nil
end

-- Returns the path without links by which the file was opened, or nil.
function methods:real_path()
  return files.link(("/proc/self/fd/%d"):format(self.fd)) or files.real_path(self.path)
end

function methods:close()
  system.close(self.fd)
end

return regular
