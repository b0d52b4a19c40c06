/*
** The timer of the process, setitimer(ITIMER_PROF), shared by all its clocks.
** Context: see lj_clockops.h.
*/

#ifndef _LJ_CLOCK_ITIMER_H
#define _LJ_CLOCK_ITIMER_H

#include "profile/clock/lj_clockops.h"

LJ_DATA const ClockOps lj_clock_itimer_ops;

#endif
