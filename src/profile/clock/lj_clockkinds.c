/*
** Kinds of clocks: the table of their functions.
** Context: see the header.
*/

#define lj_clockkinds_c
#define LUA_CORE

#include "profile/clock/lj_clock_cpu.h"
#include "profile/clock/lj_clock_itimer.h"
#include "profile/clock/lj_clock_perf.h"
#include "profile/clock/lj_clock_timer.h"
#include "profile/clock/lj_clockkinds.h"

const ClockOps *const lj_clockkinds[CLOCK__MAX] = {
#define KINDOPS(kind, name) &lj_clock_##name##_ops,
  CLOCKKINDDEF(KINDOPS)
#undef KINDOPS
};
