----------------------------------------------------------------------------
-- Processes of this machine, as procfs shows them.
--
-- A process chooses its name and its arguments, so these hold any bytes.
----------------------------------------------------------------------------

local ffi = require("ffi")
local aside = require("sysprof.live.aside")
local files = require("sysprof.base.files")
local limits = require("sysprof.base.limits")
local sort = require("sysprof.base.sort")
local system = require("sysprof.base.system")
local text = require("sysprof.base.text")

local C = ffi.C
local COMM_BYTES = 15		-- The kernel cuts names.

-- Options of luajit whose value may be the next argument.
local WITH_VALUE = { ["-e"] = true, ["-l"] = true }

local processes = {}

local function content(path)
  local file = io.open(path, "rb")
  local s = file and file:read(limits.PROC_TEXT) or ""
  if file then file:close() end
  return s
end

-- Returns the state in a status file, a letter of the kernel, and whether that is an end.
local function state_of(status)
  local state = status:match("\nState:\t(%a)")
  return state, state == "Z" or state == "X"
end

-- Returns the paths of the threads of a process in procfs.
local function thread_paths(pid)
  return files.matching(("/proc/%d/task/[0-9]*"):format(pid))
end

-- Returns where procfs shows a process whose first thread has ended: at one that goes on. Else nil.
local function survivor_of(pid, status)
  if (tonumber(status:match("\nThreads:\t(%d+)") or "") or 0) < 2 then return nil end
  for _, path in ipairs(thread_paths(pid)) do
    local its = content(path .. "/status")
    local state, has_ended = state_of(its)
    if state and not has_ended then return path, state end
  end
end

-- Returns the arguments in a file cmdline.
local function arguments(s)
  local list = {}
  for a in s:gmatch("([^%z]*)%z?") do list[#list + 1] = a end
  while list[#list] == "" do list[#list] = nil end	-- A title is padded.
  return list
end

-- Returns the script that an interpreter of Lua runs, or nil.
local function script_of(args)
  if not (args[1] and text.base_name(args[1]):find("^lua")) then return nil end
  local i = 2
  while args[i] and args[i]:find("^%-.") do
    if args[i] == "--" then return args[i + 1] end
    i = i + (WITH_VALUE[args[i]] and 2 or 1)
  end
  return args[i]
end

-- -- API -------------------------------------------------------------------

function processes.own_pid()
  return C.getpid()
end

-- Returns facts on a process that the kernel keeps itself; or nil and whether it is hidden from this user.
local function kept_by_kernel(pid)
  local started, status = processes.start_time(pid), content(("/proc/%d/status"):format(pid))
  local function number(pattern) return tonumber(status:match(pattern) or "") end
  -- The name stands first, on a line; the kernel escapes line ends in it.
  local comm, state, has_ended = status:match("^Name:\t([^\n]*)\n"), state_of(status)
  if not state then return nil, C.kill(pid, 0) ~= 0 and ffi.errno() == system.EPERM end
  local folder = ("/proc/%d"):format(pid)
  if has_ended then
    local survivor, its_state = survivor_of(pid, status)
    if survivor then folder, state, has_ended = survivor, its_state, false end
  end
  return {
    pid = pid, parent = number("\nPPid:\t(%d+)"), leader = number("\nTgid:\t(%d+)"),
    own_pid = number("\nNSpid:[^\n]-(%d+)\n") or pid, state = state,
    has_ended = has_ended, folder = folder, user = number("\nUid:\t%d+\t(%d+)") or 0,
    comm = comm, started = started,
  }
end

-- Adds what a process has in its own memory. cmdline: nil if that does not answer.
local function add_arguments(facts, cmdline)
  local args = arguments(cmdline or "")
  local script = script_of(args)
  local title = #args == 1 and args[1]:match("^[%w_.-]+: .*%S") or nil
  facts.args, facts.script = args, script
  facts.program = text.clean(script and ("%s %s"):format(text.base_name(args[1]), script) or title or facts.comm)
  facts.name = text.clean(script and text.base_name(script) or facts.comm)
end

-- Returns facts on those processes of a list that exist:
--   pid, parent, leader  leader: the process of a thread, else pid
--   own_pid              its number in its own namespace
--   started              as of start_time()
--   state                the letter of the kernel: "T" stopped, "t" under a debugger
--   has_ended            it may wait for its parent
--   folder               where procfs tells about it
--   user                 effective user
--   comm, args, script   script: of luajit, or nil
--   program, name        what people call it; the same in short: both are clean
function processes.look_all(pids)
  local list = {}
  for _, pid in ipairs(pids) do list[#list + 1] = kept_by_kernel(pid) end
  aside.each(list, function(facts) return content(facts.folder .. "/cmdline") end, add_arguments)
  return list
end

-- Returns the same of a process, or nil and whether it is hidden from this user.
function processes.look(pid)
  local facts = processes.look_all({ pid })[1]
  if facts then return facts end
  return nil, select(2, kept_by_kernel(pid))
end

-- Returns the state of a process, and whether it has ended; nil if it does not exist.
function processes.state(pid)
  local facts = kept_by_kernel(pid)
  if facts then return facts.state, facts.has_ended end
end

-- Has a process ended?
function processes.has_ended(pid)
  local state, has_ended = processes.state(pid)
  return not state or has_ended
end

-- Is it still the process that was looked at?
function processes.is_same(facts)
  return facts.started ~= nil and processes.start_time(facts.pid) == facts.started
end

-- Returns when a process was started, in ticks, or nil. A later process of the same number has another time.
-- pid: "self" for this process.
function processes.start_time(pid)
  local stat = content(("/proc/%s/stat"):format(pid)):match("^.*%)(.*)$")	-- Its name may hold anything.
  return stat and tonumber(stat:match("^ %a" .. (" %-?%d+"):rep(18) .. " (%d+)"))
end

-- Returns a sorted list of the numbers of all processes.
function processes.list()
  local list = {}
  for _, path in ipairs(files.matching("/proc/[0-9]*")) do list[#list + 1] = tonumber(path:match("^/proc/(%d+)$")) end
  sort(list)
  return list
end

-- Returns a sorted list of processes and their descendants.
function processes.with_descendants(pids)
  local parents, wanted, list = {}, {}, {}
  for _, pid in ipairs(pids) do wanted[pid] = true end
  for _, pid in ipairs(processes.list()) do
    parents[pid] = tonumber(content(("/proc/%d/status"):format(pid)):match("\nPPid:\t(%d+)") or "")
  end
  local function belongs(pid, steps)
    if wanted[pid] == nil then
      local parent = parents[pid]
      wanted[pid] = parent and parent > 0 and steps > 0 and belongs(parent, steps - 1) or false
    end
    return wanted[pid]
  end
  for _, pid in ipairs(pids) do parents[pid] = parents[pid] or 0 end	-- One that does not exist, too.
  for pid in pairs(parents) do
    if belongs(pid, 1000) then list[#list + 1] = pid end
  end
  sort(list)
  return list
end

-- Returns a sorted list of the threads of a process: { tid =, own_tid = in its own namespace, name =, blocks = whether
-- it blocks signals, has_ended = whether it is the first one, and has ended before the process }.
function processes.threads(pid)
  local list = {}
  for _, path in ipairs(thread_paths(pid)) do
    local status, tid = content(path .. "/status"), tonumber(path:match("/(%d+)$"))
    local name, blocked = status:match("^Name:\t([^\n]*)\n"), status:match("\nSigBlk:\t(%x+)\n")
    local own_tid = tonumber(status:match("\nNSpid:[^\n]-(%d+)\n")) or tid
    list[#list + 1] = name and { tid = tid, own_tid = own_tid, name = name, has_ended = select(2, state_of(status)),
				 blocks = blocked ~= nil and blocked:find("[^0]") ~= nil }
  end
  sort(list, function(a, b) return a.tid < b.tid end)
  return list
end

-- Has a thread of a process a seccomp filter?
function processes.has_filter(pid)
  for _, path in ipairs(thread_paths(pid)) do
    if content(path .. "/status"):find("\nSeccomp:\t[12]\n") then return true end
  end
  return false
end

-- Is this the name of a process: of its program, its file or its script?
function processes.is_named(facts, name)
  local function has(path)
    return path and (path == name or text.base_name(path) == name)
  end
  return facts.comm == name or #name > COMM_BYTES and facts.comm == name:sub(1, COMM_BYTES) or
	 has(facts.args[1]) or has(facts.script) or has(files.link(facts.folder .. "/exe"))
end

-- Is the machine loaded, so that answers take longer?
function processes.is_busy()
  local load = tonumber(content("/proc/loadavg"):match("^(%S+)") or "")
  local _, processors = ("\n" .. content("/proc/stat")):gsub("\ncpu%d", "")
  return load ~= nil and load > processors
end

return processes
