-- serve beside real programs: each endpoint is read by a decoder of its own, requests wait for each other, recordings end
-- with their clients, the server and the programs.
-- TIMEOUT: 300
-- BASE: none, a command beside a program; tools/live_programs tries each LuaJIT
-- WAITS: most of its time
-- LONG: 45

local client = require("http_client")
local pprof = require("pprof_decode")
local programs = require("live_programs")
local t = require("tools_test")

os.execute("rm -rf ./*")

local APP = [[
local ffi = require("ffi")
ffi.cdef "int usleep(unsigned int);"
local kept, waiting = {}, {}
local function handler() coroutine.yield() end
for i = 1, 3 do
  waiting[i] = coroutine.create(handler)
  coroutine.resume(waiting[i])
end
local function keeps(i) kept[i % 20000] = { i, i + 1, i + 2 } end
local function drops() local last for i = 1, 200000 do last = { i, last and last[1] } end return #last end
local function naps() ffi.C.usleep(20000) return 1 end
local i = 0
while true do
  for _ = 1, 1000 do
    i = i + 1
    keeps(i)
  end
  drops()
  naps()
end
]]

local app = programs.start("app.lua", APP, "one '' 'two\27[2J\n'")
local server = client.serve(app)

-- Returns a decoded profile.
local function profile(path, name)
  local status, head, body = client.get(server.port, path)
  t.equal(status, 200, path .. ": status: " .. body:sub(1, 200))
  t.contains(head, "Content-Type: application/octet-stream", path)
  t.contains(head, ('filename="%s.pb.gz"'):format(name), path)
  return pprof.decode(body)
end

-- Returns the sum of a value over samples with a function, and over all.
local function sums(p, type_name, name)
  local column, n, whole = nil, 0, 0
  for i, its in ipairs(p.types) do
    if its == type_name then column = i end
  end
  t.ok(column, type_name .. " is among " .. table.concat(p.types, ", "))
  for _, s in ipairs(p.samples) do
    local has = false
    for _, location in ipairs(s) do has = has or location.func.name == name end
    whole = whole + s.values[column]
    if has then n = n + s.values[column] end
  end
  return n, whole
end

-- -- Each endpoint ---------------------------------------------------------

do
  local p, n, whole
  for _, seconds in ipairs { 1, 5, 20 } do	-- The machine may be busy.
    p = profile("/debug/pprof/profile?seconds=" .. seconds, "profile")
    n, whole = sums(p, "samples/count", "drops (app.lua:10)")
    if n > 0 then break end
  end
  t.equal(p.str(p.message[14][1]), "cpu", "profile: its default, as Go's")
  t.ok(n > 0 and n <= whole, ("profile: %d of %d samples"):format(n, whole))
  t.ok((p.message[10][1] or 0) > 0, "profile: duration")

  p = profile("/debug/pprof/allocs?seconds=1", "allocs")
  t.equal(p.str(p.message[14][1]), "alloc_space", "allocs: its default")
  n, whole = sums(p, "alloc_space/bytes", "drops (app.lua:10)")
  t.ok(n > whole / 2, ("allocs: %.0f of %.0f bytes"):format(n, whole))

  p = profile("/debug/pprof/heap?seconds=1", "heap")
  t.equal(p.str(p.message[14][1]), "inuse_space", "heap: its default")
  t.equal((sums(p, "inuse_space/bytes", "drops (app.lua:10)")), 0, "heap: garbage is collected first")

  p = profile("/debug/pprof/block?seconds=1", "block")
  t.equal(p.str(p.message[14][1]), "offcpu", "block: its default")
  local _, waits = sums(p, "offcpu/nanoseconds", "")
  t.ok(waits > 0, "block: waits")

  p = profile("/debug/pprof/profile?seconds=1&event=cpu,alloc", "profile")
  t.equal(table.concat(p.types, " ", 1, 4), "samples/count cpu/nanoseconds alloc_objects/count alloc_space/bytes", "two events")

  for _, path in ipairs { "/debug/pprof/coroutine", "/debug/pprof/goroutine?debug=0" } do
    p = profile(path, "coroutine")
    t.equal(table.concat(p.types), "coroutine/count", path)
    n, whole = sums(p, "coroutine/count", "handler (app.lua:4)")
    t.equal(n, 3, path .. ": coroutines that wait")
    t.equal(whole, 4, path .. ": all coroutines")
    local found
    for _, s in ipairs(p.samples) do
      if s.values[1] == 3 then found = s end
    end
    t.equal(found and found[1].func.name, "coroutine.yield", path .. ": the innermost function is the first")
    t.equal(found and found.labels.state, "suspended", path .. ": state")
    t.equal(found and found[2].func.file .. ":" .. found[2].func.first, "app.lua:4", path .. ": file and line")
  end
end

-- Returns the body of a path.
local function body_of(path, content_type)
  local status, head, body = client.get(server.port, path)
  t.equal(status, 200, path .. ": status: " .. body:sub(1, 200))
  t.contains(head, "Content-Type: " .. content_type, path)
  return body
end

t.contains(body_of("/debug/pprof/coroutine?debug=1", "text/plain"), "3 suspended\n    coroutine.yield\n    handler (app.lua:4)\n",
	   "coroutines as text")
t.contains(body_of("/debug/pprof/profile?seconds=0.5&debug=1", "text/plain"), "drops (app.lua:10)", "a profile as text")
t.equal(body_of("/debug/pprof/cmdline", "text/plain"), t.luajit .. "\0app.lua\0one\0\0two?[2J?", "command line, clean")
t.contains(body_of("/", "text/html"), ("<li>luajit app.lua, PID %d</li>"):format(app), "start page")
for path in body_of("/", "text/html"):gmatch('href="(/[^"]*)"') do
  t.ok(path:find("^/flame%?event=%l+&amp;seconds=%d+$") or path:find("^/debug/pprof/"), "a link of the start page: " .. path)
end
local index = body_of("/debug/pprof/", "text/html")
for _, name in ipairs { "profile?seconds=30", "allocs?seconds=10", "heap?seconds=10", "block?seconds=10", "coroutine", "cmdline" } do
  t.contains(index, ('href="/debug/pprof/%s"'):format(name), "index")
end
t.contains(index, "Nothing is recorded before a request", "index")
local page = body_of("/flame?event=alloc&seconds=0.5", "text/html")
t.ok(page:find("drops (app.lua:10)", 1, true), "flame graph")
t.contains(page, ("<title>app.lua, PID %d, alloc</title>"):format(app), "flame graph: title")

-- -- Requests that cannot be answered --------------------------------------

local function refused(path, status, sentence)
  local got, head, body = client.get(server.port, path)
  t.equal(got, status, path .. ": status")
  t.contains(head, "Content-Type: text/plain", path)
  t.contains(body, sentence, path)
  t.equal(select(2, body:gsub("\n", "")), 1, path .. ": one line: " .. body)
end

refused("/debug/pprof/profile?event=no_event&seconds=1", 400, ("process %d (app.lua): 'no_event' is not a clock or event"):format(app))
refused("/flame?event=cpu,cpu/period=500000/&seconds=1", 400, ("process %d (app.lua): the list of clocks has 'cpu' twice"):format(app))
refused("/debug/pprof/profile?event=a%0astop", 400, "expected a list of events, such as cpu,alloc")
for _, seconds in ipairs { "0", "-1", "x", "3601", "1e3", "99999999999", "%31%00" } do
  refused("/debug/pprof/profile?seconds=" .. seconds, 400, "expected a number from 0.01 to 3600")
end
refused("/debug/pprof/mutex", 404, "there is no /debug/pprof/mutex here; /debug/pprof/ lists what there is")

-- A VM that sleeps, or stays in compiled code, begins no recording of allocations: an empty profile tells why.
local NEVER = "not recorded: the profiler met no Lua code outside of compiled code"
for name, code in pairs { loop = programs.LOOP, sleep = "require('ffi').cdef 'int sleep(unsigned);' require('ffi').C.sleep(600)" } do
  local idle = programs.start(name .. ".lua", code)
  local other = client.serve(idle)
  for path, event in pairs { allocs = "alloc", heap = "live" } do
    local status, _, body = client.get(other.port, ("/debug/pprof/%s?seconds=0.2"):format(path))
    t.equal(status, 200, name .. ": status of " .. path .. ": " .. body:sub(1, 200))
    local p = pprof.decode(body)
    t.equal(#p.samples, 0, name .. ": no sample of " .. path)
    t.contains(table.concat(p.comments, "\n"), ("event %s: %s"):format(event, NEVER), name .. ": comment of " .. path)
  end
  local status, _, body = client.get(other.port, "/debug/pprof/heap?seconds=0.2&debug=1")
  t.equal(status, 200, name .. ": status of the text")
  t.contains(body, "event live         " .. NEVER .. "\n", name .. ": text")
  status, _, body = client.get(other.port, "/flame?seconds=0.2&event=alloc")
  t.equal(status, 200, name .. ": status of the page")
  t.contains(body, "<tr><th>event alloc</th><td>" .. NEVER .. "</td></tr>", name .. ": page")
  t.wait_until("the server tells why", function()
    return t.content(other.log):find(("process %d (%s.lua): alloc: nothing was recorded: "):format(idle, name), 1, true)
  end)
  if name == "sleep" then
    status, _, body = client.get(other.port, "/debug/pprof/profile?seconds=0.2")
    t.equal(status, 200, "CPU time of a program asleep: status")
    t.equal(#pprof.decode(body).samples, 0, "CPU time of a program asleep")
  end
  client.stop(other)
  programs.stop { idle }
end

do	-- Its CPU time is recorded.
  local loop = programs.start("loop.lua", programs.LOOP)
  local other = client.serve(loop)
  local status, body, _
  status, _, body = client.get(other.port, "/debug/pprof/profile?seconds=0.5&event=cpu,alloc&debug=1")
  t.equal(status, 200, "CPU time beside allocations: status")
  t.contains(body, "never_left (loop.lua:1)", "CPU time beside allocations")
  client.stop(other)
  programs.stop { loop }
end

-- -- Several at once -------------------------------------------------------

local function ask(path)
  local fd = client.connect(server.port)
  client.send(fd, ("GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n"):format(path))
  return fd
end

do	-- A second recording waits for the first.
  local first, second = ask("/debug/pprof/profile?seconds=1"), ask("/debug/pprof/allocs?seconds=0.5")
  for _, fd in ipairs { first, second } do
    t.contains(client.receive(fd) or "", "HTTP/1.1 200 OK", "both are answered")
    client.close(fd)
  end
end

local function is_recording() return programs.is_recorded(app) end

do	-- Pages and coroutines do not wait. Who waits and leaves has no turn. Who is recorded for and leaves ends the recording.
  local first, second = ask("/debug/pprof/profile?seconds=600"), ask("/debug/pprof/profile?seconds=600")
  t.wait_until("it records for a client", is_recording)
  body_of("/", "text/html")
  t.contains(body_of("/debug/pprof/coroutine?debug=1", "text/plain"), "handler (app.lua:4)", "beside a recording")
  t.equal(#client.children(server), 1, "the first still records alone")
  client.close(second)
  client.close(first)
  t.wait_until("the recording ends with the client", function() return not is_recording() end)
  t.wait_until("no job is left", function() return #client.children(server) == 0 end)
end

do	-- The queue is bounded.
  local fds = { ask("/debug/pprof/profile?seconds=600") }
  t.wait_until("it records", function() return #client.children(server) == 1 end)
  for i = 2, 17 do fds[i] = ask("/debug/pprof/profile?seconds=600") end
  refused("/debug/pprof/profile?seconds=1", 503, "another recording runs, and 16 requests wait for it")
  body_of("/", "text/html")
  for _, fd in ipairs(fds) do client.close(fd) end
  t.wait_until("the recording ends", function() return #client.children(server) == 0 and not is_recording() end)
end

do	-- Another client's recording.
  local pid = programs.spawn(("%s record -o other.bin %d 2>other.log"):format(programs.RUN, app))
  t.wait_until("another command records", is_recording)
  refused("/debug/pprof/profile?seconds=1&event=cpu", 503, "another client records this process already")
  os.execute(("(sleep 1; kill -INT %d) &"):format(pid))
  body_of("/debug/pprof/profile?seconds=1", "application/octet-stream")	-- It begins after that.
  t.wait_until("it ends", function() return not is_recording() end)
end

-- -- Ends ------------------------------------------------------------------

do	-- Ctrl-C ends the server and what it records.
  local other = programs.start("other.lua", APP)
  local pid = programs.spawn_for_status(("%s serve --listen=:0 %d %d 2>two.log"):format(programs.RUN, app, other))
  local port = tonumber(t.wait_until("two programs", function() return t.content("two.log"):match(":(%d+)/; press") end))
  t.contains(t.content("two.log"), ("serving process %d (app.lua), process %d (other.lua) at"):format(app, other), "two programs")
  local status, _, body = client.get(port, "/debug/pprof/profile?seconds=0.5")
  t.equal(status, 200, "two programs: status")
  local processes = 0
  for _, comment in ipairs(pprof.decode(body).comments) do
    local pids = comment:match("^pid: (.*)")
    if pids then t.ok(pids:find(app, 1, true) ~= nil, "pids: " .. pids) end
    processes = processes + (pids and 1 or 0)
  end
  t.equal(processes, 1, "two programs: comments")
  local fd = client.connect(port)
  client.send(fd, "GET /flame?seconds=600 HTTP/1.0\r\n\r\n")
  t.wait_until("it records", is_recording)
  os.execute("kill -INT " .. pid)
  t.equal(programs.status(), 0, "status after Ctrl-C: " .. t.content("two.log"))
  t.wait_until("the recording ends", function() return not is_recording() end)
  t.equal(client.receive(fd), "", "the client gets no half answer")
  client.close(fd)
end

do	-- A server that is killed leaves no recording.
  local killed = client.serve(app)
  local fd = client.connect(killed.port)
  client.send(fd, "GET /flame?seconds=600 HTTP/1.0\r\n\r\n")
  t.wait_until("it records", is_recording)
  client.stop(killed, "KILL")
  t.wait_until("the recording ends", function() return not is_recording() end)
  client.close(fd)
end

do	-- The program ends during a recording, and before one.
  local fd = ask("/debug/pprof/profile?seconds=600&debug=1")
  t.wait_until("it records", is_recording)
  programs.wait_for_samples(app, "drops (app.lua:10)")
  os.execute("kill -KILL " .. app)
  t.contains(client.receive(fd) or "", "drops (app.lua:10)", "what was recorded until the end")
  client.close(fd)
  t.contains(t.content(server.log), ("process %d (app.lua) has ended; what it had written until then is kept"):format(app), "a line")
  -- It may not have been reaped yet.
  refused("/debug/pprof/profile?seconds=1", 503, ("process %d"):format(app))
  refused("/debug/pprof/coroutine", 503, ("process %d"):format(app))
  refused("/debug/pprof/cmdline", 503, ("process %d"):format(app))
  t.ok(body_of("/", "text/html"):find(("<li>[%%l ]*process %d.-</li>"):format(app)), "start page")
end

client.stop(server)
programs.finish()
