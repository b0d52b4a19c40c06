/*
** The timer of the process, setitimer(ITIMER_PROF): where there is no other. It
** counts the CPU time of all threads, and its signal goes to a thread that is
** running, not always fairly. A thread that is passed over gets a signal from
** the others.
*/

#define lj_clock_itimer_c
#define LUA_CORE

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <stdio.h>
#include <sys/time.h>

#include "profile/clock/lj_clockops.h"
#include "profile/base/lj_procfile.h"
#include "profile/base/lj_relaxed.h"

#define PERIODS_STARVED 3 /* Without a tick: a thread is passed over. */

/* Under lj_clock's lock, but for the handler's look at it. */
static int users;          /* Clocks. */
static uint64_t period_us; /* Shortest of the armed clocks'. */

static struct timeval timeval_of(uint64_t us)
{
  struct timeval tv;
  tv.tv_sec = (time_t)(us / 1000000u);
  tv.tv_usec = (suseconds_t)(us % 1000000u);
  return tv;
}

/* Start it with a period, or stop it: 0. */
static int itimer_set(uint64_t first, uint64_t period)
{
  struct itimerval it;
  it.it_value = timeval_of(first);
  it.it_interval = timeval_of(period);
  return setitimer(ITIMER_PROF, &it, NULL) == 0 ? 0 : errno;
}

int lj_clock_itimer_open(Clock *c, char *why)
{
  struct itimerval it;
  if (c->signo != SIGPROF) {
    snprintf(why, CLOCK_WHY_MAX, "clock '%s' has the signal SIGPROF only, not %d",
	     c->spec.name, c->signo);
    return EINVAL;
  }
  if (users == 0 && getitimer(ITIMER_PROF, &it) == 0 &&
      (it.it_value.tv_sec || it.it_value.tv_usec)) {
    snprintf(why, CLOCK_WHY_MAX,
	     "clock '%s': the program uses setitimer(ITIMER_PROF) "
	     "itself; stop that, or ask for another clock",
	     c->spec.name);
    return EBUSY;
  }
  if (users == 0) period_us = 0;
  relaxed_add(&users, 1);
  return 0;
}

int lj_clock_itimer_arm(Clock *c)
{
  uint64_t us = c->spec.period / 1000;
  c->last = lj_clock_thread_ns(c->tid);
  __atomic_store_n(&c->armed, 1, __ATOMIC_SEQ_CST);
  if (period_us && period_us <= us) return 0;
  period_us = us;
  return itimer_set(lj_clock_random(c, us), us);
}

/* The period stays the shortest there was. */
void lj_clock_itimer_stop(Clock *c)
{
  struct itimerval it;
  UNUSED(c);
  relaxed_add(&users, -1);
  if (users > 0) return;
  /* Unless the program has taken it over. */
  if (getitimer(ITIMER_PROF, &it) == 0 &&
      (uint64_t)it.it_interval.tv_sec * 1000000u + (uint64_t)it.it_interval.tv_usec ==
	period_us)
    itimer_set(0, 0);
}

void lj_clock_itimer_forget(void)
{
  relaxed_set(&users, 0);
}

/* -- Handler ----------------------------------------------------------------- */

int lj_clock_itimer_issignal(int signo, int si_code)
{
  return relaxed_get(&users) > 0 && signo == SIGPROF && si_code == SI_KERNEL;
}

int lj_clock_itimer_tick(Clock *c)
{
  uint64_t now = lj_clock_thread_ns(c->tid);
  uint64_t n = (now - c->last + c->spec.period / 2) / c->spec.period;
  relaxed_set(&c->last, now);
  return n > 1 ? (int)(n > 0x7fffffff ? 0x7fffffff : n - 1) : 0;
}

/* Is a thread on a processor, or waiting for one? One that sleeps must not be
** woken. The state follows the name, which is in parentheses and may have some.
*/
static int is_runnable(int tid)
{
  char text[128];
  ssize_t len = lj_procfile_task(tid, "stat", text, sizeof(text));
  while (len > 0 && text[len - 1] != ')') len--;
  return len > 0 && text[len] == ' ' && text[len + 1] == 'R';
}

int lj_clock_itimer_isstarved(const Clock *c)
{
  uint64_t now = lj_clock_thread_ns(c->tid), last = relaxed_get(&c->last);
  return now > last && now - last >= PERIODS_STARVED * c->spec.period &&
	 is_runnable(c->tid);
}
