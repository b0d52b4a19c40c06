/*
** POSIX timers: a thread's CPU time, and real time. Their signals go to one thread
** and carry a value.
*/

#define lj_clock_timer_c
#define LUA_CORE

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* For SIGEV_THREAD_ID. */
#endif
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "profile/clock/lj_clockops.h"

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

static struct timespec timespec_of(uint64_t ns)
{
  struct timespec ts;
  ts.tv_sec = (time_t)(ns / 1000000000u);
  ts.tv_nsec = (long)(ns % 1000000000u);
  return ts;
}

int lj_clock_timer_open(Clock *c, char *why)
{
  clockid_t id = c->spec.kind == CLOCK_WALL ? CLOCK_MONOTONIC : lj_clock_thread_id(c->tid);
  struct sigevent ev;
  int err;
  memset(&ev, 0, sizeof(ev));
  ev.sigev_notify = SIGEV_THREAD_ID;
  ev.sigev_signo = c->signo;
  ev.sigev_value.sival_ptr = (void *)c->value;
  ev.sigev_notify_thread_id = c->tid;
  if (timer_create(id, &ev, &c->timer) == 0) return 0;
  err = errno;
  snprintf(why, CLOCK_WHY_MAX, "clock '%s': %s", c->spec.name,
	   err == EAGAIN   ? "too many timers or queued signals; raise `ulimit -i`"
	   : err == EINVAL ? "the thread is gone"
	   : err == EPERM || err == ENOSYS
	     ? "timer_create is forbidden here, as by a container's seccomp profile; "
	       "allow it, or use clock 'cpu'"
	     : strerror(err));
  return err;
}

int lj_clock_timer_arm(Clock *c, uint64_t first)
{
  struct itimerspec its;
  its.it_value = timespec_of(first);
  its.it_interval = timespec_of(c->spec.period);
  __atomic_store_n(&c->armed, 1, __ATOMIC_SEQ_CST);
  return timer_settime(c->timer, 0, &its, NULL) == 0 ? 0 : errno;
}

void lj_clock_timer_stop(Clock *c)
{
  timer_delete(c->timer);
}

/* The interval goes on by itself, should this signal be lost. A kernel's count of
** overruns is -1 if the timer came a little early.
*/
int lj_clock_timer_tick(Clock *c, const siginfo_t *info)
{
  if (c->spec.jitter) lj_clock_timer_arm(c, lj_clock_jitter(c));
  return info->si_code == SI_TIMER && info->si_overrun > 0 ? info->si_overrun : 0;
}
