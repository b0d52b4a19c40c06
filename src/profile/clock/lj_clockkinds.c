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

/* Each tick of an event comes here. Unrolled, because a loop over the table takes longer. */
uintptr_t lj_clockkinds_value(const siginfo_t *info)
{
  uintptr_t value;
#define KINDVALUE(kind, name) \
  if (lj_clock_##name##_ops.value && (value = lj_clock_##name##_ops.value(info)) != 0) \
    return value;
  CLOCKKINDDEF(KINDVALUE)
#undef KINDVALUE
  return 0;
}
