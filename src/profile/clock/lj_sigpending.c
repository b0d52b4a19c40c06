/*
** Signals that are pending when their clock closes; see the header.
*/

#define lj_sigpending_c
#define LUA_CORE

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profile/clock/lj_clocksig.h"
#include "profile/clock/lj_clockslot.h"
#include "profile/clock/lj_sigpending.h"
#include "profile/base/lj_ossignal.h"
#include "profile/base/lj_osthread.h"
#include "profile/base/lj_procfile.h"

#define FOREIGN_MAX 16 /* Pending signals kept while ours are taken. */

void lj_sigpending_take(const Clock *c)
{
  static const struct timespec now = { 0, 0 };
  siginfo_t info[FOREIGN_MAX];
  sigset_t set, old;
  int signo = c->signo, i, n = 0;
  if (sigpending(&set) != 0 || !sigismember(&set, signo)) return;
  sigemptyset(&set);
  sigaddset(&set, signo);
  if (pthread_sigmask(SIG_BLOCK, &set, &old) != 0) return;
  while (n < FOREIGN_MAX && sigtimedwait(&set, &info[n], &now) == signo) {
    uintptr_t value = lj_clocksig_value(&info[n]);
    if (value ? clockslot_islive(value)
	      : c->spec.kind != CLOCK_ITIMER || info[n].si_code != SI_KERNEL)
      n++;
  }
  for (i = 0; i < n; i++) lj_ossignal_queue(getpid(), c->tid, signo, &info[i]);
  pthread_sigmask(SIG_SETMASK, &old, NULL);
}

/* By the line of a thread's status with this key. One that its tracer holds back is in
** no line.
*/
static int is_pending(int tid, int signo, const char *key)
{
  char text[2048], *at;
  if (lj_procfile_task(tid, "status", text, sizeof(text)) < 0)
    return errno != ENOENT && errno != ESRCH;
  at = strstr(text, key);
  return !at || !strstr(text, "\nTracerPid:\t0\n") ||
	 ((strtoull(at + strlen(key), NULL, 16) >> (signo - 1)) & 1);
}

int lj_sigpending_thread(int tid, int signo)
{
  return is_pending(tid, signo, "\nSigPnd:");
}

int lj_sigpending_process(pid_t pid, int signo)
{
  return is_pending((int)pid, signo, "\nShdPnd:");
}

typedef struct PendingScan {
  int signo, found;
} PendingScan;

static void pending_look(void *ctx, int tid)
{
  PendingScan *scan = (PendingScan *)ctx;
  if (!scan->found) scan->found = lj_sigpending_thread(tid, scan->signo);
}

int lj_sigpending_threads(int signo)
{
  PendingScan scan = { signo, 0 };
  return !lj_osthread_each(pending_look, &scan) || scan.found;
}
