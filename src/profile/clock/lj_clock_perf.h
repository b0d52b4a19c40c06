/*
** Perf events (perf_event_open), the task clock among them.
** Context: handler | ops: see lj_clockops.h.
**
** A signal of an event carries the event's file descriptor, and nothing else.
*/

#ifndef _LJ_CLOCK_PERF_H
#define _LJ_CLOCK_PERF_H

#include "profile/clock/lj_clockops.h"

LJ_DATA const ClockOps lj_clock_perf_ops;

/* Value of the clock that has a descriptor, or had it until it closed. 0: no clock. */
LJ_FUNC uintptr_t lj_clock_perf_value(int fd);

/* The last signal of a closed clock has arrived: forget its descriptor. */
LJ_FUNC void lj_clock_perf_unlist(int fd, uintptr_t value);

/* Has a period passed since the last tick? */
LJ_FUNC int lj_clock_perf_isdue(const Clock *c);

#endif
