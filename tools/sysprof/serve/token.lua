----------------------------------------------------------------------------
-- Token in the address of the server: without it, no request is answered.
--
-- A file of the user keeps it, because a collector has the address in its configuration.
----------------------------------------------------------------------------

local ffi = require("ffi")
local bit = require("bit")
local files = require("sysprof.base.files")
local processes = require("sysprof.live.processes")
local system = require("sysprof.base.system")
local text = require("sysprof.base.text")
local users = require("sysprof.base.users")
local walk = require("sysprof.base.walk")

ffi.cdef [[
// glibc 2.17 has no getrandom.
long sysprof_getrandom(long, void *, size_t, unsigned int) __asm__("syscall");
int open(const char *, int, ...);
int mkdir(const char *, unsigned int);
int link(const char *, const char *);
]]

local C = ffi.C
local O_WRONLY, O_CREAT, O_EXCL, O_NONBLOCK = 1, 0x40, 0x80, 0x800
local FOLDER_MODE, FILE_MODE = 448, 384		-- rwx------, rw-------.
local FOR_OTHERS = 63				-- rwx of the group and of others.
local SYS_getrandom, RANDOM_BYTES = 318, 16
local LEAST, MOST = 16, 128			-- Characters of a token.
local NAME = "/luajit-sysprof/token"

local token = {}

-- Returns a new token from the kernel's random numbers.
local function new()
  local bytes = ffi.new("uint8_t[?]", RANDOM_BYTES)
  if C.sysprof_getrandom(SYS_getrandom, bytes, RANDOM_BYTES, 0) ~= RANDOM_BYTES then
    error("getrandom: " .. files.reason())
  end
  return text.hex_bytes(ffi.string(bytes, RANDOM_BYTES))
end

-- Returns the owner of a folder, or nil and a reason. Another user's link leads nobody.
local function owner_of(folder)
  local at, why = walk.to(folder .. "/")
  if not at then return nil, why end
  at:close()
  return at.st and at.st.uid, files.reason()
end

-- Returns the user's folder of such files, and the folders to make for it; or nil and a reason. Root is not led into a
-- folder of another user by the environment.
local function state_folder()
  local base, to_make = os.getenv("XDG_STATE_HOME") or "", {}
  if base:sub(1, 1) ~= "/" then
    base, to_make = os.getenv("HOME") or "", { "/.local", "/.local/state" }
    if base:sub(1, 1) ~= "/" then return nil, "HOME names no folder" end
  end
  local owner, why = owner_of(base)
  if not owner then return nil, why end
  if not users.is_trusted(owner) then return nil, base .. " belongs to another user" end
  for i, folder in ipairs(to_make) do to_make[i] = base .. folder end
  return to_make[#to_make] or base, to_make
end

-- Reads the token in a file. Returns it; or nil and a sentence; or nil if there is no file.
local function read(path)
  local fd = C.open(path, O_NONBLOCK + system.O_CLOEXEC)
  if fd < 0 then
    if not files.stat(path, true) then return nil end
    return nil, ("%s: %s"):format(path, files.reason())
  end
  local st, buf = files.stat_of(fd), ffi.new("char[?]", MOST + 2)
  local n = st and st.kind == "file" and tonumber(C.read(fd, buf, MOST + 2)) or -1
  system.close(fd)
  local s = n >= 0 and ffi.string(buf, n):gsub("\n$", "") or ""
  if n < 0 or #s < LEAST or #s > MOST or s:find("[^%w_-]") then
    return nil, ("%s: expected a token of %d to %d letters, digits, '-' and '_'; without the file, the next start " ..
		 "makes one"):format(path, LEAST, MOST)
  elseif not users.is_trusted(st.uid) or bit.band(st.mode, FOR_OTHERS) ~= 0 then
    return nil, ("%s: others may know the token; expected a file of the user with mode 600; without it, the next " ..
		 "start makes one"):format(path)
  end
  return s
end

-- Writes a token into a new file, at once. Returns true, or nil and a reason.
local function write(path, value)
  local part = ("%s.%d"):format(path, processes.own_pid())
  os.remove(part)
  local fd = C.open(part, O_WRONLY + O_CREAT + O_EXCL + system.O_CLOEXEC, ffi.cast("int", FILE_MODE))
  if fd < 0 then return nil, ("%s: %s"):format(path, files.reason()) end
  local line = value .. "\n"
  local is_written = C.write(fd, line, #line) == #line and C.link(part, path) == 0
  local why = ("%s: %s"):format(path, files.reason())
  system.close(fd)
  os.remove(part)
  return is_written or nil, why
end

-- Returns the user's token, which is made if it is missing. Returns a new one and a sentence if no file can keep it; or
-- nil and a sentence if a file is wrong.
function token.of_user()
  local folder, to_make = state_folder()
  if not folder then return new(), ("the next start has another token: %s"):format(to_make) end
  local path = folder .. NAME
  local value, wrong = read(path)
  if value or wrong then return value, wrong end
  to_make[#to_make + 1] = path:match("^(.*)/")
  for _, its in ipairs(to_make) do C.mkdir(its, FOLDER_MODE) end	-- write() tells what is missing.
  value = new()
  local ok, why = write(path, value)
  if ok then return value end
  local others
  others, wrong = read(path)	-- Another server may have been faster.
  if others or wrong then return others, wrong end
  return value, ("the next start has another token: %s"):format(why)
end

-- Are two texts the same? The time does not tell where they differ.
local function is_same(a, b)
  local difference = bit.bxor(#a, #b)
  for i = 1, #b do difference = bit.bor(difference, bit.bxor(a:byte(i) or 0, b:byte(i))) end
  return difference == 0
end

-- Returns what follows the token in a path, or nil if the path begins otherwise.
function token.rest_of(path, value)
  local given, rest = path:match("^/([^/]*)(.*)$")
  if not given or not is_same(given, value) then return nil end
  return rest == "" and "/" or rest
end

return token
