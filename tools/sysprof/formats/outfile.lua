----------------------------------------------------------------------------
-- Output files of the commands: nothing of the user's is lost.
--
-- A file that no sysprof has written is refused. The new file takes the place of the old one when it is
-- whole: a failure or a kill leaves the old one, and nothing else. Only where all files have names, a kill also
-- leaves FILE.PID.new. Devices and pipes are written directly.
--
-- Others may change the names in a folder at any time. So a walk opens each folder and file once, and we use the
-- descriptors.
----------------------------------------------------------------------------

local bit = require("bit")
local endings = require("sysprof.formats.endings")
local ffi = require("ffi")
local files = require("sysprof.base.files")
local limits = require("sysprof.base.limits")
local regular = require("sysprof.base.regular")
local system = require("sysprof.base.system")
local users = require("sysprof.base.users")
local walk = require("sysprof.base.walk")

ffi.cdef [[
int linkat(int, const char *, int, const char *, int);
int renameat(int, const char *, int, const char *);
int unlinkat(int, const char *, int);
int fchmod(int, unsigned int);
int ftruncate(int, long);
int faccessat(int, const char *, int, int);
int flock(int, int);
]]

local C = ffi.C
local O_FOLDER = system.O_PATH + system.O_CLOEXEC + system.O_DIRECTORY
local O_WRITE = system.O_WRONLY + system.O_NOFOLLOW + system.O_NONBLOCK + system.O_NOCTTY + system.O_CLOEXEC
local O_TMPFILE, O_NEW = 0x400000 + system.O_DIRECTORY, system.O_CREAT + system.O_EXCL
local LOCK_SHARED, LOCK_NO_WAIT = 1, 4
local EPERM, EACCES, W_OK = system.EPERM, system.EACCES, 2
local AT_FDCWD, AT_SYMLINK_FOLLOW = -100, 0x400
local SIG_SETMASK = system.SIG_SETMASK
local NEW_MODE, PROFILE_MODE = 438, 384	-- rw-rw-rw-, less the umask; rw-------.
local SHARED = 514		-- Of a folder: all users may write, and the sticky bit.
local F_SETFL = 4
local LOOK_SECONDS = 0.05	-- Between two looks for a pipe's reader.
local HEAD = 4096		-- Bytes that show who wrote a file.
local BLOCK = 2^16		-- Bytes that are written at once.
local ROOT = 0
local STDOUT = 1

local MARK = "sysprof for LuaJIT"	-- In the head of all formats that have a place for it.
local OLD = ".old"

local IS_BINARY = { bin = true, pprof = true }

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
  heap = function(head) return head:find("^heap of process %d+") or head:find('{"format":"sysprof heap', 1, true) end,
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

-- Returns the head of a file, or "" and the reason.
local function head_of(path)
  local head, why = regular.text(path, HEAD)
  return head or "", why
end

-- Walks to an output. A pipe must be of this user or of root, as a link. Returns what walk.to() does.
local function find(path)
  local at, why = walk.to(path)
  if not at or not at.st or not at.st.is_pipe or at.is_open_file or users.is_trusted(at.st.uid) then return at, why end
  at:close()
  return nil, ("it is a pipe of user %s; expected one of your own, or no file"):format(users.name(at.st.uid))
end

-- Returns why standard output takes no file of this format, or nil.
local function wrong_terminal(format)
  if not IS_BINARY[format] or C.isatty(STDOUT) == 0 then return nil end
  return ("cannot write %s to a terminal: it is binary; expected -o FILE%s or a pipe")
	 :format(format == "bin" and "a profile" or format, endings.of(format))
end

-- Checks a path before any work is done. Returns true, or nil and a message.
function outfile.check(path, format, force)
  if not path or path == "-" then
    local wrong = wrong_terminal(format)
    return not wrong or nil, wrong
  end
  local at, why = find(path)
  if not at then return nil, ("cannot write %s: %s"):format(path, why) end
  local st = at.st
  local is_writable = C.faccessat(at.folder, st and at.name or ".", W_OK, 0) == 0
  local reason = files.reason()
  at:close()
  if st and st.kind == "folder" then return nil, ("cannot write %s: it is a folder"):format(path) end
  if not st then
    if is_writable then return true end
    return nil, ("cannot write %s: folder %s: %s"):format(path, at:folder_name(), reason)
  end
  if force then return true end
  if not is_writable then return nil, ("cannot write %s: %s"):format(path, reason) end
  if st.kind ~= "file" or st.size == 0 then return true end
  local head, unread = head_of(path)
  if not unread and is_ours(head, format) then return true end
  return nil, ("cannot overwrite %s: %s; --force overwrites it"):format(path,
    unread or IS_OURS.bin(head) and "it is a profile" or "sysprof did not write this file")
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

-- Fills a file by its descriptor. Returns nil, or what failed.
local function fill_descriptor(fd, produce)
  local parts, size, failed = {}, 0, nil
  local function flush()
    if not failed and not system.write(fd, table.concat(parts)) then failed = files.reason() end
    parts, size = {}, 0
  end
  local refused = produce(function(s)
    parts[#parts + 1], size = s, size + #s
    if size >= BLOCK then flush() end
  end)
  flush()
  return failed or refused
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

-- Gives a new file in a folder its name; the old one gets its own. Returns nil, or what failed.
local function publish(folder, new, name, keep_old)
  if keep_old then
    C.unlinkat(folder, name .. OLD, 0)
    if C.linkat(folder, name, folder, name .. OLD, 0) ~= 0 then C.renameat(folder, name, folder, name .. OLD) end
  end
  if C.renameat(folder, new, folder, name) == 0 then return nil end
  local why = files.reason()
  C.unlinkat(folder, new, 0)
  if keep_old then C.renameat(folder, name .. OLD, folder, name) end
  return why
end

-- Names a file without a name. Returns nil, or what failed.
local function publish_unnamed(fd, folder, new, name, keep_old)
  if C.linkat(AT_FDCWD, ("/proc/self/fd/%d"):format(fd), folder, new, AT_SYMLINK_FOLLOW) ~= 0 then
    return files.reason()
  end
  return publish(folder, new, name, keep_old)
end

-- Gives a new file the rights of the old one; if that is another user's, only those that a new file has, too.
local function keep_mode(fd, st)
  local own = files.stat_of(fd)
  if not own or not st then return end
  C.fchmod(fd, st.uid == own.uid and st.mode or bit.band(st.mode, own.mode))
end

-- Fills a file with a name, where the file system or this machine has no other ones. Removes it after a failure.
local function fill_named(fd, folder, new, produce)
  local ok, failed = pcall(fill_descriptor, fd, produce)
  if not ok or failed then C.unlinkat(folder, new, 0) end
  if not ok then error(failed, 0) end
  return failed
end

-- Opens a device or a pipe that a walk has found. Returns a descriptor, or one below 0.
local function open_directly(at)
  local flags = system.O_WRONLY + system.O_NONBLOCK + system.O_CLOEXEC
  local fd = C.open(("/proc/self/fd/%d"):format(at.place), flags)
  if fd < 0 and ffi.errno() == system.ENOENT then	-- There is no procfs.
    fd = C.openat(at.folder, at.name, flags + system.O_NOFOLLOW)
  end
  return fd
end

-- Writes to a device or a pipe. It may wait, for a pipe's reader only so long.
local function write_directly(at, produce)
  local enough = system.now() + limits.READER_SECONDS
  local fd = open_directly(at)
  while fd < 0 and at.st.is_pipe and ffi.errno() == system.ENXIO do
    if system.now() > enough then return limits.sentence("READER_SECONDS") end
    system.wait({}, LOOK_SECONDS)
    fd = open_directly(at)
  end
  if fd < 0 then return files.reason() end
  C.fcntl(fd, F_SETFL, ffi.cast("int", 0))	-- From now on, writing waits.
  local ok, failed = pcall(fill_descriptor, fd, produce)
  system.close(fd)
  if not ok then error(failed, 0) end
  return failed
end

-- Writes over a file in a folder where we may not make one. The old content stays until the new one is whole.
local function write_over(folder, name, produce, st)
  local parts = {}
  local refused = produce(function(s) parts[#parts + 1] = s end)
  if refused then return refused end
  local fd = C.openat(folder, name, O_WRITE)
  if fd < 0 then return files.reason() end
  local now = files.stat_of(fd)
  local failed = (not now or now.id ~= st.id) and "another file took its place" or
		 C.ftruncate(fd, 0) ~= 0 and files.reason() or
		 fill_descriptor(fd, function(write)
		   for _, s in ipairs(parts) do write(s) end
		 end)
  system.close(fd)
  return failed or nil
end

-- Replaces a file in an open folder. mode: of a new one. st: of the old one, or nil.
local function replace_in(folder, name, mode, produce, st, keep_old)
  local new = ("%s.%d.new"):format(name, C.getpid())
  local function open(path, flags) return C.openat(folder, path, O_WRITE + flags, ffi.cast("int", mode)) end
  C.unlinkat(folder, new, 0)	-- Of a process that had our number.
  keep_old = keep_old and st and st.size > 0
  local fd = open(".", O_TMPFILE)
  -- Without procfs, such a file gets no name.
  if fd >= 0 and not files.stat(("/proc/self/fd/%d"):format(fd)) then
    system.close(fd)
    fd = -1
  end
  if fd >= 0 then
    keep_mode(fd, st)
    local failed = fill_descriptor(fd, produce) or without_signals(function()
      return publish_unnamed(fd, folder, new, name, keep_old)
    end)
    system.close(fd)
    return failed
  end
  fd = open(new, O_NEW)
  if fd < 0 then
    local errno = ffi.errno()
    if st and (errno == EACCES or errno == EPERM) then return write_over(folder, name, produce, st) end
    return files.reason()
  end
  keep_mode(fd, st)
  local failed = fill_named(fd, folder, new, produce)
  system.close(fd)
  return failed or without_signals(function() return publish(folder, new, name, keep_old) end)
end

-- Writes a file that a walk has found. mode: of a new one. Returns nil, or what failed.
local function write_at(at, mode, produce, keep_old)
  if not at.st or at.st.kind == "file" then return replace_in(at.folder, at.name, mode, produce, at.st, keep_old) end
  return write_directly(at, produce)
end

-- Runs produce(write) on a file, or on standard output for "-" or nil. produce returns nil, or why the file
-- must not take its name. A new profile is its owner's only. keep_old: the file that was there gets the ending
-- ".old". Returns true, or nil and a message if a byte could not be written.
function outfile.write(path, produce, keep_old)
  local failed
  if not path or path == "-" then
    path, failed = "standard output", fill(io.stdout, produce)
  else
    local at
    at, failed = find(path)
    if at then
      local ok, why = pcall(write_at, at, path:find("%.bin$") and PROFILE_MODE or NEW_MODE, produce, keep_old)
      at:close()
      if not ok then error(why, 0) end
      failed = why
    end
  end
  if not failed then return true end
  return nil, ("cannot write %s: %s"):format(path, failed)
end

-- May a user make files in an open folder, and nobody exchange them?
local function is_open_to(fd, user)
  local st = files.stat_of(fd)
  return st and (st.uid == user or bit.band(st.mode, SHARED) == SHARED)
end

-- Returns why a new file must not take the place of the one with its name, or nil. It may be the user's, or root's if
-- is_own_name: a program that chooses the name must not choose whose file is lost.
local function belongs_to_others(folder, name, user, is_own_name)
  local st = files.stat_of(folder, name)
  if not st or st.uid == user or st.uid == ROOT and is_own_name then return nil end
  return ("user %s owns this file, and the program is of user %s; remove the file if nobody needs it")
	 :format(users.name(st.uid), users.name(user))
end

-- Returns why a file with a number that the program chooses must not stand in an open folder, or nil: in the command's
-- own folder, that number means another process.
local function means_another(fd, folder)
  local st, own = files.stat_of(fd), files.stat("/" .. folder)
  if not st or not own or st.id ~= own.id then return nil end
  return ("its PID namespace has numbers of its own, but its /%s is yours: there, the number means another process; " ..
    "give it a /%s of its own"):format(folder, folder)
end

-- Writes a file into a folder of a root that belongs to others, such as a container's. Follows no link there: an
-- absolute one leads to our own files. A mount may do so, too: the folder must be one where the root's user may make
-- files. user: of the program whose root it is; is_own_name: whether it cannot choose the name. is_right(): whether the
-- path of the root still means what it did before it was opened. Returns true, or nil and a message.
function outfile.write_below(root, folder, name, user, is_own_name, produce, is_right)
  local top = C.open(root, O_FOLDER)
  local fd = top >= 0 and C.openat(top, folder, O_FOLDER + system.O_NOFOLLOW) or -1
  local failed = fd < 0 and files.reason() or not is_right() and "the process has ended" or
		 not is_open_to(fd, user) and "the folder is no temporary folder of the program's user" or
		 not is_own_name and means_another(fd, folder) or
		 belongs_to_others(fd, name, user, is_own_name) or
		 replace_in(fd, name, NEW_MODE, produce)
  if fd >= 0 then system.close(fd) end
  if top >= 0 then system.close(top) end
  if not failed then return true end
  return nil, ("cannot write %s/%s/%s: %s"):format(root, folder, name, failed)
end

-- Does another program write a profile into the file? The profiler locks its file.
function outfile.is_taken(path)
  local file = regular.open(path)
  if not file or file.fd < 0 then return false end
  local is_taken = C.flock(file.fd, LOCK_SHARED + LOCK_NO_WAIT) ~= 0 and ffi.errno() == system.EAGAIN
  file:close()
  return is_taken
end

-- Moves a profile out of the way of a new one. follow: as of misc.sysprof.start. Returns true if there was one.
function outfile.set_aside(path, follow)
  local at = walk.to(path, follow)
  if not at then return false end
  local st = at.st
  local is_moved = st and st.kind == "file" and st.size > 0 and not at.is_linked and IS_OURS.bin(head_of(path)) and
		   C.renameat(at.folder, at.name, at.folder, at.name .. OLD) == 0
  at:close()
  return is_moved
end

-- The reverse. Returns true, or false.
function outfile.set_back(path, follow)
  local at = walk.to(path, follow)
  if not at then return false end
  local is_moved = C.renameat(at.folder, at.name .. OLD, at.folder, at.name) == 0
  at:close()
  return is_moved
end

-- Removes a file.
function outfile.remove(path, follow)
  local at = walk.to(path, follow)
  if not at then return end
  C.unlinkat(at.folder, at.name, 0)
  at:close()
end

return outfile
