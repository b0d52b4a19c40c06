----------------------------------------------------------------------------
-- States of threads: on CPU, waiting, runnable.
--
-- A sample of real time is of a thread without a processor. Its leaf says whether the thread
-- could have run. Other samples are of threads that run.
----------------------------------------------------------------------------

local G = require("sysprof.base.grammar")
local units = require("sysprof.model.units")

local threadstates = {}

threadstates.ON, threadstates.WAITING, threadstates.RUNNABLE = 1, 2, 3
threadstates.NAMES = { "on CPU", "waiting", "runnable" }

-- Returns SPF_WORK_* of the leaf of the samples of a slot, or nil.
local function leaf_work(profile, slot)
  local all, node = profile.stacks, profile.slots:lua(slot)
  local leaf = node ~= 0 and all:leaf(node)
  return leaf and all.kind[leaf] == G.SPF_FRAME_WORK and all.extra[leaf] or nil
end

-- Returns the state of the thread in the samples of a slot.
function threadstates.of(profile, slot)
  if not units.of(profile.slots:event(slot).unit).by_others then return threadstates.ON end
  return leaf_work(profile, slot) == G.SPF_WORK_READY and threadstates.RUNNABLE or threadstates.WAITING
end

-- Whether a sample of a slot stands for many waits, or for ready time, of up to a second.
function threadstates.is_sum(profile, slot)
  local work = leaf_work(profile, slot)
  return work == G.SPF_WORK_READY or work == G.SPF_WORK_SHORT
end

-- Returns the sums of the weights of an event by state, in its unit.
function threadstates.sums(profile, event)
  local slots, sums = profile.slots, { 0, 0, 0 }
  for i = 1, slots:count() do
    local factor = event.members[slots:event(i)]
    if factor then
      local state = threadstates.of(profile, i)
      sums[state] = sums[state] + slots:weight(i) * factor
    end
  end
  return sums
end

return threadstates
