-- A profile of allocations says where the memory of the process is: what the VM holds, what its
-- allocator has free, machine code, and the rest. Each program below has 64 MiB in one of these places.

local json = require("json_decode")
local t = require("tools_test")

local MIB = 2^20
local UNITS = { B = 1, KiB = 2^10, MiB = MIB, GiB = 2^30 }

-- Returns the bytes of an amount at the beginning of a text.
local function bytes(s)
  local sign, n, unit = s:match("^(%-?)([%d.]+) (%a+)")
  return tonumber(sign .. n) * UNITS[unit]
end

-- Runs a script under a profile; returns the report by label, and its output.
local function run(script, clock)
  t.write_file("script.lua", script)
  local status, out, err = t.shell(("LUAJIT_SYSPROF=path=memory.bin,clock=%s,force '%s' script.lua")
				   :format(clock or "alloc", t.luajit))
  t.equal(status, 0, err)
  status, script, err = t.parse("--format=json memory.bin")
  t.equal(status, 0, err)
  return json.decode(script).report, out
end

local HEAD = [[
local ffi = require("ffi")
ffi.cdef "void *malloc(size_t); void *memset(void *, int, size_t);"
local MIB = 2^20
local function resident()
  local f = io.open("/proc/self/statm")
  local pages = f:read("*a"):match("^%d+ (%d+)")
  f:close()
  return pages * 4096
end
]]
local TAIL = [[
print(resident())
collectgarbage("stop")
]]

local PROGRAMS = {
  none = "",
  others = "local p = ffi.C.malloc(64 * MIB) ffi.C.memset(p, 1, 64 * MIB)",
  VM = "keep = ffi.new('char[?]', 64 * MIB) ffi.fill(keep, 64 * MIB, 1)",
  -- Small blocks between others that stay: the allocator cannot unmap them.
  ["free in VM"] = [[
    keep = {}
    local drop = {}
    for i = 1, 2^16 do
      drop[i] = ffi.new("char[1008]")
      ffi.fill(drop[i], 1000, 1)
      if i % 64 == 0 then keep[#keep + 1] = ffi.new("char[1000]") end
    end
    drop = nil
    collectgarbage() collectgarbage()]],
}
local PLACES = { "others", "VM", "free in VM" }

local none, found = nil, {}

local function check_program(what)
  local report, out = run(HEAD .. PROGRAMS[what] .. "\n" .. TAIL)
  -- A build for a sanitizer uses malloc.
  if not report["memory: free in VM"] and what == "none" then
    print("skipped: free in VM: this LuaJIT does not use its own allocator")
    PLACES[3] = nil
  end
  local sums = { resident = bytes(report["memory: resident"]) }
  for _, place in ipairs(PLACES) do sums[place] = bytes(report["memory: " .. place]) end
  -- What the program takes after its own look, and the stop before its look.
  t.ok(math.abs(tonumber(out) - sums.resident) < 2 * MIB, ("%s: the program sees %s, the profile %.0f")
       :format(what, out, sums.resident))
  found[what] = sums
  none = none or sums
end

check_program("none")
for _, what in ipairs(PLACES) do check_program(what) end

for what, sums in pairs(found) do
  for _, place in ipairs(PLACES) do
    local more = sums[place] - none[place]
    local expected = place == what and 64 * MIB or 0
    -- The collector and malloc give back other pages in each program.
    t.ok(math.abs(more - expected) < 4 * MIB, ("%s: %s has %.1f MiB more"):format(what, place, more / MIB))
  end
end

-- The last cycle of the collector, and what came after it.
local report = run([[
keep = ('x'):rep(2^20)
collectgarbage() collectgarbage() collectgarbage("stop")
drop = ('y'):rep(2^23)
]])
local at_end, at_cycle = report["memory: VM"]:match("^(.-); (.-) when the collector's last cycle ended$")
t.ok(bytes(at_end) - bytes(at_cycle) > 7.5 * MIB and bytes(at_cycle) < 3 * MIB, report["memory: VM"])

-- A clock alone has no such lines.
t.equal(run("", "cpu")["memory: resident"], nil, "a clock")

t.finish()
