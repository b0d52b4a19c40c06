-- On kernels 6.16 and 6.17 a high rate of CPU time becomes the kernel's tick. The self-report, the profile and 'doctor' say so. A
-- rate that such a kernel can serve stays. The test pretends the kernel (test/lib/hosts/fail_call.c).
-- BASE: none, a command beside a program; tools/live_programs tries each LuaJIT

local t = require("tools_test")

local FAULTY = ("'%s/test/faulty_luajit' "):format(os.getenv("SYSPROF_BUILD"))
local SENTENCE = "kernels 6.16 and 6.17 may hang above"

t.write_file("work.lua", [[
  local clock, hz = arg[1], tonumber(arg[2])
  local ok, err = misc.sysprof.start { mode = "C", clock = clock, hz = hz, path = "k.bin", force = true }
  if not ok then print(err) os.exit(7) end
  local start, s = os.clock(), 0
  while os.clock() - start < 0.1 do for i = 1, 1000 do s = s + i % 7 end end
  local r = misc.sysprof.report()
  assert(misc.sysprof.stop())
  print(r.clock, math.floor(r.asked_hz + 0.5), r.limit)
]])

-- Returns the clock, the rate and the limit that the self-report has on a kernel.
local function report_on(release, clock, hz)
  local status, out = t.shell(("FAULT_RELEASE='%s' %s work.lua %s %d"):format(release, FAULTY, clock, hz))
  if status == 7 then return print(("skipped %s: %s"):format(clock, out)) end
  t.equal(status, 0, release .. ", " .. clock .. ": " .. out)
  return out:match("^([^\t]*)\t(%d+)\t([^\n]*)\n$")
end

for _, clock in ipairs { "cpu", "task-clock:u" } do
  for release, is_bad in pairs { ["6.16.3-76061603-generic"] = true, ["6.17.8"] = true, ["6.18.0"] = false, ["6.12.57+deb13"] = false } do
    local name, hz, limit = report_on(release, clock, 100000)
    local what = ("%s, %s: %s"):format(release, clock, tostring(limit))
    if name then
      t.equal(limit:find(SENTENCE, 1, true) ~= nil, is_bad, what)
      t.equal(tonumber(hz) < 2000, is_bad, what .. ": rate " .. hz)
      local _, text = t.shell(t.parser .. "--format=top k.bin")
      t.equal(text:find(SENTENCE, 1, true) ~= nil, is_bad, what .. ": the reader")
    end
    name, hz, limit = report_on(release, clock, 100)
    if name then t.equal(hz .. limit, "100", what .. ": 100 Hz") end
  end
end

-- What 'doctor' says of a kernel.
local function doctor_on(release)
  local _, out = t.shell(("FAULT_RELEASE='%s' %s '%s/tools/luajit-sysprof.lua' doctor"):format(release, FAULTY, t.source))
  return out
end

t.contains(doctor_on("6.17.0-5-generic"), SENTENCE, "doctor on 6.17")
t.ok(not doctor_on("6.18.2"):find(SENTENCE, 1, true), "doctor on 6.18")

t.finish()
