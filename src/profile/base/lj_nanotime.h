/*
** System clocks in nanoseconds: monotonic time, and the CPU time of a thread.
** Context: handler or any thread. Async-signal-safe.
*/

#ifndef _LJ_NANOTIME_H
#define _LJ_NANOTIME_H

#include <stdint.h>
#include <time.h>

#include "lj_def.h"

/* Time of a clock. 0: the thread of the clock has ended. */
static LJ_AINLINE uint64_t clock_ns(clockid_t id)
{
  struct timespec ts;
  if (clock_gettime(id, &ts) != 0) return 0;
  return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* CPU time clock of a thread: CPUCLOCK_PERTHREAD_MASK and CPUCLOCK_SCHED of the kernel. */
static LJ_AINLINE clockid_t thread_clock(int tid)
{
  return (clockid_t)((~(unsigned int)tid << 3) | 6);
}

/* The reverse. */
static LJ_AINLINE int thread_of_clock(clockid_t clock)
{
  return (int)~(unsigned int)(clock >> 3);
}

/* CPU time of a thread, 0 if it has ended. */
static LJ_AINLINE uint64_t thread_ns(int tid)
{
  return clock_ns(thread_clock(tid));
}

/* Time since some moment in the past, for differences: nobody sets this clock. */
static LJ_AINLINE uint64_t mono_ns(void)
{
  return clock_ns(CLOCK_MONOTONIC);
}

/* Time from one tick of the kernel to the next. 0: unknown. */
static LJ_AINLINE uint64_t kernel_tick_ns(void)
{
  struct timespec ts;
  if (clock_getres(CLOCK_MONOTONIC_COARSE, &ts) != 0 || ts.tv_sec != 0) return 0;
  return (uint64_t)ts.tv_nsec;
}

static LJ_AINLINE int64_t mono_ms(void)
{
  return (int64_t)(mono_ns() / 1000000);
}

#endif
