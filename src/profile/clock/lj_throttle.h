/*
** Throttle: gives the program at least twice as much time as its ticks take.
** Context: handler, on the sampled thread.
**
** It follows the handler's time for a sample, and keeps the clock's period at the least time
** that the budget of all clocks allows, see lj_clockbudget.h. An event has no period in time.
** If it ticks sooner, its period becomes longer by up to eight times, and shorter again when
** it ticks later.
**
** One more rule is for single samples: after one that takes longer than half an interval
** comes a rest of the same length, for all clocks of the thread.
*/

#ifndef _LJ_THROTTLE_H
#define _LJ_THROTTLE_H

#include "profile/clock/lj_clockops.h"

typedef struct Throttle {
  uint64_t mean_ns; /* Moving mean of the handler's time for a sample; 0: none yet. */
} Throttle;

/* CLOCK_MONOTONIC until which no clock of this thread takes a sample. */
LJ_DATA __thread uint64_t lj_throttle_rest_ns __attribute__((tls_model("initial-exec")));

/* Begin a tick. Returns 0 if it must not take a sample. */
LJ_FUNC int lj_throttle_enter(uint64_t begin_ns);

/* End a tick's sample. The handler took spent_ns of the clock's time. The tick came
** interval_ns after the last one. Sets the clock's period. Returns the ticks that the longer
** period leaves out.
*/
LJ_FUNC uint64_t lj_throttle_leave(Throttle *t, Clock *c, uint64_t end_ns,
				   uint64_t spent_ns, uint64_t interval_ns);

#endif
