-- Free ports: prints N ports of 127.0.0.1 without a listener, for both TCP and UDP.
--
--   luajit free_ports.lua N

local ffi = require("ffi")

ffi.cdef[[
int socket(int domain, int type, int protocol);
int bind(int fd, const void *addr, unsigned len);
int getsockname(int fd, void *addr, unsigned *len);
]]
local AF_INET, SOCK_STREAM, SOCK_DGRAM = 2, 1, 2

local function bound(kind, addr)
  local fd = ffi.C.socket(AF_INET, kind, 0)
  assert(fd >= 0, "no socket")
  return fd, ffi.C.bind(fd, addr, 16) == 0
end

-- Each port stays bound until the program ends, so that all differ.
local function free_port()
  for _ = 1, 100 do
    -- struct sockaddr_in of 127.0.0.1 and any port.
    local addr = ffi.new("uint8_t[16]", { AF_INET, 0, 0, 0, 127, 0, 0, 1 })
    local tcp, ok = bound(SOCK_STREAM, addr)
    assert(ok and ffi.C.getsockname(tcp, addr, ffi.new("unsigned[1]", 16)) == 0)
    if select(2, bound(SOCK_DGRAM, addr)) then return addr[2] * 256 + addr[3] end
  end
  error("no free port")
end

for _ = 1, tonumber(arg[1]) do print(free_port()) end
