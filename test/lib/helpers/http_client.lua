----------------------------------------------------------------------------
-- HTTP client for tests of 'luajit-sysprof serve', which it also starts. A client can be slow, rude or silent.
----------------------------------------------------------------------------

local ffi = require("ffi")
local programs = require("live_programs")
local t = require("tools_test")

ffi.cdef [[
struct http_poll { int fd; short events, revents; };
int socket(int, int, int);
int connect(int, const void *, unsigned int);
int setsockopt(int, int, int, const void *, unsigned int);
ssize_t send(int, const void *, size_t, int);
ssize_t recv(int, void *, size_t, int);
int poll(void *, unsigned long, int);
int close(int);
]]

local C = ffi.C
local AF_INET, SOCK_STREAM, MSG_NOSIGNAL = 2, 1, 0x4000
local SOL_SOCKET, SO_RCVBUF = 1, 8
local SECONDS_MAX = 60

local client = {}

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
  local parts, buf, limit = {}, ffi.new("char[65536]"), t.now() + SECONDS_MAX
  local polls = ffi.new("struct http_poll[1]", { { fd, 1, 0 } })
  while t.now() < limit do
    if C.poll(polls, 1, 1000) > 0 then
      local n = tonumber(C.recv(fd, buf, 65536, 0))
      if n <= 0 then return table.concat(parts) end
      parts[#parts + 1] = ffi.string(buf, n)
    end
  end
  return nil
end

-- Waits until the other side has sent something.
function client.wait_for_answer(fd)
  t.ok(C.poll(ffi.new("struct http_poll[1]", { { fd, 1, 0 } }), 1, SECONDS_MAX * 1000) == 1, "an answer begins")
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

-- Starts a server. listen: its address with port 0, unless it is loop-back; variables: of its environment, or nil. Returns
-- { port=, token=, pid=, log= }.
function client.serve(arguments, listen, variables)
  local log = ("serve.%d.log"):format(t.now() * 1000)
  local pid = programs.spawn(("env %s %s serve --listen='%s' %s >%s.out 2>%s")
			     :format(variables or "", programs.RUN, listen or ":0", arguments, log, log))
  local host, port, token
  t.wait_until("the server listens: " .. arguments, function()
    host, port, token = t.content(log):match("serving .* at http://(.*):(%d+)/([%w_-]*)/?; press Ctrl%-C to end\n")
    return port
  end)
  t.equal(listen or host, listen or "127.0.0.1", "the address of a server")
  return { port = tonumber(port), token = token ~= "" and token or nil, pid = pid, log = log }
end

-- Returns the processes below a server.
function client.children(server)
  local list = {}
  for pid in t.content(("/proc/%d/task/%d/children"):format(server.pid, server.pid)):gmatch("%d+") do
    list[#list + 1] = tonumber(pid)
  end
  return list
end

-- Ends a server; it leaves nothing.
function client.stop(server, signal)
  local children = client.children(server)
  os.execute(("kill -%s %d"):format(signal or "INT", server.pid))
  t.wait_until("the server ends", function() return not t.is_alive(server.pid) end)
  for _, pid in ipairs(children) do
    t.wait_until("its jobs end", function() return not t.is_alive(pid) end)
  end
  t.ok(not t.content(server.log):find("traceback") and not t.content(server.log):find("internal error"), t.content(server.log))
end

return client
