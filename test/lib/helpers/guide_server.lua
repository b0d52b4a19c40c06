----------------------------------------------------------------------------
-- Server address for a test: prints an address and a port, such as 127.1.2.3:8080.
--
--   luajit guide_server.lua LOW HIGH
--
-- Each process of this machine gets its own loopback address. The port is from LOW to
-- HIGH, and this user may use it.
----------------------------------------------------------------------------

local ffi = require("ffi")

ffi.cdef [[
int getpid(void);
int socket(int domain, int type, int protocol);
int bind(int fd, const void *addr, unsigned len);
int close(int fd);
]]

local AF_INET, SOCK_STREAM = 2, 1
local TRIES = 100

local low, high = tonumber(arg[1]), tonumber(arg[2])
local pid = ffi.C.getpid()
-- All programs share 127.0.
local ip = { 127, 1 + bit.band(bit.rshift(pid, 16), 127), bit.band(bit.rshift(pid, 8), 255),
	     bit.band(pid, 255) }

local function can_bind(port)
  local address = ffi.new("uint8_t[16]", { AF_INET, 0, bit.rshift(port, 8), bit.band(port, 255),
					   ip[1], ip[2], ip[3], ip[4] })
  local fd = ffi.C.socket(AF_INET, SOCK_STREAM, 0)
  local ok = ffi.C.bind(fd, address, 16) == 0
  ffi.C.close(fd)
  return ok
end

math.randomseed(pid)
for _ = 1, TRIES do
  local port = math.random(low, high)
  if can_bind(port) then
    print(("%s:%d"):format(table.concat(ip, "."), port))
    return
  end
end
os.exit(1)
