----------------------------------------------------------------------------
-- Live programs: processes that take requests at a socket (doc/live.md).
--
-- Another user can plant folders and sockets in /tmp, and a process may get the number of one that has ended. Only a
-- socket is taken at which the process itself began to listen, as the user that owns the folder.
----------------------------------------------------------------------------

local bit = require("bit")
local ffi = require("ffi")
local aside = require("sysprof.live.aside")
local files = require("sysprof.base.files")
local library = require("sysprof.live.library")
local limits = require("sysprof.base.limits")
local processes = require("sysprof.live.processes")
local socket = require("sysprof.live.socket")
local system = require("sysprof.base.system")
local text = require("sysprof.base.text")
local users = require("sysprof.base.users")

local FOLDER = "/tmp/.luajit-sysprof-"
local FOLDER_OF_ROOT = "/run/.luajit-sysprof-"	-- No other user can take it.
local NAME_OF_FOLDER = "^/%l+/%.luajit%-sysprof%-%d+%.?%d*$"	-- Of each kind.
local ANEW_SECONDS = 10		-- A program looks so often whether its socket has a name.
local LISTED_SECONDS = 1		-- How long a list of folders holds.
local FULL_SECONDS = 1		-- How long sockets may have too many clients.
local FRESH_SECONDS = 1		-- A program closes a connection that brings no request for twice this time.
local WRITE_BY_OTHERS = 18	-- In the mode of a file.
local LOST_LOOKS, NAP_SECONDS = 5, 0.1
local VM_LOOKS = 10		-- So long a program may be between two VMs.
local ROOT = 0

local programs = {}

-- -- Connections -----------------------------------------------------------

-- Does the socket in a folder of owner belong to the process? One that began as root may have become another user.
local function is_its(facts, owner, pid, user)
  return pid == facts.pid and user == owner and (user == facts.user or user == ROOT)
end

-- Tries the sockets of an open folder. Returns a descriptor, or nil and the reason that matters most: "denied", "busy",
-- or "open" if it is the process's own, and other users may put sockets there.
local function connect_in(folder, facts)
  local st, worst = files.stat_of(folder), nil
  if not st or st.uid ~= facts.user and st.uid ~= ROOT then return nil end
  if bit.band(st.mode, WRITE_BY_OTHERS) ~= 0 then return nil, st.uid == facts.user and "open" or nil end
  for i = 1, limits.SOCKET_NAMES do	-- Processes of several namespaces may share a folder.
    local path = ("/proc/self/fd/%d/%d%s"):format(folder, facts.own_pid, i > 1 and "." .. i or "")
    local fd, pid, user = socket.connect(path)
    if fd and is_its(facts, st.uid, pid, user) then return fd end
    if fd then system.close(fd) end
    if not fd and pid == "denied" then return nil, pid end
    worst = not fd and pid == "busy" and pid or worst
  end
  return nil, worst
end

local listed = {}	-- By the identity of a temporary folder: its folders of sockets, and when they were listed.

-- Returns the folders of sockets below a root folder. A user may have made many, and processes share them.
local function folders_below(root)
  local st, now = files.stat(root .. "/tmp"), system.now()
  local id = st and st.id or root
  local known = listed[id]
  if not known or known.at < now - LISTED_SECONDS then
    local names = {}
    for i, path in ipairs(files.matching(root .. FOLDER .. "*")) do
      if i <= limits.FOLDERS then names[i] = path:sub(#root + 1) end
    end
    known = { at = now, names = names }
    listed[id] = known
  end
  local folders = {}
  for i, name in ipairs(known.names) do folders[i] = root .. name end
  return folders
end

-- Returns the folders of a user in /tmp: the program takes the first one that no other user has.
local function folders_of(root, user)
  local list = { root .. FOLDER .. user }
  for i = 2, limits.FOLDERS_OF_USER do list[i] = ("%s.%d"):format(list[1], i) end
  return list
end

-- Returns "taken" and the user that has the first name, if others have all of these.
local function why_none(folders, user)
  local first
  for _, path in ipairs(folders) do
    local st = files.stat(path, true)
    if not st or st.uid == user then return nil end
    first = first or st.uid
  end
  return "taken " .. first
end

-- Looks for the socket of a process. Returns a descriptor, or nil and why: "denied", "busy", "open PATH", "taken UID".
-- A process chooses its root folder, so this may take for ever.
local function connect(facts)
  local root = facts.folder .. "/root"
  if not files.stat(root .. "/tmp") then root = "" end	-- Its root is hidden from us, and perhaps ours.
  local folders, worst, seen = folders_of(root, facts.user), nil, {}
  local open, taken = nil, why_none(folders, facts.user)
  if facts.user == ROOT then folders[#folders + 1] = root .. FOLDER_OF_ROOT .. ROOT end
  for _, path in ipairs(folders_below(root)) do folders[#folders + 1] = path end	-- It may count users in another way.
  for i = 1, #folders do
    local folder = not seen[folders[i]] and
		   ffi.C.open(folders[i], system.O_PATH + system.O_DIRECTORY + system.O_NOFOLLOW + system.O_CLOEXEC) or -1
    seen[folders[i]] = true
    local fd, why = nil, nil
    if folder >= 0 then
      fd, why = connect_in(folder, facts)
      system.close(folder)
    elseif i == 1 and ffi.errno() == system.EACCES then
      why = "denied"
    end
    if fd then return fd end
    local path = why == "open" and folders[i]:sub(#root + 1)
    if path then
      open = open or path:find(NAME_OF_FOLDER) and "open " .. path	-- A user also makes names with any signs.
    else
      worst = worst or why == "busy" and why or i == 1 and why or nil
    end
  end
  return nil, worst or open or taken
end

-- Connects to each program of a list that has a descriptor no more: sets fd; else why: "late" or as connect().
local function connect_round(list)
  aside.each(list, function(program)
    local fd, why = connect(program.facts)
    return why, fd
  end, function(program, why, fd)
    if fd and not processes.is_same(program.facts) then	-- Another process got its number before that.
      system.close(fd)
      fd = nil
    end
    program.fd, program.why = fd, why == nil and "late" or why ~= "" and why or nil
  end)
end

-- Connects anew to programs whose connections have become old.
local function refresh(list, since)
  if system.now() < since + FRESH_SECONDS then return end
  local old = {}
  for _, program in ipairs(list) do
    if program.fd then
      system.close(program.fd)
      old[#old + 1] = program
    end
  end
  connect_round(old)
end

-- Connects to programs of a list, { facts= }: sets fd; else why: "late" or as connect().
local function connect_all(list)
  local begun, waiting = system.now(), list
  connect_round(list)
  repeat
    local busy = {}
    for _, program in ipairs(waiting) do busy[#busy + 1] = program.why == "busy" and program or nil end
    waiting = busy
    if #waiting > 0 then
      system.wait({}, 0.05)
      connect_round(waiting)
    end
  until #waiting == 0 or system.now() >= begun + FULL_SECONDS
  refresh(list, begun)
end

-- Connects to a process once more. Returns a descriptor, or nil and "late" or why, see connect().
function programs.connect(facts)
  local program = { facts = facts }
  connect_all({ program })
  return program.fd, program.why
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
  local user = users.own()
  return user ~= 0 and user ~= facts.user
end

-- Returns the end of a sentence on a program that does not answer: a seccomp filter may be the cause.
function programs.filter_text(facts)
  if not processes.has_filter(facts.pid) then return "" end
  return "; it has a seccomp filter, which may refuse the system calls of live control"
end

local LIVE = "start it with LUAJIT_SYSPROF=live, or let it call misc.sysprof.live()"

-- Returns why a process has no socket, with the remedy. has: of sysprof.live.library. why: of its connection.
local function why_not_live(facts, has, why)
  local name, taker = programs.name(facts), (why or ""):match("^taken (%d+)$")
  if taker and has == "ours" then
    local folder = FOLDER .. facts.user
    return ("%s is not live; user %s owns %s, and others have all names to %s.%d: remove them as root, then %s")
	   :format(name, users.name(tonumber(taker)), folder, folder, limits.FOLDERS_OF_USER, LIVE)
  end
  local open = (why or ""):match("^open (.+)$")
  if has == "lost" and open then
    return ("%s is live, but other users may write %s, the folder of its socket; run 'chmod 700 %s'")
	   :format(name, open, open)
  elseif has == "lost" then
    return ("%s is live, but its socket in %s was removed, perhaps by a cleaner of temporary files; it makes a new " ..
	    "one within %d s: run the command again then"):format(name, FOLDER .. facts.user, ANEW_SECONDS)
  end
  if has == "ours" then return ("%s is not live; %s%s"):format(name, LIVE, programs.filter_text(facts)) end
  if has == "other" then
    return ("%s runs a LuaJIT without sysprof; start it anew as 'luajit-sysprof doctor %s/exe' says, " ..
	    "but with LUAJIT_SYSPROF=live"):format(name, facts.folder)
  elseif has == "none" then
    return name .. " has no LuaJIT; expected a program on the LuaJIT of sysprof"
  elseif has == "late" then
    return limits.sentence("LIBRARIES_SECONDS", name)
  end
  -- After setuid, its socket is in the folder of its former user.
  return ("%s is not live, and this user may not look into it; %s%s"):format(name,
    users.own() ~= 0 and "run luajit-sysprof as root, or " or "", LIVE)
end

-- Returns why a process cannot be opened, or nil. pid: its number; facts: nil if there is no such process.
local function refusal(pid, facts)
  if not facts then
    local _, is_hidden = processes.look(pid)
    return is_hidden and ("process %d belongs to another user; run luajit-sysprof as root"):format(pid) or
	   ("there is no process %d; 'luajit-sysprof ps' lists live programs"):format(pid)
  elseif pid == processes.own_pid() then
    return ("process %d is this command itself; expected the PID of another program"):format(pid)
  elseif facts.leader ~= pid then
    return ("%d is a thread of process %d; did you mean %d?"):format(pid, facts.leader, facts.leader)
  elseif facts.has_ended then
    return programs.name(facts) .. " has ended"
  end
end

-- Returns why a process has no connection, or nil if only its library can tell.
local function why_unconnected(program)
  local name = programs.name(program.facts)
  if program.why == "busy" then return ("%s has too many clients; try again"):format(name) end
  if program.why == "late" then return limits.sentence("LIBRARIES_SECONDS", name) end
  if program.why == "denied" then
    return ("%s belongs to user %s; run luajit-sysprof as that user or as root")
	   :format(name, users.name(program.facts.user))
  end
end

-- The same for programs that listen at a socket without a name. If VMs come and go, so does the name: it is there at
-- one of several looks, or the program listens no more. Then sets fd, or says that it is not live.
local function explain_lost(list)
  for _ = 1, LOST_LOOKS do
    if #list == 0 then return end
    system.wait({}, NAP_SECONDS)
    connect_round(list)
    local facts, waiting = {}, {}
    for _, program in ipairs(list) do
      program.sentence = not program.fd and why_unconnected(program) or nil
      if not program.fd and not program.sentence then
	waiting[#waiting + 1], facts[#facts + 1] = program, program.facts
      end
    end
    list = {}
    for i, has in ipairs(library.of_all(facts)) do
      waiting[i].sentence = why_not_live(facts[i], has, waiting[i].why)
      if has == "lost" then list[#list + 1] = waiting[i] end
    end
  end
end

-- Tells for programs without a connection why not. Their files are looked at together.
local function explain(list)
  local unknown, facts = {}, {}
  for _, program in ipairs(list) do
    program.sentence = program.sentence or not program.fd and why_unconnected(program) or nil
    if not program.fd and not program.sentence then
      unknown[#unknown + 1] = program
      facts[#facts + 1] = program.facts
    end
  end
  local lost = {}
  for i, has in ipairs(library.of_all(facts)) do
    local program = unknown[i]
    if has == "lost" then lost[#lost + 1] = program
    else program.sentence, program.sleeps = why_not_live(program.facts, has, program.why), has == "ours" end
  end
  explain_lost(lost)
end

-- Drops connections to programs that cannot answer, and says why.
local function leave_unable(list)
  for _, program in ipairs(list) do
    local stopped = program.fd and programs.stopped(program.facts)
    if stopped then system.close(program.fd) end
    if stopped then program.fd, program.sentence = nil, stopped end
    if not program.fd and not program.sentence then program.sentence = programs.name(program.facts) .. " has ended" end
  end
end

-- Waits up to a second for programs without a live VM: one may have closed its VM and open the next. Each of the list
-- is { facts=, sentence= }. Sets fd in place of the sentence.
function programs.await(list)
  local waiting = list
  for _ = 1, VM_LOOKS do
    if #waiting == 0 then break end
    system.wait({}, NAP_SECONDS)
    connect_round(waiting)
    local without = {}
    for _, program in ipairs(waiting) do
      if program.fd then program.sentence = nil
      elseif not processes.has_ended(program.facts.pid) then without[#without + 1] = program end
    end
    waiting = without
  end
  leave_unable(list)
end

-- Opens a list of processes. Returns a list of { pid=, facts=, fd= } or { pid=, sentence= }. sleeps: it has the
-- library, but no live VM now.
function programs.open_all(pids)
  local list, reachable, by_pid = {}, {}, {}
  for _, facts in ipairs(processes.look_all(pids)) do by_pid[facts.pid] = facts end
  for i, pid in ipairs(pids) do
    local facts = by_pid[pid]
    list[i] = { pid = pid, facts = facts, sentence = refusal(pid, facts) }
    if not list[i].sentence then
      if is_foreign(facts) then list[i].why = "denied" else reachable[#reachable + 1] = list[i] end
    end
  end
  connect_all(reachable)
  local connected = system.now()
  explain(list)
  refresh(reachable, connected)
  leave_unable(reachable)
  return list
end

-- Says that a process cannot answer now because it is stopped, or nil.
function programs.stopped(facts)
  local state = processes.state(facts.pid)
  if state == "T" then
    return ("%s is stopped by a signal; 'kill -CONT %d' lets it go on"):format(programs.name(facts), facts.pid)
  elseif state == "t" then
    return ("%s is stopped by a debugger; let it go on"):format(programs.name(facts))
  end
end

-- -- All programs ----------------------------------------------------------

-- Is it one of our commands, such as serve?
local function is_command(facts)
  return facts.script ~= nil and text.base_name(facts.script):find("^luajit%-[%w-]*sysprof%.lua$") ~= nil
end

-- Finds the programs that this user can reach. Returns a list of live ones, { pid=, facts=, fd= or stopped= }, and one
-- of facts on others, with why: as connect().
function programs.find()
  local list, live, others, pids = {}, {}, {}, {}
  system.allow_files()	-- Each program takes a descriptor.
  for _, pid in ipairs(processes.list()) do
    if pid ~= processes.own_pid() then pids[#pids + 1] = pid end
  end
  for _, facts in ipairs(processes.look_all(pids)) do
    if not facts.has_ended and not is_foreign(facts) then list[#list + 1] = { pid = facts.pid, facts = facts } end
  end
  connect_all(list)
  for _, program in ipairs(list) do
    program.stopped = program.fd and programs.stopped(program.facts)
    if program.stopped then system.close(program.fd) end
    if program.fd then live[#live + 1] = program else others[#others + 1] = program.facts end
    program.facts.why = program.why
    if program.stopped then program.fd = nil end
  end
  return live, others
end

-- Returns those of a list of facts whose process has our library, and a list of sentences on live ones that have lost
-- their sockets.
function programs.asleep(list)
  local asked, asleep, lost = {}, {}, {}
  for _, facts in ipairs(list) do asked[#asked + 1] = not is_command(facts) and facts or nil end
  for i, has in ipairs(library.of_all(asked)) do
    if has == "ours" then asleep[#asleep + 1] = asked[i] end
    if has == "lost" then lost[#lost + 1] = why_not_live(asked[i], has, asked[i].why) end
  end
  return asleep, lost
end

return programs
