/*
** Signals that a thread blocks, waits for, or has pending, from /proc.
** Context: any thread, not the handler.
*/

#define lj_ossigmask_c
#define LUA_CORE

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* For syscall. */
#endif
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include <sys/syscall.h>

#include "profile/base/lj_ossigmask.h"
#include "profile/base/lj_ossignal.h"
#include "profile/base/lj_osthread.h"
#include "profile/base/lj_procfile.h"
#include "profile/base/lj_procstatus.h"

/* While a thread waits for a signal in sigwait(), its mask lacks that signal. */
static int thread_waits(int tid)
{
  char text[32], *end;
  return lj_procfile_task(tid, "syscall", text, sizeof(text)) > 0 &&
	 strtol(text, &end, 10) == SYS_rt_sigtimedwait && end > text;
}

/* Mask of a thread. Returns 0 if it is unknown. The calling thread's needs no /proc. */
static int mask_of(int tid, SignalMask *mask)
{
  StatusField f = { "\nSigBlk:\t", 16, 0, 0 };
  if (tid == lj_osthread_self())
    return syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, mask, sizeof(*mask)) == 0;
  if (!lj_procstatus_read(tid, &f, 1) || !f.is_there) return 0;
  *mask = f.number;
  return 1;
}

SigBlocked lj_ossigmask_blocked(int tid, int signo)
{
  SignalMask signals;
  if (signo == 0) signo = OSSIGNAL_CANCEL;
  if (!mask_of(tid, &signals)) return SIGBLOCKED_NOT;
  if (signals & ossignal_bit(signo))
    return signals & ossignal_bit(OSSIGNAL_CANCEL) ? SIGBLOCKED_ALL : SIGBLOCKED_YES;
  return thread_waits(tid) ? SIGBLOCKED_YES : SIGBLOCKED_NOT;
}

static int status_has(int tid, const char *key, int signo)
{
  StatusField f[] = { { key, 16, 0, 0 }, { "\nTracerPid:\t", 10, 0, 0 } };
  if (!lj_procstatus_read(tid, f, 2)) return errno != ENOENT && errno != ESRCH;
  return !f[0].is_there || !f[1].is_there || f[1].number != 0 ||
	 (f[0].number & ossignal_bit(signo)) != 0;
}

int lj_ossigmask_ispending(int tid, int signo)
{
  return status_has(tid, "\nSigPnd:\t", signo);
}

int lj_ossigmask_isshared(int signo)
{
  return status_has(getpid(), "\nShdPnd:\t", signo);
}
