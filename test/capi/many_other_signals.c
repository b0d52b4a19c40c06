/* TIMEOUT: 600
** Profiles start and stop while other signals of the program come all the time, on this
** thread and from another one. No signal is lost, and no profile fails.
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>

#include "session.h"
#include "signal_cost.h"

#define CYCLES 150

static volatile int alarms, queued, over;
static volatile uint64_t work_in_handler;
static pthread_t target;
static int sent;
static uint64_t pause_ns;

static void on_alarm(int sig)
{
  int i;
  (void)sig;
  alarms++;
  for (i = 0; i < 1000; i++) work_in_handler++;
}

static void on_queued(int sig, siginfo_t *info, void *uc)
{
  (void)sig;
  (void)uc;
  if (info->si_value.sival_int == 4711) queued++;
}

/* Real-time signals: each one that is sent arrives. */
static void *sender(void *arg)
{
  struct timespec pause = { 0, (long)pause_ns };
  union sigval v;
  (void)arg;
  v.sival_int = 4711;
  while (!over) {
    if (pthread_sigqueue(target, SIGRTMIN + 5, v) == 0) sent++;
    nanosleep(&pause, NULL);
  }
  return NULL;
}

int main(void)
{
  static const struct itimerval off;
  struct itimerval tick = { { 0, 0 }, { 0, 0 } };
  lua_State *L = session_vm();
  struct sigaction sa, now;
  pthread_t thread;
  sigset_t all, old;
  time_t deadline;
  int i, mode;
  pause_ns = signal_interval_ns(200000, 2);
  tick.it_interval.tv_usec = (suseconds_t)(signal_interval_ns(700000, 2) / 1000);
  tick.it_value = tick.it_interval;
  memset(&sa, 0, sizeof(sa));
  sa.sa_flags = SA_RESTART;
  sa.sa_handler = on_alarm;
  REQUIRE(sigaction(SIGALRM, &sa, NULL) == 0);
  sa.sa_flags = SA_RESTART | SA_SIGINFO;
  sa.sa_sigaction = on_queued;
  REQUIRE(sigaction(SIGRTMIN + 5, &sa, NULL) == 0);
  target = pthread_self();
  sigfillset(&all);
  REQUIRE(pthread_sigmask(SIG_BLOCK, &all, &old) == 0);
  REQUIRE(pthread_create(&thread, NULL, sender, NULL) == 0);
  REQUIRE(pthread_sigmask(SIG_SETMASK, &old, NULL) == 0);
  REQUIRE(setitimer(ITIMER_REAL, &tick, NULL) == 0);
  for (mode = LUAM_SYSPROF_DEFAULT; mode <= LUAM_SYSPROF_CALLGRAPH; mode++) {
    Sink sink;
    struct luam_Sysprof_Options opt = session_options(&sink, mode, 65536);
    opt.interval_ns = 300000;
    for (i = 0; i < CYCLES; i++) {
      sink.len = 0;
      CHECK_EQ(luaM_sysprof_start(L, &opt), PROFILE_SUCCESS);
      session_run(L, i % 3);
      CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
    }
    if (mode != LUAM_SYSPROF_DEFAULT) CHECK_EQ(sink.stops, CYCLES);
    sink_free(&sink);
  }
  deadline = time(NULL) + 200;
  while ((alarms < 50 || queued < 50) && time(NULL) < deadline) session_work(L);
  over = 1;
  REQUIRE(pthread_join(thread, NULL) == 0);
  REQUIRE(setitimer(ITIMER_REAL, &off, NULL) == 0);
  CHECK(alarms >= 50);
  CHECK(queued >= 50);
  CHECK_EQ(queued, sent);
  REQUIRE(sigaction(CLOCK_SIGNAL, NULL, &now) == 0);
  CHECK(now.sa_handler == SIG_DFL);
  lua_close(L);
  return check_status();
}
