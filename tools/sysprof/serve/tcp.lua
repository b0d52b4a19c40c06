----------------------------------------------------------------------------
-- TCP sockets that never block.
----------------------------------------------------------------------------

local ffi = require("ffi")
local files = require("sysprof.base.files")
local system = require("sysprof.base.system")

ffi.cdef [[
struct sysprof_info { int flags, family, type, protocol; unsigned int len; void *address; char *name;
		      struct sysprof_info *next; };
int getaddrinfo(const char *, const char *, const struct sysprof_info *, struct sysprof_info **);
void freeaddrinfo(struct sysprof_info *);
const char *gai_strerror(int);
int setsockopt(int, int, int, const void *, unsigned int);
int bind(int, const void *, unsigned int);
int listen(int, int);
int accept4(int, void *, unsigned int *, int);
int getsockname(int, void *, unsigned int *);
int gethostname(char *, size_t);
int shutdown(int, int);
ssize_t send(int, const void *, size_t, int);
ssize_t pread(int, void *, size_t, int64_t);
]]

-- Of Linux, for x86-64 and arm64.
local C = ffi.C
local AF_INET, AF_INET6, SOCK_STREAM = 2, 10, 1
local SOCK_FLAGS = system.SOCK_NONBLOCK + system.SOCK_CLOEXEC
local AI_PASSIVE, AI_NUMERICSERV = 1, 0x400
local SOL_SOCKET, SO_REUSEADDR, IPPROTO_IPV6, IPV6_V6ONLY = system.SOL_SOCKET, 2, 41, 26
local MSG_NOSIGNAL, MSG_DONTWAIT = system.MSG_NOSIGNAL, system.MSG_DONTWAIT
local SHUT_WR = 1
local EINTR, EAGAIN = system.EINTR, system.EAGAIN
local BACKLOG = 128
local ADDRESS_BYTES = 128
local NAME_BYTES = 256
local IPV6_LOOPBACK = ("\0"):rep(15) .. "\1"

local tcp = {}

local one, zero = ffi.new("int[1]", 1), ffi.new("int[1]", 0)

-- Returns a listening socket of an address, or nil and the reason. takes_both: an IPv6 socket takes IPv4, too.
local function listen_at(info, takes_both)
  local fd = C.socket(info.family, SOCK_STREAM + SOCK_FLAGS, 0)
  if fd < 0 then return nil, files.reason() end
  C.setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, one, 4)
  if info.family == AF_INET6 then C.setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, takes_both and zero or one, 4) end
  if C.bind(fd, info.address, info.len) == 0 and C.listen(fd, BACKLOG) == 0 then return fd end
  local why = files.reason()
  system.close(fd)
  return nil, why
end

-- Returns the port of a socket, and whether only this machine reaches it. The port is the third and fourth byte of an
-- address. IPv4 addresses begin behind it, IPv6 addresses four bytes later.
local function port_of(fd)
  local address, len = ffi.new("uint8_t[?]", ADDRESS_BYTES), ffi.new("unsigned int[1]", ADDRESS_BYTES)
  C.getsockname(fd, address, len)
  local family = ffi.cast("uint16_t *", address)[0]
  return address[2] * 256 + address[3], family == AF_INET and address[4] == 127 or
	 family == AF_INET6 and ffi.string(address + 8, #IPV6_LOOPBACK) == IPV6_LOOPBACK
end

-- Returns a listening socket of the first address that allows one, or nil and the reason. only_family: of addresses to
-- try, or nil.
local function listen_at_one(info, only_family, takes_both)
  local why
  while info ~= nil do
    if not only_family or info.family == only_family then
      local fd, reason = listen_at(info, takes_both)
      if fd then return fd end
      why = why or reason
    end
    info = info.next
  end
  return nil, why
end

-- Listens. host: a name or an address, nil: all addresses of this machine. port: 0 lets the kernel choose. Returns the
-- descriptor, the port, and whether only this machine reaches it; or nil and the reason.
function tcp.listen(host, port)
  local hints, found = ffi.new("struct sysprof_info"), ffi.new("struct sysprof_info *[1]")
  hints.flags, hints.type = AI_PASSIVE + AI_NUMERICSERV, SOCK_STREAM
  local failed = C.getaddrinfo(host, tostring(port), hints, found)
  if failed ~= 0 then return nil, ffi.string(C.gai_strerror(failed)) end
  local fd, why
  if not host then fd = listen_at_one(found[0], AF_INET6, true) end
  if not fd then fd, why = listen_at_one(found[0]) end
  C.freeaddrinfo(found[0])
  if not fd then return nil, why end
  return fd, port_of(fd)
end

-- Returns the name of this machine.
function tcp.own_name()
  local name = ffi.new("char[?]", NAME_BYTES)
  C.gethostname(name, NAME_BYTES - 1)
  return ffi.string(name)
end

-- Returns the next connection, or nil if none waits.
function tcp.accept(listener)
  local fd = C.accept4(listener, nil, nil, SOCK_FLAGS)
  return fd >= 0 and fd or nil
end

local buffer_size = 2^16
local buffer = ffi.new("char[?]", buffer_size)

-- Returns what has come, "" if the other side sends no more, or nil if nothing has come yet.
function tcp.receive(fd)
  local n = tonumber(C.recv(fd, buffer, buffer_size, MSG_DONTWAIT))
  if n >= 0 then return ffi.string(buffer, n) end
  local errno = ffi.errno()
  return errno ~= EAGAIN and errno ~= EINTR and "" or nil
end

-- Sends what the socket takes of a string. Returns how many bytes it took, or nil if the connection is broken.
function tcp.send(fd, s, from)
  local n = tonumber(C.send(fd, ffi.cast("const char *", s) + from, #s - from, MSG_NOSIGNAL + MSG_DONTWAIT))
  if n >= 0 then return n end
  local errno = ffi.errno()
  return (errno == EAGAIN or errno == EINTR) and 0 or nil
end

-- Returns the next bytes of a file, "" at its end.
function tcp.part_of_file(fd, offset)
  local n = tonumber(C.pread(fd, buffer, buffer_size, offset))
  return n > 0 and ffi.string(buffer, n) or ""
end

-- Says to the other side that nothing follows.
function tcp.finish(fd)
  C.shutdown(fd, SHUT_WR)
end

return tcp
