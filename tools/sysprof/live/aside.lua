----------------------------------------------------------------------------
-- Work in a process of its own, for what a looked-at process can hold up for ever.
--
-- A process chooses its root folder, its files and the memory of its arguments. Each may lie on a file system that
-- never answers, where not even a signal ends a wait. So another process looks there. If it does not answer in time, it
-- is killed and left alone.
----------------------------------------------------------------------------

local ffi = require("ffi")
local files = require("sysprof.base.files")
local limits = require("sysprof.base.limits")
local socket = require("sysprof.live.socket")
local system = require("sysprof.base.system")

local C = ffi.C
local STEP_SECONDS = 0.1	-- Between two looks at the other process.
local NAP_SECONDS = 0.005	-- In which it makes several answers.
local LOOKS = limits.FILES_SECONDS / STEP_SECONDS	-- At which it sleeps in the same wait: one item, until
local PATIENT = 3		-- so many have not answered. Then it is
local HASTY_LOOKS = 2		-- for each: a user may have many such processes.
local WNOHANG, END_TRIES = 1, 50
local LATE = "its files do not answer"

local aside = {}
local left = {}		-- Processes that were killed, and may wait for ever.

-- Ends a process. One that hangs may stay for ever.
local function finish(pid, hangs)
  C.kill(pid, system.SIGKILL)
  left[pid] = true
  for i = 1, hangs and 1 or END_TRIES do
    for its in pairs(left) do
      if C.waitpid(its, nil, WNOHANG) ~= 0 then left[its] = nil end
    end
    if not left[pid] then break end
    system.wait({}, i * 0.001)
  end
end

-- Makes the process harmless that may outlive us: it holds nothing open, and ends with us if it can.
local function become_other(parent, own)
  local all = system.signal_set()
  C.sigfillset(all)
  C.sigprocmask(system.SIG_SETMASK, all, nil)
  C.prctl(system.PR_SET_PDEATHSIG, system.SIGKILL, 0, 0, 0)
  if C.getppid() ~= parent then C._exit(1) end
  for _, path in ipairs(files.matching("/proc/self/fd/[0-9]*")) do
    local fd = tonumber(path:match("/(%d+)$"))
    if fd ~= own then system.close(fd) end
  end
end

-- Begins the work on items from first on. Returns the process and a descriptor, or nil and the reason.
local function begin(list, first, work)
  local ours, its = socket.pair()
  if not ours then return nil, files.reason() end
  local parent = C.getpid()
  local pid = C.fork()
  if pid == 0 then
    pcall(function()
      become_other(parent, its)
      for i = first, #list do
	local s, fd = work(list[i])
	local is_sent
	repeat	-- We may be slow to take the answers.
	  is_sent = socket.send(its, "=" .. (s or ""):sub(1, limits.PROC_TEXT), fd)
	  if not is_sent and ffi.errno() ~= system.EAGAIN then C._exit(1) end
	  if not is_sent then system.wait({}, 1, { its }) end
	until is_sent
	if fd then system.close(fd) end
      end
    end)
    C._exit(0)
  end
  local why = files.reason()
  system.close(its)
  if pid > 0 then return pid, ours end
  system.close(ours)
  return nil, why
end

-- Returns a text that stays the same while a process sleeps in one wait; nil while it runs, or would with a processor.
local function sleep_of(pid)
  local status = files.text(("/proc/%d/status"):format(pid)) or ""
  if status:find("\nState:\tR") then return nil end
  return status:match("\nvoluntary_ctxt_switches:\t(%d+)")
end

-- Waits for the next answer: a text and a descriptor, "" if the process has ended, or nil if it hangs. has_more: others
-- will follow.
local function next_answer(pid, fd, most_looks, limit, has_more)
  local looks, before = 0, nil
  while looks <= most_looks and system.now() < limit do
    local s, descriptor = socket.receive_descriptor(fd, limits.PROC_TEXT + 1)
    if not s and has_more then	-- A switch of processes for each answer takes long on a busy machine.
      system.wait({}, NAP_SECONDS)
      s, descriptor = socket.receive_descriptor(fd, limits.PROC_TEXT + 1)
    end
    if s then return s, descriptor end
    if not system.wait({ fd }, STEP_SECONDS)[fd] then
      local now = sleep_of(pid)
      looks = now and now == before and looks + 1 or 0
      before = now
    end
  end
end

-- Calls work(item) for each item of a list in another process, and take(item, text, descriptor) here with what it
-- returned; take(item, nil, nil, why) if it did not answer. The text has at most PROC_TEXT bytes. total: seconds for
-- all items, or nil.
function aside.each(list, work, take, total)
  local next_item, late, last = 1, 0, system.now() + (total or math.huge)
  while next_item <= #list do
    local pid, fd = begin(list, next_item, work)
    if not pid then
      for i = next_item, #list do take(list[i], nil, nil, "cannot make a process: " .. fd) end
      return
    end
    local s, descriptor
    repeat
      s, descriptor = next_answer(pid, fd, late < PATIENT and LOOKS or HASTY_LOOKS,
				  math.min(system.now() + limits.FILES_MOST_SECONDS, last), next_item < #list)
      if s and s ~= "" then
	take(list[next_item], s:sub(2), descriptor)
	next_item = next_item + 1
      end
    until not s or s == "" or next_item > #list
    finish(pid, not s)
    system.close(fd)
    if next_item <= #list then
      late = late + (s and 0 or 1)
      take(list[next_item], nil, nil, s and "the process that looked at it ended" or LATE)
      next_item = next_item + 1
    end
    if system.now() >= last then
      for i = next_item, #list do take(list[i], nil, nil, LATE) end
      return
    end
  end
end

-- Returns what work() returns in another process, a text and a descriptor; or nil, nil and why there is no answer.
function aside.call(work)
  local s, fd, why
  aside.each({ true }, work, function(_, ...) s, fd, why = ... end)
  return s, fd, why
end

return aside
