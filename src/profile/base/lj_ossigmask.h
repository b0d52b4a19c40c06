/*
** Signals that a thread blocks, waits for, or has pending, from /proc.
** Context: any thread, not the handler.
*/

#ifndef _LJ_OSSIGMASK_H
#define _LJ_OSSIGMASK_H

#include "lj_def.h"

typedef enum SigBlocked {
  SIGBLOCKED_NOT, /* Or /proc does not tell. */
  SIGBLOCKED_YES,
  /* All signals are, SIGCANCEL too. The C library does that for a moment: a new thread blocks
  ** them until it runs its function. So does a handler of ours. If it lasts, the program has
  ** done it, by a system call of its own.
  */
  SIGBLOCKED_ALL
} SigBlocked;

/* Does a thread block a signal, or wait for it, as in sigwait()? signo 0: a clock that was never
** open has not chosen its signal yet. Only a thread that blocks all signals blocks that one.
*/
LJ_FUNC SigBlocked lj_ossigmask_blocked(int tid, int signo);

/* Has a thread a signal pending, or the process? In doubt, yes: nothing lists a signal that a
** tracer holds back.
*/
LJ_FUNC int lj_ossigmask_ispending(int tid, int signo);
LJ_FUNC int lj_ossigmask_isshared(int signo);

#endif
