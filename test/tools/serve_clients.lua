-- serve beside rude clients: bad requests, slow ones, a hundred at once, one that never reads, names of other hosts; and
-- profiles in files. The others are answered meanwhile.
-- TIMEOUT: 300
-- BASE: none, it reads no profile of this LuaJIT
-- WAITS: most of its time
-- LONG: 43

local B = require("stream_builder")
local client = require("http_client")
local live_server = require("live_server")
local pprof = require("pprof_decode")
local programs = require("live_programs")
local t = require("tools_test")
local F = B.F
local says = programs.says

os.execute("rm -rf ./*")

-- -- The command line ------------------------------------------------------

t.write_file("letter.txt", "a letter")
t.write_file("small.bin", live_server.profile("hot", 30))
says("serve", 2, "expected a PID, a FILE or --name=NAME; 'luajit-sysprof ps' lists live programs")
says("serve small.bin 7", 2, "expected programs or files, got 'small.bin' and '7'; see ")
t.write_file("7", "")
says("serve small.bin 7", 2, "expected programs or files, got 'small.bin' and '7'; ./7 is a file")
os.remove("7")
says("serve 127.0.0.1:0 7", 2, "expected a PID, got '127.0.0.1:0'; did you mean '--listen=127.0.0.1:0'?")
says("serve 7 small.bin", 2, "expected a PID, got 'small.bin'")
says("serve --name=x small.bin", 2, "--name needs programs, got the file 'small.bin'")
says("serve --children small.bin", 2, "--children needs programs, got the file 'small.bin'")
says("serve missing.bin", 1, "missing.bin: No such file or directory")
says("serve nginx", 1, "nginx: No such file or directory; --name=nginx means live programs of this name")
says("serve letter.txt", 1, "letter.txt: not a sysprof profile: it is a text file; give the .bin file")
t.write_file("page.html", "<!DOCTYPE html>")
says("serve page.html", 1, "page.html: not a sysprof profile: it is an HTML page; give the .bin file")
os.execute("mkfifo fifo")
says("serve fifo", 1, "fifo: each request reads it again; expected a regular file")
says("serve -", 1, "standard input cannot be read again; expected a FILE")
says("serve 99999999", 1, "there is no process 99999999")
says("serve --name=no_such_program", 1, "no process has the name 'no_such_program'")
for _, address in ipairs { "6060", "here", "127.0.0.1:", "127.0.0.1:65536", "[::1:6060", "a b:1", "::1:6060" } do
  says(("serve --listen='%s' small.bin"):format(address), 2, "expected HOST:PORT, such as 127.0.0.1:6060, [::1]:6060 or :0")
end
says("serve --listen=192.0.2.1:0 small.bin", 1, "cannot listen at 192.0.2.1:0: ")
says("serve --listen=no.such.name.invalid:0 small.bin", 1, "cannot listen at no.such.name.invalid:0: ")

-- -- Files -----------------------------------------------------------------

local server = client.serve("small.bin")
local port = server.port
says(("serve --listen=127.0.0.1:%d small.bin"):format(port), 1, ("cannot listen at 127.0.0.1:%d: Address already in use"):format(port))

local function answers(its_port, path, part)
  local status, _, body = client.get(its_port, path)
  t.equal(status, 200, path .. ": status: " .. body:sub(1, 200))
  t.ok(body:find(part, 1, true), path .. ": has " .. part)
  return body
end

for _, path in ipairs { "/", "/flame", "/flame?seconds=600&event=cpu,alloc" } do
  t.contains(answers(port, path, "<!DOCTYPE html>"), "hot (live.lua:2)", path)
end
local p = pprof.decode(answers(port, "/debug/pprof/profile?seconds=600", "\31\139"))
t.equal(pprof.folded(p, 1, 1), "main chunk (live.lua);hot (live.lua:2) 30\n", "a file as profile")
t.contains(answers(port, "/debug/pprof/profile?debug=1", "samples"), "hot (live.lua:2)", "a file as text")
t.ok(not answers(port, "/debug/pprof/", "The answers come from files"):find("coroutine"), "index of a file")
answers(port, "/debug/pprof", "profile")

-- Checks the answer to bytes, or to a request of a path. hosts: lines of its header.
local function refused(bytes, status, sentence, its_port)
  local got, head, body = client.ask(its_port or port, bytes)
  local shown = bytes:sub(1, 60)
  t.equal(got, status, shown .. ": status")
  t.contains(head, "Content-Type: text/plain; charset=utf-8", shown)
  t.contains(body, sentence, shown)
  t.equal(select(2, body:gsub("\n", "")), 1, shown .. ": one line: " .. body)
  t.ok(not body:find("[%z\1-\9\11-\31\127-\255]"), shown .. ": printable")
end

local function refused_path(path, status, sentence)
  refused(("GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n"):format(path), status, sentence)
end

refused_path("/debug/pprof/heap", 404, "no event 'live'")
refused_path("/debug/pprof/allocs?debug=1", 404, "no event 'alloc'")
refused_path("/debug/pprof/coroutine", 404, "a file has no list of coroutines")
refused_path("/debug/pprof/cmdline", 404, "small.bin does not hold the command line")

-- No path names a file.
for _, path in ipairs { "/small.bin", "/etc/passwd", "/../../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/debug/pprof/../../x",
			"/debug/pprof/flame", "/debug/pprof/profile/", "//", "/%00", "/debug/pprof/profile%00" } do
  refused_path(path, 404, "here; /debug/pprof/ lists what there is")
end

-- -- Bad requests ----------------------------------------------------------

local LOCAL = "Host: 127.0.0.1\r\n"
refused("POST /debug/pprof/profile HTTP/1.1\r\n" .. LOCAL .. "Content-Length: 3\r\n\r\nabc", 405, "expected the method GET, got POST")
for _, method in ipairs { "PUT", "DELETE", "OPTIONS", "CONNECT", "TRACE", "PATCH" } do
  refused(method .. " / HTTP/1.1\r\n" .. LOCAL .. "\r\n", 405, "expected the method GET, got " .. method)
end
t.contains(select(2, client.ask(port, "POST / HTTP/1.1\r\n" .. LOCAL .. "\r\n")), "\r\nAllow: GET, HEAD", "405 tells what is allowed")
for _, line in ipairs { "", "GET", "GET /", "get / HTTP/1.1", "GET  / HTTP/1.1", "GET / HTTP/2.0", "GET / / HTTP/1.1",
			"\22\3\1\2", "GET / HTTP/1.1 x", "SSH-2.0-x" } do
  refused(line .. "\r\n" .. LOCAL .. "\r\n", 400, "expected a request such as 'GET / HTTP/1.1', got '")
end
refused("GET / HTTP/1.1\r\n\r\n", 400, "the header has no line Host")
refused("GET / HTTP/1.1\r\n" .. LOCAL .. "Host: x\r\n\r\n", 400, "the header has two lines Host")
refused("GET / HTTP/1.1\r\n" .. LOCAL .. "a line\r\n\r\n", 400, "a line of the header has no name: 'a line'")
refused("GET / HTTP/1.1\r\n" .. LOCAL .. " folded: x\r\n\r\n", 400, "a line of the header has no name")
refused("GET x HTTP/1.1\r\n" .. LOCAL .. "\r\n", 400, "expected a path, got 'x'")
refused("GET /%zz HTTP/1.1\r\n" .. LOCAL .. "\r\n", 400, "expected a path, got '/%zz'")
refused("GET /?seconds=%1 HTTP/1.1\r\n" .. LOCAL .. "\r\n", 400, "the query has a wrong %: 'seconds=%1'")
refused("GET /?" .. ("a&"):rep(33) .. " HTTP/1.1\r\n" .. LOCAL .. "\r\n", 400, "the query has more than 32 parameters")
refused("GET /?seconds=x HTTP/1.1\r\n" .. LOCAL .. "\r\n", 400, "seconds=x: expected a number")
refused("GET /?evnt=x HTTP/1.1\r\n" .. LOCAL .. "\r\n", 400, "unknown parameter 'evnt'; did you mean 'event'?")
refused("GET /debug/pprof/profile?second=1 HTTP/1.1\r\n" .. LOCAL .. "\r\n", 400,
	"unknown parameter 'second'; did you mean 'seconds'?")
refused("GET /debug/pprof/heap?events=x HTTP/1.1\r\n" .. LOCAL .. "\r\n", 400,
	"unknown parameter 'events'; did you mean 'event'?")
refused("GET /debug/pprof/cmdline?%1b%0a=1 HTTP/1.1\r\n" .. LOCAL .. "\r\n", 400, "unknown parameter '")
refused("GET / HTTP/1.1\r\n" .. LOCAL .. "Content-Length: 3\r\n\r\nabc", 413, "expected a request without a body")
refused("GET / HTTP/1.1\r\n" .. LOCAL .. "Transfer-Encoding: chunked\r\n\r\n", 413, "expected a request without a body")
refused("GET / HTTP/1.1\r\n" .. LOCAL .. "X: " .. ("x"):rep(9000) .. "\r\n\r\n", 431, "the header has more than 8192 bytes")
refused(("x"):rep(100000), 431, "the header has more than 8192 bytes")

local function status_of(bytes, its_port)
  return (client.ask(its_port or port, bytes))
end

t.equal(status_of("GET / HTTP/1.0\r\n\r\n"), 200, "HTTP/1.0")
t.equal(status_of("GET / HTTP/1.1\n" .. "Host: localhost\n\n"), 200, "lines without a carriage return")
t.equal(status_of("GET / HTTP/1.1\r\n" .. LOCAL .. "Content-Length: 0\r\n\r\n"), 200, "no body")
t.equal(status_of("GET http://127.0.0.1/ HTTP/1.1\r\n" .. LOCAL .. "\r\n"), 200, "the address as a path")
t.equal(status_of("GET /flame?gc=1&debug=0&seconds= HTTP/1.1\r\n" .. LOCAL .. "\r\n"), 200, "parameters of Go")
do	-- HEAD
  local status, head, body = client.ask(port, "HEAD /debug/pprof/ HTTP/1.1\r\n" .. LOCAL .. "\r\n")
  t.equal(status, 200, "HEAD: status")
  t.equal(body, "", "HEAD: no body")
  t.ok(tonumber(head:match("Content%-Length: (%d+)")) > 0, "HEAD: length")
  status, head, body = client.ask(port, "HEAD /debug/pprof/profile HTTP/1.1\r\n" .. LOCAL .. "\r\n")
  t.equal(status .. body, "200", "HEAD of a profile")
  t.contains(head, "application/octet-stream", "HEAD of a profile")
end

-- -- Names of hosts --------------------------------------------------------

for _, host in ipairs { "localhost", "LOCALHOST:1", "localhost.", "127.0.0.1:6060", "127.1.2.3", "[::1]:6060", "[::1]" } do
  t.equal(status_of("GET / HTTP/1.1\r\nHost: " .. host .. "\r\n\r\n"), 200, "host " .. host)
end
for _, host in ipairs { "evil.example", "evil.example:6060", "127.0.0.1.evil.example", "localhost.evil.example", "", "a b", "[x]",
			"1.2.3.4.5", "0x7f.1", "10.0.0.7:80", "0.0.0.0:6060", "[::]:6060", "[::ffff:127.0.0.1]", "1127.0.0.1" } do
  refused("GET / HTTP/1.1\r\nHost: " .. host .. "\r\n\r\n", 403, "expected the host localhost, 127.0.0.1 or ::1, got '")
  if not host:find(" ", 1, true) then	-- The host of the address counts, not that of the header.
    refused("GET http://" .. host .. "/ HTTP/1.1\r\n" .. LOCAL .. "\r\n", 403, "got '" .. host .. "'")
  end
end
refused("GET http://localhost@evil.example/ HTTP/1.0\r\n\r\n", 403, "got 'localhost@evil.example'")
refused("GET HTTP://evil.example/ HTTP/1.1\r\n" .. LOCAL .. "\r\n", 403, "got 'evil.example'")
refused("GET http://127.0.0.1/ HTTP/1.1\r\n" .. LOCAL .. "Origin: http://127.0.0.1:1\r\nSec-Fetch-Dest: script\r\n\r\n", 403,
  "a page of another site asked")

do	-- The name that is listened to.
  local name = t.content("/etc/hostname"):match("%S+") or "none"
  local _, _, err = t.shell(("timeout 3 %s serve --listen=%s:0 small.bin"):format(programs.RUN, name))
  if err:find("press Ctrl-C", 1, true) then
    t.contains(err, ("at http://%s:"):format(name), "a name")
  else
    print("skipped: a server at this machine's name: " .. err)
  end
end
do	-- IPv6
  local _, _, err = t.shell(("timeout -s INT 3 %s serve --listen=[::1]:0 small.bin"):format(programs.RUN))
  t.ok(err:find("at http://%[::1%]:%d+/; press") or err:find("cannot listen at [::1]:0: Cannot assign requested address", 1, true) or
       err:find("Address family not supported", 1, true), "IPv6: " .. err)
end

-- -- Slow and silent clients -----------------------------------------------

do
  local silent, half, leaves = client.connect(port), client.connect(port), client.connect(port)
  client.send(half, "GET / HT")
  client.send(leaves, "GET / HTTP/1.1\r\n")
  client.close(leaves)
  answers(port, "/debug/pprof/", "files")
  t.contains(client.receive(half) or "", "408 Request Timeout", "half a request")
  t.equal(client.receive(silent), "", "no request")
  client.close(silent)
  client.close(half)
end

do	-- A hundred at once. 32 of them have a place.
  local fds, told, closed = {}, 0, 0
  for i = 1, 100 do fds[i] = client.connect(port) end
  for i = 1, 100 do
    local s = client.receive(fds[i])
    if s == "" then closed = closed + 1 end
    if s and s:find("^HTTP/1.1 503 ") and s:find("there are 32 connections already; try again later\n", 1, true) then told = told + 1 end
    client.close(fds[i])
  end
  t.equal(closed, 32, "clients with a place")
  t.equal(told, 68, "clients without a place")
  answers(port, "/debug/pprof/", "files")
end

-- Of some megabytes, more than a socket keeps.
do
  local b = B.new(3):context(7)
  b:meta("pid", "1"):meta("start_time", "2000000000")
  local id = 1
  b:lfunc(1, 0, "@large.lua")
  for i = 1, 40000 do
    id = id + 1
    b:lfunc(id, 2, "@large.lua", ("f%d_%s"):format(i, ("x"):rep(200)))
    b:stack(i, { F.cbound, F.lfunc(1, 5), F.lfunc(id, 3) })
    b:sample(i, 0, 1)
  end
  t.write_file("large.bin", b:finish())
end
os.remove("small.bin")
refused_path("/", 503, "small.bin: No such file or directory")
client.stop(server)

do
  server = client.serve("large.bin")
  local rows = answers(server.port, "/debug/pprof/profile?debug=1", "more functions")
  t.ok(not rows:find("--limit", 1, true), "a table names no option of a command line")
  local whole = answers(server.port, "/", "f40000_xxx")
  t.ok(#whole > 4e6, "a large page: " .. #whole)
  local fds = {}
  for i = 1, 5 do
    fds[i] = client.connect(server.port, true)
    client.send(fds[i], "GET / HTTP/1.0\r\n\r\n")
  end
  for _, fd in ipairs(fds) do client.wait_for_answer(fd) end	-- All pages are made.
  answers(server.port, "/debug/pprof/", "files")
  t.equal(#answers(server.port, "/", "f40000_xxx"), #whole, "a page beside clients that do not read")
  t.contains(client.receive(fds[1]) or "", "f40000_xxx", "one that reads late")
  client.stop(server, "TERM")
  for _, fd in ipairs(fds) do client.close(fd) end
end

-- -- Broken programs -------------------------------------------------------

for behaviour, sentence in pairs { garbage = "sent an answer that this version of sysprof does not know", empty_file = "recorded nothing", silent = "did not answer",
				   garbage_file = "recorded nothing", done_with_error = "the VM is being profiled already" } do
  local name = programs.unique("broken.lua")
  local pid = live_server.start(behaviour, name)
  server = client.serve("--name=" .. name)
  refused("GET /flame?seconds=0.1 HTTP/1.0\r\n\r\n", 503, sentence, server.port)
  refused("GET /debug/pprof/coroutine HTTP/1.0\r\n\r\n", 503, ("process %d (%s)"):format(pid, name), server.port)
  client.stop(server)
  live_server.stop { pid }
end
do	-- By name, each request means those that live then.
  local name = programs.unique("worker.lua")
  local first = live_server.start("good", name)
  server = client.serve("--name=" .. name)
  local second = live_server.start("good", name)
  live_server.stop { first }
  local status, _, body = client.get(server.port, "/debug/pprof/profile?seconds=0.1")
  t.equal(status, 200, "a new worker: " .. body:sub(1, 100))
  t.contains(pprof.folded(pprof.decode(body), 1, 1), "hot_in_good (live.lua:2) 30\n", "a new worker")
  t.contains(t.content(server.log), ("process %d (%s): a note at the end"):format(second, name), "a note is a line")
  t.contains(answers(server.port, "/", name), "PID " .. second, "the start page has those that live now")
  t.contains(answers(server.port, "/debug/pprof/cmdline", name), "\0good\0", "their command line")
  client.stop(server)
  live_server.stop { second }
end
do	-- A request waits for another one's recording, and the server says so.
  local name = programs.unique("shared.lua")
  local pid = live_server.start("good", name)
  server = client.serve(pid)
  local fd = client.connect(server.port)
  client.send(fd, "GET /debug/pprof/profile?seconds=1 HTTP/1.0\r\n\r\n")
  answers(server.port, "/debug/pprof/profile?seconds=0.1&debug=1", "hot_in_good")
  t.contains(client.receive(fd), "HTTP/1.1 200 OK", "the first request")
  client.close(fd)
  t.contains(t.content(server.log), "a request waits: another one records\n", "the second request")
  client.stop(server)
  live_server.stop { pid }
end
do	-- Nobody reads the server's messages.
  local name = programs.unique("unread.lua")
  local pid = live_server.start("good", name)
  os.execute("mkfifo messages; head -n 1 <messages >unread.log &")
  local server_pid = programs.spawn(("%s serve --listen=:0 %d 2>messages"):format(programs.RUN, pid))
  local its_port = tonumber(t.wait_until("it listens", function() return t.content("unread.log"):match(":(%d+)/; press") end))
  answers(its_port, "/debug/pprof/profile?seconds=0.1&debug=1", "hot_in_good")
  live_server.stop { pid, server_pid }
end
do	-- A name that would be markup.
  local pid = live_server.start("good", "<b>&amp;.lua")
  server = client.serve(pid)
  local page = answers(server.port, "/", "PID " .. pid)
  t.contains(page, "&lt;b&gt;&amp;amp;.lua", "a hostile name")
  client.stop(server)
  live_server.stop { pid }
end

do	-- Another process gets the number of the program.
  local pid = live_server.start("good", programs.unique("gone.lua"))
  server = client.serve(pid)
  live_server.stop { pid }
  t.wait_until("its number is free", function() return t.content(("/proc/%d/stat"):format(pid)) == "" end)
  local other
  for _ = 1, 20 do	-- Any other process may be faster.
    local out = io.popen(("echo %d 2>/dev/null >/proc/sys/kernel/ns_last_pid; sleep 60 >/dev/null & echo $!"):format(pid - 1))
    other = tonumber(out:read("*a"))
    out:close()
    if other == pid then break end
    os.execute("kill " .. other)
  end
  if other == pid then
    local sentence = ("process %d has ended, and another process has its number"):format(pid)
    refused("GET /flame?seconds=0.1 HTTP/1.0\r\n\r\n", 503, sentence, server.port)
    answers(server.port, "/", sentence)
    os.execute("kill " .. other)
  else
    print("skipped: another process with the same number, which only root can make")
  end
  client.stop(server)
end

programs.finish()
