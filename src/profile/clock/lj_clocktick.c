/*
** Ticks of a clock as samples of its event: total, throttle, counters.
** Context: handler, on the clock's thread.
*/

#define lj_clocktick_c
#define LUA_CORE

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* For the names of the registers in ucontext_t. */
#endif
#include <errno.h>

#include "profile/base/lj_nanotime.h"
#include "profile/base/lj_ossignal.h"
#include "profile/base/lj_relaxed.h"
#include "profile/clock/lj_clocksig.h"
#include "profile/clock/lj_clocktick.h"

/* Time from the last tick to this one: the period of a clock. Events have no period in
** time, so their interval is measured.
*/
static uint64_t tick_interval(const ClockSource *src, uint64_t now_ns)
{
  return src->clock.spec.unit == SPF_UNIT_US ? src->clock.spec.period
	 : src->tick_ns                      ? now_ns - src->tick_ns
					     : ~(uint64_t)0;
}

/* Total of the event at this tick. cpu_ns: CPU time of the thread. */
static uint64_t tick_total(const Clock *c, uint64_t cpu_ns)
{
  return c->spec.unit == SPF_UNIT_US ? cpu_ns / 1000 : lj_clocksig_total(c);
}

/* Has the signal ended a system call? The instruction that calls the kernel leaves the address
** behind it in RCX (Intel's manual, SYSCALL).
*/
static int has_ended_call(const WalkRegs *regs)
{
  return (intptr_t)regs->r[WALKREG_AX] == -EINTR &&
	 regs->r[WALKREG_CX] == regs->r[WALKREG_PC];
}

/* A tick of CPU time that comes so many periods late, and so much time, was held up. */
#define LATE_PERIODS 2
#define LATE_NS      20000000 /* Two ticks of the slowest kernel. */

/* Has the thread just called rt_sigprocmask, to unblock signals? R10 has the size of the mask. */
static int has_unblocked(const ucontext_t *uc)
{
  const greg_t *r = uc->uc_mcontext.gregs;
  return r[REG_RAX] == 0 && r[REG_RCX] == r[REG_RIP] && r[REG_R10] == _NSIG / 8 &&
	 (r[REG_RDI] == SIG_UNBLOCK || r[REG_RDI] == SIG_SETMASK);
}

/* Did the thread block the signal when the period ended? Then the place of the tick says nothing.
** It blocks the signal if only a system call such as ppoll() or sigsuspend() lets it through: the
** handler's return blocks it again. It did so if a late tick comes with the end of the call that
** unblocks signals. Time in the kernel delays ticks, too, but to the end of another call.
*/
static LJ_AINLINE int was_blocked(const ClockSource *src, int overrun, uint64_t cpu_ns,
				  const ucontext_t *uc)
{
  const Clock *c = &src->clock;
  uint64_t mean = lj_clockops_mean(c), late_ns = (uint64_t)overrun * mean;
  if (c->spec.unit != SPF_UNIT_US || c->spec.kind == CLOCK_WALL_SIGNAL) return 0;
  if (LJ_UNLIKELY(lj_ossignal_maskof(&uc->uc_sigmask) & ossignal_bit(c->signo))) return 1;
  if (LJ_LIKELY(!has_unblocked(uc)) || lj_clocksig_forking != 0) return 0;
  /* An event that stops at each tick counts no overruns. */
  if (src->tick_cpu_ns != 0 && cpu_ns - src->tick_cpu_ns > mean + late_ns)
    late_ns = cpu_ns - src->tick_cpu_ns - mean;
  return late_ns >= LATE_PERIODS * mean && late_ns >= LATE_NS;
}

/* Lose the time of ticks that did not count, up to a total. */
static void uncounted_lose(Event *ev, uint64_t total)
{
  Clock *c = &clocksource_of(ev)->clock;
  uint64_t n = __atomic_exchange_n(&c->uncounted, 0, __ATOMIC_RELAXED);
  SampleHead head = { 0 };
  if (n == 0) return;
  head.total = total;
  ev->take(ev, &head, NULL);
  relaxed_add(&ev->counters[SPF_EVENT_OVERRUNS], n - 1);
}

/* The last period is that of the tick that comes now. Some clocks count the periods before it in its
** overrun.
*/
static void uncounted_before(Event *ev, uint64_t total)
{
  const Clock *c = &clocksource_of(ev)->clock;
  uint64_t own = lj_clockops_mean(c);
  if (c->spec.unit == SPF_UNIT_US) own /= 1000;
  uncounted_lose(ev, total > own ? total - own : 1);
}

void lj_clocktick_lose(Event *ev)
{
  if (relaxed_get(&clocksource_of(ev)->clock.uncounted) != 0)
    uncounted_lose(ev, ev->spec.ops->total(ev));
}

void lj_clocktick_sample(void *owner, int overrun, ucontext_t *uc)
{
  Event *ev = (Event *)owner;
  ClockSource *src = clocksource_of(ev);
  Clock *c = &src->clock;
  uint64_t interval, spent, left_out;
  SampleHead head = { .time_ns = c->begin_ns };
  WalkRegs regs;
  if (overrun > 0) relaxed_add(&ev->counters[SPF_EVENT_OVERRUNS], (uint64_t)overrun);
  if (LJ_LIKELY(uc != NULL)) {
    lj_walkregs_interrupted(&regs, uc);
    if (LJ_UNLIKELY(has_ended_call(&regs)))
      relaxed_add(&ev->counters[SPF_EVENT_ENDED_CALLS], 1);
  }
  if (!lj_throttle_enter(head.time_ns)) {
    relaxed_add(&ev->counters[SPF_EVENT_THROTTLED], 1);
    src->tick_cpu_ns = 0;
    return;
  }
  interval = tick_interval(src, head.time_ns);
  head.cpu_ns = lj_clocksig_cpu_ns(c);
  head.total = tick_total(c, head.cpu_ns);
  if (LJ_LIKELY(uc != NULL) && was_blocked(src, overrun, head.cpu_ns, uc)) uc = NULL;
  src->tick_cpu_ns = head.cpu_ns;
  if (LJ_UNLIKELY(relaxed_get(&c->uncounted) != 0)) uncounted_before(ev, head.total);
  if (!ev->take(ev, &head, uc ? &regs : NULL)) return;
  src->tick_ns = head.time_ns;
  relaxed_add(&ev->counters[SPF_EVENT_SIGNAL_NS], c->signal_ns);
  /* A clock of real time goes on while the handler waits for the processor. */
  spent = c->spec.kind == CLOCK_WALL_SIGNAL ? head.end_ns - head.time_ns : head.spent_ns;
  left_out = lj_throttle_leave(&src->throttle, c, head.end_ns, spent, interval);
  if (left_out) relaxed_add(&ev->counters[SPF_EVENT_THROTTLED], left_out);
}

uint64_t lj_clocktick_total(const Event *ev)
{
  if (ev->spec.unit == SPF_UNIT_US) return thread_ns(ev->tid) / 1000;
  return ev->is_open ? lj_clocksig_total(&clocksource_of(ev)->clock) : 0;
}
