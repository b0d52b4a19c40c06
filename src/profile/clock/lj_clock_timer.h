/*
** POSIX timers (timer_create): clocks of a thread's CPU time and of real time.
** Context: see lj_clockops.h.
*/

#ifndef _LJ_CLOCK_TIMER_H
#define _LJ_CLOCK_TIMER_H

#include "profile/clock/lj_clockops.h"

LJ_DATA const ClockOps lj_clock_ctimer_ops;
LJ_DATA const ClockOps lj_clock_wall_signal_ops;

/* Let an open timer tick after each period, in nanoseconds. Returns 0 or an errno.
** Async-signal-safe.
*/
LJ_FUNC int lj_clock_timer_every(const Clock *c, uint64_t ns);

#endif
