/*
** Background thread: scans threads, polls control files, writes full chunks.
** Context: begin, end, forget: under the lock | wake: handler and any thread.
**
** The thread blocks all signals. It exists only while a profile, a control file or live control
** needs it.
*/

#ifndef _LJ_BGTHREAD_H
#define _LJ_BGTHREAD_H

#include "lj_def.h"

/* Milliseconds from one scan to the next. */
#define BGTHREAD_LOOK_MS 50

/* What the thread does. Neither work nor rest may wait for a lock that the caller of begin or end
** holds.
*/
typedef struct BgWork {
  /* Called every BGTHREAD_LOOK_MS with look set, and after each wake-up. Returns the nanoseconds
  ** until it wants to be called again, at the latest.
  */
  uint64_t (*work)(int look);
  /* Called before each sleep. If there is nothing to look at, waits until there may be, and
  ** returns 1.
  */
  int (*rest)(void);
  /* End a rest, or the next one. Called by begin and end, on their thread. */
  void (*rouse)(void);
  /* All threads of the program have ended. The background thread ends after this. */
  void (*alone)(void);
} BgWork;

/* Start the thread; if it runs, end its rest. Returns 0 or an errno. */
LJ_FUNC int lj_bgthread_begin(const BgWork *work);

/* Write the reason why it did not start, by that errno. Returns text. */
LJ_FUNC const char *lj_bgthread_why(int err, char *text, size_t size);

/* Make the thread call work soon. Async-signal-safe: makes at most one system call, which
** does not wait. Further calls make none until the thread has woken up.
*/
LJ_FUNC void lj_bgthread_wake(void);

/* End the thread. It has ended when this returns. */
LJ_FUNC void lj_bgthread_end(void);

/* CPU time of the thread, also of earlier ones that have ended. */
LJ_FUNC uint64_t lj_bgthread_ns(void);

/* A profile begins (1), ends (-1), or asks (0). Returns a profile's share of the CPU time so far: all
** that run at a time have the same part.
*/
LJ_FUNC uint64_t lj_bgthread_share(int more);

/* In a child of fork(): forget the parent's thread. */
LJ_FUNC void lj_bgthread_forget(void);

#endif
