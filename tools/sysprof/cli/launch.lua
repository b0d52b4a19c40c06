----------------------------------------------------------------------------
-- Launcher of luajit-sysprof: runs a script under the profiler, finds its profiles.
--
-- The script runs in the luajit program, in a process of its own. A piece of Lua, which
-- luajit runs before the script, starts the profiler. Then it removes a file, the note.
-- If the profiler cannot start, it writes the reason into the note, and no script runs.
-- If the background thread does not start, the VM writes the profile.
----------------------------------------------------------------------------

local ffi = require("ffi")
local child = require("sysprof.cli.child")

local FAILED = 1	-- Status if the profiler could not be started.

-- The start of the profiler takes LUA_INIT out of our way.
local KEPT_INIT = "SYSPROF_RUN_LUA_INIT"

ffi.cdef [[
ssize_t readlink(const char *, char *, size_t);
int mkstemp(char *);
int close(int);
int glob(const char *, int, void *, void *);
void globfree(void *);
char *strerror(int);
]]

-- Lua code that starts the profiler with a table of options. It removes our n arguments of
-- luajit from the script's arg table.
local START = [[
local options, ok, err = { %s }
if misc then ok, err = misc.sysprof.start(options) end
if not ok and options.flush == "thread" and err and err:find("thread of the profiler did not start", 1, true) then
  options.flush = "vm"
  ok = misc.sysprof.start(options)
  if ok then io.stderr:write("luajit-sysprof: ", err, "; the VM writes the profile\n") end
end
if not ok then
  local note = io.open(%q, "wb")
  if note then note:write(err or "this luajit has no profiler") note:close() end
  os.exit(%d)
end
os.remove(%q)
local arg, i = arg, -1
repeat
  arg[i] = arg[i - %d]
  i = i - 1
until arg[i] == nil
]]

-- Returns options of misc.sysprof.start as they are written in Lua.
local function table_text(options)
  local out = {}
  for key, value in pairs(options) do
    out[#out + 1] = key .. " = " .. (type(value) == "string" and ("%q"):format(value) or
				     type(value) == "number" and ("%.17g"):format(value) or
				     tostring(value))
  end
  return table.concat(out, ", ")
end

-- Path of the luajit program that runs us.
local function luajit_path()
  local buf = ffi.new("char[4096]")
  local n = ffi.C.readlink("/proc/self/exe", buf, 4096)
  return n > 0 and ffi.string(buf, n) or arg[-1]
end

-- passed: options of luajit. rest: the script and its arguments.
local function luajit_arguments(luajit, options, passed, rest, note)
  local args = { luajit }
  for _, option in ipairs(passed) do args[#args + 1] = option end
  local dashes = rest[1]:find("^%-.")
  args[#args + 1] = "-e"
  args[#args + 1] = START:format(table_text(options), note, FAILED, note, dashes and 3 or 2)
  if dashes then args[#args + 1] = "--" end
  for _, a in ipairs(rest) do args[#args + 1] = a end
  return args
end

-- Returns the content of a file, and removes the file; nil if it does not exist.
local function take(path)
  local file = io.open(path, "rb")
  if not file then return nil end
  local s = file:read("*a") or ""
  file:close()
  os.remove(path)
  return s
end

local launch = {}

-- Returns the path of a new file, or nil and a message.
function launch.temporary()
  local path = (os.getenv("TMPDIR") or "/tmp") .. "/luajit-sysprof-XXXXXX"
  local buf = ffi.new("char[?]", #path + 1, path)
  local fd = ffi.C.mkstemp(buf)
  if fd < 0 then
    return nil, ("cannot write %s: %s"):format(path, ffi.string(ffi.C.strerror(ffi.errno())))
  end
  ffi.C.close(fd)
  return ffi.string(buf)
end

-- Runs a script to its end. options: of misc.sysprof.start; passed: a list of options
-- of luajit; rest: the script and its arguments. Returns its status, or nil and the
-- signal that ended it. A third result is the reason for a missing profile.
function launch.run(options, passed, rest)
  local note, err = launch.temporary()
  if not note then return FAILED, nil, err end
  local luajit = luajit_path()
  child.setenv("LUA_INIT", os.getenv(KEPT_INIT) or os.getenv("LUA_INIT"))
  child.setenv(KEPT_INIT, nil)
  local status, signo, why = child.run(luajit, luajit_arguments(luajit, options, passed,
								rest, note))
  local message = take(note)
  if why then return FAILED, nil, "cannot run luajit: " .. why end
  if message == "" then return status, signo, "luajit ended before the script began" end
  return status, signo, message and "cannot profile: " .. message
end

-- Returns a sorted list of the profiles that children of the script have written:
-- beside its own, with their ids at the end.
function launch.profiles_of_children(path)
  local found, list = ffi.new("struct { size_t n; char **paths; char rest[256]; }"), {}
  local pattern = path:gsub("[%*%?%[\\]", "\\%0") .. ".*"
  if ffi.C.glob(pattern, 0, nil, found) == 0 then
    for i = 0, tonumber(found.n) - 1 do
      local name = ffi.string(found.paths[i])
      if name:sub(#path + 1):find("^%.[%d.]*%d$") then list[#list + 1] = name end
    end
    ffi.C.globfree(found)
  end
  return list
end

return launch
