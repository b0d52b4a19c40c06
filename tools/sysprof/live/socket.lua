----------------------------------------------------------------------------
-- Local sockets whose packets may carry a descriptor.
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
struct sysprof_sending { struct sysprof_packet packet; struct sysprof_part part; struct sysprof_rights rights; };
int connect(int, const struct sysprof_address *, unsigned int);
int getsockopt(int, int, int, void *, unsigned int *);
ssize_t sendmsg(int, const struct sysprof_packet *, int);
]]

-- Of Linux, for x86-64 and arm64.
local C = ffi.C
local AF_UNIX, SOCK_SEQPACKET = 1, 5
local SOL_SOCKET, SCM_RIGHTS, SO_PEERCRED = system.SOL_SOCKET, 1, 17
local MSG_NOSIGNAL, MSG_DONTWAIT, MSG_TRUNC = system.MSG_NOSIGNAL, system.MSG_DONTWAIT, 0x20
local PATH_BYTES = 107
local PACKET_MAX = limits.PACKET
local RIGHTS_LEN = 20		-- Without the padding.

local socket = {}

-- Connects to a path. Returns a descriptor and the number of the process behind it; or nil and "denied", "busy" or nil.
function socket.connect(path)
  if #path > PATH_BYTES then return nil end
  local fd = C.socket(AF_UNIX, SOCK_SEQPACKET + system.SOCK_NONBLOCK + system.SOCK_CLOEXEC, 0)
  if fd < 0 then return nil end
  local address = ffi.new("struct sysprof_address", AF_UNIX, path)
  if C.connect(fd, address, ffi.sizeof(address)) ~= 0 then
    local errno = ffi.errno()
    system.close(fd)
    return nil, errno == system.EACCES and "denied" or errno == system.EAGAIN and "busy" or nil
  end
  local peer, len = ffi.new("struct sysprof_peer"), ffi.new("unsigned int[1]", ffi.sizeof("struct sysprof_peer"))
  if C.getsockopt(fd, SOL_SOCKET, SO_PEERCRED, peer, len) ~= 0 then
    system.close(fd)
    return nil
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
  until sent >= 0 or ffi.errno() ~= system.EINTR
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
  until n >= 0 or ffi.errno() ~= system.EINTR and (ffi.errno() ~= system.ECONNRESET or tries > 2)
  if n < 0 then return ffi.errno() ~= system.EAGAIN and "" or nil end
  return ffi.string(buf, math.min(n, PACKET_MAX))
end

return socket
