/* The kernel gives the signals of setitimer() to any thread. A thread is starved if it has
** used three periods of CPU time since its last tick and is not asleep.
** BASE: none, its modules know no VM
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lj_arch.h"
#include "profile/base/lj_osthread.h"
#include "profile/clock/lj_clock_itimer.h"
#include "check.h"

#define PERIOD  10000000 /* In nanoseconds. */
#define PERIODS 3

static int pipes[2];
static volatile int tid;

static uint64_t cpu_ns(void)
{
  struct timespec ts;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
  return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void use(uint64_t ns)
{
  while (cpu_ns() < ns) {}
}

/* Works, and then waits. */
static void *thread(void *arg)
{
  char byte;
  (void)arg;
  use(2 * PERIODS * PERIOD);
  tid = lj_osthread_self();
  if (read(pipes[0], &byte, 1) != 1) return NULL;
  return arg;
}

int main(void)
{
  static Clock c;
  pthread_t t;
  int tries;
  c.ops = &lj_clock_itimer_ops;
  c.spec.period = PERIOD;
  c.tid = lj_osthread_self();
  use(2 * PERIODS * PERIOD);
  CHECK(c.ops->isstarved(&c));
  c.last = cpu_ns();
  CHECK(!c.ops->isstarved(&c));
  c.last = cpu_ns() - PERIODS * PERIOD;
  CHECK(c.ops->isstarved(&c));
  c.last = cpu_ns() - (PERIODS - 1) * PERIOD;
  CHECK(!c.ops->isstarved(&c));
  c.last = cpu_ns() + PERIOD; /* Of another thread. */
  CHECK(!c.ops->isstarved(&c));

  REQUIRE(pipe(pipes) == 0);
  REQUIRE(pthread_create(&t, NULL, thread, NULL) == 0);
  c.last = 0;
  while (!tid) usleep(1000);
  c.tid = tid;
  /* It sleeps within ten seconds. */
  for (tries = 0; tries < 10000 && c.ops->isstarved(&c); tries++) usleep(1000);
  CHECK(!c.ops->isstarved(&c));
  REQUIRE(write(pipes[1], "", 1) == 1);
  pthread_join(t, NULL);
  c.tid = 0x3fffffff; /* No such thread. */
  CHECK(!c.ops->isstarved(&c));
  return check_status();
}
