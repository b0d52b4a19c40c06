----------------------------------------------------------------------------
-- States of threads: on CPU, waiting, runnable, or lost: nobody knows whether it waited.
--
-- A sample of real time is of a thread without a processor. Its leaf says whether the thread
-- could have run. Other samples are of threads that run.
----------------------------------------------------------------------------

local G = require("sysprof.base.grammar")
local leafwork = require("sysprof.model.leafwork")
local units = require("sysprof.model.units")

local threadstates = {}

threadstates.ON, threadstates.WAITING, threadstates.RUNNABLE, threadstates.LOST = 1, 2, 3, 4
threadstates.NAMES = { "on CPU", "waiting", "runnable", "lost" }

local OF_WORK = { [G.SPF_WORK_READY] = threadstates.RUNNABLE, [G.SPF_WORK_LOST] = threadstates.LOST,
		  [G.SPF_WORK_UNKEPT] = threadstates.LOST }

-- Returns the state of the thread in the samples of a slot.
function threadstates.of(profile, slot)
  if not units.of(profile.slots:event(slot).unit).by_others then return threadstates.ON end
  return OF_WORK[leafwork.of(profile, slot)] or threadstates.WAITING
end

-- Whether a sample of a slot stands for many, see leafwork.
function threadstates.is_sum(profile, slot)
  return leafwork.is_sum(profile.stacks, profile.slots:lua(slot))
end

-- Whether the weight of a sample is a time that ends when the sample does: one wait, or a part of it.
function threadstates.is_span(profile, lua, unit)
  return units.of(unit).by_others and not leafwork.is_sum(profile.stacks, lua)
end

-- Returns the sums of the weights of an event by state, in its unit.
function threadstates.sums(profile, event)
  local slots, sums = profile.slots, { 0, 0, 0, 0 }
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
