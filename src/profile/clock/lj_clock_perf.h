/*
** Perf events (perf_event_open), the task clock among them.
** Context: see lj_clockops.h.
**
** A signal of an event carries the event's file descriptor, and nothing else.
** An interrupt takes up to 65 us on virtual machines. An event with a shorter period would
** interrupt its thread without end, and the handler would never run. So an event stops after
** each overflow, and its tick starts it again. A second event counts meanwhile.
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
