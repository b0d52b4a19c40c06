/*
** Clocks in fork(): their signals do not disturb it, and the child forgets them. Runs
** on the thread that forks.
*/

#define lj_clock_fork_c
#define LUA_CORE

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* For sigisemptyset. */
#endif
#include <pthread.h>
#include <signal.h>

#include "profile/clock/lj_clockops.h"
#include "profile/clock/lj_clockaction.h"

/* Signals that the forking thread did not block itself. */
static __thread sigset_t fork_blocked __attribute__((tls_model("initial-exec")));

int lj_clock_signals(sigset_t *set)
{
  uint64_t inuse = lj_clockaction_inuse();
  int signo;
  sigemptyset(set);
  for (signo = 1; signo <= 64; signo++)
    if (inuse >> (signo - 1) & 1) sigaddset(set, signo);
  return inuse != 0;
}

/* Kernels before 4.19 begin a fork again and again if a signal comes while they
** copy the process; with signals that come faster than that it would not end.
*/
static void fork_prepare(void)
{
  sigset_t old;
  int signo;
  if (!lj_clock_signals(&fork_blocked)) return;
  pthread_sigmask(SIG_BLOCK, &fork_blocked, &old);
  for (signo = 1; signo <= 64; signo++)
    if (sigismember(&old, signo) == 1) sigdelset(&fork_blocked, signo);
}

static void fork_parent(void)
{
  if (!sigisemptyset(&fork_blocked)) pthread_sigmask(SIG_UNBLOCK, &fork_blocked, NULL);
}

static void fork_child(void)
{
  lj_clock_forget();
  fork_parent();
}

int lj_clock_atfork(void)
{
  return pthread_atfork(fork_prepare, fork_parent, fork_child);
}
