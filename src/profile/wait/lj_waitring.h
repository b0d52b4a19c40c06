/*
** Context-switch records of a thread, by perf_event_open.
** Context: under the lock, on any thread, outside of the handler.
**
** A dummy event of perf counts nothing and sends no signal. The kernel appends a record to its
** ring each time that the thread leaves or gets a processor. Level 2 of perf_event_paranoid
** allows that.
*/

#ifndef _LJ_WAITRING_H
#define _LJ_WAITRING_H

#include "lj_def.h"

#define WAITRING_DATA    8192 /* Bytes of records, a power of two. */
#define WAITRING_RECORDS 256  /* That one read returns, at most. */

/* The thread leaves or gets a processor. */
typedef struct WaitSwitch {
  uint64_t ns;     /* CLOCK_MONOTONIC. */
  uint8_t is_in;   /* It gets one. */
  uint8_t preempt; /* It leaves one although it could run. */
} WaitSwitch;

/* Clear it before use. */
typedef struct WaitRing {
  void *map;    /* Mapped ring, NULL: there is none. A child of fork() does not have it. */
  int was_full; /* During the last read: the kernel may have dropped records since then. */
} WaitRing;

/* Open the ring of a thread. It needs no descriptor once it is open. Returns 0 or an errno: ENOBUFS
** at the limit of locked memory.
*/
LJ_FUNC int lj_waitring_open(WaitRing *r, int tid);
LJ_FUNC void lj_waitring_close(WaitRing *r);

/* Has the thread switched since the last record that was taken? */
LJ_FUNC int lj_waitring_hasmore(const WaitRing *r);

/* Upper bound of the records that are not taken yet. */
LJ_FUNC uint32_t lj_waitring_pending(const WaitRing *r);

/* Time that the thread has run since the open, up to when it last got a processor: perf_event_open(2),
** time_running. It stays when the thread has ended.
*/
LJ_FUNC uint64_t lj_waitring_ran(const WaitRing *r);

/* Take the oldest records, up to a place where some are missing: then *lost is set. The kernel says
** so at its next record only, so a full ring says nothing: see was_full. Returns their number. There
** may be more if it is WAITRING_RECORDS, or if *lost is set.
*/
LJ_FUNC int lj_waitring_read(WaitRing *r, WaitSwitch *list, int *lost);

#endif
