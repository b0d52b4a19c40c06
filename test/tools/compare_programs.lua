-- luajit-sysprof compare: verdicts on real runs, equal and slower, of scripts, programs and files; failures and interrupts.
-- TIMEOUT: 300
-- BASE: none, a command beside a program; tools/live_programs tries each LuaJIT

local t = require("tools_test")
local B = require("stream_builder")
local G = require("sysprof.base.grammar")
local json = require("json_decode")
local check_compare = require("check_compare")

local F = B.F
local COMMAND = ("cd compared && TMPDIR=. '%s' '%s/tools/luajit-sysprof.lua' compare "):format(t.luajit, t.source)
local PROGRAM = t.source .. "/test/lib/programs/compared_program.lua"
local WORLD = { source = t.source, luajit = t.luajit }
local SETS, PAIRS = 5, 4

os.execute("rm -rf compared; mkdir compared")
t.write_file("compared/fails.lua", "if arg[1] then error('no') end\nlocal s = 0\nfor i = 1, 1e6 do s = s + i % 7 end\n")
t.write_file("compared/idle.lua", "local s = 0\nfor i = 1, 1e5 do s = s + i % 7 end\n")

local function try(arguments) return t.shell(COMMAND .. arguments) end

local function left()
  local _, out = t.shell("ls -d compared/luajit-sysprof-* 2>/dev/null")
  return out
end

-- -- Verdicts ------------------------------------------------------------------

-- Each equal pair of programs changes by chance in 5 % of the cases.
for _, jit in ipairs { "on", "off" } do
  local changed, marked = 0, 0
  for _ = 1, SETS do
    local answer = check_compare.one(WORLD, PAIRS, jit, "", "")
    if answer.verdict == "slower" or answer.verdict == "faster" then changed = changed + 1 end
    if check_compare.marks(answer) then marked = marked + 1 end
    t.equal(#answer.a.cpu, PAIRS, "times of each run")
    t.ok(answer.cpu.low <= answer.cpu.change and answer.cpu.change <= answer.cpu.high, "the interval has its middle")
  end
  print(("JIT %s: of %d comparisons of equal programs %d changed, %d have a mark"):format(jit, SETS, changed, marked))
  t.ok(changed < SETS - 1, "equal programs: too many changed")	-- 3e-5 by chance.
  t.ok(marked < SETS - 1, "equal programs: too many marks")
end

-- Three times as long is beyond all noise.
local program = ("'%s' "):format(PROGRAM)
local status, out, err = try(("-n 4 --keep=kept --format=json --fail-if='slower>20%%' -- %s 5 -- %s 5 2 8"):format(program, program))
t.equal(status, 1, "--fail-if: status: " .. err)
t.contains(err, "--fail-if=slower>20% holds", "--fail-if: message")
local answer = json.decode(out)
t.equal(answer.verdict, "slower", "slower")
t.equal(answer.failed, true, "failed")
t.equal(answer.functions[1].name, "work:2", "the largest change")
t.ok(answer.cpu.low > 0.2, "the near end")

status, out, err = try("--fail-if=faster kept/a* -- kept/b*")
t.equal(status, 0, "profiles: status: " .. err)
t.contains(out, " slower than A (CPU time ", "profiles: verdict")
t.contains(out, "work:2\n", "profiles: a row")
t.equal(select(2, try("--format=markdown --limit=1 kept/b* -- kept/a*")):match("^%*%*B is [%d.]+ %% faster than A") ~= nil, true,
	"the other way round, as Markdown")
status, out, err = try(("-n 2 -- '%s' %s 2 -- '%s' %s 2"):format(t.luajit, program, t.luajit, program))
t.equal(status, 0, "programs: " .. err)
t.contains(out, "; 2 pairs\n", "programs")
local UNREAD = "standard input is left out: each run reads /dev/null"
for input, is_told in pairs { ["<fails.lua"] = true, ["</dev/null"] = false } do
  t.equal(select(3, try("-n 2 -- idle.lua -- idle.lua " .. input)):find(UNREAD, 1, true) ~= nil, is_told, input)
end

-- -- Incomparable runs ---------------------------------------------------------

-- A profile of samples in one function, with a period in milliseconds. compiled: these, of compiled code, are more.
local function profile(samples, period, host, lost, compiled)
  local b = B.new():meta("host", host):meta("base", "LuaJIT"):context(1, 0)
  b:event(0, "cpu-clock", G.SPF_UNIT_US, period * 1000000):lfunc(1, 1, "@x.lua", "f", 9)
  b:stack(1, { F.lfunc(1, 2) })
  for _ = 1, samples do b:sample(1, 0, 1, G.SPF_VMST_LFUNC, period * 1000) end
  for _ = 1, compiled or 0 do b:sample(1, 0, 1, G.SPF_VMST_TRACE, period * 1000) end
  if lost then b:counters { { G.SPF_COUNTER_LOST_WRITER, lost } } end
  return b:finish()
end
for name, stream in pairs { a1 = profile(40, 10, "box"), a2 = profile(42, 10, "box"), b1 = profile(80, 5, "box"),
			    b2 = profile(50, 10, "other", 3), few = profile(40, 10, "box"),
			    many = profile(80, 10, "box"), compiled = profile(0, 10, "box", nil, 80), none = B.new():context(1, 0):finish() } do
  t.write_file("compared/" .. name .. ".bin", stream)
end
status, out, err = try("a1.bin a2.bin -- b1.bin b2.bin")
t.equal(status, 0, "incomparable: status: " .. err)
for _, warning in ipairs { "the runs have different rates: 100 samples a second, 200 samples a second",
			   "the runs have different machines: box, other", "b2.bin: lost 3 samples" } do
  t.contains(out, "warning: " .. warning .. "\n", "incomparable")
end
t.ok(not out:find("LuaJITs", 1, true), "the same LuaJIT")
t.contains(out, "(CPU time 0.410 s -> 0.450 s a run, ", "times of the profiles")
out = select(2, try("a1.bin a2.bin -- a2.bin a1.bin"))
t.ok(not out:find("warning", 1, true), "no warning: " .. out)
for name, is_told in pairs { many = true, few = false } do	-- Few samples without compiled code are chance.
  out = select(2, try(("compiled.bin compiled.bin -- %s.bin %s.bin"):format(name, name)))
  t.equal(out:find("different JITs: with compiled code, without compiled code", 1, true) ~= nil, is_told, "JITs: " .. name)
end

-- -- Failures ------------------------------------------------------------------

local function fails(arguments, message)
  status, out, err = try(arguments)
  t.equal(status, 2, arguments .. ": status")
  t.equal(out, "", arguments .. ": output")
  t.contains(err, message, arguments .. ": message")
  t.equal(left(), "", arguments .. ": files")
end
fails("-n 2 -- fails.lua -- fails.lua x", "the first run of B ended with status 1; no times are shown\n")
fails("-n 2 -- /bin/true -- fails.lua", "the first run of A wrote no profile; 'luajit-sysprof doctor /bin/true' tells")
fails("-n 2 -- - -- fails.lua", "standard input is no script for several runs\n")
fails("-n 2 --keep=kept -- fails.lua -- fails.lua", "cannot make the folder kept: File exists\n")
fails("-n 2 -- none.lua -- fails.lua", "cannot open none.lua: No such file")
fails("-n 2 -- fails.lua", "expected two commands, '-- A -- B', got 1; see")
fails("a1.bin none.bin -- a1.bin a2.bin", "none.bin has no CPU time; nothing is compared\n")
fails("kept/a1.bin kept/a2.bin -- kept/b1.bin", "expected as many profiles of A as of B, got 2 and 1; see")

-- A signal ends the command and its program; nothing stays.
t.write_file("compared/long.lua", "io.open('begun', 'w'):close()\nlocal s = 0\nwhile true do s = s + 1 end\n")
status, out, err = t.shell(COMMAND .. [[-n 9 -- long.lua -- long.lua & pid=$!
  while [ ! -e compared/begun ] && [ ! -e begun ]; do sleep 0.05; done; kill $pid; wait $pid]])
t.equal(status, 143, "SIGTERM: status: " .. err)
t.equal(out, "", "SIGTERM: output")
t.equal(left(), "", "SIGTERM: files")

-- Nor does one that comes between two runs, or while profiles are read.
for delay = 1, 8 do
  status, out, err = t.shell(COMMAND .. ("-n 3 -- idle.lua -- idle.lua & sleep %g; kill $! 2>/dev/null; wait $!"):format(0.06 * delay))
  t.ok(status == 143 or status == 0, ("SIGTERM after some time: status %d: %s"):format(status, err))
  t.equal(left(), "", "SIGTERM after some time: files")
end

-- -- One program -----------------------------------------------------------------

status, out, err = t.shell((COMMAND:gsub(" compare $", " run ")) .. "-n 3 " .. program .. " 5")
t.equal(status, 0, "run --repeat: status: " .. err)
t.ok(out:find("^CPU time [%d.]+ s a run, 95 %%: [%d.]+ to [%d.]+ s %(3 runs%)\nwall time [%d.]+ s a run, 95 %%: "), "run --repeat: " .. out)
local mean, low, high = out:match("\n +([%d.]+) +([%d.]+) to ([%d.]+)  work:2\n")
t.ok(mean and low + 0 <= mean + 0 and mean + 0 <= high + 0, "run --repeat: a row: " .. out)
t.equal(left(), "", "run --repeat: files")
status, out, err = t.shell((COMMAND:gsub(" compare $", " run ")) .. "-n 3 -o x.bin idle.lua")
t.equal(status, 2, "run --repeat -o: status")
t.contains(err, "--repeat goes with --hz, --threads, -j, -O and -l only, not with --output", "run --repeat -o")

t.finish()
