/*
** Signal actions (sigaction) of the clocks, and pending signals of a closed clock.
** Context: any thread, not the handler; see the header.
*/

#define lj_clockaction_c
#define LUA_CORE

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "profile/clock/lj_clockaction.h"
#include "profile/clock/lj_clockforeign.h"
#include "profile/clock/lj_clocksig.h"
#include "profile/base/lj_nanotime.h"
#include "profile/base/lj_ossigmask.h"
#include "profile/base/lj_ossignal.h"
#include "profile/base/lj_osthread.h"
#include "profile/base/lj_relaxed.h"

static struct {
  struct sigaction oldsa; /* The program's. */
  int users;              /* Clocks. */
  int closed_elsewhere;   /* Another thread than its own closed a clock. */
} actions[OSSIGNAL_MAX + 1];
static uint64_t inuse; /* Signals with clocks: bit signo-1. */

/* Signals that clocks may use. The C library uses 32 and 33 itself. The kernel puts a
** number into SIGCHLD's siginfo that the handler could take for a descriptor.
*/
int lj_clockaction_isfree(int signo, char *errmsg)
{
  static const int taken[] = { SIGKILL, SIGSTOP, SIGSEGV, SIGBUS,  SIGFPE, SIGILL,
			       SIGTRAP, SIGABRT, SIGSYS,  SIGCHLD, 32,     33 };
  size_t i;
  int is_free = (signo >= 1 && signo <= OSSIGNAL_MAX);
  for (i = 0; i < sizeof(taken) / sizeof(taken[0]); i++)
    if (signo == taken[i]) is_free = 0;
  if (!is_free)
    snprintf(errmsg, EVENT_ERRMSG_MAX,
	     "signal %d is not available to clocks; use SIGPROF (%d), or another signal "
	     "that the program does not use",
	     signo, SIGPROF);
  return is_free;
}

SignalMask lj_clockaction_signals(void)
{
  return relaxed_get(&inuse);
}

/* -- Pending signals --------------------------------------------------------- */

#define FOREIGN_MAX 8 /* Signals of other senders that are queued again. */

void lj_clockaction_take(const Clock *c)
{
  static const struct timespec now = { 0, 0 };
  siginfo_t info[FOREIGN_MAX];
  sigset_t set, old;
  int signo = c->signo, i, n = 0;
  if (sigpending(&set) != 0 || !sigismember(&set, signo)) return;
  sigemptyset(&set);
  sigaddset(&set, signo);
  if (pthread_sigmask(SIG_BLOCK, &set, &old) != 0) return;
  while (n < FOREIGN_MAX && sigtimedwait(&set, &info[n], &now) == signo)
    if (!lj_clocksig_isstale(&info[n]) &&
	!(c->ops->issignal && c->ops->issignal(signo, info[n].si_code)))
      n++;
  for (i = 0; i < n; i++) lj_ossignal_queue(getpid(), c->tid, signo, &info[i]);
  pthread_sigmask(SIG_SETMASK, &old, NULL);
}

int lj_clockaction_ispending(const Clock *c)
{
  return lj_ossigmask_ispending(c->tid, c->signo);
}

#define DELIVERY_CPU_NS  1000000  /* CPU time in which the kernel delivers a signal. */
#define DELIVERY_WAIT_NS 20000000 /* Real time in which all threads reach that. */
#define DELIVERY_POLL_NS 100000

/* The kernel takes a signal off the list of pending ones, and reads the action a moment
** later. A thread that sleeps or has run since is past that moment. Returns 0 if the thread is
** not until the deadline.
*/
static int thread_isdelivered(int tid, uint64_t deadline_ns)
{
  static const struct timespec poll = { 0, DELIVERY_POLL_NS };
  uint64_t begin = thread_ns(tid), now;
  if (tid == lj_osthread_self()) return 1;
  while (lj_osthread_state(tid) != 'S') {
    now = thread_ns(tid);
    if (now == 0 || now - begin >= DELIVERY_CPU_NS) return 1;
    if (mono_ns() >= deadline_ns) return 0;
    nanosleep(&poll, NULL);
  }
  return 1;
}

typedef struct PendingScan {
  int signo, found;
  uint64_t deadline_ns;
} PendingScan;

static void pending_scan(void *ctx, int tid)
{
  PendingScan *scan = (PendingScan *)ctx;
  if (!scan->found)
    scan->found = lj_ossigmask_ispending(tid, scan->signo) ||
		  !thread_isdelivered(tid, scan->deadline_ns);
}

/* May a thread still meet the signal of a closed clock? */
static int any_haspending(int signo)
{
  PendingScan scan = { signo, 0, mono_ns() + DELIVERY_WAIT_NS };
  return !lj_osthread_each(pending_scan, &scan) || scan.found;
}

/* -- Actions ----------------------------------------------------------------- */

/* Install our handler. If it is still installed, the program's is known already. A single clock
** is open too briefly for late signals of other clocks to come.
*/
static int handler_install(int signo, int single)
{
  struct sigaction now;
  int is_ours = lj_ossignal_ishandler(signo, lj_clocksig_handler, &now);
  if (is_ours < 0) return -1;
  if (!single || !is_ours) actions[signo].closed_elsewhere = 0;
  if (is_ours) return 0;
  actions[signo].oldsa = now;
  lj_clockforeign_setaction(signo, &now);
  return lj_ossignal_install(signo, lj_clocksig_handler);
}

/* Restore the program's handler, unless it has installed another one since. */
static void handler_restore(int signo)
{
  struct sigaction now;
  if (lj_clockforeign_isreset(signo)) actions[signo].oldsa.sa_handler = SIG_DFL;
  if (lj_ossignal_ishandler(signo, lj_clocksig_handler, &now) != 1) return;
  if (lj_ossignal_isours(&actions[signo].oldsa))
    lj_ossignal_install(signo, actions[signo].oldsa.sa_sigaction);
  else sigaction(signo, &actions[signo].oldsa, NULL);
}

int lj_clockaction_isshared(int signo)
{
  struct sigaction now;
  int is_ours = lj_ossignal_ishandler(signo, lj_clocksig_handler, &now);
  return is_ours >= 0 && lj_ossignal_isprograms(is_ours ? &actions[signo].oldsa : &now);
}

int lj_clockaction_use(const Clock *c)
{
  int signo = c->signo;
  if (actions[signo].users == 0 && handler_install(signo, c->single) != 0) return -1;
  relaxed_add(&actions[signo].users, 1);
  relaxed_set(&inuse, inuse | ossignal_bit(signo));
  return 0;
}

/* A timer of the process sends its signal to the process, not to a thread. */
void lj_clockaction_done(const Clock *c, int own)
{
  int signo = c->signo;
  if (!own) actions[signo].closed_elsewhere = 1;
  relaxed_add(&actions[signo].users, -1);
  if (actions[signo].users > 0) return;
  relaxed_set(&inuse, inuse & ~ossignal_bit(signo));
  if (c->ops->issignal && lj_ossigmask_isshared(signo)) return;
  if (!actions[signo].closed_elsewhere || !any_haspending(signo)) handler_restore(signo);
}

int lj_clockaction_share(int signo, SignalHandler handler, struct sigaction *old)
{
  struct sigaction sa;
  int is_ours = lj_ossignal_ishandler(signo, lj_clocksig_handler, old);
  if (is_ours < 0) return -1;
  if (is_ours) *old = actions[signo].oldsa;
  if (lj_ossignal_isprograms(old)) return 0;
  if (!is_ours) return lj_ossignal_install(signo, handler) == 0 ? 1 : -1;
  lj_ossignal_action(handler, &sa);
  actions[signo].oldsa = sa;
  lj_clockforeign_setaction(signo, &sa);
  return 1;
}

int lj_clockaction_unshare(int signo, SignalHandler handler, const struct sigaction *old)
{
  struct sigaction now;
  if (lj_ossignal_ishandler(signo, lj_clocksig_handler, &now) != 1 ||
      actions[signo].oldsa.sa_sigaction != handler)
    return 0;
  actions[signo].oldsa = *old;
  lj_clockforeign_setaction(signo, old);
  if (actions[signo].users == 0 && !any_haspending(signo)) handler_restore(signo);
  return 1;
}

void lj_clockaction_forget(void)
{
  int i;
  for (i = 1; i <= OSSIGNAL_MAX; i++) {
    if (actions[i].users > 0) handler_restore(i);
    relaxed_set(&actions[i].users, 0);
  }
  relaxed_set(&inuse, 0);
}

int lj_clockaction_isreplaced(int signo)
{
  struct sigaction now;
  return relaxed_get(&actions[signo].users) > 0 &&
	 lj_ossignal_ishandler(signo, lj_clocksig_handler, &now) == 0;
}
