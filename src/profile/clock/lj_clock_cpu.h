/*
** The clock `cpu`: opens the best clock of CPU time that reaches the rate.
** Context: any thread, not the handler: it has no tick of its own.
*/

#ifndef _LJ_CLOCK_CPU_H
#define _LJ_CLOCK_CPU_H

#include "profile/clock/lj_clockops.h"

/* Kind of CPU time that is faster than the kernel's tick. */
#define CLOCK_CPU_FAST CLOCK_PERF

/* Does it need that kind? */
LJ_FUNC int lj_clock_cpu_isfast(const ClockSpec *spec);

/* open chooses a clock, and replaces ops, kind and name by that clock's. */
LJ_DATA const ClockOps lj_clock_cpu_ops;

#endif
