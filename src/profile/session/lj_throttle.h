/*
** Throttle: gives the program at least as much time as its samples take.
** Context: handler, on the sampled thread | begin: before the clocks are armed.
**
** A sample takes more than the handler's own time: the timer's interrupt and the delivery
** of the signal come before it. The thread cannot measure those two directly. So one
** fast clock first ticks a few times as fast as it can, and the program does not run
** between two samples. The mean time from one sample to the next, less the handler's, is
** the time of interrupt and signal. Another thread may run in between, so the shortest of several
** means counts. From then on the clock's period is at least three times the whole time.
**
** Slow clocks need no measurement. For them, and for events, one rule remains: after a
** sample that takes longer than half an interval comes a rest of the same length.
*/

#ifndef _LJ_THROTTLE_H
#define _LJ_THROTTLE_H

#include "profile/clock/lj_clockops.h"

/* Clocks with a shorter period are measured. An interrupt takes up to 40 us on virtual
** machines, which is a fifth of this period.
*/
#define THROTTLE_BELOW_NS 200000

/* Period of a clock, in such times. Twice was not enough: caches that a sample evicts made
** programs up to 3.2 times as long.
*/
#define THROTTLE_CYCLES 3

typedef struct Throttle {
  uint64_t rest_until_ns; /* No sample is taken before. */
  uint64_t window_ns;     /* CLOCK_MONOTONIC at the first probe of a window. */
  uint64_t handler_ns;    /* Handler's time for the probes of the window so far. */
  uint64_t outside_ns;    /* Shortest mean time outside of the handler, of a window. */
  uint64_t signal_ns;     /* Interrupt and signal of a tick; 0: not measured. */
  uint64_t mean_ns;       /* Moving mean of the handler's time for a sample. */
  int probes;             /* Ticks that are still to come as fast as they can. */
  Clock *probed;          /* Clock that ticks so: the first fast one. NULL: none yet. */
} Throttle;

/* Prepare for a session. period_ns: period of its fastest clock, or 0 if no clock ticks by
** time.
*/
LJ_FUNC void lj_throttle_begin(Throttle *t, uint64_t period_ns);

/* Begin a tick of a clock. Returns 0 if the tick must not take a sample. */
LJ_FUNC int lj_throttle_enter(Throttle *t, uint64_t begin_ns);

/* End a tick's sample. The handler took spent_ns of the clock's time. The tick came
** interval_ns after the last one. Sets the clock's period. Returns the ticks that the longer
** period leaves out.
*/
LJ_FUNC uint64_t lj_throttle_leave(Throttle *t, Clock *c, uint64_t end_ns,
				   uint64_t spent_ns, uint64_t interval_ns);

#endif
