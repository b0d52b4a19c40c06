----------------------------------------------------------------------------
-- Files: kind, identity, size and time of change; content; reasons of failed calls.
----------------------------------------------------------------------------

local ffi = require("ffi")
local limits = require("sysprof.base.limits")

-- The layout of struct statx is the same on each architecture (statx(2)).
ffi.cdef [[
struct sysprof_statx_time { int64_t sec; uint32_t nsec; int32_t pad; };
struct sysprof_statx {
  uint32_t mask, blksize; uint64_t attributes; uint32_t nlink, uid, gid; uint16_t mode, pad;
  uint64_t ino, size, blocks, attributes_mask;
  struct sysprof_statx_time atime, btime, ctime, mtime;
  uint32_t rdev_major, rdev_minor, dev_major, dev_minor;
  uint64_t spare[14];
};
// glibc 2.17 has no statx.
int sysprof_statx(long, int, const char *, int, unsigned int, void *) __asm__("syscall");
/* On 64-bit systems with glibc. */
struct sysprof_statvfs { unsigned long bsize, frsize, blocks, bfree, bavail, spare[16]; };
int statvfs(const char *, struct sysprof_statvfs *);
char *realpath(const char *, char *);
ssize_t readlinkat(int, const char *, char *, size_t);
void free(void *);
char *strerror(int);
int glob(const char *, int, void *, void *);
void globfree(void *);
]]

local BLOCK = 2^16		-- Bytes that are read at once.
local AT_FDCWD, AT_SYMLINK_NOFOLLOW, AT_EMPTY_PATH = -100, 0x100, 0x1000
local SYS_statx, STATX_BASIC_STATS = 332, 0x7ff
local PATH_BYTES = 4096
local PIPE = 1
local KINDS = { [4] = "folder", [8] = "file", [10] = "link" }	-- By the upper bits of the mode.

local files = {}

local function stat(folder, path, flags)
  local st = ffi.new("struct sysprof_statx")
  if ffi.C.sysprof_statx(SYS_statx, folder, path, flags, STATX_BASIC_STATS, st) ~= 0 then return nil end
  return {
    kind = KINDS[math.floor(st.mode / 4096)] or "other", mode = st.mode % 4096,
    size = tonumber(st.size), mtime = tonumber(st.mtime.sec), uid = st.uid, links = st.nlink,
    is_pipe = math.floor(st.mode / 4096) == PIPE,
    device = st.dev_major * 2^32 + st.dev_minor,
    id = ("%d:%d:%.0f"):format(st.dev_major, st.dev_minor, tonumber(st.ino)),
  }
end

-- Returns { kind=, is_pipe=, mode=, size=, mtime=, uid=, links=, device=, id= } of the file at a path, or nil if
-- there is none. kind is "file", "folder", "link" or "other"; mode has the permissions; mtime is in seconds of Unix
-- time; uid is its owner; links counts its names; device is that of its file system; id differs between files. Follows
-- links unless no_follow.
function files.stat(path, no_follow)
  return stat(AT_FDCWD, path, no_follow and AT_SYMLINK_NOFOLLOW or 0)
end

-- The same of a descriptor; with a name, of what has it in this folder. Does not follow a link.
function files.stat_of(fd, name)
  if name then return stat(fd, name, AT_SYMLINK_NOFOLLOW) end
  return stat(fd, "", AT_EMPTY_PATH)
end

-- Returns why the last call of the C library failed.
function files.reason()
  return ffi.string(ffi.C.strerror(ffi.errno()))
end

-- Opens a file as io.open() does. Returns it, or nil and the reason without the name.
function files.open(path, mode)
  local file, err = io.open(path, mode)
  if file then return file end
  local name = path .. ": "
  return nil, err:sub(1, #name) == name and err:sub(#name + 1) or err
end

-- Returns the content of a file, or nil and the reason. most: how many bytes it may have; those of a small file if
-- missing.
function files.text(path, most)
  most = most or limits.SMALL_FILE
  local file, err = files.open(path, "rb")
  if not file then return nil, err end
  local parts, bytes, s, why = {}, 0
  repeat
    s, why = file:read(math.min(BLOCK, most + 1 - bytes))
    parts[#parts + 1], bytes = s, bytes + #(s or "")
  until not s or bytes > most
  file:close()
  if bytes > most then return nil, limits.too_long(most) end
  return not why and table.concat(parts) or nil, why
end

-- Copies a file by write(s): what it has now, and nothing that is appended later. Returns nil, or the reason of a
-- failure. most: how many bytes it may have.
function files.copy(path, write, most)
  local file, err = files.open(path, "rb")
  if not file then return err end
  local left, why = file:seek("end")
  if left and left > most then why = limits.too_long(most) end
  if left and not why then file:seek("set") end
  while not why and left > 0 do
    local s
    s, why = file:read(math.min(BLOCK, left))
    if not s then break end
    write(s)
    left = left - #s
  end
  file:close()
  return why
end

-- Returns the path without links, or nil if the file does not exist.
function files.real_path(path)
  local real = ffi.C.realpath(path, nil)
  if real == nil then return nil end
  local s = ffi.string(real)
  ffi.C.free(real)
  return s
end

-- Returns where a link leads, or nil. Opens and follows nothing. fd: of the link itself, if the path is "".
function files.link(path, fd)
  local buf = ffi.new("char[?]", PATH_BYTES)
  local n = tonumber(ffi.C.readlinkat(fd or AT_FDCWD, path, buf, PATH_BYTES))
  return n > 0 and ffi.string(buf, n) or nil
end

-- Returns how many bytes the disk of a file has left, or nil if that is unknown.
function files.room(path)
  local st = ffi.new("struct sysprof_statvfs")
  if not ffi.abi("64bit") or ffi.C.statvfs(path, st) ~= 0 then return nil end
  return tonumber(st.bavail) * tonumber(st.frsize)
end

-- Returns a sorted list of the paths that match a pattern of the shell.
function files.matching(pattern)
  local found, list = ffi.new("struct { size_t n; char **paths; char rest[256]; }"), {}
  if ffi.C.glob(pattern, 0, nil, found) == 0 then
    for i = 0, tonumber(found.n) - 1 do list[i + 1] = ffi.string(found.paths[i]) end
    ffi.C.globfree(found)
  end
  return list
end

-- Are two paths of the same file? A path without a file has its name only.
function files.is_same(a, b)
  return a == b or (files.real_path(a) or a) == (files.real_path(b) or b)
end

return files
