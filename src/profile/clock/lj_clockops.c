/*
** Random periods and overruns, shared by all kinds of clocks.
** Context: handler, on the clock's thread, or any thread before the clock is armed.
*/

#define lj_clockops_c
#define LUA_CORE

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* For RUSAGE_THREAD. */
#endif
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "profile/clock/lj_clockops.h"
#include "profile/base/lj_hash.h"
#include "profile/base/lj_nanotime.h"

static uint64_t ns_of(const struct timeval *tv)
{
  return (uint64_t)tv->tv_sec * 1000000000u + (uint64_t)tv->tv_usec * 1000u;
}

void lj_clockops_switches(ThreadSwitches *ts)
{
  struct rusage usage;
  syscall(SYS_getrusage, RUSAGE_THREAD, &usage); /* Cannot fail. */
  ts->cpu_ns = ns_of(&usage.ru_utime) + ns_of(&usage.ru_stime);
  ts->waits = (uint64_t)usage.ru_nvcsw;
  ts->preempted = (uint64_t)usage.ru_nivcsw;
}

void lj_clockops_seed(Clock *c)
{
  uint64_t h = hash_next(mono_ns(), (unsigned int)c->tid);
  c->random = hash_next(h, (uintptr_t)c) | 1;
}

uint64_t lj_clockops_random(Clock *c, uint64_t n)
{
  c->random ^= c->random << 13;
  c->random ^= c->random >> 7;
  c->random ^= c->random << 17;
  return 1 + c->random % n;
}

uint64_t lj_clockops_period(Clock *c)
{
  uint64_t period = lj_clockops_mean(c);
  return c->spec.jitter ? period / 2 + lj_clockops_random(c, period) : period;
}

#define CPU_TICKS    8     /* At least one of so many ticks reads the CPU time. */
#define CPU_PART     32    /* Else it agrees with the real time to this part of a period, */
#define CPU_ERROR_NS 20000 /* and to this time. */

uint64_t lj_clockops_cpu(Clock *c, uint64_t ticked_ns)
{
  uint64_t passed = c->begin_ns - c->read_ns, error = lj_clockops_mean(c) / CPU_PART;
  if (error > CPU_ERROR_NS) error = CPU_ERROR_NS;
  c->ticked_ns += ticked_ns;
  if (passed - c->ticked_ns + error <= 2 * error && ++c->nticked < CPU_TICKS)
    return c->read_cpu_ns + passed;
  c->nticked = 0;
  c->read_cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
  c->read_ns = mono_ns();
  c->ticked_ns = c->begin_ns - c->read_ns; /* The next period began at this tick. */
  return c->read_cpu_ns;
}

int lj_clockops_overrun(const Clock *c, uint64_t amount)
{
  uint64_t period = lj_clockops_mean(c), n = (amount + period / 2) / period;
  return n > 1 ? (int)(n > 0x7fffffff ? 0x7fffffff : n - 1) : 0;
}
