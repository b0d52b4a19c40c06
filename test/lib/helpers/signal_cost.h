/*
** Cost of a signal on this machine, for programs that send themselves signals at a fast
** rate. A timer's signal takes a few microseconds on most machines, and 60 on some virtual
** ones: at a fixed 50 kHz the program would do nothing else there.
*/

#ifndef SIGNAL_COST_H
#define SIGNAL_COST_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

#define SIGNAL_COST_N 25 /* Signals that are measured; odd. */

static volatile int signal_cost_got;

static void signal_cost_handler(int sig)
{
  (void)sig;
  signal_cost_got = 1;
}

static inline uint64_t signal_cost_now(void)
{
  struct timespec ts;
  clock_gettime(CLOCK_MONOTONIC, &ts);
  return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static inline int signal_cost_compare(const void *a, const void *b)
{
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return x < y ? -1 : x > y;
}

/* Nanoseconds that a timer's signal takes from the thread: interrupt, handler and return.
** The thread looks at the clock all the time; the signal comes between two looks. The
** median leaves out the signals beside which another program ran. Uses SIGALRM.
*/
static inline uint64_t signal_cost_ns(void)
{
  static uint64_t cost[SIGNAL_COST_N];
  static const struct itimerspec once = { { 0, 0 }, { 0, 300000 } };
  struct sigaction sa, old_action;
  struct sigevent ev;
  sigset_t set, old_set;
  timer_t timer;
  int i;
  memset(&sa, 0, sizeof(sa));
  sa.sa_handler = signal_cost_handler;
  sa.sa_flags = SA_RESTART;
  REQUIRE(sigaction(SIGALRM, &sa, &old_action) == 0);
  sigemptyset(&set);
  sigaddset(&set, SIGALRM);
  REQUIRE(sigprocmask(SIG_UNBLOCK, &set, &old_set) == 0);
  memset(&ev, 0, sizeof(ev));
  ev.sigev_notify = SIGEV_THREAD_ID;
  ev.sigev_signo = SIGALRM;
  ev.sigev_notify_thread_id = (int)syscall(SYS_gettid);
  REQUIRE(timer_create(CLOCK_MONOTONIC, &ev, &timer) == 0);
  for (i = 0; i < SIGNAL_COST_N; i++) {
    uint64_t now, last, next;
    signal_cost_got = 0;
    REQUIRE(timer_settime(timer, 0, &once, NULL) == 0);
    now = signal_cost_now();
    do {
      last = now;
      now = signal_cost_now();
    } while (!signal_cost_got);
    next = signal_cost_now(); /* It may have come behind the look before. */
    cost[i] = now - last > next - now ? now - last : next - now;
  }
  REQUIRE(timer_delete(timer) == 0);
  REQUIRE(sigprocmask(SIG_SETMASK, &old_set, NULL) == 0);
  REQUIRE(sigaction(SIGALRM, &old_action, NULL) == 0);
  qsort(cost, SIGNAL_COST_N, sizeof(cost[0]), signal_cost_compare);
  return cost[SIGNAL_COST_N / 2];
}

/* The interval to use in place of WANTED_NS between the signals of each of N senders, so
** that the program keeps at least half of a processor's time.
*/
static inline uint64_t signal_interval_ns(uint64_t wanted_ns, int n)
{
  uint64_t cost = signal_cost_ns(), least = 2 * cost * (uint64_t)n;
  uint64_t interval = wanted_ns > least ? wanted_ns : least;
  printf("a signal costs %.1f us: one each %.1f us\n", (double)cost / 1e3,
	 (double)interval / 1e3);
  return interval;
}

#endif
