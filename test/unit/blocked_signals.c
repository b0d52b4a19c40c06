/*
** Which signals a thread blocks: one of them, all, or all but one; its own mask, and another thread's from /proc. A clock
** that was never open has no signal yet.
** BASE: none, its modules know no VM
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "check.h"

#include "profile/base/lj_ossigmask.h"
#include "profile/base/lj_ossignal.h"
#include "profile/base/lj_osthread.h"

static pthread_barrier_t step;
static SignalMask mask;
static int tid;

/* The C library's calls leave two signals open. */
static void set_mask(void)
{
  REQUIRE(syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, sizeof(mask)) == 0);
}

static void *thread_of(void *unused)
{
  UNUSED(unused);
  tid = lj_osthread_self();
  pthread_barrier_wait(&step);
  for (;;) {
    pthread_barrier_wait(&step);
    if (!mask) return NULL;
    set_mask();
    pthread_barrier_wait(&step);
  }
}

static void check(SignalMask signals, int signo, SigBlocked expected)
{
  mask = signals;
  pthread_barrier_wait(&step);
  pthread_barrier_wait(&step);
  CHECK_EQ(lj_ossigmask_blocked(tid, signo), expected);
  set_mask();
  CHECK_EQ(lj_ossigmask_blocked(lj_osthread_self(), signo), expected);
  mask = 0;
  set_mask();
}

int main(void)
{
  const SignalMask all = ~(SignalMask)0, last = ossignal_bit(64);
  pthread_t thread;
  REQUIRE(pthread_barrier_init(&step, NULL, 2) == 0);
  REQUIRE(pthread_create(&thread, NULL, thread_of, NULL) == 0);
  pthread_barrier_wait(&step);
  check(ossignal_bit(SIGPROF), SIGPROF, SIGBLOCKED_YES);
  check(ossignal_bit(SIGPROF), SIGURG, SIGBLOCKED_NOT);
  check(all, SIGPROF, SIGBLOCKED_ALL);
  check(all & ~ossignal_bit(SIGPROF), SIGPROF, SIGBLOCKED_NOT);
  check(last, 64, SIGBLOCKED_YES);
  check(last, 0, SIGBLOCKED_NOT);
  check(all, 0, SIGBLOCKED_ALL);
  check(all & ~ossignal_bit(OSSIGNAL_CANCEL), 0, SIGBLOCKED_NOT);
  mask = 0;
  pthread_barrier_wait(&step);
  pthread_join(thread, NULL);
  return check_status();
}
