/*
** Clocks: from open to close, and the tick.
** Open, arm and close run outside of the handler, the first and the last under
** a lock; lj_clock_tick runs in the handler.
*/

#define lj_clock_c
#define LUA_CORE

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>

#include "profile/clock/lj_clockops.h"
#include "profile/clock/lj_clockaction.h"
#include "profile/clock/lj_clockslot.h"
#include "profile/base/lj_nanotime.h"
#include "profile/base/lj_relaxed.h"
#include "profile/clock/lj_sigpending.h"
#include "profile/base/lj_osthread.h"

/* Under the lock. */
static pthread_mutex_t clock_lock = PTHREAD_MUTEX_INITIALIZER;
static int nclocks;      /* Clocks in slots. */
static int jitp_running; /* The only one is jit.profile's. */
static pid_t clocks_pid; /* Process that they belong to. */

/* -- Handler ----------------------------------------------------------------- */

uint64_t lj_clock_random(Clock *c, uint64_t n)
{
  c->random ^= c->random << 13;
  c->random ^= c->random >> 7;
  c->random ^= c->random << 17;
  return 1 + c->random % n;
}

/* CPUCLOCK_PERTHREAD_MASK and CPUCLOCK_SCHED of the kernel. */
clockid_t lj_clock_thread_id(int tid)
{
  return (clockid_t)((~(unsigned int)tid << 3) | 6);
}

uint64_t lj_clock_thread_ns(int tid)
{
  return clock_ns(lj_clock_thread_id(tid));
}

uint64_t lj_clock_tick_cpu_ns(const Clock *c)
{
  int is_known = (c->spec.kind == CLOCK_PERF && c->spec.unit == SPF_UNIT_US) ||
		 c->spec.kind == CLOCK_ITIMER;
  return is_known ? c->last : clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

/* In a tick it is what the tick has found, the same for all who ask. */
uint64_t lj_clock_total(const Clock *c)
{
  int is_time = (c->spec.unit == SPF_UNIT_US);
  uint64_t total;
  if ((c->spec.kind == CLOCK_PERF || c->spec.kind == CLOCK_ITIMER) &&
      clockslot_isticking(c))
    total = relaxed_get(&c->last);
  else total = is_time ? lj_clock_thread_ns(c->tid) : lj_clock_perf_count(c);
  return is_time ? total / 1000 : total;
}

uint64_t lj_clock_jitter(Clock *c)
{
  return c->spec.period / 2 + lj_clock_random(c, c->spec.period);
}

void lj_clock_tick(Clock *c, const siginfo_t *info, ucontext_t *uc)
{
  int overrun;
  /* A late signal of a clock that had this descriptor before? */
  if (!__atomic_load_n(&c->armed, __ATOMIC_SEQ_CST)) return;
  switch (c->spec.kind) {
  case CLOCK_PERF: overrun = lj_clock_perf_tick(c); break;
  case CLOCK_ITIMER: overrun = lj_clock_itimer_tick(c); break;
  default: overrun = lj_clock_timer_tick(c, info); break;
  }
  if (overrun >= 0) c->tick(c->owner, c->event, overrun, uc);
}

/* -- Fork -------------------------------------------------------------------- */

/* The table describes the clocks of another process, and whoever held the lock
** is not in this one.
*/
void lj_clock_forget(void)
{
  static const pthread_mutex_t unlocked = PTHREAD_MUTEX_INITIALIZER;
  pid_t was = relaxed_get(&clocks_pid), pid = getpid();
  if (was == pid ||
      !__atomic_compare_exchange_n(&clocks_pid, &was, pid, 0, __ATOMIC_SEQ_CST,
				   __ATOMIC_SEQ_CST) ||
      was == 0)
    return;
  clock_lock = unlocked;
  lj_clock_perf_forget();
  lj_clock_itimer_forget();
  lj_osthread_forget();
  lj_clockslot_forget();
  lj_clockaction_forget();
  nclocks = jitp_running = 0;
}

/* -- Open, arm, close -------------------------------------------------------- */

static void random_seed(Clock *c)
{
  c->random = ((mono_ns() << 20) ^ ((uint64_t)(unsigned int)c->tid << 40) ^ (uintptr_t)c) |
	      1;
  lj_clock_random(c, 1);
  c->random *= U64x(9e3779b9, 7f4a7c15);
}

static int kind_open(Clock *c, char *why)
{
  switch (c->spec.kind) {
  case CLOCK_PERF: return lj_clock_perf_open(c, why);
  case CLOCK_ITIMER: return lj_clock_itimer_open(c, why);
  default: return lj_clock_timer_open(c, why);
  }
}

static void kind_stop(Clock *c)
{
  switch (c->spec.kind) {
  case CLOCK_PERF: lj_clock_perf_stop(c); break;
  case CLOCK_ITIMER: lj_clock_itimer_stop(c); break;
  default: lj_clock_timer_stop(c); break;
  }
}

/* The kernel looks at CPU timers on its tick only: what ticks faster needs the
** task clock. That takes an interrupt for each tick, where the timer takes none.
*/
static int cpu_isfast(const ClockSpec *spec)
{
  struct timespec ts;
  return clock_getres(CLOCK_MONOTONIC_COARSE, &ts) == 0 &&
	 spec->period < (uint64_t)ts.tv_nsec;
}

static int cpu_open(Clock *c, char *why)
{
  static const struct {
    ClockKind kind;
    const char *name;
  } slow[] = { { CLOCK_CTIMER, "ctimer" },
	       { CLOCK_PERF, "task-clock" },
	       { CLOCK_ITIMER, "itimer" } },
    fast[] = { { CLOCK_PERF, "task-clock" },
	       { CLOCK_CTIMER, "ctimer" },
	       { CLOCK_ITIMER, "itimer" } };
  char last[CLOCK_WHY_MAX];
  int i, err = 0, is_fast = cpu_isfast(&c->spec);
  c->spec.type = PERF_TYPE_SOFTWARE;
  c->spec.config = PERF_COUNT_SW_TASK_CLOCK;
  for (i = 0; i < 3; i++) {
    c->spec.kind = is_fast ? fast[i].kind : slow[i].kind;
    strcpy(c->spec.name, is_fast ? fast[i].name : slow[i].name);
    err = kind_open(c, last);
    if (err == 0) return 0;
  }
  snprintf(why, CLOCK_WHY_MAX,
	   "no clock for 'cpu': neither ctimer nor task-clock can "
	   "be had, and %.160s",
	   last);
  return err;
}

/* A signal of perf that comes in the middle of exec() stays pending for the new
** program, which it would end, but for SIGURG, whose default action is none. Those of
** timers are taken back by the kernel.
*/
static int signal_default(const ClockSpec *spec)
{
  return spec->kind == CLOCK_PERF || (spec->kind == CLOCK_CPU && cpu_isfast(spec))
	   ? SIGURG
	   : SIGPROF;
}

/* Give up the place of a clock that is stopped and retired. Under the lock. */
static void clock_release(Clock *c)
{
  int own = (c->tid == lj_osthread_self());
  if (own) lj_sigpending_take(c);
  if (c->spec.kind == CLOCK_PERF && (own || !lj_sigpending_thread(c->tid, c->signo)))
    lj_clock_perf_unlist(c->fd, c->value);
  lj_clockslot_free(c, own);
  lj_clockaction_done(c, own);
}

static ClockStatus clock_open(Clock *c, const ClockSpec *spec, int tid, int is_jitp,
			      char *why)
{
  static int fork_registered;
  ClockStatus status = CLOCK_BUSY;
  int err = 0, asked = c->signo;
  lj_clock_forget();
  pthread_mutex_lock(&clock_lock);
  if (nclocks > 0 && (is_jitp || jitp_running)) goto out;
  status = CLOCK_ERROR;
  if (!fork_registered) {
    err = lj_clock_atfork();
    if (err != 0) {
      snprintf(why, CLOCK_WHY_MAX, "no memory");
      goto out;
    }
    fork_registered = 1;
  }
  if (!lj_clockaction_isfree(c->signo ? c->signo : SIGPROF, why)) {
    err = EINVAL;
    goto out;
  }
  if (!asked) c->signo = signal_default(spec);
reopen:
  c->spec = *spec;
  c->tid = tid;
  c->pid = relaxed_get(&clocks_pid);
  c->armed = 0;
  c->fd = c->count_fd = -1;
  c->keeping = 0;
  random_seed(c);
  status = CLOCK_BUSY;
  if (!lj_clockslot_claim(c)) {
    snprintf(why, CLOCK_WHY_MAX,
	     "all %d clocks that a process may have are in use; "
	     "stop a profile, or ask for fewer clocks or threads",
	     CLOCKS_MAX);
    goto out;
  }
  status = CLOCK_ERROR;
  if (lj_clockaction_use(c->signo) != 0) {
    err = errno;
    lj_clockslot_free(c, 1);
    snprintf(why, CLOCK_WHY_MAX, "no handler can be installed for signal %d: %s", c->signo,
	     strerror(err));
    goto out;
  }
  err = c->spec.kind == CLOCK_CPU ? cpu_open(c, why) : kind_open(c, why);
  if (err != 0) {
    lj_clockslot_retire(c);
    clock_release(c);
    if (!asked && spec->kind == CLOCK_CPU && c->signo != SIGPROF) {
      c->signo = SIGPROF; /* The only one of setitimer(). */
      goto reopen;
    }
    goto out;
  }
  status = CLOCK_OK;
  lj_clockslot_kind(c);
  nclocks++;
  relaxed_set(&jitp_running, is_jitp);
out:
  pthread_mutex_unlock(&clock_lock);
  errno = err;
  return status;
}

ClockStatus lj_clock_open(Clock *c, const ClockSpec *spec, int tid, char *why)
{
  return clock_open(c, spec, tid, 0, why);
}

ClockStatus lj_clock_arm(Clock *c)
{
  uint64_t first = lj_clock_random(c, c->spec.period);
  int err;
  pthread_mutex_lock(&clock_lock);
  switch (c->spec.kind) {
  case CLOCK_PERF: err = lj_clock_perf_arm(c, first); break;
  case CLOCK_ITIMER: err = lj_clock_itimer_arm(c); break;
  default: err = lj_clock_timer_arm(c, first); break;
  }
  pthread_mutex_unlock(&clock_lock);
  if (err == 0) return CLOCK_OK;
  __atomic_store_n(&c->armed, 0, __ATOMIC_SEQ_CST);
  errno = err;
  return CLOCK_ERROR;
}

void lj_clock_close(Clock *c)
{
  int err = errno;
  if (c->pid != getpid()) return;
  pthread_mutex_lock(&clock_lock);
  kind_stop(c);
  pthread_mutex_unlock(&clock_lock);
  lj_clockslot_retire(c); /* A tick of another thread may take its time. */
  pthread_mutex_lock(&clock_lock);
  clock_release(c);
  if (c->spec.kind == CLOCK_PERF) lj_clock_perf_close(c);
  nclocks--;
  relaxed_set(&jitp_running, 0);
  pthread_mutex_unlock(&clock_lock);
  errno = err;
}

/* -- jit.profile ------------------------------------------------------------- */

static Clock jitp_clock;

static void jitp_tick(void *owner, int event, int overrun, ucontext_t *uc)
{
  void (*handler)(int);
  UNUSED(event);
  UNUSED(overrun);
  UNUSED(uc);
  memcpy(&handler, &owner, sizeof(handler));
  handler(SIGPROF);
}

int lj_clock_jitp_start(void (*handler)(int), int interval)
{
  char why[CLOCK_WHY_MAX];
  Clock *c = &jitp_clock;
  ClockSpec spec;
  if (relaxed_get(&jitp_running) && c->pid == getpid()) return 0;
  memset(&spec, 0, sizeof(spec));
  spec.kind = CLOCK_CPU;
  spec.period = (uint64_t)interval * 1000000u;
  c->tick = jitp_tick;
  memcpy(&c->owner, &handler, sizeof(handler));
  if (clock_open(c, &spec, lj_osthread_self(), 1, why) != CLOCK_OK) return 0;
  if (lj_clock_arm(c) == CLOCK_OK) return 1;
  lj_clock_close(c);
  return 0;
}

void lj_clock_jitp_stop(void)
{
  lj_clock_close(&jitp_clock);
}
