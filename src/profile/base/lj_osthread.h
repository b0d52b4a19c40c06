/*
** Threads of the process, and what is known of one. Outside of the handler, but for
** lj_osthread_exists, which is async-signal-safe and may change errno.
*/

#ifndef _LJ_OSTHREAD_H
#define _LJ_OSTHREAD_H

#include "lj_def.h"

#define OSTHREAD_NAME_MAX 32 /* The kernel's have 16 bytes. */

/* Call f for each thread of the process but the helper. Returns 0 if they cannot
** be listed.
*/
LJ_FUNC int lj_osthread_each(void (*f)(void *ctx, int tid), void *ctx);

/* The calling thread's id, cheaper than lj_clock_tid. Async-signal-safe. */
LJ_FUNC int lj_osthread_self(void);

/* In a child of fork(): the calling thread has another one. */
LJ_FUNC void lj_osthread_forget(void);

/* Is this thread of the process still there? */
LJ_FUNC int lj_osthread_exists(int tid);

/* Name of a thread, of at most OSTHREAD_NAME_MAX bytes; "" if it cannot be had. */
LJ_FUNC void lj_osthread_name(int tid, char *name);

/* Where the calling thread's C stack is, from *lo to below *hi; 0 and 0 if that is not
** known. May allocate memory.
*/
LJ_FUNC void lj_osthread_stack(uintptr_t *lo, uintptr_t *hi);

/* Is an address on the calling thread's C stack? */
LJ_FUNC int lj_osthread_onstack(const void *addr);

#endif
