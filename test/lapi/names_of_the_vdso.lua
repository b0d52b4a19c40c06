-- Code of the vdso, which has no file, gets names from the vdso's own symbols.

local t = require("tools_test")
local ffi = require("ffi")

ffi.cdef [[
  typedef struct { long sec, nsec; } vdso_timespec;
  int clock_gettime(int, vdso_timespec *);
]]
local ts = ffi.new("vdso_timespec")
assert(misc.sysprof.start { mode = "C", interval = 1, clock = "wall-signal", path = "p.bin" })
local start = os.time()
repeat
  for _ = 1, 1e5 do ffi.C.clock_gettime(1, ts) end
until misc.sysprof.report().samples >= 200 or os.time() - start > 200
assert(misc.sysprof.stop())

local status, out, err = t.parse("p.bin")
t.equal(status, 0, "status: " .. err)
local named, unnamed = 0, 0
for stack, count in out:gmatch("([^\n]+) (%d+)\n") do
  if stack:find(";__vdso_%w+") then named = named + count end
  if stack:find("[vdso]+", 1, true) then unnamed = unnamed + count end
end
if named + unnamed == 0 then
  print("skipped: no sample in the vdso, this kernel has none or does not use it")
  os.exit(77)
end
print(("%d samples in functions of the vdso, %d elsewhere in it"):format(named, unnamed))
t.ok(named > 0, "names: " .. out)
t.ok(out:find("_start;", 1, true), "stacks go through it: " .. out)

t.finish()
