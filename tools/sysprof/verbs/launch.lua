----------------------------------------------------------------------------
-- Launcher of luajit-sysprof: runs a script under the profiler, finds its profiles.
--
-- The script runs in the luajit program, in a process of its own. A piece of Lua, which
-- luajit runs before the script, starts the profiler. It stands in a file without a name, so that
-- the command line stays short. Into another one, the note, it writes that it runs, or why the
-- profiler cannot start. Then no script runs.
-- If the background thread does not start, the VM writes the profile.
----------------------------------------------------------------------------

local child = require("sysprof.base.child")
local files = require("sysprof.base.files")
local processes = require("sysprof.live.processes")
local startcode = require("sysprof.model.startcode")
local temporary = require("sysprof.base.temporary")
local users = require("sysprof.base.users")

local FAILED = 1	-- Status if the profiler could not be started,
local USAGE = 2		-- and if it refuses an option.
local EINVAL = 22
local EBUSY = 16
local RUNS = "runs"	-- In the note.
local TAKEN = "taken"	-- The same: another process writes the file.

-- The start of the profiler takes LUA_INIT out of our way.
local KEPT_INIT = "SYSPROF_RUN_LUA_INIT"

-- Lua code that starts the profiler with a table of options. It first removes our n arguments of
-- luajit from the script's arg table. The profile must not have frames of this code, so the start
-- comes last. A script that profiles itself would end our profile: its calls do nothing, and it is told.
local START = [[
local options, ok, err, code = { %s }
local function note(text)
  local file = io.open(%q, "wb")
  if file then file:write(text) file:close() end
end
note(%q)
local arg, i = arg, -1
repeat
  arg[i] = arg[i - %d]
  i = i - 1
until arg[i] == nil
local function refuse(why)
  note(code == %d and err:sub(1, #options.path + 2) == options.path .. ": " and %q or why)
  os.exit(code == %d and %d or %d)
end
if not misc then refuse("this luajit has no profiler") end
local start, told = misc.sysprof.start
local function own()
  if not told then
    io.stderr:write("luajit-sysprof: the script profiles itself; this command keeps one profile of everything\n")
  end
  told = true
  return true
end
for _, library in pairs { misc.sysprof, misc.memprof } do
  if library.start then library.start, library.stop = own, own end
  if library.dump then library.dump = own end
end
ok, err, code = start(options)
if not ok and options.flush == "thread" and err and err:find("thread of the profiler did not start", 1, true) then
  options.flush = "vm"
  ok = start(options)
  if ok then io.stderr:write("luajit-sysprof: ", err, "; the VM writes the profile\n") end
end
if not ok then refuse(err) end
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
  return files.link("/proc/self/exe") or arg[-1]
end

-- Is the script's name like an option?
local function has_dashes(rest)
  return rest[1]:find("^%-.") ~= nil
end

-- passed: options of luajit. rest: the script and its arguments. start: file with the code to run first.
local function luajit_arguments(luajit, passed, rest, start)
  local args = { luajit }
  for _, option in ipairs(passed) do args[#args + 1] = option end
  args[#args + 1] = "-e"
  args[#args + 1] = startcode.of(start)
  if has_dashes(rest) then args[#args + 1] = "--" end
  for _, a in ipairs(rest) do args[#args + 1] = a end
  return args
end

-- Returns the content of a file of ours, and removes the file if it has a name; nil if it does not exist.
local function take(path)
  local s = files.text(path)
  if s and not path:find("^/proc/") then os.remove(path) end
  return s
end

local launch = {}

-- Returns a message with words for the path of a file that has no name.
local function named(message, path)
  local first, last = message:find(path, 1, true)
  if not first or not path:find("^/proc/") then return message end
  return message:sub(1, first - 1) .. "a temporary file in " .. temporary.folder() .. message:sub(last + 1)
end

-- Says that another program writes a file.
function launch.taken_text(path)
  return ("cannot write %s: another program writes a profile into it; name another output with -o"):format(path)
end

-- Gives programs that start from now on the variables that the command keeps from itself.
function launch.restore_environment()
  child.setenv("LUA_INIT", os.getenv(KEPT_INIT) or os.getenv("LUA_INIT"))
  child.setenv(KEPT_INIT, nil)
end

-- Runs a script to its end. options: of misc.sysprof.start; passed: a list of options
-- of luajit; rest: the script and its arguments. Returns its status, or nil and the
-- signal that ended it. A third result is the reason for a missing profile. quiet: see sysprof.base.child.
function launch.run(options, passed, rest, quiet)
  local note, err = temporary.new()
  local start, why_not = temporary.new()
  local file = start and io.open(start, "wb")
  if not note or not file then return FAILED, nil, err or why_not or "cannot write a temporary file" end
  file:write(START:format(table_text(options), note, RUNS, has_dashes(rest) and 3 or 2, EBUSY, TAKEN, EINVAL, USAGE,
			  FAILED))
  local ok, why_cut = file:close()
  if not ok then return FAILED, nil, temporary.problem(why_cut) end
  local luajit = luajit_path()
  launch.restore_environment()
  local status, signo, why = child.run(luajit, luajit_arguments(luajit, passed, rest, start), quiet)
  local message = take(note)
  take(start)
  if why then return FAILED, nil, "cannot run luajit: " .. why end
  if message == "" then return status, signo, "luajit ended before the script began" end
  if message == TAKEN then return status, signo, launch.taken_text(options.path) end
  return status, signo, message ~= RUNS and "cannot profile: " .. named(tostring(message), options.path) or nil
end

-- Returns a sorted list of the profiles that children of the script have written: beside its own, with their ids at the
-- end. The second list has files of such names that another user made, or that are no files: /tmp is open to all.
function launch.profiles_of_children(path)
  local list, foreign = {}, {}
  for _, name in ipairs(files.matching(path:gsub("[%*%?%[\\]", "\\%0") .. ".*")) do
    local st = name:sub(#path + 1):find("^%.[%d.]*%d$") and files.stat(name, true)
    local to = st and (st.kind == "file" and st.uid == users.own() and list or foreign)
    if to then to[#to + 1] = name end
  end
  return list, foreign
end

-- Returns the id of the process that writes a child's profile, or nil if it has ended. path: of the script's profile.
-- The name may be a foreign file's: a child is younger than this process.
function launch.running_child(path, name)
  local pid = tonumber(name:match("^%.([1-9]%d*)", #path + 1))
  local started, own = pid and processes.start_time(pid), processes.start_time("self")
  return started and own and started >= own and not processes.has_ended(pid) and pid or nil
end

return launch
