----------------------------------------------------------------------------
-- What the VM, a thread or the profiler did at the leaf of a sample's stack: SPF_WORK_*.
----------------------------------------------------------------------------

local G = require("sysprof.base.grammar")

local leafwork = {}

-- Whether the places of work are unknown: of lost samples, of threads not sampled, and of CPU time without a tick.
function leafwork.is_unplaced(what, arg)
  return what == G.SPF_WORK_UNKEPT or what == G.SPF_WORK_OTHERS or
	 what == G.SPF_WORK_UNSEEN and arg == G.SPF_UNSEEN_NO_TICK
end

-- Returns SPF_WORK_* of the leaf of a stack's Lua side, and its argument; nil if the leaf is no work.
function leafwork.of_stack(all, lua)
  local leaf = lua ~= 0 and all:leaf(lua)
  if leaf and all.kind[leaf] == G.SPF_FRAME_WORK then return all.extra[leaf], all.payload[leaf] end
end

-- The same of the samples of a slot.
function leafwork.of(profile, slot)
  return leafwork.of_stack(profile.stacks, profile.slots:lua(slot))
end

local IS_SUM = { [G.SPF_WORK_READY] = true, [G.SPF_WORK_SHORT] = true, [G.SPF_WORK_LOST] = true,
		 [G.SPF_WORK_UNKEPT] = true, [G.SPF_WORK_OTHERS] = true }

-- Whether a sample stands for many: for waits or ready time of up to a second, or for what has no sample.
function leafwork.is_sum(all, lua)
  local what, arg = leafwork.of_stack(all, lua)
  return IS_SUM[what] or what == G.SPF_WORK_UNSEEN and arg == G.SPF_UNSEEN_MANY
end

-- Whether nobody has seen a stack: its only frame tells why. lua, host: nodes of its sides.
function leafwork.is_unseen(all, lua, host)
  if host ~= 0 or lua == 0 or all:parent(lua) ~= 0 then return false end
  local leaf = all:leaf(lua)
  return all.kind[leaf] == G.SPF_FRAME_WORK and all.extra[leaf] >= G.SPF_WORK_WAIT
end

-- Returns what has no place of an event's weight, in its unit, by SPF_WORK_*; and the number of its samples, which were
-- no ticks.
function leafwork.unplaced(profile, event)
  local slots, sums, n = profile.slots, {}, 0
  for i = 1, slots:count() do
    local factor = event.members[slots:event(i)]
    local what, arg
    if factor then what, arg = leafwork.of(profile, i) end
    if what and leafwork.is_unplaced(what, arg) then
      sums[what], n = (sums[what] or 0) + slots:weight(i) * factor, n + slots:samples(i)
    end
  end
  return sums, n
end

-- Returns the share of an event whose places are unknown: of its weight, or of its samples if that is larger.
function leafwork.unplaced_share(profile, event)
  local sums, n = leafwork.unplaced(profile, event)
  local sum = 0
  for _, weight in pairs(sums) do sum = sum + weight end
  return math.max(event.weight > 0 and sum / event.weight or 0, event.samples > 0 and n / event.samples or 0)
end

return leafwork
