/*
** The timer of the process (setitimer), for systems without timer_create.
** Context: see lj_clockops.h.
**
** It counts the CPU time of all threads. The kernel sends its signal to any running
** thread, not always fairly. The handler forwards a signal to a thread that the kernel
** has passed over.
*/

#define lj_clock_itimer_c
#define LUA_CORE

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <stdio.h>
#include <sys/time.h>

#include "profile/clock/lj_clock_itimer.h"
#include "profile/base/lj_nanotime.h"
#include "profile/base/lj_osthread.h"
#include "profile/base/lj_relaxed.h"

#define PERIODS_STARVED 3 /* After so many without a tick, the thread is passed over. */

/* Under the lock of lj_clock; the handler reads users. */
static int users;          /* Clocks. */
static uint64_t period_us; /* The shortest period of the armed clocks. */

static struct timeval timeval_of(uint64_t us)
{
  struct timeval tv;
  tv.tv_sec = (time_t)(us / 1000000u);
  tv.tv_usec = (suseconds_t)(us % 1000000u);
  return tv;
}

/* Start the timer with a period, or stop it with 0. */
static int itimer_set(uint64_t first, uint64_t period)
{
  struct itimerval it;
  it.it_value = timeval_of(first);
  it.it_interval = timeval_of(period);
  return setitimer(ITIMER_PROF, &it, NULL) == 0 ? 0 : errno;
}

/* -- Not in the handler ------------------------------------------------------ */

static int itimer_open(Clock *c, char *errmsg)
{
  struct itimerval it;
  if (c->signo != SIGPROF) {
    snprintf(errmsg, EVENT_ERRMSG_MAX,
	     "clock '%s' works with the signal SIGPROF only, not with %d", c->spec.name,
	     c->signo);
    return EINVAL;
  }
  if (users == 0 && getitimer(ITIMER_PROF, &it) == 0 &&
      (it.it_value.tv_sec || it.it_value.tv_usec)) {
    snprintf(errmsg, EVENT_ERRMSG_MAX,
	     "clock '%s': the program uses setitimer(ITIMER_PROF) "
	     "itself; stop that, or choose another clock",
	     c->spec.name);
    return EBUSY;
  }
  if (users == 0) period_us = 0;
  relaxed_add(&users, 1);
  return 0;
}

static int itimer_arm(Clock *c, uint64_t first)
{
  uint64_t us = c->spec.period / 1000;
  UNUSED(first);
  c->last = thread_ns(c->tid);
  __atomic_store_n(&c->armed, 1, __ATOMIC_SEQ_CST);
  if (period_us && period_us <= us) return 0;
  period_us = us;
  return itimer_set(lj_clockops_random(c, us), us);
}

/* While other clocks run, the period remains the shortest one. */
static void itimer_stop(Clock *c)
{
  struct itimerval it;
  UNUSED(c);
  relaxed_add(&users, -1);
  if (users > 0) return;
  /* With another interval, the program has set the timer itself. */
  if (getitimer(ITIMER_PROF, &it) == 0 &&
      (uint64_t)it.it_interval.tv_sec * 1000000u + (uint64_t)it.it_interval.tv_usec ==
	period_us)
    itimer_set(0, 0);
}

static void itimer_forget(void)
{
  relaxed_set(&users, 0);
}

/* -- Handler ----------------------------------------------------------------- */

static int itimer_issignal(int signo, int si_code)
{
  return signo == SIGPROF && si_code == SI_KERNEL;
}

static int itimer_isused(void)
{
  return relaxed_get(&users) > 0;
}

static uint64_t itimer_count(const Clock *c)
{
  return thread_ns(c->tid);
}

static int itimer_tick(Clock *c, const siginfo_t *info)
{
  uint64_t now = clock_ns(CLOCK_THREAD_CPUTIME_ID), delta = now - c->last;
  UNUSED(info);
  if (delta < c->period_set) return -1;
  relaxed_set(&c->last, now);
  return lj_clockops_overrun(c, delta);
}

/* The timer is the process's, so the clock leaves out its ticks. */
static void itimer_setperiod(Clock *c, uint64_t ns)
{
  relaxed_set(&c->period_set, ns);
}

static int itimer_isstarved(const Clock *c)
{
  uint64_t now = thread_ns(c->tid), last = relaxed_get(&c->last);
  uint64_t set = relaxed_get(&c->period_set), period = set ? set : c->spec.period;
  /* A signal would wake a thread that sleeps. */
  return now > last && now - last >= PERIODS_STARVED * period &&
	 lj_osthread_state(c->tid) == 'R';
}

const ClockOps lj_clock_itimer_ops = { .open = itimer_open,
				       .arm = itimer_arm,
				       .stop = itimer_stop,
				       .forget = itimer_forget,
				       .count = itimer_count,
				       .tick = itimer_tick,
				       .setperiod = itimer_setperiod,
				       .issignal = itimer_issignal,
				       .isused = itimer_isused,
				       .isstarved = itimer_isstarved,
				       .only_signo = SIGPROF,
				       .has_last = 1,
				       .note = "exec keeps itimer, and its SIGPROF "
					       "ends the new program" };
