----------------------------------------------------------------------------
-- What the VM, a thread or the profiler did at the leaf of a sample's stack: SPF_WORK_*.
----------------------------------------------------------------------------

local G = require("sysprof.base.grammar")

local leafwork = {}

-- Work whose places are unknown.
leafwork.UNPLACED = { [G.SPF_WORK_UNKEPT] = true, [G.SPF_WORK_OTHERS] = true }

-- Returns SPF_WORK_* of the leaf of the samples of a slot, and its argument; nil if the leaf is no work.
function leafwork.of(profile, slot)
  local all, node = profile.stacks, profile.slots:lua(slot)
  local leaf = node ~= 0 and all:leaf(node)
  if leaf and all.kind[leaf] == G.SPF_FRAME_WORK then return all.extra[leaf], all.payload[leaf] end
end

-- Whether nobody has seen a stack: its only frame tells why. lua, host: nodes of its sides.
function leafwork.is_unseen(all, lua, host)
  if host ~= 0 or lua == 0 or all:parent(lua) ~= 0 then return false end
  local leaf = all:leaf(lua)
  return all.kind[leaf] == G.SPF_FRAME_WORK and all.extra[leaf] >= G.SPF_WORK_WAIT
end

-- Returns the weights of an event by SPF_WORK_* in its unit: only of samples whose leaf is one in the set wanted.
function leafwork.weights(profile, event, wanted)
  local slots, sums = profile.slots, {}
  for i = 1, slots:count() do
    local factor = event.members[slots:event(i)]
    local what = factor and leafwork.of(profile, i)
    if what and wanted[what] then sums[what] = (sums[what] or 0) + slots:weight(i) * factor end
  end
  return sums
end

-- Returns the share of an event's weight whose places are unknown.
function leafwork.unplaced_share(profile, event)
  local sum = 0
  for _, weight in pairs(leafwork.weights(profile, event, leafwork.UNPLACED)) do sum = sum + weight end
  return event.weight > 0 and sum / event.weight or 0
end

-- Returns the number of samples of an event that were no tick: rests of a thread's CPU time after its last one, and
-- those that stand for lost samples or for threads not sampled.
function leafwork.rests(profile, event)
  local slots, n = profile.slots, 0
  for i = 1, slots:count() do
    if event.members[slots:event(i)] then
      local what, arg = leafwork.of(profile, i)
      local is_rest = what == G.SPF_WORK_UNSEEN and arg == G.SPF_UNSEEN_NO_TICK
      if is_rest or leafwork.UNPLACED[what] then n = n + slots:samples(i) end
    end
  end
  return n
end

return leafwork
