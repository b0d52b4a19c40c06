/*
** Clocks: open, arm, close; clocks in fork(); the clock of jit.profile.
** Context: any thread, not the handler.
*/

#define lj_clock_c
#define LUA_CORE

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* For sigisemptyset. */
#endif
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "profile/clock/lj_clock.h"
#include "profile/clock/lj_clockaction.h"
#include "profile/clock/lj_clockbudget.h"
#include "profile/clock/lj_clockkinds.h"
#include "profile/clock/lj_clocksig.h"
#include "profile/clock/lj_clockslot.h"
#include "profile/base/lj_nanotime.h"
#include "profile/base/lj_oslock.h"
#include "profile/base/lj_ossignal.h"
#include "profile/base/lj_osprocess.h"
#include "profile/base/lj_osthread.h"
#include "profile/base/lj_relaxed.h"
#include "profile/base/lj_seccomp.h"

/* Under the lock. */
static OsLock clock_lock;
static int nclocks;             /* Open clocks. */
static int jitp_running;        /* The only open clock is jit.profile's. */
static uint32_t clocks_process; /* Process of the open clocks, see lj_osprocess.h. */

/* -- Fork -------------------------------------------------------------------- */

/* Forget the clocks of a process. */
static void clocks_forget(void)
{
  int i;
  for (i = 0; i < CLOCK__MAX; i++)
    if (lj_clockkinds[i]->forget) lj_clockkinds[i]->forget();
  lj_osthread_forget();
  lj_clockbudget_forget();
  lj_clockslot_forget();
  lj_clockaction_forget();
  nclocks = 0;
  relaxed_set(&jitp_running, 0);
}

/* Kernels before 4.19 restart a fork when a signal arrives while they copy the process.
** Faster signals would keep it from ending.
*/
static void fork_prepare(void)
{
  SignalMask signals = lj_clockaction_signals();
  if (signals) lj_clocksig_forking = signals & ~lj_ossignal_changemask(SIG_BLOCK, signals);
}

static void fork_parent(void)
{
  if (lj_clocksig_forking) lj_ossignal_changemask(SIG_UNBLOCK, lj_clocksig_forking);
  lj_clocksig_forking = 0;
}

/* Forget the clocks of another process, whose table this one inherited. The child may start clocks
** next, before the C library calls fork_child: they need their signals.
*/
void lj_clock_forget(void)
{
  uint32_t now = lj_osprocess_id();
  if (relaxed_get(&clocks_process) == now) return;
  lj_oslock_take(&clock_lock);
  if (clocks_process != now) {
    if (clocks_process) clocks_forget();
    relaxed_set(&clocks_process, now);
  }
  lj_oslock_drop(&clock_lock);
  fork_parent();
}

static void fork_child(void)
{
  lj_clock_forget();
  fork_parent();
}

/* Register the fork handlers, once in a process. Returns 0 or an errno. */
static int fork_register(void)
{
  static int is_done;
  int err = is_done ? 0 : pthread_atfork(fork_prepare, fork_parent, fork_child);
  if (err == 0) is_done = 1;
  return err;
}

/* -- Open -------------------------------------------------------------------- */

/* Give up the slot and the signal of a clock that is stopped and retired. */
static void clock_release(Clock *c)
{
  int own = (c->tid == lj_osthread_self());
  if (own) lj_clockaction_take(c);
  if (c->ops->drained && (own || !lj_clockaction_ispending(c))) c->ops->drained(c);
  lj_clockslot_free(c, own);
  lj_clockaction_done(c, own);
}

static void clock_init(Clock *c, const ClockSpec *spec, int tid)
{
  c->spec = *spec;
  c->ops = lj_clockkinds[spec->kind];
  c->tid = tid;
  c->process = relaxed_get(&clocks_process);
  relaxed_set(&c->armed, 0);
  c->fd = c->count_fd = -1;
  c->kernel_ns = c->safe_ns = c->left = c->period_set = 0;
  c->look_cpu_ns = c->look_enabled_ns = 0;
  c->on_tick = c->was_on_tick = 0;
  c->stack_left = 0;
  c->uncounted = 0;
  c->first.cpu_ns = 0;
  c->saving = 0;
  lj_clockops_seed(c);
}

/* Open a clock on the signal c->signo. Returns a status and *err. */
static EventStatus clock_try(Clock *c, const ClockSpec *spec, int tid, int *err,
			     char *errmsg)
{
  struct timespec now;
  clock_init(c, spec, tid);
  *err = 0;
  if (!lj_clockslot_claim(c)) {
    snprintf(errmsg, EVENT_ERRMSG_MAX,
	     "all %d clocks of the process are in use; "
	     "stop a profile, or ask for fewer clocks or threads",
	     CLOCKS_MAX);
    return EVENT_BUSY;
  }
  if (lj_clockaction_use(c) != 0) {
    *err = errno;
    lj_clockslot_free(c, 1);
    snprintf(errmsg, EVENT_ERRMSG_MAX, "the handler of signal %d cannot be installed: %s",
	     c->signo, strerror(*err));
    return EVENT_ERROR;
  }
  if (clock_gettime(thread_clock(tid), &now) != 0 && lj_seccomp_isrefusal(errno)) {
    *err = errno; /* Ticks would have no weights. */
    snprintf(
      errmsg, EVENT_ERRMSG_MAX,
      "clock '%s': a seccomp filter forbids clock_gettime; let it allow the CPU time of "
      "threads",
      spec->name);
  } else {
    *err = c->ops->open(c, errmsg);
  }
  if (*err == 0) return EVENT_OK;
  lj_clockslot_retire(c);
  clock_release(c);
  return EVENT_ERROR;
}

const int lj_clock_choices[] = { SIGURG, SIGPROF, SIGVTALRM, SIGSTKFLT, 0 };

/* Choose the signal of a clock: one that has no handler of the program. Such a handler has
** its own flags and mask. SA_RESTART decides whether the program's calls end with EINTR,
** so no flags of ours suit both. Returns 0 if all signals have a handler.
**
** The default of SIGURG is to do nothing. So a tick ends neither a program that resets all signals,
** as daemons do, nor one that follows by exec() while a signal of perf is pending.
*/
static int signal_choose(const ClockSpec *spec)
{
  int only = lj_clockkinds[spec->kind]->only_signo;
  size_t i;
  if (only) return lj_clockaction_isshared(only) ? 0 : only;
  for (i = 0; lj_clock_choices[i]; i++)
    if (!lj_clockaction_isshared(lj_clock_choices[i])) return lj_clock_choices[i];
  return 0;
}

static void signal_errmsg(const ClockSpec *spec, char *errmsg)
{
  int only = lj_clockkinds[spec->kind]->only_signo;
  char name[OSSIGNAL_NAME_MAX];
  if (only) {
    lj_ossignal_name(only, name);
    snprintf(errmsg, EVENT_ERRMSG_MAX,
	     "clock '%s': the program has a handler for %s, its only signal; use "
	     "another clock",
	     spec->name, name);
  } else
    snprintf(errmsg, EVENT_ERRMSG_MAX,
	     "clock '%s': the program has handlers for SIGURG, SIGPROF, SIGVTALRM and "
	     "SIGSTKFLT; choose another signal, such as SIGRTMIN+3",
	     spec->name);
}

static EventStatus clock_open(Clock *c, const ClockSpec *spec, int tid, int is_jitp,
			      char *errmsg)
{
  EventStatus status = EVENT_ERROR;
  ClockSpec preferred = *spec;
  int err, asked = c->signo;
  lj_clock_forget();
  lj_oslock_take(&clock_lock);
  lj_clockbudget_prefer(&preferred);
  spec = &preferred;
  if (nclocks > 0 && (is_jitp || jitp_running)) {
    status = EVENT_BUSY;
    err = 0;
    goto out;
  }
  err = fork_register();
  if (err != 0) {
    snprintf(errmsg, EVENT_ERRMSG_MAX, "no memory");
    goto out;
  }
  if (!lj_clockaction_isfree(asked ? asked : SIGURG, errmsg)) {
    err = EINVAL;
    goto out;
  }
  if (!asked) c->signo = signal_choose(spec);
  if (!c->signo) {
    err = EBUSY;
    signal_errmsg(spec, errmsg);
    goto out;
  }
  c->shared = asked && lj_clockaction_isshared(asked);
  status = clock_try(c, spec, tid, &err, errmsg);
  if (status != EVENT_OK) goto out;
  lj_clockslot_setkind(c);
  lj_clockbudget_price(c);
  nclocks++;
  relaxed_set(&jitp_running, is_jitp);
out:
  lj_oslock_drop(&clock_lock);
  errno = err;
  return status;
}

EventStatus lj_clock_open(Clock *c, const ClockSpec *spec, int tid, char *errmsg)
{
  return clock_open(c, spec, tid, 0, errmsg);
}

/* -- Arm, close -------------------------------------------------------------- */

/* Give the clock its part of the budget. Returns the time until its first tick. */
static uint64_t first_period(Clock *c)
{
  uint64_t least;
  if (c->single) return c->spec.period;
  lj_clockbudget_join(c);
  least = lj_clockbudget_least(c, CLOCKBUDGET_SAMPLE_NS);
  c->period_set = c->spec.unit == SPF_UNIT_US && least > c->spec.period ? least : 0;
  return lj_clockops_random(c, lj_clockops_mean(c));
}

EventStatus lj_clock_arm(Clock *c)
{
  int err;
  lj_oslock_take(&clock_lock);
  err = c->ops->arm(c, first_period(c));
  if (err != 0) lj_clockbudget_leave(c);
  lj_oslock_drop(&clock_lock);
  if (err == 0) return EVENT_OK;
  __atomic_store_n(&c->armed, 0, __ATOMIC_SEQ_CST);
  errno = err;
  return EVENT_ERROR;
}

void lj_clock_revive(Clock *c)
{
  if (!c->ops->revive || c->process != lj_osprocess_id()) return;
  lj_oslock_take(&clock_lock);
  if (relaxed_get(&c->armed)) c->ops->revive(c);
  lj_oslock_drop(&clock_lock);
}

void lj_clock_close(Clock *c)
{
  int err = errno;
  if (c->process != lj_osprocess_id()) return;
  lj_oslock_take(&clock_lock);
  lj_clockbudget_leave(c);
  c->ops->stop(c);
  lj_oslock_drop(&clock_lock);
  lj_clockslot_retire(c); /* Without the lock: another thread's tick may take long. */
  lj_oslock_take(&clock_lock);
  clock_release(c);
  if (c->ops->close) c->ops->close(c);
  nclocks--;
  relaxed_set(&jitp_running, 0);
  lj_oslock_drop(&clock_lock);
  errno = err;
}

int lj_clock_sharesignal(int signo, SignalHandler handler, struct sigaction *old)
{
  int done;
  lj_oslock_take(&clock_lock);
  done = lj_clockaction_share(signo, handler, old);
  lj_oslock_drop(&clock_lock);
  return done;
}

int lj_clock_unsharesignal(int signo, SignalHandler handler, const struct sigaction *old)
{
  int done;
  lj_oslock_take(&clock_lock);
  done = lj_clockaction_unshare(signo, handler, old);
  lj_oslock_drop(&clock_lock);
  return done;
}

/* -- jit.profile ------------------------------------------------------------- */

static Clock jitp_clock;

static void jitp_sample(void *owner, int overrun, ucontext_t *uc)
{
  void (*handler)(int);
  UNUSED(overrun);
  if (!uc) return;
  memcpy(&handler, &owner, sizeof(handler));
  handler(SIGPROF);
}

static EventStatus jitp_open(Clock *c, ClockKind kind, int interval)
{
  char errmsg[EVENT_ERRMSG_MAX];
  ClockSpec spec;
  memset(&spec, 0, sizeof(spec));
  spec.kind = kind;
  spec.period = (uint64_t)interval * 1000000u;
  c->signo = 0;
  return clock_open(c, &spec, lj_osthread_self(), 1, errmsg);
}

/* LuaJIT's own clock is itimer, so that one may follow here. */
int lj_clock_jitp_start(void (*handler)(int), int interval)
{
  Clock *c = &jitp_clock;
  lj_osprocess_pin();
  lj_clock_forget();
  if (relaxed_get(&jitp_running)) return 0;
  c->sample = jitp_sample;
  memcpy(&c->owner, &handler, sizeof(handler));
  if (jitp_open(c, CLOCK_CPU, interval) != EVENT_OK &&
      jitp_open(c, CLOCK_ITIMER, interval) != EVENT_OK)
    return 0;
  if (lj_clock_arm(c) == EVENT_OK) return 1;
  lj_clock_close(c);
  return 0;
}

void lj_clock_jitp_stop(void)
{
  lj_clock_close(&jitp_clock);
}
