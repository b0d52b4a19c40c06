/*
** Perf events (perf_event_open), the task clock among them.
** Context: handler; the ops as lj_clockops.h says.
**
** A signal of an event carries the event's file descriptor, and nothing else.
*/

#ifndef _LJ_CLOCK_PERF_H
#define _LJ_CLOCK_PERF_H

#include "profile/clock/lj_clockops.h"

LJ_DATA const ClockOps lj_clock_perf_ops;

/* Value of the clock that has a descriptor, or had it before it closed; 0 if none. */
LJ_FUNC uintptr_t lj_clock_perf_value(int fd);

/* The last signal of a closed clock has arrived: forget its descriptor. */
LJ_FUNC void lj_clock_perf_unlist(int fd, uintptr_t value);

/* Has a period passed since the last tick? */
LJ_FUNC int lj_clock_perf_isdue(const Clock *c);

#endif
