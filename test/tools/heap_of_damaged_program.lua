-- Heap snapshots of programs that have damaged their heaps: they end, the file is there, and the reader tells of
-- objects that are missing.

local heapfile = require("sysprof.read.heapfile")
local heapview = require("sysprof.show.heapview")
local t = require("tools_test")

local PROGRAM = t.source .. "/test/lib/programs/damaged_heap.lua"
local SEEDS = tonumber(os.getenv("SYSPROF_STRESS_HEAPS") or 40)

local damaged = 0
for seed = 1, SEEDS do
  local command = ("timeout 60 %s %s %d %d d.heap"):format(os.getenv("LUAJIT"), PROGRAM, seed, seed % 12 + 1)
  local status, out, err = t.shell(command)
  t.equal(status, 0, "status of seed " .. seed .. ": " .. err)
  t.equal(out, "written", "seed " .. seed)
  local snap, why = heapfile.read("d.heap")
  t.ok(snap, ("seed %d: %s"):format(seed, why or ""))
  if snap then
    damaged = damaged + (snap.is_damaged and 1 or 0)
    local ok, problem = pcall(heapview.of, snap, 3)
    t.ok(ok, ("view of seed %d: %s"):format(seed, tostring(problem)))
  end
  os.remove("d.heap")
end
t.ok(damaged > SEEDS / 4, "damaged heaps: " .. damaged)
t.finish()
