----------------------------------------------------------------------------
-- Random frames for what a thread waits for, and how these are shown.
--
-- Some have numbers that no table knows: a later kernel or profiler may write them.
----------------------------------------------------------------------------

local G = require("sysprof.base.grammar")

local random_waits = {}

-- System calls by number, as in the kernel's table. false: there is none.
local CALLS = {
  { 0, "read" }, { 7, "poll" }, { 17, "pread64" }, { 35, "nanosleep" }, { 202, "futex" },
  { 232, "epoll_wait" }, { 334, "rseq" }, { 424, "pidfd_send_signal" }, { 441, "epoll_pwait2" }, { 219, "restart_syscall" },
  { 335, false }, { 400, false }, { 423, false }, { 5000, false }, { 4294967294, false },
}

local function call(number, name)
  return { G.SPF_WORK_WAIT, number + 1, ("[waiting: %s]"):format(name or ("system call %.0f"):format(number)) }
end

-- Other waits: { work, argument, shown text }. no_wait: a thread that waits for nothing.
local OTHERS = {
  { G.SPF_WORK_WAIT, 0, "[waiting]" },
  { G.SPF_WORK_FAULT, 0, "[page fault]" },
  { G.SPF_WORK_READY, 0, "[runnable]" },
  { G.SPF_WORK_SHORT, 0, "[short waits]" },
  { G.SPF_WORK_BUSY, 0, "[thread busy]" },
  { G.SPF_WORK_LOST, 0, "[waits lost]", no_wait = true },
  { G.SPF_WORK_UNKEPT, 0, "[lost samples]", no_wait = true },
  { G.SPF_WORK_OTHERS, 0, "[threads not sampled]", no_wait = true },
  { G.SPF_WORK_UNSEEN, G.SPF_UNSEEN_MANY, "[stack unknown: too many waits]" },
  { G.SPF_WORK_UNSEEN, G.SPF_UNSEEN_LATE, "[stack unknown: seen too late]" },
  { G.SPF_WORK_UNSEEN, G.SPF_UNSEEN_MOVED, "[stack unknown: the thread ran meanwhile]" },
  { G.SPF_WORK_UNSEEN, G.SPF_UNSEEN_HIDDEN, "[stack unknown: hidden by the kernel]" },
  { G.SPF_WORK_UNSEEN, G.SPF_UNSEEN_NO_TICK, "[stack unknown: no tick came]", no_wait = true },
  { G.SPF_WORK_UNSEEN, 9, "[stack unknown: reason 9]" },
  { 40, 7, "[work 40]" },
}

random_waits.OTHERS = OTHERS

-- Returns a wait, mostly one for events.
function random_waits.of_events(random)
  local known = CALLS[random(4) == 1 and random(#CALLS) or ({ 2, 6, 9, 10 })[random(4)]]
  return random(12) == 1 and OTHERS[random(2)] or call(known[1], known[2])
end

-- Returns a list of a few waits, as in OTHERS.
function random_waits.few(random)
  local list = {}
  for i = 1, random(4) do
    if random(2) == 1 then
      local known = CALLS[random(#CALLS)]
      list[i] = call(known[1], known[2])
    else
      list[i] = OTHERS[random(#OTHERS)]
    end
  end
  return list
end

return random_waits
