-- If closing the profile's file fails, stop returns the error.
-- BASE: none, calls of the system fail; faults/memory and faults/live try each LuaJIT

local t = require("tools_test")

local program = [[
assert(misc.sysprof.start { mode = "C", path = "x", hz = 20, clock = "wall-signal" })
print(misc.sysprof.stop())]]
t.write_file("program.lua", program)
for _, case in ipairs { { "5", "nil\tx: Input/output error\t5\n" }, { "28", "nil\tx: No space left on device\t28\n" },
			{ "4", "true\n" } } do
  local errno, expected = case[1], case[2]
  os.remove("x")
  local status, out, err = t.shell(("FAULT='close 1+ %s' timeout 300 '%s/test/faulty_luajit' program.lua")
				   :format(errno, os.getenv("SYSPROF_BUILD")))
  t.equal(status .. err, "0", "errno " .. errno .. ": the program goes on")
  t.equal(out, expected, "errno " .. errno)
end
t.finish()
