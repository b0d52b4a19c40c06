/*
** Clocks and events at their shortest period. Whenever the handler begins, the event of its
** signal stands still: it has interrupted the thread once, and cannot do so again before the
** handler starts it. A clock with a long period runs on, and pays no system call for that.
** BASE: none, its modules know no VM
*/

#include "profile/clock/lj_clock_perf.h"
#include "profile/base/lj_nanotime.h"
#include "ticks.h"

#define US    ((uint64_t)1000)
#define TICKS 200

static _Atomic uint64_t stopped, ran_on;

/* As read(2) fills it in. */
typedef struct Count {
  uint64_t value, enabled_ns, running_ns;
} Count;

/* The time of an event that has stopped stands still. */
static int is_stopped(int fd)
{
  Count a, b;
  uint64_t begin = mono_ns();
  REQUIRE(read(fd, &a, sizeof(a)) == sizeof(a));
  while (mono_ns() - begin < 2 * US)
    ;
  REQUIRE(read(fd, &b, sizeof(b)) == sizeof(b));
  return a.enabled_ns == b.enabled_ns;
}

static int looking_tick(Clock *c, const siginfo_t *info)
{
  if (is_stopped(c->fd)) stopped++;
  else ran_on++;
  return lj_clock_perf_ops.tick(c, info);
}

/* Cause page faults and switches, and take time. */
static void do_all(void)
{
  int i;
  for (i = 0; i < 16; i++) fault_page();
  burn_us(200);
  usleep(1);
}

/* Returns 0 if the clock is not available. */
static int look(const char *name, uint64_t interval_ns, uint64_t period)
{
  ClockSpec spec = ticks_spec(name, interval_ns, period);
  char errmsg[EVENT_ERRMSG_MAX];
  time_t deadline = time(NULL) + 200;
  ClockOps ops = lj_clock_perf_ops;
  Ticks t;
  memset(&t, 0, sizeof(t));
  t.clock.sample = ticks_tick;
  t.clock.owner = &t;
  if (lj_clock_open(&t.clock, &spec, lj_osthread_self(), errmsg) != EVENT_OK) {
    printf("%s: not here: %s\n", name, errmsg);
    return 0;
  }
  ops.tick = looking_tick;
  t.clock.ops = &ops;
  t.running = 1;
  stopped = ran_on = 0;
  REQUIRE(lj_clock_arm(&t.clock) == EVENT_OK);
  t.clock.ops->setperiod(&t.clock, 0); /* No budget: as fast as the kernel allows. */
  while (t.n < TICKS && time(NULL) < deadline) do_all();
  CHECK(t.n >= TICKS);
  ticks_stop(&t);
  printf("%s: %llu ticks, stopped %llu times, ran on %llu times\n", name,
	 (unsigned long long)t.n, (unsigned long long)stopped, (unsigned long long)ran_on);
  return 1;
}

static void stops(const char *name, uint64_t interval_ns, uint64_t period)
{
  if (!look(name, interval_ns, period)) return;
  CHECK_EQ(ran_on, 0);
}

int main(void)
{
  stops("task-clock:u", 10 * US, 0);
  stops("task-clock", 10 * US, 0);
  stops("task-clock:u", 100 * US, 0);
  stops("page-faults", 0, 1);
  stops("page-faults:u", 0, 1);
  stops("minor-faults:u", 0, 2);
  stops("context-switches", 0, 2);
  stops("cycles:u", 0, 10000);
  stops("instructions:u", 0, 10000);
  if (look("task-clock:u", 5000 * US, 0)) CHECK_EQ(stopped, 0);
  return check_status();
}
