----------------------------------------------------------------------------
-- Live programs: processes that take requests at a socket (doc/live.md).
--
-- Another user can plant folders and sockets in /tmp. Only the socket behind which the process
-- itself listens is taken.
----------------------------------------------------------------------------

local files = require("sysprof.base.files")
local library = require("sysprof.live.library")
local limits = require("sysprof.base.limits")
local lostsocket = require("sysprof.live.lostsocket")
local processes = require("sysprof.live.processes")
local socket = require("sysprof.live.socket")
local system = require("sysprof.base.system")
local text = require("sysprof.base.text")

local FOLDER = "/tmp/.luajit-sysprof-"
local ANEW_SECONDS = 10	-- A program looks so often whether its socket has a name.
local FULL_SECONDS = 1		-- How long a socket may have too many clients.

local programs = {}

-- Tries the sockets of a folder. Returns a descriptor, or nil and the reason that matters most.
local function connect_in(folder, facts)
  local worst
  for i = 1, limits.SOCKET_NAMES do	-- Processes of several namespaces may share a folder.
    local fd, why = socket.connect(("%s/%d%s"):format(folder, facts.own_pid, i > 1 and "." .. i or ""))
    if fd and why == facts.pid then return fd end
    if fd then system.close(fd) end
    if why == "denied" then return nil, why end
    worst = why == "busy" and why or worst
  end
  return nil, worst
end

local function connect_once(facts)
  local root = facts.folder .. "/root"
  if not files.stat(root .. "/tmp") then root = "" end	-- Its root is hidden from us, and perhaps ours.
  local usual, worst = root .. FOLDER .. facts.user, nil
  local folders = files.matching(root .. FOLDER .. "*")	-- Its namespace may count users in another way.
  table.insert(folders, 1, usual)
  for i = 1, math.min(#folders, limits.FOLDERS) do
    local fd, why = nil, nil
    if i == 1 or folders[i] ~= usual then fd, why = connect_in(folders[i], facts) end
    if fd then return fd end
    worst = worst or why == "busy" and why or i == 1 and why or nil
  end
  return nil, worst
end

-- Connects to the socket of a process. Returns a descriptor, or nil and "denied", "busy" or nil.
function programs.connect(facts)
  local limit = system.now() + FULL_SECONDS
  while true do
    local fd, why = connect_once(facts)
    if fd or why ~= "busy" or system.now() >= limit then return fd, why end
    system.wait({}, 0.05)
  end
end

-- -- Why a process is not live ---------------------------------------------

-- Returns how to name a process.
function programs.name(facts)
  return ("process %d (%s)"):format(facts.pid, facts.name)
end

-- Returns a title for a profile: which programs were recorded.
function programs.title(list)
  local pids, names, seen = {}, {}, {}
  for i, program in ipairs(list) do
    local name = program.facts.name
    pids[i] = program.pid
    if not seen[name] then names[#names + 1], seen[name] = name, true end
  end
  local shown = table.concat(pids, ", ", 1, math.min(#pids, 4)) .. (#pids > 4 and " and more" or "")
  return ("%s, PID %s"):format(table.concat(names, ", ", 1, math.min(#names, 3)), shown)
end

local function is_foreign(facts)
  local user = processes.own_user()
  return user ~= 0 and user ~= facts.user
end

local LIVE = "start it with LUAJIT_SYSPROF=live, or let it call misc.sysprof.live()"

-- Returns why a process has no socket, with the remedy.
local function why_not_live(facts)
  local has = library.of(facts.folder)
  local name = programs.name(facts)
  if (has == "ours" or not has) and lostsocket.has(facts) then
    return ("%s is live, but its socket in %s was removed, perhaps by a cleaner of temporary files; it makes a new " ..
	    "one within %d s: run the command again then"):format(name, FOLDER .. facts.user, ANEW_SECONDS)
  end
  if has == "ours" then return ("%s is not live; %s"):format(name, LIVE) end
  if has == "other" then
    return ("%s runs a LuaJIT without sysprof; start it with the libluajit-5.1.so.2 of sysprof"):format(name)
  elseif has == "none" then
    return name .. " has no LuaJIT; expected a program on the LuaJIT of sysprof"
  end
  -- After setuid, its socket is in the folder of its former user.
  return ("%s is not live, and this user may not look into it; %s%s"):format(name,
    processes.own_user() ~= 0 and "run luajit-sysprof as root, or " or "", LIVE)
end

-- Opens a process. Returns { pid=, facts=, fd= }, or nil and a sentence.
function programs.open(pid)
  local facts, is_hidden = processes.look(pid)
  if not facts then
    return nil, is_hidden and ("process %d belongs to another user; run luajit-sysprof as root"):format(pid) or
		("there is no process %d; 'luajit-sysprof ps' lists live programs"):format(pid)
  end
  local name = programs.name(facts)
  if pid == processes.own_pid() then
    return nil, ("process %d is this command itself; expected the PID of another program"):format(pid)
  elseif facts.leader ~= pid then
    return nil, ("%d is a thread of process %d; did you mean %d?"):format(pid, facts.leader, facts.leader)
  elseif facts.has_ended then
    return nil, ("process %d (%s) has ended"):format(pid, facts.comm)
  end
  local fd, why
  if not is_foreign(facts) then fd, why = programs.connect(facts) else why = "denied" end
  if not fd and why == "busy" then
    return nil, ("%s has too many clients; try again"):format(name)
  elseif not fd and why == "denied" then
    return nil, ("%s belongs to user %s; run luajit-sysprof as that user or as root")
		:format(name, processes.user_name(facts.user))
  elseif not fd then
    return nil, why_not_live(facts)
  end
  local stopped = programs.stopped(facts)
  if not stopped then return { pid = pid, facts = facts, fd = fd } end
  system.close(fd)
  return nil, stopped
end

-- Says that a process cannot answer because it is stopped, or nil.
function programs.stopped(facts)
  if facts.state == "T" then
    return ("%s is stopped by a signal; 'kill -CONT %d' lets it go on"):format(programs.name(facts), facts.pid)
  elseif facts.state == "t" then
    return ("%s is stopped by a debugger; let it go on"):format(programs.name(facts))
  end
end

-- -- All programs ----------------------------------------------------------

-- Is it one of our commands, such as serve?
local function is_command(facts)
  return facts.script ~= nil and text.base_name(facts.script):find("^luajit%-[%w-]*sysprof%.lua$") ~= nil
end

-- Finds the programs that this user can reach. Returns a list of live ones, { pid=, facts=, fd= or stopped= }, a
-- list of facts on others with our library, and a list of sentences on live ones that have lost their sockets.
function programs.find()
  local live, asleep, lost = {}, {}, {}
  system.allow_files()	-- Each program takes a descriptor.
  for _, pid in ipairs(processes.list()) do
    local facts = pid ~= processes.own_pid() and processes.look(pid)
    if facts and not facts.has_ended and not is_foreign(facts) then
      local fd = programs.connect(facts)
      local stopped = fd and programs.stopped(facts)
      if stopped then system.close(fd) end
      if fd then
	live[#live + 1] = { pid = pid, facts = facts, fd = not stopped and fd or nil, stopped = stopped }
      elseif not is_command(facts) and library.of(facts.folder) == "ours" then
	if lostsocket.has(facts) then lost[#lost + 1] = why_not_live(facts) else asleep[#asleep + 1] = facts end
      end
    end
  end
  return live, asleep, lost
end

return programs
