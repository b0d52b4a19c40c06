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
  void *map; /* Mapped ring, NULL: there is none. A child of fork() does not have it. */
} WaitRing;

/* Open the ring of a thread. It needs no descriptor once it is open. Returns 0 or an errno: ENOBUFS
** at the limit of locked memory.
*/
LJ_FUNC int lj_waitring_open(WaitRing *r, int tid);
LJ_FUNC void lj_waitring_close(WaitRing *r);

/* Has the thread switched since the last record that was taken? */
LJ_FUNC int lj_waitring_hasmore(const WaitRing *r);

/* Take the oldest records. *lost: records are missing among them, or are not switches. Returns
** their number, WAITRING_RECORDS if there may be more.
*/
LJ_FUNC int lj_waitring_read(WaitRing *r, WaitSwitch *list, int *lost);

#endif
