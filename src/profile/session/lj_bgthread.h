/*
** Background thread: scans threads, polls control files, writes full chunks.
** Context: begin, end, forget: under the lock | wake: handler and any thread.
**
** The thread blocks all signals. It exists only while a profile or a control file needs it.
*/

#ifndef _LJ_BGTHREAD_H
#define _LJ_BGTHREAD_H

#include "lj_def.h"

/* Milliseconds from one scan to the next. */
#define BGTHREAD_LOOK_MS 50

/* Start the thread, unless it runs. It calls work every BGTHREAD_LOOK_MS with look set, and
** after each wake-up. work returns the nanoseconds until it wants to be called again, at the
** latest. It must not wait for a lock that the caller of end holds. Returns 0 or an errno.
*/
LJ_FUNC int lj_bgthread_begin(uint64_t (*work)(int look));

/* Make the thread call work soon. Async-signal-safe: makes at most one system call, which
** does not wait. Further calls make none until the thread has woken up.
*/
LJ_FUNC void lj_bgthread_wake(void);

/* End the thread. It has ended when this returns. */
LJ_FUNC void lj_bgthread_end(void);

/* In a child of fork(): forget the parent's thread. */
LJ_FUNC void lj_bgthread_forget(void);

#endif
