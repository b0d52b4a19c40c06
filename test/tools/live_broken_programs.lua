-- ps, record and stop beside programs that close early, send garbage, lie, or never answer: one sentence each, no
-- endless wait, and what was recorded is kept.
-- TIMEOUT: 300
-- BASE: none, it reads no profile of this LuaJIT
-- WAITS: most of its time
-- LONG: 39

local programs = require("live_programs")
local server = require("live_server")
local t = require("tools_test")

local start, try = server.start, programs.try

os.execute("rm -rf ./*")

local function exists(path)
  local file = io.open(path, "rb")
  if file then file:close() end
  return file ~= nil
end

-- What record says of a program that does not start a recording. It says this alone.
for behaviour, sentence in pairs {
  closes = "(server.lua) ", garbage = "sent an answer that this version of sysprof does not know",
  sentence = "(server.lua): this VM is ?[31mthe subject of another profile", refuses = "(server.lua): no perf events here",
  done_at_once = "ended the recording at once", done_with_error = ": the VM is being profiled already",
  early_refusal = "(server.lua): another user owns it", silent = "did not answer within ", endless = ": xxxxxxxxx",
} do
  local pid = start(behaviour, "server.lua")
  local status, out, err = try("record -d 100ms " .. pid)
  t.equal(status, 1, behaviour .. ": status: " .. err)
  t.equal(out, "", behaviour .. ": output")
  t.contains(err, ("luajit-sysprof: process %d (server.lua)"):format(pid), behaviour)
  t.contains(err, sentence, behaviour)
  t.ok(behaviour ~= "closes" or programs.tells_closing(err), "closes: " .. err)
  programs.one_line(err, behaviour)
  t.ok(#err < 600, behaviour .. ": a short line")
  t.ok(not exists("sysprof.bin"), behaviour .. ": no file")
  status, out, err = try("stop " .. pid)
  local obeys = behaviour == "refuses" or behaviour:find("^done")
  t.equal(status, 1, behaviour .. ": stop: " .. err)
  t.equal(err:find(": there was no recording", 1, true) ~= nil, obeys and true or false, behaviour .. ": stop: " .. err)
  status, out, err = try("ps")
  t.equal(status, 0, behaviour .. ": ps: " .. err)
  -- Other users may have programs; then there is a column more.
  local cells = obeys and " 2 +%- +luajit" or " %- +no answer +luajit"
  t.ok(out:find(("\n *%d [^\n]*%s server%%.lua\n"):format(pid, cells)), behaviour .. ": ps: row: " .. out)
  server.stop { pid }
end

-- What it says of one that does not end its recording. The samples are kept.
for behaviour, sentence in pairs {
  dies = " has ended; what it had written until then is kept",
  hangs_up = " closed the connection; what it had written until then is kept",
  two_answers = " sent a second answer before the recording ended",
  never_done = " did not answer within 10 s; what it had written until then is kept",
} do
  local pid = start(behaviour, "server.lua")
  local good = start("good", "server.lua")
  os.remove("out.bin")
  local status, _, err = try(("record -d 100ms -o out.bin %d %d"):format(pid, good))
  t.equal(status, behaviour == "dies" and 3 or 0, behaviour .. ": status: " .. err)
  t.contains(err, ("process %d (server.lua)%s"):format(pid, sentence), behaviour)
  t.contains(err, "hot_in_good (live.lua:2)", behaviour .. ": the other one")
  local _, folded = t.parse("out.bin")
  t.contains(folded, "hot_in_good (live.lua:2)", behaviour .. ": its samples")
  if behaviour ~= "dies" then	-- Its only chunk is cut.
    t.contains(folded, "hot_in_" .. behaviour, behaviour .. ": samples")
  end
  server.stop { pid, good }
end

-- A file without a profile is left out.
for behaviour, sentence in pairs { garbage_file = "wrote no profile", empty_file = "recorded nothing" } do
  local pid = start(behaviour, "server.lua")
  os.remove("out.bin")
  local status, _, err = try("record -d 100ms -o out.bin " .. pid)
  t.equal(status, 1, behaviour .. ": status")
  t.contains(err, ("process %d (server.lua) %s"):format(pid, sentence), behaviour)
  t.ok(not exists("out.bin"), behaviour .. ": no output")
  server.stop { pid }
end

-- A program that writes more than a recording may have ends it. What others and it have written is kept.
do
  local pid, good = start("fills", "server.lua"), start("good", "server.lua")
  local sentence = ("process %d (server.lua): its recording was ended: it has more than "):format(pid)
  os.remove("out.bin")
  local status, _, err = try(("record -d 2s --max-size=1M -o out.bin %d %d"):format(pid, good))
  t.equal(status, 1, "fills: status: " .. err)
  t.contains(err, sentence .. "335544320 bytes; what it had written until then is kept", "fills")
  t.contains(select(2, t.parse("out.bin")), "hot_in_good (live.lua:2)", "fills: the other one")
  t.contains(select(2, t.parse("out.bin")), "hot_in_fills (live.lua:2)", "fills: its samples")
  programs.says("top --once -d 60s " .. pid, 1, sentence .. "268435456 bytes")
  server.stop { pid, good }
end

-- Ctrl-C ends a record that waits: for an answer, and for the turn that a program never gives. Such a program can
-- send many packets: the command's memory stays small.
for behaviour, said in pairs { silent = "", floods = "another client records it; this recording begins when that one ends" } do
  local pid = start(behaviour, "server.lua")
  local _, _, err = t.shell(("ulimit -v 300000; timeout -s INT 1 %srecord -d 1s %d"):format(programs.RUN, pid))
  t.contains(err, said, behaviour .. ", Ctrl-C")
  t.contains(err, "luajit-sysprof: interrupted before the recording began\n", behaviour .. ", Ctrl-C")
  t.ok(select(2, err:gsub("\n", "")) <= 2, behaviour .. ", Ctrl-C: lines: " .. err)
  server.stop { pid }
end

-- A process that is stopped is named at once.
do
  local pid = start("good", "server.lua")
  programs.halt(pid)
  for _, verb in ipairs { "record -d 1s ", "stop " } do
    local status, _, err = try(verb .. pid)
    t.equal(status, 1, verb .. "of a stopped one: status")
    t.contains(err, ("process %d (server.lua) is stopped by a signal; 'kill -CONT %d' lets it go on"):format(pid, pid), verb)
  end
  local _, out = try("ps")
  t.ok(out:find(pid .. " [^\n]*stopped +luajit server%.lua\n"), "ps: stopped: " .. out)
  os.execute("kill -CONT " .. pid)
  server.stop { pid }
end

programs.finish()
