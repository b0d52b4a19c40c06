/*
** C stacks of the process's other threads: have they room for a signal?
** Context: under the lock, on any thread, outside of the handler.
**
** get_robust_list(2) tells an address in the C library's descriptor of a thread, which has the bounds
** of its stack. Where the descriptor has them is learned once, from a thread whose bounds
** pthread_getattr_np(3) tells.
*/

#ifndef _LJ_OSSTACK_H
#define _LJ_OSSTACK_H

#include <pthread.h>

#include "lj_def.h"

typedef enum {
  OSSTACK_SUFFICES,
  OSSTACK_SMALL,   /* A signal may overflow it. */
  OSSTACK_FOREIGN, /* The C library did not create the thread, or is about to begin it. */
  OSSTACK_UNKNOWN  /* Nobody can tell. */
} OsStack;

/* Learn from another thread, which must live. Allocates memory. */
LJ_FUNC void lj_osstack_learn(pthread_t thread);

/* May the calling thread look? Not before something was learned, nor if a seccomp filter kills it. */
LJ_FUNC int lj_osstack_canlook(void);

LJ_FUNC OsStack lj_osstack_look(int tid);

/* Bytes that a stack must have below the C library's part. */
LJ_FUNC size_t lj_osstack_least(void);

/* The same for the thread of a VM, which the user has chosen. Any thread. */
LJ_FUNC size_t lj_osstack_leastofvm(void);

#endif
