/*
** The program takes the signal of an event by sigwait(). The event stands still then, since no
** handler starts it again. lj_clock_revive does, once the thread has run on. It leaves an event
** alone that runs, and one whose thread sleeps.
** BASE: none, its modules know no VM
*/

#include <signal.h>

#include "profile/base/lj_nanotime.h"
#include "ticks.h"

#define US ((uint64_t)1000)

static void fault_and_burn(void)
{
  fault_page();
  burn_us(1000);
}

/* Wait for a signal of the clock in place of the handler. */
static void take_signal(int signo)
{
  static const struct timespec now = { 0, 0 };
  time_t deadline = time(NULL) + 200;
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signo);
  REQUIRE(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0);
  do {
    fault_and_burn();
  } while (sigtimedwait(&set, NULL, &now) != signo && time(NULL) < deadline);
  CHECK(time(NULL) < deadline);
  REQUIRE(pthread_sigmask(SIG_UNBLOCK, &set, NULL) == 0);
}

static void revived(const char *name, uint64_t interval_ns, uint64_t period)
{
  ClockSpec spec = ticks_spec(name, interval_ns, period);
  char errmsg[EVENT_ERRMSG_MAX];
  time_t deadline = time(NULL) + 200;
  uint64_t n;
  Ticks t;
  int i;
  if (ticks_open(&t, &spec, lj_osthread_self(), 0, errmsg) != EVENT_OK) {
    printf("skipped %s: %s\n", name, errmsg);
    return;
  }
  while (t.n < 3 && time(NULL) < deadline) fault_and_burn();
  CHECK(t.n >= 3);
  take_signal(t.clock.signo);
  n = t.n;
  for (i = 0; i < 30; i++) fault_and_burn();
  CHECK_EQ(t.n, n); /* It has stopped for ever. */
  lj_clock_revive(&t.clock);
  CHECK_EQ(t.n, n); /* The first call only looks. */
  for (i = 0; i < 30; i++) fault_and_burn();
  lj_clock_revive(&t.clock);
  while (t.n < n + 3 && time(NULL) < deadline) fault_and_burn();
  CHECK(t.n >= n + 3);
  ticks_stop(&t);
}

/* An event that waits for its period gets no second permit to overflow. */
static void left_alone(void)
{
  ClockSpec spec = ticks_spec("page-faults:u", 0, 1000000);
  char errmsg[EVENT_ERRMSG_MAX];
  uint64_t seen = 0;
  Ticks t;
  int i, k;
  if (ticks_open(&t, &spec, lj_osthread_self(), 0, errmsg) != EVENT_OK) return;
  for (i = 0; i < 5; i++) {
    for (k = 0; k < 30; k++) fault_and_burn();
    lj_clock_revive(&t.clock);
    CHECK(t.clock.look_enabled_ns != seen); /* Its time goes on. */
    CHECK(t.clock.look_cpu_ns != 0);
    seen = t.clock.look_enabled_ns;
  }
  CHECK_EQ(t.n, 0);
  for (i = 0; i < 5; i++) { /* Asleep, it does not go on, but nor does its thread. */
    usleep(30000);
    lj_clock_revive(&t.clock);
    CHECK(t.clock.look_cpu_ns != 0);
  }
  ticks_stop(&t);
}

int main(void)
{
  revived("task-clock:u", 100 * US, 0);
  revived("page-faults:u", 0, 5);
  revived("page-faults", 0, 5);
  left_alone();
  return check_status();
}
