-- luajit-sysprof run --duration, --delay, --max-size, and a full disk: what is recorded, and what
-- the command says. The script runs to its end.
-- TIMEOUT: 600
-- BASE: none, a command beside a program; tools/live_programs tries each LuaJIT

local t = require("tools_test")
package.path = t.source .. "/tools/?.lua;" .. package.path
local reader = require("sysprof.read.reader")

local RUN = ("TMPDIR=. '%s' '%s/tools/luajit-sysprof.lua' run "):format(t.luajit, t.source)

os.execute("! mountpoint -q full 2>/dev/null || umount full; rm -rf out* full")	-- Of a run that was broken off.

local HEAD = [[
local report = misc.sysprof.report
local deadline = os.time() + 200
local function spin(s)
  local till, n = os.clock() + s, 0
  while os.clock() < till do
    for i = 1, 1e4 do n = n + #tostring(i) end
  end
  assert(os.time() < deadline, "not in time")
end
function in_window()
  local before
  repeat
    before = report().wall_s
    spin(0.3)
  until before > 0 and report().wall_s == before
end
function in_late() spin(0.2) return 1 end
]]
t.write_file("window.lua", HEAD .. [[
in_window()
in_late()
print("done", ...)
os.exit(7)
]])
t.write_file("fill.lua", HEAD .. [[
local n = 0
local function fill()
  for _ = 1, 200 do
    n = n + 1
    loadstring("local s = 0 for i = 1, 2000 do s = s + #tostring(i) end", "=" .. ("chunk"):rep(20) .. n)()
  end
end
repeat
  fill()
  assert(os.time() < deadline, "not in time")
until report().limit:find("size limit", 1, true) or report().lost.writer > 0
print("done")
]])

local function run(options, script, status)
  local got, out, err = t.shell(RUN .. options .. " " .. script)
  t.equal(got, status, options .. ": status, " .. err)
  return out, err
end

for _, options in ipairs { "-d 0.3", "--duration=300ms --delay=200ms", "-d 0.005m --delay 0.1s -e wall" } do
  local out, err = run(options .. " -F 1000 -o out.bin", "window.lua a", 7)
  t.equal(out, "done\ta\n", options .. ": the script runs on")
  t.ok(assert(reader.parse_string(t.read_file("out.bin"))).complete, options .. ": complete")
  local _, folded = t.parse("out.bin")
  t.contains(folded, "in_window (", options .. ": the window")
  t.equal(folded:find("in_late (", 1, true), nil, options .. ": after the window")
  t.equal(t.without_load(err):find("warning", 1, true), nil, options .. ": no warning: " .. err)
end

-- The size of a profile that is rendered.
local out, err = run("--max-size=256K -F 5000 -o out.folded", "fill.lua", 0)
t.equal(out, "done\n", "size: the script runs on")
t.contains(err, "ended at the size limit of 256 KiB", "size: the summary")
t.equal(t.without_load(err):find("warning", 1, true), nil, "size: no warning: " .. err)
t.contains(t.read_file("out.folded"), "fill (", "size: names")
run("--max-size=0.25MiB -F 5000 -o out.bin", "fill.lua", 0)
t.ok(#t.read_file("out.bin") <= 2^18, "size: the file")
t.contains(select(2, t.shell(("'%s' '%s/tools/luajit-sysprof.lua' report out.bin"):format(t.luajit, t.source))),
	   "limit     ended at the size limit of 256 KiB", "size: the report")

t.write_file("small.lua", "return 1")
run("-o small.bin", "small.lua", 0)
if t.shell("mkdir full && mount -t tmpfs -o size=160k tmpfs full") == 0 then
  out, err = run("-F 5000 -o full/out.bin", "fill.lua", 0)
  t.shell("umount full")
  t.equal(out, "done\n", "a full disk: the script runs on")
  t.contains(err, "the disk of the profile is full: the rest of the profile is lost", "a full disk: the summary")
  -- Without room for a sample the old profile stays, and no other one.
  t.shell("mount -t tmpfs -o size=8k tmpfs full")
  for _, old in ipairs { "old", "" } do
    if old ~= "" then t.shell("cp small.bin full/out.bin") end
    out, err = run("-F 5000 -o full/out.bin", "fill.lua", 1)
    t.equal(out, "done\n", "no room: the script runs on")
    t.equal(err, "luajit-sysprof: no samples: the disk of the profile is full\n" ..
	    (old ~= "" and "luajit-sysprof: full/out.bin is still the profile of an earlier run\n" or ""), "no room: the message")
    t.equal(t.shell(old ~= "" and "cmp small.bin full/out.bin" or "test -z \"$(ls full)\""), 0, "no room: what stays")
    t.shell("rm -f full/*")
  end
  t.shell("umount full")

  -- The folder of temporary files is full, or missing: for a script, and for a program that runs.
  t.shell("mount -t tmpfs -o size=8k tmpfs full && head -c 8192 /dev/zero >full/x")
  for _, case in ipairs { { "full", "No space left on device" }, { "missing", "No such file or directory" } } do
    local said = ("no temporary file in %s: %s; TMPDIR names another folder"):format(case[1], case[2])
    local got, _, message = t.shell(RUN:gsub("^TMPDIR=%.", "TMPDIR=" .. case[1]) .. "-o temporary.folded small.lua")
    t.equal(got, 1, case[1] .. ": status of run")
    t.contains(message, said, case[1] .. ": run")
    t.write_file("live.lua", "local f = io.open('ready', 'w') f:close() local till = os.time() + 100 " ..
		 "repeat local f = io.open('over') until f or os.time() > till")
    t.shell("rm -f ready over")
    got, _, message = t.shell(([[
      LUAJIT_SYSPROF=live '%s' live.lua & pid=$!
      until [ -e ready ]; do sleep 0.05; done
      TMPDIR=%s '%s' '%s/tools/luajit-sysprof.lua' record -d 0.2 -o temporary.bin $pid
      status=$?
      touch over
      wait
      exit $status]]):format(t.luajit, case[1], t.luajit, t.source))
    t.equal(got, 1, case[1] .. ": status of record")
    t.contains(message, said, case[1] .. ": record")
    t.equal(t.content("temporary.bin") .. t.content("temporary.folded"), "", case[1] .. ": no profile")
  end
  t.shell("umount full")
else
  print("not root: no full disk")
end

-- A limit of the size of files ends the script as without a profile, and the command says what it could not write.
t.write_file("big.lua", "local f = io.open('big', 'w') f:setvbuf('no') for i = 1, 1e6 do f:write(('x'):rep(1e4)) end")
local plain = t.shell(("ulimit -f 64; sh -c \"'%s' big.lua\""):format(t.luajit))
local limited = t.shell("ulimit -f 64; sh -c \"" .. RUN:gsub("'", "") .. "-o limited.bin big.lua\"")
t.equal(limited, plain, "a limit of size: the script ends by it")
err = select(3, t.shell("ulimit -f 1; " .. RUN .. "-o small.bin small.lua"))
t.contains(err, "luajit-sysprof: no temporary file in .: File too large; TMPDIR names another folder\n" ..
	   "luajit-sysprof: small.bin is still the profile of an earlier run\n", "a limit of size: the command")

local EXPECTED = { duration = "a number of seconds, or a time such as ", delay = "a number of seconds, or a time such as ",
		   ["max-size"] = "a number of bytes, or a size such as " }
for option, value in pairs { duration = "x", delay = "-1", ["max-size"] = "1K" } do
  local got, _, message = t.shell(RUN .. ("--%s=%s window.lua"):format(option, value))
  t.equal(got, 2, option .. ": status")
  t.contains(message, ("option '--%s': expected %s"):format(option, EXPECTED[option]), option .. ": refused")
end
t.finish()
