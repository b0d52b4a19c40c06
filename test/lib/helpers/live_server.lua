----------------------------------------------------------------------------
-- A live program for tests of the commands: serves the socket of doc/live.md without a profiler.
--
-- 'luajit live_server.lua BEHAVIOUR READY' serves until it is killed, and writes its PID into the file READY. A
-- recording is a made profile. Behaviours other than "good" are those of a broken or hostile program. "contents" sends
-- the files live_server.profile and live_server.list of its folder.
----------------------------------------------------------------------------

local ffi = require("ffi")
local B = require("stream_builder")
local t = require("tools_test")
local F = B.F

ffi.cdef [[
struct address { uint16_t family; char path[108]; };
struct part { void *base; size_t len; };
struct packet { void *name; unsigned int name_len; struct part *parts; size_t parts_len; void *control; size_t control_len; int flags; };
struct rights { size_t len; int level, type; int fd; int pad; };
struct pollfd { int fd; short events, revents; };
int socket(int, int, int);
int bind(int, const struct address *, unsigned int);
int listen(int, int);
int accept(int, void *, void *);
ssize_t recvmsg(int, struct packet *, int);
ssize_t send(int, const void *, size_t, int);
ssize_t write(int, const void *, size_t);
int poll(void *, unsigned long, int);
int close(int);
int mkdir(const char *, unsigned int);
int unlink(const char *);
int ftruncate(int, long);
int getpid(void);
unsigned int geteuid(void);
int seteuid(unsigned int);
int fork(void);
int pause(void);
int prctl(int, unsigned long, unsigned long, unsigned long, unsigned long);
]]
local C = ffi.C
local AF_UNIX, SOCK_SEQPACKET, POLLIN, MSG_NOSIGNAL, MSG_DONTWAIT = 1, 5, 1, 0x4000, 0x40

local PR_SET_PDEATHSIG, SIGKILL = 1, 9

local M = { OTHER_USER = 65534 }

-- What a program sends that would like to speak for the command.
M.EVIL_JSON = '{"pid":1,"coroutines":0,"states":{},"groups":[]}],"evil":1,"threads":[{"tid":666'
M.EVIL_TEXT = "1 coroutine of process 1: 1 running\n\nprocess 1: init\n\27[31mred\nthread 1 (root): running\n    a frame\n"
M.EVIL_MAP = "1000 10 trace 1 app.lua:1\n\27[31m\n2000 10 trace 2 \27]0;title\7\nno address at all\n" ..
	     "3000 10 " .. ("x"):rep(10000) .. "\n"

M.BUSY = "error another client records this process already; " .. ("x"):rep(3000) .. "\n"

-- A profile of this process with n samples of a function. pid: unless it is this process.
function M.profile(name, n, pid)
  local b = B.new(3):context(7)
  b:meta("pid", tostring(pid or C.getpid())):meta("start_time", "2000000000")
  b:lfunc(1, 0, "@live.lua"):lfunc(2, 2, "@live.lua", name)
  b:stack(1, { F.cbound, F.lfunc(1, 5), F.lfunc(2, 3) })
  for _ = 1, n do b:sample(1, 0, 1) end
  return b:finish()
end

local function answer(fd, ...)
  local s = table.concat({ ... }, "\n") .. "\n"
  C.send(fd, s, #s, MSG_NOSIGNAL)
end

local function receive(fd)
  local buf, part, rights = ffi.new("char[4096]"), ffi.new("struct part[1]"), ffi.new("struct rights")
  part[0].base, part[0].len = buf, 4096
  local packet = ffi.new("struct packet")
  packet.parts, packet.parts_len, packet.control, packet.control_len = part, 1, rights, ffi.sizeof(rights)
  local n = tonumber(C.recvmsg(fd, packet, 0))
  return n > 0 and ffi.string(buf, n) or "", tonumber(packet.control_len) >= 20 and rights.fd or nil
end

-- What the file of a recording gets, at once.
local function content_of(behaviour)
  local s = M.profile("hot_in_" .. behaviour, 30, behaviour == "another" and 1 or nil)
  local profile = behaviour == "contents" and t.content("live_server.profile") or ""
  if profile ~= "" then return profile end
  if behaviour == "garbage_file" then return ("no profile "):rep(1000) end
  if behaviour == "empty_file" then return "" end
  if behaviour == "dies" then return s:sub(1, -20) end
  return s
end

-- Answers a request. Returns nil if the connection is over, else { limit= } of a recording.
local function serve(behaviour, fd, request, file, recordings)
  local verb = request:match("^[^\n]*")
  local log = io.open(("live_server.%d.log"):format(C.getpid()), "a")
  log:write(request, file and "with a descriptor\n" or "", "--\n")
  log:close()
  if behaviour == "silent" then return { limit = math.huge } end
  if behaviour == "garbage" then return C.send(fd, ("\0\255\27["):rep(1000), 4000, MSG_NOSIGNAL) and nil end
  if behaviour == "sentence" then return answer(fd, "error this VM is \27[31mthe subject of another profile") end
  if behaviour == "floods" then	-- Each time anew.
    for _ = 1, 1000 do C.send(fd, M.BUSY, #M.BUSY, MSG_NOSIGNAL + MSG_DONTWAIT) end
    return nil
  end
  if behaviour == "endless" then return answer(fd, "error " .. ("x"):rep(4000)) end
  if verb == "info" then
    local n = 0
    for _ in pairs(recordings) do n = n + 1 end
    answer(fd, "ok", "pid=" .. C.getpid(), "version=test", "vms=2", "recording=" .. n, "profiled=" .. (behaviour == "profiled" and 1 or 0))
  elseif verb == "stop" then
    local n = 0
    if behaviour ~= "never_done" then
      for _, its in pairs(recordings) do n, its.limit = n + 1, 0 end
    end
    answer(fd, "ok", "stopped=" .. n)
  elseif verb == "dump" and behaviour == "long_list" or verb == "perf-map" and behaviour == "long_map" then
    C.ftruncate(file, 2^30)
    C.close(file)
    answer(fd, "ok", "vms=2", "answered=2")
  elseif verb == "dump" and (behaviour == "evil_list" or behaviour == "contents") then
    local s = request:find("format=json", 1, true) and M.EVIL_JSON or M.EVIL_TEXT
    if behaviour == "contents" then s = t.content("live_server.list") end
    C.write(file, s, #s)
    C.close(file)
    answer(fd, "ok", "vms=1", "answered=1")
  elseif verb == "perf-map" then
    C.write(file, M.EVIL_MAP, #M.EVIL_MAP)
    C.close(file)
    answer(fd, "ok", "vms=1", "answered=1")
  elseif verb == "record" then
    local s = content_of(behaviour)
    C.write(file, s, #s)
    if behaviour == "fills" then C.ftruncate(file, 2^29) end
    C.close(file)
    local duration = tonumber(request:match("\nduration=([%d.]+)"))
    if behaviour == "refuses" then return answer(fd, "error no perf events here") end
    if behaviour == "done_at_once" then return answer(fd, "done") end
    if behaviour == "done_with_error" then return answer(fd, "done", "error=the VM is being profiled already") end
    if behaviour == "odd_values" then answer(fd, "ok", "fd=0", "file=0", "path=1", "facts=1", "pid=1", "problem=1") end
    answer(fd, "ok", "vms=2", "started=2", "waiting=1", "note=a \27[1mnote at the start")
    if behaviour == "dies" then os.exit(0) end
    if behaviour == "hangs_up" then return nil end
    if behaviour == "two_answers" then return answer(fd, "ok", "vms=2") end
    if behaviour == "never_done" or behaviour == "fills" then return { limit = math.huge } end
    return { limit = duration and t.now() + duration or math.huge }
  end
end

local function take_socket(path)
  local listener = C.socket(AF_UNIX, SOCK_SEQPACKET, 0)
  local address = ffi.new("struct address", AF_UNIX, path)
  C.unlink(path)
  assert(C.bind(listener, address, ffi.sizeof(address)) == 0, "bind " .. path)
  assert(C.listen(listener, 16) == 0)
  return listener
end

-- Serves until the process is killed. Behaviour "was_another": the process began to listen as another user, and is root
-- now. "child_answers": another process has the socket.
function M.run(behaviour, ready)
  if behaviour == "was_another" then assert(C.seteuid(M.OTHER_USER) == 0) end
  local folder = "/tmp/.luajit-sysprof-" .. C.geteuid()
  C.mkdir(folder, 448)
  local listener = take_socket(folder .. "/" .. C.getpid())
  if behaviour == "was_another" then assert(C.seteuid(0) == 0) end
  if ready then
    local file = io.open(ready .. ".new", "w")
    file:write(C.getpid())
    file:close()
    os.rename(ready .. ".new", ready)
  end
  if behaviour == "child_answers" and C.fork() > 0 then
    while true do C.pause() end
  end
  C.prctl(behaviour == "child_answers" and PR_SET_PDEATHSIG or 0, SIGKILL, 0, 0, 0)
  local waiting, recordings = {}, {}
  while true do
    local list, polls = { listener }, ffi.new("struct pollfd[64]")
    for fd in pairs(waiting) do list[#list + 1] = fd end
    for fd in pairs(recordings) do list[#list + 1] = fd end
    for i, fd in ipairs(list) do polls[i - 1].fd, polls[i - 1].events = fd, POLLIN end
    C.poll(polls, #list, 20)
    for i, fd in ipairs(list) do
      if polls[i - 1].revents == 0 then
	fd = nil
      elseif fd == listener then
	fd = C.accept(listener, nil, nil)
	if behaviour == "early_refusal" then answer(fd, "error another user owns it") end
	if behaviour == "closes" or behaviour == "early_refusal" then C.close(fd) else waiting[fd] = true end
      else
	local request, file = receive(fd)
	local recording = waiting[fd] and request ~= "" and serve(behaviour, fd, request, file, recordings)
	waiting[fd], recordings[fd] = nil, recording or nil
	if not recording then C.close(fd) end
      end
    end
    for fd, its in pairs(recordings) do
      if t.now() >= its.limit then
	answer(fd, "done", "note=a note at the end")
	C.close(fd)
	recordings[fd] = nil
      end
    end
  end
end

local started = {}	-- Users of processes that end with this test, by PID.

-- Starts a server; returns its PID. name: of its script. user: whose folder its socket is in, unless it is ours.
function M.start(behaviour, name, user)
  local ready, script = os.tmpname(), name or "live_server.lua"
  os.remove(ready)
  local source = ("%s/test/lib/helpers/live_server.lua"):format(os.getenv("SYSPROF_SOURCE"))
  if name then os.execute(("ln -sf '%s' '%s'"):format(source, name)) else script = source end
  os.execute(("'%s' '%s' %s '%s' >server.out 2>&1 &"):format(os.getenv("LUAJIT"), script, behaviour, ready))
  local pid = t.wait_until("the server starts", function() return tonumber(t.content(ready)) end)
  os.remove(ready)
  M.adopt(assert(pid), user)
  return pid
end

-- Adds a process to those that M.finish() ends. user: its user, unless it is ours.
function M.adopt(pid, user) started[pid] = user or C.geteuid() end

-- Ends such processes and waits for their ends; removes their sockets.
function M.stop(pids)
  for _, pid in ipairs(pids) do
    os.execute(("kill -KILL %d 2>/dev/null"):format(pid))
    os.remove(("/tmp/.luajit-sysprof-%d/%d"):format(started[pid], pid))
    started[pid] = nil
  end
  for _, pid in ipairs(pids) do
    t.wait_until("process " .. pid .. " ends", function() return not t.is_alive(pid) end)
  end
end

-- Ends all of them, and the test.
function M.finish()
  local pids = {}
  for pid in pairs(started) do pids[#pids + 1] = pid end
  M.stop(pids)
  t.finish()
end

-- As a module, it gets its own name.
if (...) ~= "live_server" then M.run(...) end
return M
