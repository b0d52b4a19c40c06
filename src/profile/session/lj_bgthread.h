/*
** The helper: a thread of ours that looks at what handlers do not, and writes what
** they have filled.
**
** It blocks all signals, and there is one only while something needs it. Runs outside
** of the handler, but for wake; begin, end and forget under the lock of lj_registry.h.
*/

#ifndef _LJ_BGTHREAD_H
#define _LJ_BGTHREAD_H

#include "lj_def.h"

/* Milliseconds between two looks. */
#define BGTHREAD_LOOK_MS 50

/* Have work called by the helper each BGTHREAD_LOOK_MS, with look set, and whenever
** it is woken; it is made unless it is there. work must not wait for a lock that is
** held during end. Returns 0 or an errno.
*/
LJ_FUNC int lj_bgthread_begin(void (*work)(int look));

/* Have it called soon. Async-signal-safe: one system call that does not wait, and
** none before it has been called again.
*/
LJ_FUNC void lj_bgthread_wake(void);

/* End the helper: it has ended when this returns. */
LJ_FUNC void lj_bgthread_end(void);

/* In a child of fork(): there is no helper here. */
LJ_FUNC void lj_bgthread_forget(void);

#endif
