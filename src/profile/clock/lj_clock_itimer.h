/*
** The timer of the process, setitimer(ITIMER_PROF), shared by all its clocks.
** Context: handler | ops: see lj_clockops.h.
*/

#ifndef _LJ_CLOCK_ITIMER_H
#define _LJ_CLOCK_ITIMER_H

#include "profile/clock/lj_clockops.h"

LJ_DATA const ClockOps lj_clock_itimer_ops;

/* Did the timer send the signal? */
LJ_FUNC int lj_clock_itimer_issignal(int signo, int si_code);

/* Has the kernel passed over the running thread of this clock? */
LJ_FUNC int lj_clock_itimer_isstarved(const Clock *c);

#endif
