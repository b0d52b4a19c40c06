/*
** Threads of the process: which there are, and a thread of ours, the helper, that
** looks for new ones and writes what handlers have filled.
**
** It blocks all signals, and runs only while a profile needs it. Runs outside of
** the handler, but for wake; watch, unwatch and forget under the lock of
** lj_sysprof.c.
*/

#ifndef _LJ_THREADS_H
#define _LJ_THREADS_H

#include "lj_def.h"

/* Milliseconds between two looks. */
#define THREADS_LOOK_MS	50

/* Call f for each thread of the process but the helper. Returns 0 if they cannot
** be listed.
*/
LJ_FUNC int lj_threads_each(void (*f)(void *ctx, int tid), void *ctx);

/* Is this thread of the process still there? */
LJ_FUNC int lj_threads_exists(int tid);

/* Have work called by the helper each THREADS_LOOK_MS, with look set, and whenever
** it is woken; it is made unless it is there. work must not wait for a lock that is
** held during unwatch. Returns 0 or an errno.
*/
LJ_FUNC int lj_threads_watch(void (*work)(int look));

/* Have it called soon. Async-signal-safe: one system call that does not wait, and
** none before it has been called again.
*/
LJ_FUNC void lj_threads_wake(void);

/* End the helper: it has ended when this returns. */
LJ_FUNC void lj_threads_unwatch(void);

/* In a child of fork(): there is no helper here. */
LJ_FUNC void lj_threads_forget(void);

#endif
