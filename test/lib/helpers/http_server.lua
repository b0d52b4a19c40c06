----------------------------------------------------------------------------
-- HTTP server on a free port of 127.0.0.1, which it prints first:
--
--   luajit http_server.lua [BODY]
--
-- Answers each piece of input with BODY, and runs until it is killed.
----------------------------------------------------------------------------

local ffi = require("ffi")

ffi.cdef[[
struct pollfd { int fd; short events, revents; };
int socket(int domain, int type, int protocol);
int bind(int fd, const void *addr, unsigned len);
int listen(int fd, int backlog);
int accept(int fd, void *addr, unsigned *len);
int getsockname(int fd, void *addr, unsigned *len);
int poll(struct pollfd *fds, unsigned long n, int timeout);
ssize_t read(int fd, void *buf, size_t len);
ssize_t send(int fd, const void *buf, size_t len, int flags);
int close(int fd);
]]
local C = ffi.C
local AF_INET, SOCK_STREAM, MSG_NOSIGNAL, POLLIN = 2, 1, 0x4000, 1
local CONNS, READ_SIZE = 64, 65536

-- struct sockaddr_in of 127.0.0.1 and any port.
local addr = ffi.new("uint8_t[16]", { AF_INET, 0, 0, 0, 127, 0, 0, 1 })
local len = ffi.new("unsigned[1]", 16)
local listener = C.socket(AF_INET, SOCK_STREAM, 0)
assert(C.bind(listener, addr, 16) == 0 and C.listen(listener, CONNS) == 0)
assert(C.getsockname(listener, addr, len) == 0)
print(addr[2] * 256 + addr[3])
io.stdout:flush()

local body = arg[1] or "ok"
local answer = ("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s"):format(#body, body)
local buf = ffi.new("char[?]", READ_SIZE)
-- The listener, then the connections.
local fds, n = ffi.new("struct pollfd[?]", 1 + CONNS), 1
fds[0].fd, fds[0].events = listener, POLLIN

while true do
  C.poll(fds, n, -1)
  for i = n - 1, 1, -1 do
    if fds[i].revents ~= 0 then
      if C.read(fds[i].fd, buf, READ_SIZE) > 0 then
	C.send(fds[i].fd, answer, #answer, MSG_NOSIGNAL)
      else
	C.close(fds[i].fd)
	n = n - 1
	fds[i] = fds[n]
      end
    end
  end
  if fds[0].revents ~= 0 and n <= CONNS then
    fds[n].fd, fds[n].events = C.accept(listener, nil, nil), POLLIN
    n = n + 1
  end
end
