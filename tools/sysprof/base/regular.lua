----------------------------------------------------------------------------
-- Regular files at paths that others may choose: opened without a wait or an effect, read by descriptor.
--
-- To open a pipe, a terminal or a device could wait, or start something. So open() first takes a descriptor that is
-- only a place (O_PATH), behind which nobody can exchange the file. A lease of another process does not hold it up,
-- as O_NONBLOCK makes the open fail.
----------------------------------------------------------------------------

local ffi = require("ffi")
local files = require("sysprof.base.files")
local limits = require("sysprof.base.limits")
local system = require("sysprof.base.system")
local users = require("sysprof.base.users")

ffi.cdef [[
ssize_t pread(int, void *, size_t, long);
long lseek(int, long, int);
]]

local C = ffi.C
local O_PLACE = system.O_PATH + system.O_CLOEXEC
local O_READ = system.O_NONBLOCK + system.O_NOCTTY + system.O_CLOEXEC
local SEEK_DATA, ENXIO = 3, 6
local LINK = "/proc/self/fd/%d"
local LOOK_SECONDS = 0.02	-- Between two looks for the end of a lease.
local KEPT_BYTES = 2^20	-- Bytes of a buffer that is used again.

local regular = {}
local methods = {}
local mt = { __index = methods }

local lease_seconds = limits.LEASE_SECONDS	-- Left for all files: their owner may have leases on many.

-- open(path) for reading, where a lease of a program may end in a moment: a file server gives its leases back.
local function open_read(path)
  local fd = C.open(path, O_READ)
  while fd < 0 and ffi.errno() == system.EAGAIN and lease_seconds > 0 do
    system.wait({}, LOOK_SECONDS)
    lease_seconds = lease_seconds - LOOK_SECONDS
    fd = C.open(path, O_READ)
  end
  return fd
end

-- Opens the regular file at a place for reading; without procfs, by its path. st: its facts. Returns a descriptor, or
-- nil and the reason.
local function open_place(place, path, st)
  local fd = open_read(LINK:format(place))
  if fd < 0 and ffi.errno() == system.ENOENT then
    fd = open_read(path)
    local now = fd >= 0 and files.stat_of(fd)
    if now and now.id ~= st.id then
      system.close(fd)
      return nil, "another file took its place"
    end
  end
  if fd >= 0 then return fd end
  if ffi.errno() == system.EAGAIN then return nil, limits.sentence("LEASE_SECONDS", users.name(st.uid)) end
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
    fd, why = open_place(place, path, self)
  end
  system.close(place)
  if not fd then return nil, why, not is_regular end
  self.fd, self.path = fd, path
  return setmetatable(self, mt)
end

-- Opens a file of any kind as io.open() does, but a lease does not hold it up: a regular file is open already then, and
-- an open file gets no lease. Returns it, or nil and the reason without the name.
function regular.stream(path)
  if path:find("%z") then return nil, "No such file or directory" end
  local place = C.open(path, O_PLACE)
  if place < 0 then return nil, files.reason() end
  local st = files.stat_of(place)
  local fd, why, file = -1, nil, nil
  if st and st.kind == "file" then fd, why = open_place(place, path, st) end
  if fd then file, why = files.open(files.stat(LINK:format(place)) and LINK:format(place) or path, "rb") end
  system.close(place)
  if fd then system.close(fd) end
  return file, why
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
  return files.link(LINK:format(self.fd)) or files.real_path(self.path)
end

function methods:close()
  system.close(self.fd)
end

return regular
