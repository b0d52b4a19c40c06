----------------------------------------------------------------------------
-- Names of the VM's own work, of traces, and of what a thread waits for.
----------------------------------------------------------------------------

local G = require("sysprof.base.grammar")
local syscalls = require("sysprof.names.syscalls")

local work = {}

local PHASES = {
  [G.SPF_GC_PAUSE] = "pause",
  [G.SPF_GC_PROPAGATE] = "propagate",
  [G.SPF_GC_ATOMIC] = "atomic",
  [G.SPF_GC_SWEEPSTRING] = "sweep strings",
  [G.SPF_GC_SWEEP] = "sweep",
  [G.SPF_GC_FINALIZE] = "finalize",
}

local EXITS = 65536	-- Above any number of a side exit.

local namer = {}

namer[G.SPF_WORK_GC] = function(phase)
  return ("[gc: %s]"):format(PHASES[phase] or ("phase %.0f"):format(phase))
end

namer[G.SPF_WORK_RECORD] = function() return "[record trace]" end
namer[G.SPF_WORK_OPT] = function() return "[optimise trace]" end
namer[G.SPF_WORK_ASM] = function() return "[assemble trace]" end

namer[G.SPF_WORK_PROFILER] = function() return "[profiler]" end

namer[G.SPF_WORK_WAIT] = function(arg)
  return arg == 0 and "[waiting]" or ("[waiting: %s]"):format(syscalls.name(arg - 1))
end

namer[G.SPF_WORK_FAULT] = function() return "[page fault]" end
namer[G.SPF_WORK_READY] = function() return "[runnable]" end
namer[G.SPF_WORK_SHORT] = function() return "[short waits]" end
namer[G.SPF_WORK_BUSY] = function() return "[thread busy]" end
namer[G.SPF_WORK_LOST] = function() return "[waits lost]" end
namer[G.SPF_WORK_UNKEPT] = function() return "[lost samples]" end
namer[G.SPF_WORK_OTHERS] = function() return "[threads not sampled]" end

local UNSEEN = {
  [G.SPF_UNSEEN_LATE] = "seen too late",
  [G.SPF_UNSEEN_MOVED] = "the thread ran meanwhile",
  [G.SPF_UNSEEN_HIDDEN] = "hidden by the kernel",
  [G.SPF_UNSEEN_NO_TICK] = "no tick came",
  [G.SPF_UNSEEN_MANY] = "too many waits",
}

namer[G.SPF_WORK_UNSEEN] = function(why)
  return ("[stack unknown: %s]"):format(UNSEEN[why] or ("reason %.0f"):format(why))
end

namer[G.SPF_WORK_EXIT] = function(arg)
  return ("[side exit %.0f of trace %.0f]"):format(arg % EXITS,
						   math.floor(arg / EXITS))
end

-- The VM's functions that do work: they set the VM's state.
local DOERS = {
  [G.SPF_WORK_GC] = { lj_gc_step = true, lj_gc_fullgc = true },
  [G.SPF_WORK_RECORD] = { trace_state = true },
  [G.SPF_WORK_OPT] = { trace_state = true },
  [G.SPF_WORK_ASM] = { trace_state = true },
}

-- Whether the function with a name in the symbol table does work SPF_WORK_*. Compilers add
-- endings such as ".part.0".
function work.is_done_by(what, name)
  return DOERS[what] ~= nil and DOERS[what][name:match("^[^.]*")] ~= nil
end

local IS_LOST = { [G.SPF_WORK_LOST] = true, [G.SPF_WORK_UNKEPT] = true, [G.SPF_WORK_OTHERS] = true }

-- Whether it is something that a thread waits for.
function work.is_wait(what, arg)
  return what >= G.SPF_WORK_WAIT and not IS_LOST[what] and
	 not (what == G.SPF_WORK_UNSEEN and arg == G.SPF_UNSEEN_NO_TICK)
end

-- Returns the name of work SPF_WORK_* with its argument.
function work.name(what, arg)
  local name = namer[what]
  return name and name(arg) or ("[work %.0f]"):format(what)
end

-- Returns the name of a trace from the payload of SPF_FRAME_TRACE.
function work.trace_name(payload)
  return ("[trace %.0f%s]"):format(math.floor(payload / 2),
				   payload % 2 == 1 and " loop" or "")
end

return work
