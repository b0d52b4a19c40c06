----------------------------------------------------------------------------
-- Receiver of profiles, in place of Pyroscope: POST /ingest?name=...&format=pprof&from=...&until=...
--
--   luajit ingest_receiver.lua FILE
--
-- Prints its port on 127.0.0.1 first. It answers 200 if the request and each byte of the profile are as they must be, and
-- prints the stacks of the profile; else 400. It writes the body to FILE, and runs until it is killed.
----------------------------------------------------------------------------

local ffi = require("ffi")
local pprof = require("pprof_decode")

ffi.cdef [[
int socket(int, int, int);
int bind(int, const void *, unsigned);
int listen(int, int);
int accept(int, void *, unsigned *);
int getsockname(int, void *, unsigned *);
ssize_t recv(int, void *, size_t, int);
ssize_t send(int, const void *, size_t, int);
int close(int);
]]

local C = ffi.C
local AF_INET, SOCK_STREAM, MSG_NOSIGNAL = 2, 1, 0x4000
local PARAMETERS = { name = "^[%w._-]+$", format = "^pprof$", from = "^%d+$", ["until"] = "^%d+$" }

local function send(fd, s) C.send(fd, s, #s, MSG_NOSIGNAL) end

-- Returns the first line of a request and its body.
local function receive(fd)
  local buf, s, has_continued = ffi.new("char[65536]"), "", false
  while true do
    local head, body = s:match("^(.-\r\n)\r\n(.*)$")
    local length = head and tonumber(head:lower():match("\r\ncontent%-length: *(%d+)\r\n"))
    if head and (not length or #body >= length) then return head:match("^[^\r]*"), body end
    if head and not has_continued and head:lower():find("\r\nexpect: *100%-continue\r\n") then
      has_continued = true
      send(fd, "HTTP/1.1 100 Continue\r\n\r\n")
    end
    local n = tonumber(C.recv(fd, buf, 65536, 0))
    if n <= 0 then return "", "" end
    s = s .. ffi.string(buf, n)
  end
end

-- Says what is wrong with a request, or nil.
local function wrong(line, body)
  local query = line:match("^POST /ingest%?(%S*) HTTP/1%.1$")
  if not query then return "expected POST /ingest, got " .. line end
  local given = {}
  for name, value in query:gmatch("([^&=]+)=([^&]*)") do given[name] = value end
  for name, pattern in pairs(PARAMETERS) do
    if not (given[name] or ""):find(pattern) then return ("wrong %s in %s"):format(name, line) end
  end
  if tonumber(given["until"]) <= tonumber(given.from) then return "the time is empty in " .. line end
  if body:sub(1, 2) ~= "\31\139" then return "the body is no gzip file" end
  local ok, profile = pcall(pprof.decode, body)
  if not ok then return tostring(profile) end
  if #profile.samples == 0 then return "the profile has no samples" end
  print(table.concat(profile.types, " "))
  print(pprof.folded(profile, 1, 1))
end

local address, len = ffi.new("uint8_t[16]", { AF_INET, 0, 0, 0, 127, 0, 0, 1 }), ffi.new("unsigned[1]", 16)
local listener = C.socket(AF_INET, SOCK_STREAM, 0)
assert(C.bind(listener, address, 16) == 0 and C.listen(listener, 8) == 0)
assert(C.getsockname(listener, address, len) == 0)
print(address[2] * 256 + address[3])
io.stdout:flush()
while true do
  local fd = C.accept(listener, nil, nil)
  local line, body = receive(fd)
  local file = assert(io.open(arg[1], "wb"))
  file:write(body)
  file:close()
  local problem = wrong(line, body)
  if problem then print("FAILED: " .. problem) end
  io.stdout:flush()
  send(fd, problem and "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n" or "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
  C.close(fd)
end
