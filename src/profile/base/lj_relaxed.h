/*
** Words that a handler and other threads use at the same time, where nothing but
** the word itself matters: plain loads and stores for the processor, which the
** compiler neither splits nor repeats. Async-signal-safe.
*/

#ifndef _LJ_RELAXED_H
#define _LJ_RELAXED_H

#define relaxed_get(p)    __atomic_load_n((p), __ATOMIC_RELAXED)
#define relaxed_set(p, v) __atomic_store_n((p), (v), __ATOMIC_RELAXED)

/* By the only one who writes it. */
#define relaxed_add(p, n) relaxed_set((p), *(p) + (n))

#endif
