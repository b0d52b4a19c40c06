/*
** task-clock at random times, below the rate of the kernel's tick.
** Context: see lj_clockops.h.
**
** While the event ticks, the timer looks after it, some times in a second of CPU time.
*/

#define lj_clock_offtick_c
#define LUA_CORE

#include <errno.h>
#include <sys/resource.h>

#include "profile/base/lj_nanotime.h"
#include "profile/base/lj_relaxed.h"
#include "profile/clock/lj_clock_offtick.h"
#include "profile/clock/lj_clock_perf.h"
#include "profile/clock/lj_clock_timer.h"

#define LOOK_NS 200000000 /* CPU time between two looks. */
#define LOOKS   10        /* After so many busy ones the event is over. */
#define CALMER  2         /* The event takes over again below this part of the switches. */

/* Who ticks: Clock.on_tick. */
enum {
  EVENT_TICKS = 0,
  TIMER_TICKS,
  EVENT_OVER /* The timer ticks from now on. The handler leaves the descriptor alone. */
};

/* -- Not in the handler ------------------------------------------------------ */

/* Does a descriptor leave at least half of those that the process may have? The kernel gives the
** lowest number that is free.
*/
static int fd_isspare(int fd)
{
  struct rlimit limit;
  return getrlimit(RLIMIT_NOFILE, &limit) != 0 || (rlim_t)fd < limit.rlim_cur / 2;
}

static int offtick_open(Clock *c, char *errmsg)
{
  int err = lj_clock_perf_ops.open(c, errmsg);
  if (err != 0) return err;
  err = fd_isspare(c->fd) ? lj_clock_ctimer_ops.open(c, errmsg) : EMFILE;
  if (err == 0) return 0;
  lj_clock_perf_ops.drained(c);
  lj_clock_perf_ops.close(c);
  c->kernel_ns = 0; /* Another kind may be opened in its place. */
  return err;
}

static void offtick_stop(Clock *c)
{
  lj_clock_ctimer_ops.stop(c);
  lj_clock_perf_ops.stop(c);
}

static void offtick_drained(Clock *c)
{
  lj_clock_perf_ops.drained(c);
}

static void offtick_close(Clock *c)
{
  lj_clock_perf_ops.close(c);
}

/* An event costs something at each switch even while it is off. */
static void offtick_revive(Clock *c)
{
  if (__atomic_load_n(&c->on_tick, __ATOMIC_ACQUIRE) != EVENT_OVER || c->fd < 0) return;
  lj_clock_perf_ops.drained(c);
  lj_clock_perf_ops.close(c);
}

/* -- Handler, or before the first tick --------------------------------------- */

/* Let the event tick, at random times, and the timer look after it. */
static int event_ticks(Clock *c, uint64_t first)
{
  int err = lj_clock_timer_every(c, LOOK_NS);
  relaxed_set(&c->on_tick, EVENT_TICKS);
  c->spec.jitter = 1;
  return err ? err : lj_clock_perf_ops.arm(c, first);
}

/* Let the timer tick in the event's place. */
static void timer_ticks(Clock *c)
{
  lj_clock_perf_pause(c);
  relaxed_set(&c->on_tick, TIMER_TICKS);
  c->spec.jitter = 0; /* Below a tick it would only lower the rate. */
  relaxed_set(&c->was_on_tick, 1);
  c->nlook = 0;
  lj_clock_ctimer_ops.arm(c, lj_clockops_period(c));
}

static int offtick_arm(Clock *c, uint64_t first)
{
  c->looked.cpu_ns = 0;
  return event_ticks(c, first);
}

/* Choose who ticks from now on, by the switches in a second of CPU time since the last look. */
static void look(Clock *c)
{
  ThreadSwitches now, before = c->looked;
  uint64_t switches, most;
  lj_clockops_switches(&now);
  if (now.cpu_ns < before.cpu_ns + LOOK_NS / 2) return;
  c->looked = now;
  if (before.cpu_ns == 0) return;
  switches = now.waits + now.preempted - before.waits - before.preempted;
  most = OFFTICK_SWITCHES * (now.cpu_ns - before.cpu_ns) / 1000000000u;
  if (c->on_tick == EVENT_TICKS) {
    if (switches > most || !lj_clock_perf_isopen(c)) timer_ticks(c);
  } else if (c->on_tick == TIMER_TICKS && ++c->nlook >= LOOKS) {
    __atomic_store_n(&c->on_tick, EVENT_OVER, __ATOMIC_RELEASE);
  } else if (c->on_tick == TIMER_TICKS && switches < most / CALMER &&
	     lj_clock_perf_isopen(c)) {
    event_ticks(c, lj_clockops_period(c));
  }
}

static int timer_tick(Clock *c, const siginfo_t *info)
{
  int overrun = -1;
  if (c->on_tick != EVENT_TICKS) overrun = lj_clock_ctimer_ops.tick(c, info);
  /* While the thread blocks the signal, the kernel keeps only one: it drops the event's. */
  else if (lj_clock_perf_ops.isdue(c)) overrun = lj_clock_perf_ops.tick(c, info);
  look(c);
  return overrun;
}

static int is_timers(const Clock *c, const siginfo_t *info)
{
  return info->si_code == SI_TIMER && (uintptr_t)info->si_value.sival_ptr == c->value;
}

static int offtick_tick(Clock *c, const siginfo_t *info)
{
  if (is_timers(c, info)) return timer_tick(c, info);
  return c->on_tick != EVENT_TICKS ? -1 : lj_clock_perf_ops.tick(c, info);
}

static void offtick_setperiod(Clock *c, uint64_t ns)
{
  const ClockOps *ops = c->on_tick != EVENT_TICKS ? &lj_clock_ctimer_ops
						  : &lj_clock_perf_ops;
  ops->setperiod(c, ns);
}

/* A thread's CPU time, both ways. */
static uint64_t offtick_count(const Clock *c)
{
  return thread_ns(c->tid);
}

static uintptr_t offtick_value(const siginfo_t *info)
{
  return lj_clock_perf_ops.value(info);
}

const ClockOps lj_clock_offtick_ops = { .open = offtick_open,
					.arm = offtick_arm,
					.stop = offtick_stop,
					.drained = offtick_drained,
					.close = offtick_close,
					.revive = offtick_revive,
					.count = offtick_count,
					.tick = offtick_tick,
					.setperiod = offtick_setperiod,
					.value = offtick_value };
