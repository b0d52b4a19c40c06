----------------------------------------------------------------------------
-- Local sockets whose packets may carry a descriptor.
--
-- Nothing here waits, except socket.wait.
----------------------------------------------------------------------------

local ffi = require("ffi")
local files = require("sysprof.base.files")

ffi.cdef [[
struct sysprof_address { uint16_t family; char path[108]; };
struct sysprof_peer { int pid; unsigned int user, group; };
struct sysprof_part { const void *base; size_t len; };
struct sysprof_packet { void *name; unsigned int name_len; struct sysprof_part *parts; size_t parts_len;
			void *control; size_t control_len; int flags; };
struct sysprof_rights { size_t len; int level, type; int fd; int pad; };
struct sysprof_sending { struct sysprof_packet packet; struct sysprof_part part; struct sysprof_rights rights; };
struct sysprof_poll { int fd; short events, revents; };
int socket(int, int, int);
int connect(int, const struct sysprof_address *, unsigned int);
int getsockopt(int, int, int, void *, unsigned int *);
ssize_t sendmsg(int, const struct sysprof_packet *, int);
ssize_t recv(int, void *, size_t, int);
int poll(struct sysprof_poll *, unsigned long, int);
int close(int);
int clock_gettime(int, void *);
]]

-- Of Linux, for x86-64 and arm64.
local C = ffi.C
local AF_UNIX, SOCK_SEQPACKET, SOCK_NONBLOCK, SOCK_CLOEXEC = 1, 5, 0x800, 0x80000
local SOL_SOCKET, SCM_RIGHTS, SO_PEERCRED = 1, 1, 17
local MSG_NOSIGNAL, MSG_DONTWAIT, MSG_TRUNC = 0x4000, 0x40, 0x20
local POLLIN = 1
local ENOENT, EINTR, EAGAIN, EACCES, ECONNRESET = 2, 4, 11, 13, 104
local CLOCK_MONOTONIC = 1
local PATH_MAX = 107
local PACKET_MAX = 4096
local RIGHTS_LEN = 20		-- Without the padding.

local socket = {}

-- Returns seconds of a clock that no one sets.
function socket.now()
  local t = ffi.new("int64_t[2]")
  C.clock_gettime(CLOCK_MONOTONIC, t)
  return tonumber(t[0]) + tonumber(t[1]) / 1e9
end

-- Connects to a path. Returns a descriptor and the number of the process behind it; or nil and "missing", "denied",
-- "busy" or "refused".
function socket.connect(path)
  if #path > PATH_MAX then return nil, "missing" end
  local fd = C.socket(AF_UNIX, SOCK_SEQPACKET + SOCK_NONBLOCK + SOCK_CLOEXEC, 0)
  if fd < 0 then return nil, "refused" end
  local address = ffi.new("struct sysprof_address", AF_UNIX, path)
  if C.connect(fd, address, ffi.sizeof(address)) ~= 0 then
    local errno = ffi.errno()
    C.close(fd)
    return nil, errno == EACCES and "denied" or errno == EAGAIN and "busy" or errno == ENOENT and "missing" or "refused"
  end
  local peer, len = ffi.new("struct sysprof_peer"), ffi.new("unsigned int[1]", ffi.sizeof("struct sysprof_peer"))
  if C.getsockopt(fd, SOL_SOCKET, SO_PEERCRED, peer, len) ~= 0 then
    C.close(fd)
    return nil, "refused"
  end
  return fd, peer.pid
end

-- Sends a packet, with a descriptor unless it is nil. Returns true, or nil and a message.
function socket.send(fd, text, descriptor)
  local sending = ffi.new("struct sysprof_sending")	-- One object, so that all of it lives until the call.
  local packet, rights = sending.packet, sending.rights
  sending.part.base, sending.part.len = text, #text
  packet.parts, packet.parts_len = sending.part, 1
  if descriptor then
    rights.len, rights.level, rights.type, rights.fd = RIGHTS_LEN, SOL_SOCKET, SCM_RIGHTS, descriptor
    packet.control, packet.control_len = rights, ffi.sizeof(rights)
  end
  local sent
  repeat
    sent = tonumber(C.sendmsg(fd, sending.packet, MSG_NOSIGNAL + MSG_DONTWAIT))
  until sent >= 0 or ffi.errno() ~= EINTR
  if sent == #text then return true end
  return nil, files.reason()
end

-- Returns the next packet, "" if the other side has closed, or nil if there is none yet. A packet that is too long is
-- cut.
function socket.receive(fd)
  local buf, tries = ffi.new("char[?]", PACKET_MAX), 0
  local n
  repeat	-- The other side may have closed without reading; what it sent comes after that error.
    tries, n = tries + 1, tonumber(C.recv(fd, buf, PACKET_MAX, MSG_DONTWAIT + MSG_TRUNC))
  until n >= 0 or ffi.errno() ~= EINTR and (ffi.errno() ~= ECONNRESET or tries > 2)
  if n < 0 then return ffi.errno() ~= EAGAIN and "" or nil end
  return ffi.string(buf, math.min(n, PACKET_MAX))
end

-- Waits until one of the descriptors of a list has something to read, at most this many seconds, or for a signal.
-- Returns a set of those that have.
function socket.wait(list, seconds)
  local polls, ready = ffi.new("struct sysprof_poll[?]", #list + 1), {}
  for i, fd in ipairs(list) do polls[i - 1].fd, polls[i - 1].events = fd, POLLIN end
  if C.poll(polls, #list, math.ceil(math.max(0, math.min(seconds, 3600)) * 1000)) > 0 then
    for i, fd in ipairs(list) do
      if polls[i - 1].revents ~= 0 then ready[fd] = true end
    end
  end
  return ready
end

function socket.close(fd)
  C.close(fd)
end

return socket
