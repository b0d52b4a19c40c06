/*
** Clocks of the system as numbers. Async-signal-safe.
*/

#ifndef _LJ_NANOTIME_H
#define _LJ_NANOTIME_H

#include <stdint.h>
#include <time.h>

#include "lj_def.h"

/* What a clock says in ns, 0 if there is none: that of a thread may be gone. */
static LJ_AINLINE uint64_t clock_ns(clockid_t id)
{
  struct timespec ts;
  if (clock_gettime(id, &ts) != 0) return 0;
  return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Time since some moment in the past, for differences: nobody sets this clock. */
static LJ_AINLINE uint64_t mono_ns(void)
{
  return clock_ns(CLOCK_MONOTONIC);
}

static LJ_AINLINE int64_t mono_ms(void)
{
  return (int64_t)(mono_ns() / 1000000);
}

#endif
