----------------------------------------------------------------------------
-- Local sockets whose packets may carry a descriptor, and tell who sent them.
--
-- Nothing here waits.
----------------------------------------------------------------------------

local ffi = require("ffi")
local files = require("sysprof.base.files")
local limits = require("sysprof.base.limits")
local system = require("sysprof.base.system")

ffi.cdef [[
struct sysprof_address { uint16_t family; char path[108]; };
struct sysprof_peer { int pid; unsigned int user, group; };
struct sysprof_part { const void *base; size_t len; };
struct sysprof_packet { void *name; unsigned int name_len; struct sysprof_part *parts; size_t parts_len;
			void *control; size_t control_len; int flags; };
struct sysprof_rights { size_t len; int level, type; int fd; int pad; };
struct sysprof_sender { size_t len; int level, type; struct sysprof_peer who; int pad; };
struct sysprof_sending { struct sysprof_packet packet; struct sysprof_part part; struct sysprof_rights rights; };
int connect(int, const struct sysprof_address *, unsigned int);
int getsockopt(int, int, int, void *, unsigned int *);
int setsockopt(int, int, int, const void *, unsigned int);
int socketpair(int, int, int, int *);
ssize_t sendmsg(int, const struct sysprof_packet *, int);
ssize_t recvmsg(int, struct sysprof_packet *, int);
]]

-- Of Linux, for x86-64 and arm64.
local C = ffi.C
local AF_UNIX, SOCK_SEQPACKET = 1, 5
local SOL_SOCKET, SO_PASSCRED, SO_PEERCRED = system.SOL_SOCKET, 16, 17
local SCM_RIGHTS, SCM_CREDENTIALS = 1, 2
local MSG_NOSIGNAL, MSG_DONTWAIT, MSG_CMSG_CLOEXEC = system.MSG_NOSIGNAL, system.MSG_DONTWAIT, 0x40000000
local PATH_BYTES = 107
local PACKET_MAX = limits.PACKET
local RIGHTS_LEN, SENDER_LEN = 20, 28	-- Without the padding.

local socket = {}

-- Connects to a path. Returns a descriptor; the process that began to listen there, and the user that it had then; or
-- nil and "denied", "busy" or nil.
function socket.connect(path)
  if #path > PATH_BYTES then return nil end
  local fd = C.socket(AF_UNIX, SOCK_SEQPACKET + system.SOCK_NONBLOCK + system.SOCK_CLOEXEC, 0)
  if fd < 0 then return nil end
  local one = ffi.new("int[1]", 1)	-- From now on, the kernel tells who sends a packet.
  local address = ffi.new("struct sysprof_address", AF_UNIX, path)
  if C.setsockopt(fd, SOL_SOCKET, SO_PASSCRED, one, ffi.sizeof(one)) ~= 0 or
     C.connect(fd, address, ffi.sizeof(address)) ~= 0 then
    local errno = ffi.errno()
    system.close(fd)
    return nil, errno == system.EACCES and "denied" or errno == system.EAGAIN and "busy" or nil
  end
  local peer, len = ffi.new("struct sysprof_peer"), ffi.new("unsigned int[1]", ffi.sizeof("struct sysprof_peer"))
  if C.getsockopt(fd, SOL_SOCKET, SO_PEERCRED, peer, len) ~= 0 then
    system.close(fd)
    return nil
  end
  return fd, peer.pid, peer.user
end

-- Returns two ends of a connection, or nil.
function socket.pair()
  local ends = ffi.new("int[2]")
  local kind = SOCK_SEQPACKET + system.SOCK_NONBLOCK + system.SOCK_CLOEXEC
  if C.socketpair(AF_UNIX, kind, 0, ends) ~= 0 then return nil end
  return ends[0], ends[1]
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
  until sent >= 0 or ffi.errno() ~= system.EINTR
  if sent == #text then return true end
  return nil, files.reason()
end

-- Receives a packet with what the kernel adds. Returns its text as below, and the kernel's words.
local function receive(fd, kind, max)
  local buf, words = ffi.new("char[?]", max), ffi.new(kind)
  local part, packet = ffi.new("struct sysprof_part", buf, max), ffi.new("struct sysprof_packet")
  local tries, n = 0
  repeat	-- The other side may have closed without reading; what it sent comes after that error.
    packet.parts, packet.parts_len = part, 1
    packet.control, packet.control_len = words, ffi.sizeof(words)
    tries, n = tries + 1, tonumber(C.recvmsg(fd, packet, MSG_DONTWAIT + MSG_CMSG_CLOEXEC))
  until n >= 0 or ffi.errno() ~= system.EINTR and (ffi.errno() ~= system.ECONNRESET or tries > 2)
  if n < 0 then return ffi.errno() ~= system.EAGAIN and "" or nil end
  return ffi.string(buf, n), tonumber(packet.control_len) > 0 and words or nil
end

-- Returns the next packet, "" if the other side has closed, or nil if there is none yet; and the process that sent it,
-- or nil. A packet that is too long is cut. There is no room for descriptors, so the kernel drops them.
function socket.receive(fd)
  local s, words = receive(fd, "struct sysprof_sender", PACKET_MAX)
  local is_told = words and words.len == SENDER_LEN and words.level == SOL_SOCKET and words.type == SCM_CREDENTIALS
  return s, is_told and words.who.pid or nil
end

-- The same for a packet of max bytes that may bring a descriptor, which is the second result.
function socket.receive_descriptor(fd, max)
  local s, words = receive(fd, "struct sysprof_rights", max)
  local has_one = words and words.len == RIGHTS_LEN and words.level == SOL_SOCKET and words.type == SCM_RIGHTS
  return s, has_one and words.fd or nil
end

return socket
