/*
** The budget of all clocks, on made-up sets of clocks. Whatever threads run, and whatever
** clocks they have, all ticks take at most a third of the processors. A clock alone has all
** of the budget.
** BASE: none, its modules know no VM
*/

#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "profile/base/lj_osthread.h"
#include "profile/clock/lj_clockbudget.h"
#include "check.h"

#define US      ((uint64_t)1000)
#define CLOCKS  60
#define THREADS 12

static Clock clocks[CLOCKS];
static uint64_t state = 88172645463325252u;

static uint64_t random_below(uint64_t n)
{
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state % n;
}

static Clock *clock_set(int i, ClockKind kind, int tid, uint64_t signal_ns)
{
  Clock *c = &clocks[i];
  memset(c, 0, sizeof(*c));
  c->spec.kind = kind;
  c->spec.unit = SPF_UNIT_US;
  c->spec.period = 10 * US;
  c->tid = tid;
  c->signal_ns = signal_ns;
  return c;
}

/* Share of one processor that the ticks of a clock take. */
static double share(const Clock *c, uint64_t sample_ns)
{
  return (double)(c->signal_ns + sample_ns) / (double)lj_clockbudget_least(c, sample_ns);
}

/* Sum of the clocks of real time, and of the clocks of the threads with the largest sums, one
** for each processor.
*/
static double worst_share(int n, uint32_t processors, uint64_t sample_ns)
{
  double thread[THREADS] = { 0 }, sum = 0;
  uint32_t i;
  int k, most;
  for (k = 0; k < n; k++) {
    if (clocks[k].spec.kind == CLOCK_WALL_SIGNAL) sum += share(&clocks[k], sample_ns);
    else thread[clocks[k].tid % THREADS] += share(&clocks[k], sample_ns);
  }
  for (i = 0; i < processors; i++) {
    for (k = most = 0; k < THREADS; k++)
      if (thread[k] > thread[most]) most = k;
    sum += thread[most];
    thread[most] = 0;
  }
  return sum;
}

static void any_set(void)
{
  static const ClockKind kinds[] = { CLOCK_CTIMER, CLOCK_PERF, CLOCK_ITIMER,
				     CLOCK_WALL_SIGNAL };
  int tries, i, n, used;
  for (tries = 0; tries < 2000; tries++) {
    uint32_t processors = 1 + (uint32_t)random_below(8);
    uint64_t sample_ns = 1 * US + random_below(20 * US);
    int few = 1 + (int)random_below(4), first = (int)random_below(4);
    n = 1 + (int)random_below(CLOCKS);
    for (i = 0; i < n; i++) {
      Clock *c = clock_set(i, kinds[(first + (int)random_below((uint64_t)few)) % 4],
			   THREADS * 1000 + (int)random_below(THREADS),
			   random_below(70 * US));
      lj_clockbudget_join(c);
      c->processors = processors; /* In place of those of a thread that is not there. */
    }
    CHECK(worst_share(n, processors, sample_ns) <= processors / 3.0 + 1e-9);
    /* Some leave. One that leaves twice changes nothing. */
    used = (int)random_below((uint64_t)n);
    for (i = used; i < n; i++) lj_clockbudget_leave(&clocks[i]);
    if (used < n) lj_clockbudget_leave(&clocks[used]);
    CHECK(worst_share(used, processors, sample_ns) <= processors / 3.0 + 1e-9);
    for (i = 0; i < used; i++) lj_clockbudget_leave(&clocks[i]);
  }
}

/* Threads that run one after the other do not take from each other. */
static void alone(void)
{
  Clock *c = clock_set(0, CLOCK_PERF, 1, 50 * US), *other;
  int i;
  lj_clockbudget_join(c);
  CHECK_EQ(lj_clockbudget_least(c, 5 * US), SPF_TICK_CYCLES * 55 * US);
  for (i = 1; i < CLOCKS; i++)
    lj_clockbudget_join(clock_set(i, CLOCK_PERF, 1 + i, 50 * US));
  CHECK_EQ(lj_clockbudget_least(c, 5 * US), SPF_TICK_CYCLES * 55 * US);
  for (i = 1; i < CLOCKS; i++) lj_clockbudget_leave(&clocks[i]);
  other = clock_set(1, CLOCK_CTIMER, 1, 0);
  lj_clockbudget_join(other);
  CHECK_EQ(lj_clockbudget_least(c, 5 * US), 2 * SPF_TICK_CYCLES * 55 * US);
  CHECK_EQ(lj_clockbudget_least(other, 5 * US), 2 * SPF_TICK_CYCLES * 5 * US);
  lj_clockbudget_forget();
  CHECK_EQ(lj_clockbudget_least(clock_set(2, CLOCK_WALL_SIGNAL, 1, 50 * US), 5 * US),
	   SPF_TICK_CYCLES * 55 * US);
}

/* A thread of this process has the processors that it may run on. */
static void processors(void)
{
  Clock *c = clock_set(0, CLOCK_WALL_SIGNAL, lj_osthread_self(), 50 * US);
  lj_clockbudget_join(c);
  CHECK(c->processors >= 1 && c->processors <= (uint32_t)sysconf(_SC_NPROCESSORS_CONF));
  lj_clockbudget_leave(c);
}

static int says(const Clock *c, const char *part)
{
  char text[EVENT_TEXT_MAX];
  lj_clockbudget_limit(c, text);
  return *part ? strstr(text, part) != NULL : !*text;
}

static void limits_are_said(void)
{
  Clock *c = clock_set(0, CLOCK_PERF, 1, 60 * US);
  strcpy(c->spec.name, "task-clock");
  CHECK(says(c, "task-clock takes about 5128 samples a second instead of 100000: a timer "
		"interrupt costs 60 us here"));
  c->spec.period = 200 * US;
  CHECK(says(c, ""));
  c->kernel_ns = 571 * US;
  CHECK(
    says(c, "1751 samples a second instead of 5000: kernel.perf_event_max_sample_rate"));
  CHECK_EQ(lj_clockbudget_least(c, 5 * US), 571 * US);
  c->kernel_ns = 0;
  c->spec.unit = SPF_UNIT_COUNT;
  c->spec.period = 1;
  CHECK(says(c, ""));
  c = clock_set(0, CLOCK_CTIMER, 1, 0);
  CHECK(says(c, ""));
}

/* A rate that is preferred is kept where its interrupts take 2 % of the time. */
static void tick_is_preferred(void)
{
  ClockSpec spec = { .kind = CLOCK_CPU, .unit = SPF_UNIT_US, .period = 1000 * US };
  ClockSpec asked = spec;
  lj_clockbudget_measured(CLOCK_PERF, 20 * US);
  spec.prefer_tick = 1;
  lj_clockbudget_prefer(&spec);
  CHECK_EQ(spec.period, 1000 * US);
  lj_clockbudget_measured(CLOCK_PERF, 20 * US + 1);
  lj_clockbudget_prefer(&asked);
  CHECK_EQ(asked.period, 1000 * US);
  lj_clockbudget_prefer(&spec);
  CHECK(spec.given_up ? spec.period > spec.given_up : sysconf(_SC_CLK_TCK) > 1000);
  lj_clockbudget_measured(CLOCK_PERF, CLOCKBUDGET_SIGNAL_NS);
  CHECK_EQ(lj_clockbudget_signal(CLOCK_PERF), CLOCKBUDGET_SIGNAL_NS);
  CHECK_EQ(lj_clockbudget_signal(CLOCK_CTIMER), 0);
  CHECK_EQ(lj_clockbudget_signal(CLOCK_ITIMER), 0);
}

int main(void)
{
  any_set();
  alone();
  processors();
  limits_are_said();
  tick_is_preferred();
  return check_status();
}
