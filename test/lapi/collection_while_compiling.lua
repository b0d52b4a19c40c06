-- The collection at the end of a profile spares the compiler: it may come while that records a trace.

local t = require("tools_test")
local box = require("box")

local PROFILES = 20	-- At least; there are hundreds, where one of some 200 broke the program.

-- Each function is a new one, so that the compiler records again and again.
box.fresh()
local status, out, err = box.run("control=SIGUSR2,gc,hz=100", [=[
local ffi = require("ffi")
ffi.cdef [[
struct event { void *value; int signal, kind; char rest[48]; };
struct setting { long every_s, every_ns, first_s, first_ns; };
int timer_create(int, struct event *, void **);
int timer_settime(void *, int, const struct setting *, void *);
]]
local SIGUSR2, MONOTONIC, EVERY_NS = 12, 1, 2e6
local CODE = [[return function(n)
  local t = {}
  for i = 1, n do t[i] = (t[i - 1] or 0) + i % 3 end
  return t[n]
end]]
jit.opt.start("hotloop=2", "hotexit=2")
local timer = ffi.new("void *[1]")
assert(ffi.C.timer_create(MONOTONIC, ffi.new("struct event", nil, SIGUSR2, 0), timer) == 0)
ffi.C.timer_settime(timer[0], 0, ffi.new("struct setting", 0, EVERY_NS, 0, EVERY_NS), nil)
repeat
  local total = 0
  for i = 1, 25 do total = total + loadstring(CODE)()(100 + i) end
  assert(total == 2834, total)
until os.clock() > 4
ffi.C.timer_settime(timer[0], 0, ffi.new("struct setting"), nil)
io.write("right")
]=])
t.equal(status, 0, "status: " .. err)
t.equal(out, "right", "results")
local profiles = select(2, box.files("*.bin"):gsub("\n", ""))
t.ok(profiles >= PROFILES, profiles .. " profiles")

t.finish()
