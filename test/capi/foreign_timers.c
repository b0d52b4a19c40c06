/* TIMEOUT: 600
** The program's own timers also send SIGPROF. Each of their signals reaches the program's
** handler with its value, and takes no sample.
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <signal.h>

#include "session.h"

#define NTIMERS 3

static volatile int got[NTIMERS], other;
static char values[NTIMERS];

static void handler(int sig, siginfo_t *info, void *uc)
{
  char *value = (char *)info->si_value.sival_ptr;
  CHECK_EQ(sig, SIGPROF);
  CHECK(uc != NULL);
  if (info->si_code == SI_TIMER && value >= values && value < values + NTIMERS)
    got[value - values]++;
  else other++;
}

static void arm(timer_t t, long us)
{
  struct itimerspec its;
  memset(&its, 0, sizeof(its));
  its.it_value.tv_nsec = its.it_interval.tv_nsec = us * 1000;
  REQUIRE(timer_settime(t, 0, &its, NULL) == 0);
}

int main(void)
{
  static const clockid_t ids[NTIMERS] = { CLOCK_MONOTONIC, CLOCK_THREAD_CPUTIME_ID,
					  CLOCK_PROCESS_CPUTIME_ID };
  lua_State *L = session_vm();
  Sink sink;
  struct luam_Sysprof_Options opt = session_options(&sink, LUAM_SYSPROF_CALLGRAPH, 65536);
  struct sigaction sa, now;
  struct itimerspec its;
  timer_t timer[NTIMERS];
  uint64_t samples;
  int i, round, before[NTIMERS];
  time_t deadline = time(NULL) + 200;
  memset(&sa, 0, sizeof(sa));
  sa.sa_flags = SA_SIGINFO | SA_RESTART;
  sa.sa_sigaction = handler;
  REQUIRE(sigaction(SIGPROF, &sa, NULL) == 0);
  for (i = 0; i < NTIMERS; i++) {
    struct sigevent ev;
    memset(&ev, 0, sizeof(ev));
    ev.sigev_notify = SIGEV_SIGNAL;
    ev.sigev_signo = SIGPROF;
    ev.sigev_value.sival_ptr = &values[i];
    REQUIRE(timer_create(ids[i], &ev, &timer[i]) == 0);
    arm(timer[i], 2000);
  }
  for (round = 0; round < 4; round++) {
    for (i = 0; i < NTIMERS; i++) before[i] = got[i];
    CHECK_EQ(luaM_sysprof_start(L, &opt), PROFILE_SUCCESS);
    session_run(L, 20);
    while ((got[0] < before[0] + 5 || got[1] < before[1] + 5 || got[2] < before[2] + 5) &&
	   time(NULL) < deadline)
      session_work(L);
    CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
    for (i = 0; i < NTIMERS; i++) CHECK(got[i] >= before[i] + 5);
  }
  /* With an interval of hours, a profile has no samples: other signals take none. */
  opt.interval_ns = (uint64_t)3600 * 1000000000u;
  CHECK_EQ(luaM_sysprof_start(L, &opt), PROFILE_SUCCESS);
  for (i = 0; i < NTIMERS; i++) before[i] = got[i];
  while (got[0] < before[0] + 20 && time(NULL) < deadline) session_work(L);
  samples = session_samples();
  CHECK(samples <= 1); /* The first may come after any part of the interval. */
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  CHECK_EQ(other, 0); /* No signal of the profiler. */
  for (i = 0; i < NTIMERS; i++) {
    REQUIRE(timer_gettime(timer[i], &its) == 0);
    CHECK_EQ(its.it_interval.tv_nsec, 2000000);
  }
  REQUIRE(sigaction(SIGPROF, NULL, &now) == 0);
  CHECK(now.sa_sigaction == handler);
  lua_close(L);
  return check_status();
}
