/*
** POSIX timers (timer_create): clocks of a thread's CPU time and of real time.
** Context: see lj_clockops.h.
**
** Their signals go to one thread and carry the clock's value.
*/

#define lj_clock_timer_c
#define LUA_CORE

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#include "profile/clock/lj_clock_timer.h"
#include "profile/base/lj_nanotime.h"
#include "profile/base/lj_ossignal.h"
#include "profile/base/lj_relaxed.h"
#include "profile/base/lj_seccomp.h"

static struct timespec timespec_of(uint64_t ns)
{
  struct timespec ts;
  ts.tv_sec = (time_t)(ns / 1000000000u);
  ts.tv_nsec = (long)(ns % 1000000000u);
  return ts;
}

/* -- Not in the handler ------------------------------------------------------ */

static int timer_open(Clock *c, clockid_t id, char *errmsg)
{
  static const SeccompCall calls[] = { SECCOMP_CALL(timer_create),
				       SECCOMP_CALL(timer_settime),
				       SECCOMP_CALL(timer_delete) };
  static SeccompKnown known;
  const char *call = lj_seccomp_deadly(calls, sizeof(calls) / sizeof(calls[0]), &known);
  int err = EPERM;
  if (!call) {
    call = "timer_create";
    if (lj_ossignal_timer(id, c->tid, c->signo, c->value, &c->timer) == 0) return 0;
    err = errno;
  }
  if (lj_seccomp_isrefusal(err))
    snprintf(errmsg, EVENT_ERRMSG_MAX,
	     "clock '%s': %s is forbidden, for example by a container's seccomp profile; "
	     "allow it there",
	     c->spec.name, call);
  else
    snprintf(errmsg, EVENT_ERRMSG_MAX, "clock '%s': %s", c->spec.name,
	     err == EAGAIN   ? "too many timers or queued signals; raise `ulimit -i`"
	     : err == EINVAL ? "the thread has ended"
			     : strerror(err));
  return err;
}

static int ctimer_open(Clock *c, char *errmsg)
{
  return timer_open(c, thread_clock(c->tid), errmsg);
}

static int wall_signal_open(Clock *c, char *errmsg)
{
  return timer_open(c, CLOCK_MONOTONIC, errmsg);
}

static void timer_stop(Clock *c)
{
  timer_delete(c->timer);
}

/* -- Handler ----------------------------------------------------------------- */

/* Start the timer. It repeats by itself, even if a signal is lost. The kernel sets up the
** next expiry when the thread takes the signal. So there is one interrupt a handler at most.
*/
static int timer_arm(Clock *c, uint64_t first)
{
  struct itimerspec its;
  its.it_value = timespec_of(first);
  its.it_interval = timespec_of(c->single ? 0 : lj_clockops_mean(c));
  __atomic_store_n(&c->armed, 1, __ATOMIC_SEQ_CST);
  return timer_settime(c->timer, 0, &its, NULL) == 0 ? 0 : errno;
}

int lj_clock_timer_every(const Clock *c, uint64_t ns)
{
  struct itimerspec its;
  its.it_value = its.it_interval = timespec_of(ns);
  return timer_settime(c->timer, 0, &its, NULL) == 0 ? 0 : errno;
}

static uint64_t timer_count(const Clock *c)
{
  return thread_ns(c->tid);
}

/* The kernel counts -1 overruns if the timer came a little early. */
static int timer_tick(Clock *c, const siginfo_t *info)
{
  if (c->spec.jitter) timer_arm(c, lj_clockops_period(c));
  return info->si_code == SI_TIMER && info->si_overrun > 0 ? info->si_overrun : 0;
}

/* Other threads read them. */
static void switches_set(ThreadSwitches *to, const ThreadSwitches *ts)
{
  relaxed_set(&to->cpu_ns, ts->cpu_ns);
  relaxed_set(&to->preempted, ts->preempted);
}

static int ctimer_tick(Clock *c, const siginfo_t *info)
{
  ThreadSwitches now;
  lj_clockops_switches(&now);
  if (c->first.cpu_ns == 0) switches_set(&c->first, &now);
  switches_set(&c->now, &now);
  return timer_tick(c, info);
}

static int ctimer_arm(Clock *c, uint64_t first)
{
  c->first.cpu_ns = 0;
  return timer_arm(c, first);
}

static void timer_setperiod(Clock *c, uint64_t ns)
{
  c->period_set = ns;
  timer_arm(c, lj_clockops_period(c));
}

const ClockOps lj_clock_ctimer_ops = { .open = ctimer_open,
				       .arm = ctimer_arm,
				       .stop = timer_stop,
				       .count = timer_count,
				       .tick = ctimer_tick,
				       .setperiod = timer_setperiod };

const ClockOps lj_clock_wall_signal_ops = { .open = wall_signal_open,
					    .arm = timer_arm,
					    .stop = timer_stop,
					    .count = timer_count,
					    .tick = timer_tick,
					    .setperiod = timer_setperiod,
					    .probe = "wall-signal" };
