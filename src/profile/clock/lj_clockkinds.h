/*
** Kinds of clocks: the table of their functions.
** Context: handler or any thread. Async-signal-safe; the table is constant.
*/

#ifndef _LJ_CLOCKKINDS_H
#define _LJ_CLOCKKINDS_H

#include "profile/clock/lj_clockops.h"

/* By ClockKind. */
LJ_DATA const ClockOps *const lj_clockkinds[CLOCK__MAX];

/* Value of the clock that a signal names by a number, see ClockOps. 0: another sender. */
LJ_FUNC uintptr_t lj_clockkinds_value(const siginfo_t *info);

#endif
