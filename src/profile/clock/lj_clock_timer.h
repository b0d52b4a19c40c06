/*
** POSIX timers (timer_create): clocks of a thread's CPU time and of real time.
** Context: see lj_clockops.h.
*/

#ifndef _LJ_CLOCK_TIMER_H
#define _LJ_CLOCK_TIMER_H

#include "profile/clock/lj_clockops.h"

LJ_DATA const ClockOps lj_clock_ctimer_ops;
LJ_DATA const ClockOps lj_clock_wall_signal_ops;

#endif
