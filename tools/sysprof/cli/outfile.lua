----------------------------------------------------------------------------
-- Output files of the commands: nothing of the user's is lost.
--
-- A file that no sysprof has written is refused. The new file takes the place of the old one when it is
-- whole: a failure or a kill leaves the old one, and nothing else. Devices and pipes are written directly.
----------------------------------------------------------------------------

local ffi = require("ffi")
local files = require("sysprof.base.files")

ffi.cdef [[
int open(const char *, int, ...);
int close(int);
int linkat(int, const char *, int, const char *, int);
int fchmod(int, unsigned int);
int getpid(void);
char *strerror(int);
]]

local C = ffi.C
local O_WRONLY, O_CLOEXEC = 1, 0x80000
local O_TMPFILE = 0x400000 + (ffi.arch == "arm64" and 0x4000 or 0x10000)	-- With O_DIRECTORY.
local AT_FDCWD, AT_SYMLINK_FOLLOW = -100, 0x400
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
    local its = files.stat(folder == "" and "/" or folder)
    if its and its.kind == "folder" then return true end
    return nil, ("cannot write %s: there is no folder %s"):format(path, folder)
  end
  if force or st.kind ~= "file" or st.size == 0 then return true end
  if is_ours(head_of(path), format) then return true end
  return nil, ("cannot overwrite %s: sysprof did not write this file; --force overwrites it"):format(path)
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
  local file, err = io.open(path, "wb")
  if not file then return err:gsub("^" .. path:gsub("%p", "%%%0") .. ": ", "") end
  return fill(file, produce)
end

-- Gives a file without a name its name; the old file gets its own. Returns nil, or what failed.
local function publish(fd, path, keep_old)
  local new = ("%s.%d.new"):format(path, C.getpid())
  os.remove(new)
  if C.linkat(AT_FDCWD, ("/proc/self/fd/%d"):format(fd), AT_FDCWD, new, AT_SYMLINK_FOLLOW) ~= 0 then
    return ffi.string(C.strerror(ffi.errno()))
  end
  if keep_old then os.rename(path, path .. OLD) end
  local ok, err = os.rename(new, path)
  if not ok then os.remove(new) end
  return not ok and err or nil
end

-- Where the file system has no files without names.
local function write_in_place(path, produce, st, keep_old)
  if st then os.rename(path, path .. OLD) end
  local failed = write_directly(path, produce)
  if st and failed then os.rename(path .. OLD, path)
  elseif failed then os.remove(path)
  elseif st and not keep_old then os.remove(path .. OLD)
  end
  return failed
end

local function replace(path, produce, st, keep_old)
  local folder, mode = path:match("^(.*/)") or ".", path:find("%.bin$") and PROFILE_MODE or NEW_MODE
  local fd = C.open(folder, O_TMPFILE + O_WRONLY + O_CLOEXEC, ffi.cast("int", mode))
  local file = fd >= 0 and io.open(("/proc/self/fd/%d"):format(fd), "wb")
  local failed
  if not file then
    failed = write_in_place(path, produce, st, keep_old)
  else
    if st then C.fchmod(fd, st.mode) end
    failed = fill(file, produce) or publish(fd, path, st and st.size > 0 and keep_old)
  end
  if fd >= 0 then C.close(fd) end
  return failed
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

-- Moves a profile out of the way of a new one. Returns its new path, or nil if there was none.
function outfile.set_aside(path)
  local st = files.stat(path, true)
  if not st or st.kind ~= "file" or st.size == 0 or not IS_OURS.bin(head_of(path)) then return nil end
  return os.rename(path, path .. OLD) and path .. OLD or nil
end

return outfile
