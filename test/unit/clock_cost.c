/*
** The cost of an interrupt and its signal is measured by single ticks. Nothing is left behind:
** no clock, no handler, no signal, no descriptor. Where no tick comes, the old value stays.
** BASE: none, its modules know no VM
*/

#include <signal.h>

#include "profile/clock/lj_clockbudget.h"
#include "profile/clock/lj_clockcost.h"
#include "ticks.h"

static int is_default(int signo)
{
  struct sigaction sa;
  REQUIRE(sigaction(signo, NULL, &sa) == 0);
  return sa.sa_handler == SIG_DFL;
}

static void measure(const char *name, uint64_t interval_ns)
{
  ClockSpec spec = ticks_spec(name, interval_ns, 0);
  int before = descriptors();
  sigset_t pending;
  lj_clockcost_measure(&spec, 0);
  CHECK_EQ(descriptors(), before);
  CHECK(is_default(SIGPROF) && is_default(SIGURG));
  REQUIRE(sigpending(&pending) == 0);
  CHECK(!sigismember(&pending, SIGPROF) && !sigismember(&pending, SIGURG));
}

static void block(int how)
{
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGPROF);
  sigaddset(&set, SIGURG);
  REQUIRE(pthread_sigmask(how, &set, NULL) == 0);
}

static void measured_once(const char *name, ClockKind kind)
{
  uint64_t cost;
  block(SIG_BLOCK);
  measure(name, 1000000);
  CHECK_EQ(lj_clockbudget_signal(kind), CLOCKBUDGET_SIGNAL_NS);
  block(SIG_UNBLOCK);
  measure(name, 1000000);
  cost = lj_clockbudget_signal(kind);
  printf("%s: %llu ns\n", name, (unsigned long long)cost);
#ifndef __SANITIZE_THREAD__
  CHECK(cost > 0 && cost != CLOCKBUDGET_SIGNAL_NS);
#endif
  measure(name, 1000000); /* It is fresh still. */
  CHECK_EQ(lj_clockbudget_signal(kind), cost);
}

int main(void)
{
  measure("ctimer", 1000000);
  measure("itimer", 1000000);
  measure("page-faults", 1000000); /* As a clock of perf, where that is available. */
  lj_clockbudget_measured(CLOCK_PERF, CLOCKBUDGET_SIGNAL_NS);
  measured_once("wall-signal", CLOCK_WALL_SIGNAL);
  CHECK_EQ(lj_clockbudget_signal(CLOCK_PERF), CLOCKBUDGET_SIGNAL_NS);
  return check_status();
}
