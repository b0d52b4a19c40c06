-- Two programs cannot write their profiles into one file at the same time: the second is refused, and the profile
-- of the first is whole. When that one has ended, killed or not, the next program may write.
-- BASE: none, files, sockets, signals, processes; the VM runs a loop, or none

local t = require("tools_test")

local RUN = ("TMPDIR=. '%s' '%s/tools/luajit-sysprof.lua' "):format(t.luajit, t.source)

t.write_file("first.lua", [[
local function in_first() local s = 0 for i = 1, 1e4 do s = s + #tostring(i) end return s end
local started = os.time()
repeat in_first() until io.open("over") or os.time() > started + 200
]])
t.write_file("second.lua", [[
local function in_second() local s = 0 for i = 1, 1e4 do s = s + #tostring(i) end return s end
local till = os.clock() + 0.5
repeat in_second() until os.clock() > till
print("second")
]])

local function report(path)
  local status, out, err = t.shell(RUN .. "report --format=folded " .. path)
  t.equal(status, 0, "report: " .. err)
  return out
end

-- Begins the first program; returns a function that waits for its end.
local function begin(command)
  os.execute("rm -f over out.bin out.bin.*")
  local pipe = io.popen(command .. " 2>&1; echo ended")
  t.wait_until("the profile begins", function()
    local file = io.open("out.bin")
    local size = file and file:seek("end") or 0
    if file then file:close() end
    return size > 0
  end)
  return function()
    t.write_file("over", "")
    local text = pipe:read("*a")
    pipe:close()
    t.contains(text, "ended")
  end
end

local FIRSTS = {
  RUN .. "run -o out.bin first.lua",
  ("LUAJIT_SYSPROF=path=out.bin '%s' first.lua"):format(t.luajit),
}
for _, first in ipairs(FIRSTS) do
  local wait = begin(first)
  local status, out, err = t.shell(RUN .. "run -o out.bin second.lua")
  t.equal(status, 1, "run: " .. err)
  t.contains(err, "another program writes a profile into it")
  t.ok(not out:find("second"), "the script did not run")
  status, out, err = t.shell(("LUAJIT_SYSPROF=path=out.bin '%s' second.lua"):format(t.luajit))
  t.equal(status, 0, "by the environment: " .. err)
  t.contains(err, "another process writes a profile into the file; choose another path")
  t.contains(out, "second")
  wait()
  local folded = report("out.bin")
  t.contains(folded, "in_first")
  t.ok(not folded:find("in_second"), "only the first program's functions")
  t.equal(t.shell("ls out.bin.* 2>/dev/null | wc -l | grep -qx 0"), 0, "no other file")
end

-- The kernel drops the lock of a killed program.
local wait = begin(("LUAJIT_SYSPROF=path=out.bin '%s' first.lua & echo $! >pid; wait $!"):format(t.luajit))
os.execute("kill -KILL $(cat pid)")
wait()
local status, _, err = t.shell(RUN .. "run -o out.bin second.lua")
t.equal(status, 0, "after a kill: " .. err)
t.contains(report("out.bin"), "in_second")

-- All that lose a race say the same.
os.execute("rm -f out.bin out.bin.* over race.*")
local commands = {}
for i = 1, 8 do commands[i] = ("%s run -o out.bin first.lua >race.%d 2>&1 &"):format(RUN, i) end
local pipe = io.popen(table.concat(commands, "\n") .. "\nwait")
local function losers()
  local n = 0
  for i = 1, 8 do n = n + (t.content("race." .. i):find("\n", 1, true) and 1 or 0) end
  return n
end
t.wait_until("all but one have ended", function() return losers() == 7 end)
t.write_file("over", "")
pipe:read("*a")
pipe:close()
local said = 0
for i = 1, 8 do
  local is_loser = t.content("race." .. i) == "luajit-sysprof: cannot write out.bin: another program writes a profile " ..
					      "into it; name another output with -o\n"
  said = said + (is_loser and 1 or 0)
end
t.equal(said, 7, "losers with the sentence")

t.finish()
