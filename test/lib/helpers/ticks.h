/*
** Clocks without a session: the test counts the ticks of each clock, and checks their
** threads and weights.
*/

#ifndef TICKS_H
#define TICKS_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "profile/clock/lj_clock.h"
#include "profile/clock/lj_clocksig.h"
#include "profile/base/lj_osthread.h"
#include "check.h"

typedef struct Ticks {
  Clock clock;
  _Atomic int running;       /* While it is 0, a tick is wrong. */
  _Atomic uint64_t n;        /* Ticks. */
  _Atomic uint64_t overruns; /* Further periods that the ticks stand for. */
  _Atomic uint64_t weights;  /* Sum of the ticks' weights, in the clock's unit. */
  _Atomic uint64_t last;     /* Total at the last tick. */
  _Atomic int wrong;         /* Ticks on another thread, or after the close. */
} Ticks;

/* Signal of the clocks, 0 for the default of each clock. */
static int ticks_signo;

static inline void ticks_tick(void *owner, int overrun, ucontext_t *uc)
{
  Ticks *t = (Ticks *)owner;
  uint64_t total = lj_clocksig_total(&t->clock);
  if (!t->running || !uc || overrun < 0 || total < t->last ||
      t->clock.tid != lj_osthread_self())
    t->wrong++;
  t->n++;
  t->overruns += (uint64_t)overrun;
  t->weights += total - t->last;
  t->last = total;
}

static inline ClockSpec ticks_spec(const char *name, uint64_t interval_ns, uint64_t period)
{
  EventDefaults by = { interval_ns, period, 0, 0 };
  ClockSpec spec;
  char errmsg[EVENT_ERRMSG_MAX] = "";
  if (lj_clockspec_parse(name, strlen(name), &by, &spec, errmsg) != EVENT_PARSED)
    printf("%s: %s\n", name, errmsg);
  REQUIRE(errmsg[0] == '\0');
  return spec;
}

/* Open and arm a clock. On a failure sets errno and errmsg[EVENT_ERRMSG_MAX]. */
static inline EventStatus ticks_open(Ticks *t, const ClockSpec *spec, int tid, int signo,
				     char *errmsg)
{
  EventStatus status;
  memset(t, 0, sizeof(*t));
  t->clock.sample = ticks_tick;
  t->clock.owner = t;
  t->clock.signo = signo ? signo : ticks_signo;
  errmsg[0] = '\0';
  status = lj_clock_open(&t->clock, spec, tid, errmsg);
  if (status != EVENT_OK) return status;
  t->running = 1;
  t->last = lj_clocksig_total(&t->clock);
  return lj_clock_arm(&t->clock);
}

/* Open and arm a clock that must be available. */
static inline void ticks_start(Ticks *t, const char *name, uint64_t interval_ns,
			       uint64_t period)
{
  ClockSpec spec = ticks_spec(name, interval_ns, period);
  char errmsg[EVENT_ERRMSG_MAX];
  EventStatus status = ticks_open(t, &spec, lj_osthread_self(), 0, errmsg);
  if (status != EVENT_OK) printf("%s\n", errmsg);
  REQUIRE(status == EVENT_OK);
}

static inline void ticks_stop(Ticks *t)
{
  lj_clock_close(&t->clock);
  t->running = 0;
  CHECK_EQ(t->wrong, 0);
}

/* Is a clock available here? If not, prints the reason. */
static inline int ticks_available(const char *name)
{
  ClockSpec spec = ticks_spec(name, 10000000, 0);
  Ticks t;
  char errmsg[EVENT_ERRMSG_MAX];
  if (ticks_open(&t, &spec, lj_osthread_self(), 0, errmsg) == EVENT_OK) {
    lj_clock_close(&t.clock);
    return 1;
  }
  printf("skipped %s: %s\n", name, errmsg);
  return 0;
}

static inline uint64_t thread_us(void)
{
  struct timespec ts;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
  return (uint64_t)ts.tv_sec * 1000000u + (uint64_t)ts.tv_nsec / 1000;
}

/* Use so much CPU time. */
static inline void burn_us(uint64_t us)
{
  uint64_t end = thread_us() + us;
  volatile unsigned int x = 1;
  int i;
  while (thread_us() < end)
    for (i = 0; i < 1000; i++) x = x * 5 + 3;
}

/* Cause one page fault at least. */
static inline void fault_page(void)
{
  void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(page != MAP_FAILED);
  *(volatile char *)page = 1;
  munmap(page, 4096);
}

/* Number of open descriptors. */
static inline int descriptors(void)
{
  int fd, n = 0;
  for (fd = 0; fd < 256; fd++) n += fcntl(fd, F_GETFD) >= 0;
  return n;
}

/* Run a part of a test in its own child, which it may damage. */
static inline void in_child(void (*part)(void))
{
  int status;
  pid_t pid;
  pid = flush_and_fork();
  if (pid == 0) {
    check_failures = 0;
    part();
    _exit(check_status());
  }
  REQUIRE(waitpid(pid, &status, 0) == pid);
  if (status != 0) printf("the child ended with status 0x%x\n", status);
  CHECK_EQ(status, 0);
}

#endif
