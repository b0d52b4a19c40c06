/*
** Lists of walk steps: moves the recorded steps of a walk behind the saved ones.
** Context: handler. Async-signal-safe.
**
** A walk records its steps from the leaf to the root. A memo saves steps from the root to the
** leaf. After a walk that has reused n saved steps, the memo saves the recorded ones behind
** these, in the opposite order: as many outer ones as fit.
*/

#ifndef _LJ_STEPLIST_H
#define _LJ_STEPLIST_H

#include "lj_def.h"

/* What the steps before a step have in lists of their own. */
typedef struct StepSums {
  uint32_t word;  /* Words. */
  uint32_t extra; /* Loads, or VM frames. */
} StepSums;

/* Room of a memo. */
typedef struct StepRoom {
  uint32_t steps;
  StepSums sums;
} StepRoom;

/* Return the first recorded step such that it and all later ones fit behind n saved steps;
** nstep if none fits. first: sums of the first recorded step, the others follow stride bytes
** apart. all: sums of all recorded steps; saved: of the n saved ones.
*/
static inline uint32_t steplist_fitting(const StepSums *first, size_t stride,
					uint32_t nstep, StepSums all, uint32_t n,
					StepSums saved, StepRoom room)
{
  uint32_t i;
  for (i = 0; i < nstep; i++) {
    const StepSums *sum = (const StepSums *)((const char *)first + i * stride);
    if (n + nstep - i <= room.steps &&
	saved.word + all.word - sum->word <= room.sums.word &&
	saved.extra + all.extra - sum->extra <= room.sums.extra)
      break;
  }
  return i;
}

/* Copy from[first] to from[n - 1] in the opposite order, so that from[0] would come to
** to[end - 1].
*/
#define steplist_reverse(to, end, from, first, n) \
  do { \
    uint32_t step_i; \
    for (step_i = (first); step_i < (n); step_i++) \
      (to)[(end)-1 - step_i] = (from)[step_i]; \
  } while (0)

#endif
