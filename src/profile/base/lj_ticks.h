/*
** Cheap time: cycles of the time stamp counter where the kernel trusts it, else nanoseconds.
** Context: any thread, async-signal-safe, except begin.
**
** The counter takes 10 ns to read here, CLOCK_MONOTONIC 24 ns. The kernel trusts the counter if it
** is its clock source: then it ticks at one rate, equally on all processors.
*/

#ifndef _LJ_TICKS_H
#define _LJ_TICKS_H

#include "profile/base/lj_nanotime.h"
#include "profile/base/lj_relaxed.h"

#define TICKS_APART_NS 1000 /* Reads of two clocks that are farther apart do not count. */
#define TICKS_TRIES    5

/* Rate of the ticks, measured over a time that grows. One thread sets it. */
typedef struct TickRate {
  int is_counter;      /* Ticks are those of the counter, else nanoseconds. */
  uint64_t tick0, ns0; /* Begin of the measurement. */
  double ns;           /* Nanoseconds of a tick. */
} TickRate;

/* Choose the kind of ticks and measure their rate, for 50 us. Reads a file of /sys. */
LJ_FUNC void lj_ticks_begin(TickRate *tr);

static LJ_AINLINE uint64_t lj_ticks_now(const TickRate *tr)
{
  return LJ_LIKELY(tr->is_counter) ? __builtin_ia32_rdtsc() : mono_ns();
}

/* Read both clocks at one moment. Returns 0 if the thread was interrupted at each try. The reads are
** some 25 ns apart otherwise.
*/
static LJ_AINLINE int lj_ticks_read(const TickRate *tr, uint64_t *tick, uint64_t *ns)
{
  int i;
  for (i = 0; i < TICKS_TRIES; i++) {
    uint64_t before = lj_ticks_now(tr), after;
    *ns = mono_ns();
    after = lj_ticks_now(tr);
    *tick = before + (after - before) / 2;
    if ((double)(after - before) * tr->ns < TICKS_APART_NS) return 1;
  }
  return 0;
}

/* Measure the rate again. The longer ago the begin was, the more exact it is. */
static LJ_AINLINE void lj_ticks_measure(TickRate *tr)
{
  uint64_t tick, ns;
  if (tr->is_counter && lj_ticks_read(tr, &tick, &ns) && tick > tr->tick0)
    tr->ns = (double)(ns - tr->ns0) / (double)(tick - tr->tick0);
}

static LJ_AINLINE uint64_t lj_ticks_ns(const TickRate *tr, uint64_t ticks)
{
  return tr->is_counter ? (uint64_t)((double)ticks * tr->ns) : ticks;
}

#endif
