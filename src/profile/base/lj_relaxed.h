/*
** Relaxed atomics: words that a handler and other threads share.
** Context: handler or any thread. Async-signal-safe.
**
** They order no other memory. The processor executes plain loads and stores, which the
** compiler neither splits nor repeats.
*/

#ifndef _LJ_RELAXED_H
#define _LJ_RELAXED_H

#define relaxed_get(p)    __atomic_load_n((p), __ATOMIC_RELAXED)
#define relaxed_set(p, v) __atomic_store_n((p), (v), __ATOMIC_RELAXED)

/* For a word with a single writer. */
#define relaxed_add(p, n) relaxed_set((p), *(p) + (n))

#endif
