/*
** The clock `cpu`: opens the cheapest clock of CPU time that reaches the rate.
** Context: any thread, not the handler: it has no tick of its own.
*/

#ifndef _LJ_CLOCK_CPU_H
#define _LJ_CLOCK_CPU_H

#include "profile/clock/lj_clockops.h"

/* open replaces the clock's ops, kind and name by those of the clock that it chose. */
LJ_DATA const ClockOps lj_clock_cpu_ops;

#endif
