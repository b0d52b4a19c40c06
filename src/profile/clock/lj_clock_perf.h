/*
** Perf events (perf_event_open), the task clock among them.
** Context: see lj_clockops.h.
**
** A signal of an event carries the event's file descriptor, and nothing else.
*/

#ifndef _LJ_CLOCK_PERF_H
#define _LJ_CLOCK_PERF_H

#include "profile/clock/lj_clockops.h"

LJ_DATA const ClockOps lj_clock_perf_ops;

/* On the thread of an open event: is its descriptor still the event's? The program may have closed
** it. Async-signal-safe.
*/
LJ_FUNC int lj_clock_perf_isopen(const Clock *c);

/* Stop an armed event until the next arm. Async-signal-safe. */
LJ_FUNC void lj_clock_perf_pause(const Clock *c);

#endif
