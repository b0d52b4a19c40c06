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
#include <string.h>
#include <unistd.h>
#include <sys/syscall.h>

#include "profile/base/lj_ossigmask.h"
#include "profile/base/lj_ossignal.h"
#include "profile/base/lj_osthread.h"
#include "profile/base/lj_procfile.h"

#define STATUS_MAX 2048 /* Bytes of a thread's status that are read. */

/* Signals that a thread's status lists under a key, as bits signo-1. Returns 0 if the key
** is missing.
*/
static int status_signals(const char *text, const char *key, uint64_t *signals)
{
  const char *at = strstr(text, key);
  if (at) *signals = strtoull(at + strlen(key), NULL, 16);
  return at != NULL;
}

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
  char text[STATUS_MAX];
  if (tid == lj_osthread_self())
    return syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, mask, sizeof(*mask)) == 0;
  return lj_procfile_task(tid, "status", text, sizeof(text)) > 0 &&
	 status_signals(text, "\nSigBlk:", mask);
}

SigBlocked lj_ossigmask_blocked(int tid, int signo)
{
  SignalMask signals;
  if (!mask_of(tid, &signals)) return SIGBLOCKED_NOT;
  if (signals & ossignal_bit(signo))
    return signals & ossignal_bit(OSSIGNAL_CANCEL) ? SIGBLOCKED_ALL : SIGBLOCKED_YES;
  return thread_waits(tid) ? SIGBLOCKED_YES : SIGBLOCKED_NOT;
}

static int status_has(int tid, const char *key, int signo)
{
  char text[STATUS_MAX];
  uint64_t signals;
  if (lj_procfile_task(tid, "status", text, sizeof(text)) < 0)
    return errno != ENOENT && errno != ESRCH;
  return !status_signals(text, key, &signals) || !strstr(text, "\nTracerPid:\t0\n") ||
	 (signals & ossignal_bit(signo)) != 0;
}

int lj_ossigmask_ispending(int tid, int signo)
{
  return status_has(tid, "\nSigPnd:", signo);
}

int lj_ossigmask_isshared(int signo)
{
  return status_has(getpid(), "\nShdPnd:", signo);
}
