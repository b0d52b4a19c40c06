/*
** Size limit of a profile: bytes of its streams, and of the names that will follow.
** Context: the holder of a sampler | begin, check: under the lock.
**
** Each session counts its bytes when it encodes samples. Near the limit, the background thread
** ends the sampling. Samples that come before it does still have room. At the limit, samples
** are lost.
*/

#ifndef _LJ_SIZELIMIT_H
#define _LJ_SIZELIMIT_H

#include "profile/base/lj_relaxed.h"
#include "profile/capture/lj_batch.h"

#define SIZELIMIT_NEAR (2 * BATCH_SIZE) /* Bytes left when the sampling ends. */
#define SIZELIMIT_END  4096             /* Bytes of the last records, without names. */

/* Bytes of names, usual ones: of all builtins, of a function, and of a host address. */
#define SIZELIMIT_BUILTINS 8192
#define SIZELIMIT_FUNC     64
#define SIZELIMIT_ADDR     96

typedef struct SizeLimit {
  uint64_t max;  /* Bytes of the file at most; 0: no limit. Set before the start. */
  uint64_t used; /* Bytes of all sessions, with their names. */
  int is_hit;    /* The limit has ended the samples. Under the lock. */
} SizeLimit;

/* Has the file no room for so many bytes of samples more? */
static LJ_AINLINE int sizelimit_isreached(const SizeLimit *sl, uint64_t bytes)
{
  return sl->max && relaxed_get(&sl->used) + bytes + SIZELIMIT_END > sl->max;
}

/* Count the bytes of a session. counted: as many are counted so far. */
static LJ_AINLINE void sizelimit_count(SizeLimit *sl, uint64_t *counted, uint64_t bytes)
{
  __atomic_add_fetch(&sl->used, bytes - *counted, __ATOMIC_RELAXED);
  *counted = bytes;
}

#endif
