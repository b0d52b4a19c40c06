----------------------------------------------------------------------------
-- Output files of the commands: nothing of the user's is lost.
--
-- A file that no sysprof has written is refused. The new file takes the place of the old one when it is
-- whole: a failure or a kill leaves the old one, and nothing else. Only where all files have names, a kill also
-- leaves FILE.PID.new. Devices and pipes are written directly.
----------------------------------------------------------------------------

local ffi = require("ffi")
local files = require("sysprof.base.files")
local system = require("sysprof.base.system")

ffi.cdef [[
int open(const char *, int, ...);
int openat(int, const char *, int, ...);
int linkat(int, const char *, int, const char *, int);
int fchmod(int, unsigned int);
int chmod(const char *, unsigned int);
int rename(const char *, const char *);
int access(const char *, int);
int sigfillset(void *);
]]

local C = ffi.C
local O_WRONLY, O_CREAT, O_EXCL, O_CLOEXEC = 1, 0x40, 0x80, system.O_CLOEXEC
local O_DIRECTORY, O_NOFOLLOW = 0x10000, 0x20000
if ffi.arch == "arm64" then O_DIRECTORY, O_NOFOLLOW = 0x4000, 0x8000 end
local O_TMPFILE, O_PATH = 0x400000 + O_DIRECTORY, 0x200000
local EPERM, EACCES, W_OK = system.EPERM, system.EACCES, 2
local AT_FDCWD, AT_SYMLINK_FOLLOW = -100, 0x400
local SIG_SETMASK = system.SIG_SETMASK
local NEW_MODE, PROFILE_MODE = 438, 384	-- rw-rw-rw-, less the umask; rw-------.
local HEAD = 4096		-- Bytes that show who wrote a file.

local MARK = "sysprof for LuaJIT"	-- In the head of all formats that have a place for it.
local OLD = ".old"

local outfile = {}

-- -- Whose file it is ------------------------------------------------------

-- Does each line of the head end in a number? Its last line may be cut.
local function is_folded(head)
  local whole = #head < HEAD and head or head:match("^(.*\n)")
  if not whole then return false end
  for line in whole:gmatch("[^\n]+") do
    if not line:find(" %d+$") then return false end
  end
  return true
end

-- Formats without a place for the mark.
local IS_OURS = {
  bin = function(head) return head:find("^lj[sc]") end,
  folded = is_folded,
  top = function(head) return head:find("^samples +%d") or head:find("^profile +") or head:find("^file +") end,
  tree = function(head) return head:find("^ +total[ %w]* total%% ") end,
  json = function(head) return head:find('{"format":"sysprof"', 1, true) end,
  dump = function(head) return head:find("^process %d+: ") or head:find('{"format":"sysprof dump"', 1, true) end,
  gecko = function(head) return head:find('"Lua, interpreted"', 1, true) end,
}

-- Has sysprof written a file with this head, in this format or in another one? A profile cannot be made again, so only
-- a profile takes its place.
local function is_ours(head, format)
  if IS_OURS.bin(head) then return format == "bin" end
  if head:find(MARK, 1, true) then return true end
  for its, test in pairs(IS_OURS) do
    if test(head) and (its ~= "folded" or format == "folded" or head:find("[;(%[]")) then return true end
  end
  return false
end

local function head_of(path)
  local file = io.open(path, "rb")
  local head = file and file:read(HEAD) or ""
  if file then file:close() end
  return head
end

-- Checks a path before any work is done. Returns true, or nil and a message.
function outfile.check(path, format, force)
  if not path or path == "-" then return true end
  local st = files.stat(path)
  if st and st.kind == "folder" then return nil, ("cannot write %s: it is a folder"):format(path) end
  if not st then
    local folder = path:match("^(.*)/[^/]*$") or "."
    folder = folder == "" and "/" or folder
    local its = files.stat(folder)
    if not its or its.kind ~= "folder" then
      return nil, ("cannot write %s: there is no folder %s"):format(path, folder)
    end
    if C.access(folder, W_OK) == 0 then return true end
    return nil, ("cannot write %s: folder %s: %s"):format(path, folder, files.reason())
  end
  if force then return true end
  if C.access(path, W_OK) ~= 0 then return nil, ("cannot write %s: %s"):format(path, files.reason()) end
  if st.kind ~= "file" or st.size == 0 then return true end
  local head = head_of(path)
  if is_ours(head, format) then return true end
  return nil, ("cannot overwrite %s: %s; --force overwrites it"):format(path,
    IS_OURS.bin(head) and "it is a profile" or "sysprof did not write this file")
end

-- -- Writing ---------------------------------------------------------------

-- Runs produce(write), then closes the file unless it is standard output. Returns nil, or what failed.
local function fill(file, produce)
  local failed
  local refused = produce(function(s)
    if not failed then
      local ok, why = file:write(s)
      if not ok then failed = why or "unknown error" end
    end
  end)
  failed = failed or refused
  local ok, why = file:flush()
  if not ok then failed = failed or why or "unknown error" end
  if file ~= io.stdout then
    ok, why = file:close()
    if not ok then failed = failed or why or "unknown error" end
  end
  return failed
end

local function write_directly(path, produce)
  local file, why = files.open(path, "wb")
  return file and fill(file, produce) or why
end

-- Makes an empty file that only we use. Returns nil, or what failed and whether that is a permission.
local function create(path, mode)
  local fd = C.open(path, O_WRONLY + O_CREAT + O_EXCL + O_CLOEXEC, ffi.cast("int", mode))
  if fd >= 0 then
    C.close(fd)
    return nil
  end
  local errno = ffi.errno()
  return files.reason(), errno == EACCES or errno == EPERM
end

-- Returns f(), without signals: a kill between two of its steps would leave a file more, or one less.
local function without_signals(f)
  local all, before = system.signal_set(), system.signal_set()
  C.sigfillset(all)
  C.sigprocmask(SIG_SETMASK, all, before)
  local result = f()
  C.sigprocmask(SIG_SETMASK, before, nil)
  return result
end

local function link(from, to)
  return C.linkat(AT_FDCWD, from, AT_FDCWD, to, AT_SYMLINK_FOLLOW) == 0
end

-- Gives a new file its name; the old one gets its own. Returns nil, or what failed.
local function publish(new, path, keep_old)
  if keep_old then
    os.remove(path .. OLD)
    if not link(path, path .. OLD) then C.rename(path, path .. OLD) end
  end
  if C.rename(new, path) == 0 then return nil end
  local why = files.reason()
  os.remove(new)
  if keep_old then C.rename(path .. OLD, path) end
  return why
end

-- Names a file without a name. Returns nil, or what failed.
local function publish_unnamed(fd, new, path, keep_old)
  if not link(("/proc/self/fd/%d"):format(fd), new) then return files.reason() end
  return publish(new, path, keep_old)
end

-- Fills a file with a name, where the file system or this machine has no other ones. Removes it after a failure.
local function fill_named(new, produce, mode)
  if mode then C.chmod(new, mode) end
  local ok, failed = pcall(write_directly, new, produce)
  if not ok or failed then os.remove(new) end
  if not ok then error(failed, 0) end
  return failed
end

-- Writes over a file in a folder where we may not make one. The old content stays until the new one is whole.
local function write_over(path, produce)
  local parts = {}
  local refused = produce(function(s) parts[#parts + 1] = s end)
  return refused or write_directly(path, function(write)
    for _, s in ipairs(parts) do write(s) end
  end)
end

local function replace(path, produce, st, keep_old)
  local folder, mode = path:match("^(.*/)") or ".", path:find("%.bin$") and PROFILE_MODE or NEW_MODE
  local new = ("%s.%d.new"):format(path, C.getpid())
  os.remove(new)	-- Of a process that had our number.
  local fd = C.open(folder, O_TMPFILE + O_WRONLY + O_CLOEXEC, ffi.cast("int", mode))
  local file = fd >= 0 and io.open(("/proc/self/fd/%d"):format(fd), "wb")
  keep_old = keep_old and st and st.size > 0
  local failed, is_denied
  if file then
    if st then C.fchmod(fd, st.mode) end
    failed = fill(file, produce) or without_signals(function() return publish_unnamed(fd, new, path, keep_old) end)
  end
  if fd >= 0 then C.close(fd) end
  if file then return failed end
  failed, is_denied = create(new, mode)
  if is_denied and st then return write_over(path, produce) end
  failed = failed or fill_named(new, produce, st and st.mode)
  return failed or without_signals(function() return publish(new, path, keep_old) end)
end

-- Runs produce(write) on a file, or on standard output for "-" or nil. produce returns nil, or why the file
-- must not take its name. A new profile is its owner's only. keep_old: the file that was there gets the ending
-- ".old". Returns true, or nil and a message if a byte could not be written.
function outfile.write(path, produce, keep_old)
  local failed
  if not path or path == "-" then
    path, failed = "standard output", fill(io.stdout, produce)
  else
    local st, itself = files.stat(path), files.stat(path, true)
    if st and st.kind == "file" then
      failed = replace(files.real_path(path) or path, produce, st, keep_old)
    elseif itself then
      failed = write_directly(path, produce)
    else
      failed = replace(path, produce)
    end
  end
  if not failed then return true end
  return nil, ("cannot write %s: %s"):format(path, failed)
end

-- Writes a file into a folder of a root that belongs to others, such as a container's. Follows no link there: an
-- absolute one leads to our own files. Returns true, or nil and a message.
function outfile.write_below(root, folder, name, produce)
  local top = C.open(root, O_PATH + O_DIRECTORY + O_CLOEXEC)
  local fd = top >= 0 and C.openat(top, folder, O_DIRECTORY + O_NOFOLLOW + O_CLOEXEC) or -1
  local failed = fd < 0 and files.reason() or replace(("/proc/self/fd/%d/%s"):format(fd, name), produce)
  if fd >= 0 then C.close(fd) end
  if top >= 0 then C.close(top) end
  if not failed then return true end
  return nil, ("cannot write %s/%s/%s: %s"):format(root, folder, name, failed)
end

-- Moves a profile out of the way of a new one. Returns its new path, or nil if there was none.
function outfile.set_aside(path)
  local st = files.stat(path, true)
  if not st or st.kind ~= "file" or st.size == 0 or not IS_OURS.bin(head_of(path)) then return nil end
  return os.rename(path, path .. OLD) and path .. OLD or nil
end

return outfile
