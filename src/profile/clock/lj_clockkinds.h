/*
** Kinds of clocks: the table of their functions.
** Context: handler or any thread. The table is constant.
*/

#ifndef _LJ_CLOCKKINDS_H
#define _LJ_CLOCKKINDS_H

#include "profile/clock/lj_clockops.h"

/* By ClockKind. */
LJ_DATA const ClockOps *const lj_clockkinds[CLOCK__MAX];

#endif
