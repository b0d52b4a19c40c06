----------------------------------------------------------------------------
-- Part "nginx" of the benchmark suite: nginx with our library and a Lua handler, under
-- wrk.
----------------------------------------------------------------------------

local ffi = require("ffi")
local proc = require("proc")
local report = require("report")
local stat = require("stat")

local SIGQUIT = 3
local CONNECTIONS = 8
local RUN_SECONDS = 1		-- Of wrk, which takes whole ones.
local PAIRS_A_SERVER = 7
local ROUNDS_MIN = 2
local MODULES = "/usr/lib/nginx/modules/"
local AF_INET, SOCK_STREAM = 2, 1
local ADDRESS_SIZE = 16

ffi.cdef [[
int socket(int domain, int type, int protocol);
int bind(int fd, const void *addr, unsigned len);
int connect(int fd, const void *addr, unsigned len);
int getsockname(int fd, void *addr, unsigned *len);
long write(int fd, const void *data, size_t size);
long read(int fd, void *data, size_t size);
int close(int fd);
typedef int pid_t;
int clock_getcpuclockid(pid_t pid, int *clock);
]]

local nginx = {}

-- -- Sockets ---------------------------------------------------------------

-- 127.0.0.1.
local function address(port)
  return ffi.new("uint8_t[16]", { AF_INET, 0, math.floor(port / 256), port % 256, 127, 0, 0, 1 })
end

-- A free TCP port.
local function free_port()
  local addr, len = address(0), ffi.new("unsigned[1]", ADDRESS_SIZE)
  local fd = ffi.C.socket(AF_INET, SOCK_STREAM, 0)
  assert(fd >= 0 and ffi.C.bind(fd, addr, ADDRESS_SIZE) == 0 and
	 ffi.C.getsockname(fd, addr, len) == 0)
  ffi.C.close(fd)
  return addr[2] * 256 + addr[3]
end

-- The server's answer, or nil and why it is missing.
local function get(port, path)
  local fd = ffi.C.socket(AF_INET, SOCK_STREAM, 0)
  local request = ("GET %s HTTP/1.0\r\n\r\n"):format(path)
  local buf, parts = ffi.new("char[4096]"), {}
  if ffi.C.connect(fd, address(port), ADDRESS_SIZE) == 0 and
     ffi.C.write(fd, request, #request) == #request then
    repeat
      local n = tonumber(ffi.C.read(fd, buf, ffi.sizeof(buf)))
      if n > 0 then parts[#parts + 1] = ffi.string(buf, n) end
    until n <= 0
  end
  ffi.C.close(fd)
  local status, body = table.concat(parts):match("^HTTP/%S+ (%d+).-\r\n\r\n(.*)$")
  if status ~= "200" then return nil, ("%s: status %s"):format(path, status or "unknown") end
  return body
end

-- -- The server ------------------------------------------------------------

-- start() replaces FOLDER, PORT and MODULES. The profiler has its default options.
local CONFIG = [[
daemon off;
worker_processes 1;
user root;
pid FOLDER/nginx.pid;
error_log FOLDER/error.log warn;
load_module MODULESndk_http_module.so;
load_module MODULESngx_http_lua_module.so;
events { worker_connections 64; }
http {
  access_log off;
  client_body_temp_path FOLDER/body;
  proxy_temp_path FOLDER/proxy;
  fastcgi_temp_path FOLDER/fastcgi;
  uwsgi_temp_path FOLDER/uwsgi;
  scgi_temp_path FOLDER/scgi;
  lua_package_path "/usr/share/lua/5.1/?.lua;;";
  server {
    listen 127.0.0.1:PORT;
    keepalive_requests 100000000;
    location / {
      default_type text/plain;
      content_by_lua_block {
	local args = ngx.req.get_uri_args()
	local rows = {}
	for i = 1, 60 do
	  local name = ("item-%d-%s"):format(i * (tonumber(args.n) or 1), args.who or "nobody")
	  rows[i] = name:upper():gsub("%-", "_") .. "=" .. #name
	end
	table.sort(rows)
	ngx.say(table.concat(rows, ","))
      }
    }
    location = /pid { content_by_lua_block { ngx.say(ngx.worker.pid()) } }
    location = /on {
      content_by_lua_block {
	assert(require("misc").sysprof.start({ mode = "C", path = "FOLDER/nginx.bin" }))
      }
    }
    location = /off { content_by_lua_block { assert(require("misc").sysprof.stop()) } }
  }
}
]]

-- Returns the process, or nil and why it did not start.
local function start(suite, folder, port)
  local config = CONFIG:gsub("FOLDER", folder):gsub("PORT", port):gsub("MODULES", MODULES)
  proc.write(folder .. "/nginx.conf", config)
  os.remove(folder .. "/nginx.pid")
  local err = folder .. "/err"
  local child = proc.start({ proc.which("nginx"), "-p", folder, "-c", folder .. "/nginx.conf" },
    { err = err, env = { LD_LIBRARY_PATH = suite.build .. "/lib", LUA_PATH = false } })
  local till = proc.now() + 10
  repeat
    proc.sleep(0.02)
    if proc.size(folder .. "/nginx.pid") then return child end
    local said = proc.read(err) or ""
    if said:find("%[emerg%]") then
      proc.wait(child)
      return nil, said:match("([^\n]+)%s*$")
    end
  until proc.now() > till
  proc.signal(child, SIGQUIT)
  proc.wait(child)
  return nil, "nginx did not start within 10 s"
end

local function load(suite, folder, port, seconds)
  local out = folder .. "/wrk"
  local ok, why = proc.run({ "wrk", "-t1", "-c" .. CONNECTIONS, "-d" .. seconds .. "s",
    "-s", suite.here .. "/wrk_report.lua", ("http://127.0.0.1:%d/?n=7&who=me"):format(port) },
    { out = out, err = out .. ".err", seconds = seconds + 20, env = { LUA_PATH = false } })
  if not ok then return nil, why end
  local requests, us, p99, errors = (proc.read(out) or ""):match(
    "report (%d+) (%d+) (%S+) (%d+)")
  if not requests or tonumber(requests) == 0 then return nil, "wrk got no answers" end
  if tonumber(errors) > 0 then return nil, errors .. " requests failed" end
  return { requests = tonumber(requests), rate = requests / us * 1e6, p99 = tonumber(p99) }
end

-- CPU seconds of a process so far.
local function cpu_of(pid)
  local id, time = ffi.new("int[1]"), ffi.new("int64_t[2]")
  assert(ffi.C.clock_getcpuclockid(pid, id) == 0 and ffi.C.clock_gettime(id[0], time) == 0,
	 "the worker of nginx is gone")
  return tonumber(time[0]) + tonumber(time[1]) / 1e9
end

-- -- Runs ------------------------------------------------------------------

-- Requests a second, p99, and the worker's CPU time per request, with the profiler on or
-- off; or nil and why.
local function measure(suite, folder, port, worker, which)
  local run, answer, why
  if which == "on" then
    answer, why = get(port, "/on")
    if not answer then return nil, why end
  end
  local cpu = cpu_of(worker)
  run, why = load(suite, folder, port, RUN_SECONDS)
  cpu = cpu_of(worker) - cpu
  if which == "on" then
    answer, why = get(port, "/off")
    if not answer then return nil, why end
  end
  if not run then return nil, why end
  run.cpu_us = cpu / run.requests * 1e6
  return run
end

-- Measures pairs on one server, from its start to its end. Adds to found.off and
-- found.on. Returns nil and why on a failure.
local function serve(suite, folder, found, pairs)
  local port = free_port()
  local server, why = start(suite, folder, port)
  if not server then return nil, why end
  local pid, warm
  pid, why = get(port, "/pid")
  local worker, done = tonumber(pid), false
  if worker then warm, why = load(suite, folder, port, RUN_SECONDS) end
  for i = 1, warm and pairs or 0 do
    local run = {}
    for _, which in ipairs(i % 2 == 1 and { "off", "on" } or { "on", "off" }) do
      if i == 1 or done then
	run[which], why = measure(suite, folder, port, worker, which)
	done = run[which] ~= nil
      end
    end
    if done then
      table.insert(found.off, run.off)
      table.insert(found.on, run.on)
    end
  end
  proc.signal(server, SIGQUIT)
  proc.wait(server)
  return done or nil, why
end

local function lacks(suite)
  if not proc.which("nginx") then return "nginx is not installed" end
  if not proc.which("wrk") then return "wrk is not installed" end
  if not proc.size(MODULES .. "ngx_http_lua_module.so") then
    return "the package libnginx-mod-http-lua is not installed"
  end
  -- nginx cannot load the library of a build with the address sanitizer.
  local out = suite.work .. "/version"
  local ok, why = proc.run({ proc.which("nginx"), "-V" },
    { err = out, env = { LD_LIBRARY_PATH = suite.build .. "/lib" }, seconds = 10 })
  return not ok and why or nil
end

local COLUMNS = {
  { key = "what", title = "nginx" },
  { key = "off", title = "off", digits = 2 }, { key = "on", title = "on", digits = 2 },
  { key = "ratio", title = "on / off", digits = 4, from = 1 },
  { key = "noise", title = "noise, %", digits = 2 }, { key = "pairs", title = "pairs" },
}

local ROWS = {
  { "requests/s", "rate" }, { "p99, us", "p99" }, { "CPU time a request, us", "cpu_us" },
}

function nginx.run(suite, seconds, add)
  local t = report.table("nginx", "nginx", [[
A Lua handler under wrk: one worker with our library, in turns off and on at the default rate, a second
each. A new process follows after some pairs. CPU time is that of the worker.]], COLUMNS)
  local why = lacks(suite)
  if why then
    report.miss(t, "nginx", why)
    return add(t)
  end
  local folder = suite.work .. "/nginx"
  assert(proc.run({ "mkdir", "-p", folder }))
  local found = { off = {}, on = {} }
  local till, ok = proc.now() + seconds, nil
  repeat
    local left = math.floor((till - proc.now()) / (2 * RUN_SECONDS))
    local pairs = math.max(suite.hasty and 1 or ROUNDS_MIN, math.min(left, PAIRS_A_SERVER))
    ok, why = serve(suite, folder, found, pairs)
    if not ok then
      report.miss(t, "nginx", why)
      return add(t)
    end
  until proc.now() + 2 * RUN_SECONDS * ROUNDS_MIN >= till
  for _, row in ipairs(ROWS) do
    local values = { off = {}, on = {} }
    for which, runs in pairs(found) do
      for i, run in ipairs(runs) do values[which][i] = run[row[2]] end
    end
    local ratio = stat.summary(stat.ratios(values.on, values.off))
    t.rows[#t.rows + 1] = { what = row[1], off = stat.summary(values.off),
      on = stat.summary(values.on), ratio = ratio, noise = stat.noise(ratio), pairs = ratio.n }
  end
  local samples = require("stacks").ours(folder .. "/nginx.bin")
  t.rows[#t.rows + 1] = { what = "samples of the last profile", on = samples }
  add(t)
end

return nginx
