-- serve lets no page of another site start a recording: on loop-back by what browsers tell of the page, on other addresses by a
-- token in the address. The token is the same after a restart, and only its user knows it.
-- TIMEOUT: 300
-- BASE: none, a command beside a program; tools/live_programs tries each LuaJIT

local client = require("http_client")
local live_server = require("live_server")
local pprof = require("pprof_decode")
local programs = require("live_programs")
local shell_status = require("shell_status")
local t = require("tools_test")

os.execute("rm -rf ./* && mkdir state home")
local here = assert(io.popen("pwd")):read("*l")
local STATE = ("XDG_STATE_HOME='%s/state' "):format(here)
local TOKEN = "state/luajit-sysprof/token"
local RECORD = "/flame?seconds=0.01"

local pid = live_server.start("good", programs.unique("app.lua"))

-- How many recordings the program has begun.
local function recordings()
  return select(2, t.content(("live_server.%d.log"):format(pid)):gsub("record\n", ""))
end

-- Returns status and body of the answer to a path. fields: lines of the header, separated by "|".
local function ask(server, path, fields)
  local header = ("Host: localhost:%d|%s"):format(server.port, fields or ""):gsub("PORT", server.port):gsub("|", "\r\n")
  local status, head, body = client.ask(server.port, ("GET %s HTTP/1.1\r\n%s\r\n\r\n"):format(path, (header:gsub("\r\n$", ""))))
  t.contains(head or "", "\r\nReferrer-Policy: same-origin", "a link to another site does not tell the address")
  return status, body
end

-- Checks that a request is refused, and that the program records nothing for it.
local function refused(server, path, fields, sentence)
  local before = recordings()
  local status, body = ask(server, path, fields)
  t.equal(status, 403, path .. ": status for " .. fields)
  t.contains(body, sentence, path .. ": answer for " .. fields)
  t.equal(recordings(), before, path .. ": recordings for " .. fields)
end

local function granted(server, path, fields)
  local status, body = ask(server, path, fields)
  t.equal(status, 200, path .. ": status for " .. fields .. ": " .. body:sub(1, 100))
end

-- -- Loop-back -------------------------------------------------------------

local OTHER = "a page of another site asked; expected"
local TO_RECORD = "a page of another site asked for a recording; open the start page"
local CHROME = "User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0.0.0|"

local server = client.serve(pid)
t.equal(server.token, nil, "no token on loop-back")
do
  local before = recordings()
  for _, fields in ipairs {
    "", "User-Agent: curl/8.1|", "User-Agent: Go-http-client/1.1|", "Referer: |",
    CHROME .. "Sec-Fetch-Site: none|Sec-Fetch-Dest: document|",	-- Typed.
    CHROME .. "Sec-Fetch-Site: same-origin|Sec-Fetch-Dest: document|Referer: http://localhost:PORT/|",
    CHROME .. "Sec-Fetch-Site: same-origin|Referer: https://a.proxy.example/|",
    "Referer: http://localhost:PORT/x?y|", "Origin: http://LOCALHOST:PORT|",
  } do granted(server, RECORD, fields) end
  t.equal(recordings(), before + 9, "each of these records")
end
for _, path in ipairs { RECORD, "/debug/pprof/profile?seconds=0.01", "/debug/pprof/coroutine" } do
  for _, fields in ipairs {
    "Sec-Fetch-Site: cross-site|Sec-Fetch-Dest: image|", "Sec-Fetch-Site: cross-site|Sec-Fetch-Dest: iframe|",
    "Sec-Fetch-Site: same-site|Sec-Fetch-Dest: empty|",
    "Sec-Fetch-Site: cross-site|Sec-Fetch-Dest: script|Origin: http://localhost:PORT|Referer: http://localhost:PORT/|",
  } do refused(server, path, CHROME .. fields, OTHER) end
  for _, fields in ipairs {
    "Sec-Fetch-Site: cross-site|Sec-Fetch-Dest: document|", "Sec-Fetch-Site: same-site|Sec-Fetch-Dest: document|",
    "Origin: http://evil.example|", "Origin: null|", "Referer: http://evil.example/localhost:PORT|", "Referer: about:client|",
    "Referer: http://localhost/|", "Origin: http://localhost:1|", "Origin: http://evil.example|Referer: http://localhost:PORT/|",
    "Referer: http://localhost:PORT@evil.example/|", "Referer: x://localhost:PORT/|",
  } do refused(server, path, fields, TO_RECORD) end
  refused(server, path, CHROME, "the browser does not tell which site asked for a recording")
end
-- The name of a page that means this machine.
for _, host in ipairs { "evil.example", "0.0.0.0", "evil.example:PORT" } do
  local fields = ("Sec-Fetch-Site: same-origin|Origin: http://%s|"):format(host):gsub("PORT", server.port)
  local before = recordings()
  local status, _, body = client.ask(server.port, ("GET %s HTTP/1.1\r\nHost: %s\r\n%s\r\n\r\n"):format(
    RECORD, host, (fields:gsub("|$", ""):gsub("|", "\r\n"))))
  t.equal(status, 403, host .. ": status")
  t.contains(body, "expected the host localhost, 127.0.0.1 or ::1, got '" .. host:gsub(":.*", ""), host)
  t.equal(recordings(), before, host .. ": recordings")
end
-- A link may lead to pages that record nothing.
for _, path in ipairs { "/", "/debug/pprof/" } do
  granted(server, path, CHROME .. "Sec-Fetch-Site: cross-site|Sec-Fetch-Dest: document|")
  granted(server, path, "Referer: http://wiki.example/|")
  refused(server, path, "Sec-Fetch-Site: cross-site|Sec-Fetch-Dest: iframe|", OTHER)
end
client.stop(server)
t.ok(not io.open(TOKEN), "loop-back needs no token")

-- -- Other addresses -------------------------------------------------------

-- Starts a server whose token stands in the folder of a variable.
local function serve(variable, listen)
  return client.serve(pid, listen or "*:0", variable or STATE)
end

server = serve()
local token = server.token
t.ok(token and #token == 32 and not token:find("%X"), "128 bits: " .. tostring(token))
t.equal(t.content(TOKEN), token .. "\n", "the token's file")
local _, modes = t.shell("stat -c %a state/luajit-sysprof " .. TOKEN)
t.equal(modes, "700\n600\n", "modes of its folder and file")

local NEEDS = "expected the token in the address; luajit-sysprof serve printed it"
local function other(digit) return digit == "0" and "1" or "0" end
for _, prefix in ipairs { "", "/", "/x", "/" .. token:sub(1, -2), "/" .. token .. "0", "//" .. token, "/" .. token:sub(1, -2) .. other(token:sub(-1)),
			  "/" .. other(token:sub(1, 1)) .. token:sub(2), "/%00" .. token, "/" .. token .. "%00", "/" .. ("0"):rep(32) } do
  refused(server, prefix .. RECORD, "", NEEDS)
  refused(server, prefix .. "/debug/pprof/", "", NEEDS)
end
refused(server, "/", "Authorization: Bearer " .. token .. "|Referer: http://localhost:PORT/" .. token .. "/|", NEEDS)
refused(server, "/?" .. token, "", NEEDS)
for _, fields in ipairs { "", CHROME, CHROME .. "Sec-Fetch-Site: same-origin|", "Referer: http://localhost:PORT/" .. token .. "/|" } do
  granted(server, "/" .. token .. RECORD, fields)
end
for _, fields in ipairs { "Origin: http://evil.example|", "Referer: http://evil.example/|", "Sec-Fetch-Site: cross-site|" } do
  refused(server, "/" .. token .. RECORD, fields, TO_RECORD)
end
granted(server, "/" .. token .. "/", "Referer: http://wiki.example/|")

do	-- By any name, and by links.
  local function body_of(path)
    local status, _, body = client.ask(server.port, ("GET %s HTTP/1.1\r\nHost: shop.example:6060\r\n\r\n"):format(path))
    t.equal(status, 200, path .. " by a name")
    return body
  end
  for _, path in ipairs { "/" .. token, ("/%s/"):format(token), ("/%s/debug/pprof"):format(token), ("/%s/debug/pprof/"):format(token) } do
    local links = 0
    for link in body_of(path):gmatch('href="(/[^"]*)"') do
      links = links + 1
      t.ok(link:find(("/%s/"):format(token), 1, true) == 1, path .. ": a link with the token: " .. link)
    end
    t.ok(links > 4, path .. ": links")
  end
  local p = pprof.decode(body_of(("/%s/debug/pprof/profile?seconds=0.01"):format(token)))
  t.contains(pprof.folded(p, 1, 1), "hot_in_good", "a profile")
end
-- The token stands in the address that serve printed, and nowhere else.
t.equal(select(2, t.content(server.log):gsub(token, "")), 1, "the token in messages: " .. t.content(server.log))
t.equal(t.content(server.log .. ".out"), "", "output")
t.ok(not t.content(("/proc/%d/cmdline"):format(server.pid)):find(token, 1, true), "the token on the command line")
client.stop(server)

-- A restart on another address has the same address.
for _, listen in ipairs { "0.0.0.0:0", "*:0" } do
  server = serve(nil, listen)
  t.equal(server.token, token, "the same token: " .. listen)
  refused(server, RECORD, "", NEEDS)
  client.stop(server)
end
server = serve(nil, "127.7.7.7:0")
t.equal(server.token, nil, "all of 127.0.0.0/8 is loop-back")
client.stop(server)

-- -- The token's file ------------------------------------------------------

-- A user's own token; and the place without XDG_STATE_HOME.
os.execute("mkdir -p home/.local/state/luajit-sysprof && cd home/.local/state/luajit-sysprof && " ..
	   "printf own_token-of-16-characters >token && chmod 600 token")
server = serve(("XDG_STATE_HOME= HOME='%s/home' "):format(here))
t.equal(server.token, "own_token-of-16-characters", "a token of the user")
granted(server, "/own_token-of-16-characters/", "")
client.stop(server)
os.execute("rm -r home/.local")
server = serve(("XDG_STATE_HOME=relative HOME='%s/home' "):format(here))
t.equal(t.content("home/.local/state/luajit-sysprof/token"), server.token .. "\n", "a new token in the home folder")
client.stop(server)

-- Without a place for it, the token lasts as long as the server.
local places = {
  ["XDG_STATE_HOME= HOME= "] = "the next start has another token: HOME names no folder\n",
  ["XDG_STATE_HOME=/nowhere "] = "the next start has another token: there is no folder /nowhere\n",
  ["XDG_STATE_HOME=/proc "] = "the next start has another token: /proc/luajit-sysprof/token: ",
}
if t.shell("mkdir -m 1777 all && ln -s ../state all/led && chown -h 65534 all/led") == 0 then
  places[("XDG_STATE_HOME='%s/all/led' "):format(here)] = "/all/led is a link of user "
end
for variable, sentence in pairs(places) do
  local tokens = {}
  for i = 1, 2 do
    server = serve(variable)
    tokens[i] = server.token
    t.contains(t.content(server.log), sentence, variable)
    granted(server, ("/%s/"):format(server.token), "")
    client.stop(server)
  end
  t.ok(tokens[1] ~= tokens[2] and #tokens[1] == 32, variable .. ": two tokens")
end

-- Files that are no secret, or no token.
local function wrong(change, sentence, variable)
  os.execute(("cd state/luajit-sysprof && rm -rf token && printf '%s' >token && chmod 600 token && %s"):format(token, change))
  local status, out, err = t.shell(("%s timeout 20 %s serve --listen='*:0' %d"):format(variable or STATE, programs.RUN, pid))
  t.equal(status, 1, change .. ": status: " .. err)
  t.equal(out, "", change .. ": output")
  t.contains(err, sentence, change)
  programs.one_line(err, change)
end

local EXPECTED = "/state/luajit-sysprof/token: expected a token of 16 to 128 letters, digits, '-' and '_'; "
wrong("chmod 640 token", "/token: others may know the token; expected a file of the user with mode 600")
wrong("chmod 602 token", "/token: others may know the token")
wrong("printf short >token", EXPECTED)
wrong(": >token", EXPECTED)
wrong("printf 'a/b?c d#e%%f&g=h;i' >token", EXPECTED)
wrong("printf '%129s' | tr ' ' x >token", EXPECTED)
wrong("printf '%129000000s' >token", EXPECTED)
wrong("printf 'sixteen_letters_\\n\\n' >token", EXPECTED)
wrong("rm token && mkfifo token", EXPECTED)
wrong("rm token && mkdir token", EXPECTED)
wrong("rm token && ln -s /dev/zero token", EXPECTED)
wrong("rm token && ln -s nowhere token", "/token: No such file or directory")
if programs.can_be_user(65534) then
  wrong("chown 65534 token", "/token: others may know the token")
  os.execute("chown 65534 home && rm -rf home/.local")
  server = serve(("XDG_STATE_HOME= HOME='%s/home' "):format(here))
  t.contains(t.content(server.log), "the next start has another token: " .. here .. "/home belongs to another user", "root in a home of a user")
  t.equal(shell_status("test -e home/.local"), 1, "root makes nothing there")
  client.stop(server)
end

do	-- Servers that start at the same time agree.
  os.execute("rm -r state/luajit-sysprof")
  local logs = {}
  for i = 1, 4 do
    logs[i] = ("race.%d.log"):format(i)
    programs.spawn(("env %s %s serve --listen='*:0' %d 2>%s"):format(STATE, programs.RUN, pid, logs[i]))
  end
  t.wait_until("all begin", function()
    token = t.content(TOKEN):match("%x+")
    for _, log in ipairs(logs) do
      if not t.content(log):find("press Ctrl-C", 1, true) then return false end
    end
    return true
  end)
  for _, log in ipairs(logs) do t.contains(t.content(log), "/" .. tostring(token) .. "/;", log) end
  local _, list = t.shell("ls state/luajit-sysprof")
  t.equal(list, "token\n", "no other file is left")
end

programs.finish()
