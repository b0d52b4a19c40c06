----------------------------------------------------------------------------
-- HTTP client for tests of 'luajit-sysprof serve', which it also starts. A client can be slow, rude or silent.
----------------------------------------------------------------------------

local ffi = require("ffi")
local t = require("tools_test")

ffi.cdef [[
struct http_poll { int fd; short events, revents; };
int socket(int, int, int);
int connect(int, const void *, unsigned int);
int setsockopt(int, int, int, const void *, unsigned int);
ssize_t send(int, const void *, size_t, int);
ssize_t recv(int, void *, size_t, int);
int poll(struct http_poll *, unsigned long, int);
int close(int);
int clock_gettime(int, void *);
]]

local C = ffi.C
local AF_INET, SOCK_STREAM, MSG_NOSIGNAL = 2, 1, 0x4000
local SOL_SOCKET, SO_RCVBUF = 1, 8
local SECONDS_MAX = 60

local client = {}

local function now()
  local time = ffi.new("int64_t[2]")
  C.clock_gettime(1, time)
  return tonumber(time[0]) + tonumber(time[1]) / 1e9
end

function client.nap(ms) C.poll(nil, 0, ms) end

-- Waits until is_so() returns something that it returns, too.
function client.wait_until(what, is_so)
  local limit = now() + SECONDS_MAX
  repeat
    local result = is_so()
    if result then return result end
    client.nap(20)
  until now() > limit
  t.ok(false, "never: " .. what)
end

-- Connects to a port of 127.0.0.1. small: with as small a buffer as the kernel grants.
function client.connect(port, small)
  local address = ffi.new("uint8_t[16]", { AF_INET, 0, math.floor(port / 256), port % 256, 127, 0, 0, 1 })
  local fd = C.socket(AF_INET, SOCK_STREAM, 0)
  if small then C.setsockopt(fd, SOL_SOCKET, SO_RCVBUF, ffi.new("int[1]", 1024), 4) end
  assert(C.connect(fd, address, 16) == 0, "connect")
  return fd
end

function client.send(fd, s)
  return tonumber(C.send(fd, s, #s, MSG_NOSIGNAL))
end

-- Returns all that comes until the other side closes; or nil if it does not.
function client.receive(fd)
  local parts, buf, limit = {}, ffi.new("char[65536]"), now() + SECONDS_MAX
  local polls = ffi.new("struct http_poll[1]", { { fd, 1, 0 } })
  while now() < limit do
    if C.poll(polls, 1, 1000) > 0 then
      local n = tonumber(C.recv(fd, buf, 65536, 0))
      if n <= 0 then return table.concat(parts) end
      parts[#parts + 1] = ffi.string(buf, n)
    end
  end
  return nil
end

function client.close(fd) C.close(fd) end

-- Sends bytes; returns status, head and body of the answer.
function client.ask(port, bytes)
  local fd = client.connect(port)
  client.send(fd, bytes)
  local s = client.receive(fd) or ""
  C.close(fd)
  local head, body = s:match("^(HTTP/1%.1 %d%d%d .-)\r\n\r\n(.*)$")
  if not head then return nil, s, "" end
  local length = tonumber(head:match("\r\nContent%-Length: (%d+)"))
  if body ~= "" then t.equal(#body, length, "length of the body: " .. head) end
  t.contains(head .. "\r\n", "\r\nConnection: close\r\n", "the connection ends")
  return tonumber(head:match("^HTTP/1%.1 (%d+)")), head, body
end

function client.get(port, path)
  return client.ask(port, ("GET %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n"):format(path, port))
end

-- -- The server ------------------------------------------------------------

client.COMMAND = ("'%s' '%s/tools/luajit-sysprof.lua' "):format(t.luajit, t.source)

local function content(path)
  local file = io.open(path, "rb")
  local s = file and file:read("*a") or ""
  if file then file:close() end
  return s
end

client.content = content

-- Starts a server. Returns { port=, pid=, log= }.
function client.serve(arguments)
  local log = ("serve.%d.log"):format(now() * 1000)
  os.execute(("exec %s serve --listen=:0 %s >%s.out 2>%s & echo $! >pid"):format(client.COMMAND, arguments, log, log))
  local port = client.wait_until("the server listens: " .. arguments, function()
    return content(log):match("serving .* at http://127%.0%.0%.1:(%d+)/; press Ctrl%-C to end\n")
  end)
  return { port = tonumber(port), pid = tonumber(content("pid")), log = log }
end

-- Returns the processes below a server.
function client.children(server)
  local list = {}
  for pid in content(("/proc/%d/task/%d/children"):format(server.pid, server.pid)):gmatch("%d+") do
    list[#list + 1] = tonumber(pid)
  end
  return list
end

function client.is_alive(pid)
  local stat = content(("/proc/%d/stat"):format(pid))
  return stat ~= "" and not stat:find(") Z ", 1, true)
end

-- Ends a server; it leaves nothing.
function client.stop(server, signal)
  local children = client.children(server)
  os.execute(("kill -%s %d"):format(signal or "INT", server.pid))
  client.wait_until("the server ends", function() return not client.is_alive(server.pid) end)
  for _, pid in ipairs(children) do
    client.wait_until("its jobs end", function() return not client.is_alive(pid) end)
  end
  t.ok(not content(server.log):find("traceback") and not content(server.log):find("internal error"), content(server.log))
end

return client
