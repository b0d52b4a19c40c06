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

#endif
