/*
** Cost of a timer interrupt and its signal, measured by single ticks.
** Context: any thread, not the handler.
*/

#ifndef _LJ_CLOCKCOST_H
#define _LJ_CLOCKCOST_H

#include "profile/clock/lj_clockspec.h"

/* Measure a clock that adds interrupts, on the calling thread. It takes less than a
** millisecond, or three on a kernel that hangs (lj_clockkernel.h), and nothing if a measurement
** is less than ten seconds old. If no tick
** comes, for example because the thread blocks the signal, the old value stays. signo: signal
** of the clocks, or 0. Under a lock of the caller.
*/
LJ_FUNC void lj_clockcost_measure(const ClockSpec *spec, int signo);

#endif
