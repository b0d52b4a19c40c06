/*
** Lock that a child process finds free, however the program made the child.
** Context: any thread, not the handler.
**
** A child has one thread. A lock that another thread of the parent held would stay taken there
** for ever. fork handlers cannot free it in a child of clone(2), for which none run. So the lock's
** word names the process, too: who finds another process there takes the lock.
**
** The lock is recursive. Waiting for it is no cancellation point.
*/

#ifndef _LJ_OSLOCK_H
#define _LJ_OSLOCK_H

#include "lj_def.h"

/* Zeroes are a free lock. */
typedef struct OsLock {
  uint64_t word;   /* Process that holds it, see lj_oslock.c. */
  uintptr_t owner; /* osthread_pointer of its thread. */
  int depth;       /* How often that thread has taken it. */
} OsLock;

/* Take the lock. Returns how often the thread holds it now. */
LJ_FUNC int lj_oslock_take(OsLock *lock);

/* The same, but returns 0 if another thread of this process holds the lock. */
LJ_FUNC int lj_oslock_try(OsLock *lock);

/* Give the lock back. Returns how often the thread still holds it. Does nothing in a child whose
** parent's thread took it.
*/
LJ_FUNC int lj_oslock_drop(OsLock *lock);

#endif
