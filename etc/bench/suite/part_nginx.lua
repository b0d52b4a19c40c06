----------------------------------------------------------------------------
-- Benchmark suite: nginx with a Lua handler, under wrk; its library is ours.
----------------------------------------------------------------------------

local ffi = require("ffi")
local proc = require("proc")
local report = require("report")
local stat = require("stat")

local SIGQUIT = 3
local CONNECTIONS = 8
local WARM_SECONDS = 0.5	-- wrk takes whole ones.
local RUN_SECONDS = 2
local ROUNDS_MIN = 2
local MODULES = "/usr/lib/nginx/modules/"

ffi.cdef [[
int socket(int domain, int type, int protocol);
int bind(int fd, const void *addr, unsigned len);
int getsockname(int fd, void *addr, unsigned *len);
int close(int fd);
]]

local nginx = {}

-- A TCP port of 127.0.0.1 that nobody uses.
local function free_port()
  local addr, len = ffi.new("uint8_t[16]", { 2, 0, 0, 0, 127, 0, 0, 1 }), ffi.new("unsigned[1]", 16)
  local fd = ffi.C.socket(2, 1, 0)
  assert(fd >= 0 and ffi.C.bind(fd, addr, 16) == 0 and ffi.C.getsockname(fd, addr, len) == 0)
  ffi.C.close(fd)
  return addr[2] * 256 + addr[3]
end

-- FOLDER, PORT, MODULES and START are filled in.
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
  init_worker_by_lua_block { START }
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
  }
}
]]

local START = {
  off = "",
  on = 'assert(require("misc").sysprof.start({ mode = "C", path = "FOLDER/nginx.bin" }))',
}

-- Returns the process, or nil and why it did not start.
local function start(suite, folder, port, which)
  local config = CONFIG:gsub("START", START[which]):gsub("FOLDER", folder):gsub("PORT", port)
		 :gsub("MODULES", MODULES)
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

-- One server from its start to its end, with requests a second, p99 and its CPU
-- time for each request.
local function measure(suite, folder, which, seconds)
  local port = free_port()
  local server, why = start(suite, folder, port, which)
  if not server then return nil, why end
  local warm, run
  warm, why = load(suite, folder, port, math.ceil(WARM_SECONDS))
  if warm then run, why = load(suite, folder, port, seconds) end
  proc.signal(server, SIGQUIT)
  local used = proc.wait(server)
  if not run then return nil, why end
  run.cpu_us = used.cpu / (run.requests + warm.requests) * 1e6
  return run
end

local function lacks(suite)
  if not proc.which("nginx") then return "nginx is not installed" end
  if not proc.which("wrk") then return "wrk is not installed" end
  if not proc.size(MODULES .. "ngx_http_lua_module.so") then
    return "the package libnginx-mod-http-lua is not installed"
  end
  -- The library of a build with the address sanitizer cannot be loaded by nginx.
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
A Lua handler under wrk, one worker, with our library, off and on at the default rate; another
process each time, the profile is started by init_worker_by_lua.]], COLUMNS)
  local why = lacks(suite)
  if why then
    report.miss(t, "nginx", why)
    return add(t)
  end
  local folder = suite.work .. "/nginx"
  assert(proc.run({ "mkdir", "-p", folder }))
  local found = { off = {}, on = {} }
  local till = proc.now() + seconds
  local round, run_seconds = 0, suite.quick and 1 or RUN_SECONDS
  repeat
    round = round + 1
    for _, which in ipairs(round % 2 == 1 and { "off", "on" } or { "on", "off" }) do
      local run
      run, why = measure(suite, folder, which, run_seconds)
      if not run then
	report.miss(t, "nginx, " .. which, why)
	return add(t)
      end
      found[which][round] = run
    end
  until proc.now() >= till and round >= (suite.hasty and 1 or ROUNDS_MIN)
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
