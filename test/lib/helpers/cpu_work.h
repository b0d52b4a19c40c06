/*
** Work of known size for the tests of threads: CPU time of threads, and Lua and C code that
** use a given amount of CPU time.
*/

#ifndef CPU_WORK_H
#define CPU_WORK_H

#include <pthread.h>

#include "session.h"

static inline uint64_t cpu_us(clockid_t id)
{
  struct timespec ts;
  REQUIRE(clock_gettime(id, &ts) == 0);
  return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

/* CPU time of the calling thread in microseconds. */
static inline uint64_t cpu_own_us(void)
{
  return cpu_us(CLOCK_THREAD_CPUTIME_ID);
}

static inline void cpu_sleep_us(long us)
{
  struct timespec ts;
  ts.tv_sec = us / 1000000;
  ts.tv_nsec = us % 1000000 * 1000;
  while (nanosleep(&ts, &ts) != 0)
    ;
}

/* Run the global function work until the thread has used that much CPU time. */
static inline void cpu_run_lua(lua_State *L, uint64_t us)
{
  uint64_t end = cpu_own_us() + us;
  while (cpu_own_us() < end) session_work(L);
}

/* Run C code until the thread has used that much CPU time. */
__attribute__((noinline, unused)) static void cpu_burn(uint64_t us)
{
  uint64_t end = cpu_own_us() + us;
  volatile uint64_t x = 1;
  int i;
  while (cpu_own_us() < end)
    for (i = 0; i < 20000; i++) x = x * 3 + 1;
}

static inline pthread_t cpu_thread(void *(*f)(void *), void *arg)
{
  pthread_t t;
  REQUIRE(pthread_create(&t, NULL, f, arg) == 0);
  return t;
}

#endif
