/*
** The throttle on made-up times. It lets a fast clock tick as fast as it can, and takes
** the shortest mean time between ticks as the cost of a sample. Then it sets a period of
** THROTTLE_CYCLES times that. It leaves slow clocks alone. A rest follows a long sample.
*/

#include <string.h>

#include "profile/session/lj_throttle.h"
#include "check.h"

#define US       ((uint64_t)1000)
#define N        THROTTLE_CYCLES
#define NCALLS   64
#define PROBE_NS 1000
#define LONG_NS  (1000 * US) /* Another thread runs in between. */

static Throttle t;
static Clock c;
static Clock second;           /* Of the same session. */
static uint64_t calls[NCALLS]; /* Periods that the throttle set. */
static int ncalls;
static uint64_t now;

static void setperiod(Clock *clock, uint64_t ns)
{
  CHECK(clock == &c || clock == &second);
  REQUIRE(ncalls < NCALLS);
  if (clock == &c) calls[ncalls++] = ns;
  clock->period_set = ns;
}

static const ClockOps settable = { .setperiod = setperiod };
static const ClockOps fixed;

static void begin(uint64_t period_ns, const ClockOps *ops)
{
  memset(&t, 0x55, sizeof(t));
  memset(&c, 0, sizeof(c));
  memset(&second, 0, sizeof(second));
  c.ops = second.ops = ops;
  c.spec.period = period_ns;
  ncalls = 0;
  now = 1000000 * US;
  lj_throttle_begin(&t, period_ns);
}

/* A tick of a clock that is not left out. gap: since the last one began. */
static uint64_t tick_of(Clock *clock, uint64_t gap, uint64_t spent)
{
  now += gap;
  CHECK(lj_throttle_enter(&t, now));
  return lj_throttle_leave(&t, clock, now + spent, spent, clock->spec.period);
}

static uint64_t tick(uint64_t gap, uint64_t spent)
{
  return tick_of(&c, gap, spent);
}

/* Ticks until the throttle has measured. Each takes cycle, spent of it in the handler;
** longer: bits of the gaps before which another thread runs. Returns the ticks left out.
*/
static uint64_t measure(uint64_t cycle, uint64_t spent, uint64_t longer)
{
  uint64_t left_out = 0;
  int n;
  for (n = 0; t.probes > 0; n++) {
    REQUIRE(n < 64);
    CHECK_EQ(left_out, 0);
    left_out = tick(cycle + (longer >> n & 1 ? LONG_NS : 0), spent);
    if (t.probes > 0) {
      CHECK_EQ(ncalls, 1); /* Once, at the first tick. */
      CHECK_EQ(calls[0], PROBE_NS);
      CHECK_EQ(t.rest_until_ns, 0);
    }
  }
  CHECK(n > 8);
  CHECK_EQ(ncalls, 2);
  return left_out;
}

static void period_is_some_cycles(void)
{
  uint64_t asked;
  for (asked = 10 * US; asked < 200 * US; asked += 13 * US) {
    begin(asked, &settable);
    CHECK_EQ(measure(250 * US, 200 * US, 0), N * 250 * US / asked - 1);
    CHECK_EQ(t.signal_ns, 50 * US);
    CHECK_EQ(c.period_set, N * 250 * US);
  }
  /* The asked period is kept where it is long enough: just so, and longer. */
  begin(N * 5 * US, &settable);
  CHECK_EQ(measure(5 * US, 2 * US, 0), 0);
  CHECK_EQ(calls[1], 0);
  begin(N * 5 * US, &settable);
  CHECK_EQ(measure(4 * US, 2 * US, 0), 0);
  CHECK_EQ(calls[1], 0);
  begin(N * 5 * US, &settable);
  CHECK_EQ(measure(5 * US + 1, 2 * US, 0), 0);
  CHECK_EQ(calls[1], N * (5 * US + 1));
  /* A handler that takes all the time: signals take some. */
  begin(10 * US, &settable);
  measure(20 * US, 21 * US, 0);
  CHECK_EQ(t.signal_ns, 1);
  CHECK_EQ(c.period_set, N * (21 * US + 1));
}

/* The gap before the first tick does not count. Gap i > 0 lies in one of three windows. */
static void windows(void)
{
  uint64_t whole = 0xff << 1;
  int i;
  for (i = 0; i < 25; i++) {
    begin(10 * US, &settable);
    measure(7 * US, 3 * US, (uint64_t)1 << i);
    CHECK_EQ(c.period_set, N * 7 * US);
  }
  for (i = 0; i < 24; i += 8) { /* In two windows of three: one is enough. */
    begin(10 * US, &settable);
    measure(7 * US, 3 * US, ((uint64_t)0x1fffffe & ~(whole << i)));
    CHECK_EQ(c.period_set, N * 7 * US);
  }
  /* In each of the three: the shortest mean, with one long gap in eight. */
  begin(10 * US, &settable);
  measure(7 * US, 3 * US, (uint64_t)3 << 1 | (uint64_t)1 << 9 | (uint64_t)3 << 17);
  CHECK_EQ(c.period_set, N * (7 * US + LONG_NS / 8));
}

/* The handler's time is followed, small changes are not. */
static void mean_is_followed(void)
{
  int i;
  begin(N * 5 * US, &settable);
  measure(7 * US, 3 * US, 0);
  for (i = 0; i < 100; i++) CHECK_EQ(tick(20 * US, 3 * US + (i & 1) * 300), 0);
  CHECK_EQ(ncalls, 2);
  for (i = 0; i < 100; i++) tick(20 * US, 9 * US);
  /* The mean is near 9 us, and the period no more than an eighth away. */
  CHECK(t.mean_ns > 8900 && t.mean_ns <= 9 * US);
  CHECK(c.period_set >= N * 11 * US && c.period_set <= N * 13 * US);
  CHECK(ncalls > 3 && ncalls < 12);
  CHECK_EQ(tick(26 * US, 9 * US), 1);
  for (i = 0; i < 200; i++) tick(26 * US, 100);
  CHECK_EQ(c.period_set, 0); /* As asked for, again. */
  /* Another thread runs for long within one sample: the period doubles at most. */
  begin(10 * US, &settable);
  measure(7 * US, 3 * US, 0);
  tick(21 * US, 50 * LONG_NS);
  CHECK(t.mean_ns <= 6 * US);
  CHECK(c.period_set <= N * 10 * US);
  begin(10 * US, &settable);
  while (t.probes > 1) tick(7 * US, 3 * US);
  tick(7 * US, 50 * LONG_NS); /* The last probe. */
  CHECK(t.mean_ns <= 6 * US);
  /* The first samples took longer, with cold caches: they do not count. */
  begin(10 * US, &settable);
  for (i = 0; i < 4; i++) tick(84 * US, 80 * US);
  tick(84 * US, 3 * US);
  while (t.probes > 0) tick(7 * US, 3 * US);
  CHECK_EQ(c.period_set, N * 7 * US);
}

/* Of two clocks, one fast clock is measured. It gets its period with the last probe,
** whichever clock ticks then. The other clock is not made faster. Ticks of a slow clock before
** the first fast one are no probes.
*/
static void one_of_two_is_measured(uint64_t other)
{
  int i, last;
  for (last = 0; last <= 1; last++) {
    begin(10 * US, &settable);
    second.spec.period = other;
    if (other >= THROTTLE_BELOW_NS)
      for (i = 0; i < 50; i++) tick_of(&second, other, 3 * US);
    tick(100 * US, 3 * US);
    CHECK_EQ(c.period_set, PROBE_NS);
    for (i = 0; t.probes > 1; i++) {
      REQUIRE(i < 64);
      tick_of(i % 3 ? &c : &second, 7 * US, 3 * US);
      CHECK_EQ(second.period_set, 0);
    }
    tick_of(last ? &c : &second, 7 * US, 3 * US);
    CHECK_EQ(ncalls, 2);
    CHECK_EQ(t.signal_ns, 4 * US);
    CHECK_EQ(c.period_set, N * 7 * US);
    CHECK_EQ(second.period_set, last || other >= N * 7 * US ? 0 : N * 7 * US);
    tick_of(&second, 7 * US, 3 * US);
    CHECK_EQ(second.period_set, other >= N * 7 * US ? 0 : N * 7 * US);
  }
}

static void slow_clocks_are_left_alone(void)
{
  static const uint64_t period[] = { THROTTLE_BELOW_NS, 2 * THROTTLE_BELOW_NS, 10000 * US };
  size_t i;
  int n;
  for (i = 0; i < sizeof(period) / sizeof(period[0]); i++) {
    begin(period[i], &settable);
    CHECK_EQ(t.probes, 0);
    for (n = 0; n < 100; n++) CHECK_EQ(tick(period[i], period[i] / 3), 0);
    CHECK_EQ(ncalls, 0);
    CHECK_EQ(t.signal_ns, 0);
  }
  begin(THROTTLE_BELOW_NS - 1, &settable);
  CHECK(t.probes > 0);
  begin(0, &settable); /* Events only. */
  CHECK_EQ(t.probes, 0);
}

/* A sample of more than half an interval is followed by a rest of its own length. */
static void rest(const ClockOps *ops, uint64_t period)
{
  begin(period, ops);
  tick(period, period / 2);
  CHECK(lj_throttle_enter(&t, now + period / 2));
  tick(period, period / 2 + 1);
  now += period / 2 + 1; /* Its end. */
  CHECK(!lj_throttle_enter(&t, now));
  CHECK(!lj_throttle_enter(&t, now + period / 2));
  CHECK(lj_throttle_enter(&t, now + period / 2 + 1));
  tick(20 * period, 5 * period);
  now += 5 * period;
  CHECK(!lj_throttle_enter(&t, now + 5 * period - 1));
  CHECK(lj_throttle_enter(&t, now + 5 * period));
  CHECK_EQ(ncalls, 0);
}

int main(void)
{
  period_is_some_cycles();
  windows();
  mean_is_followed();
  slow_clocks_are_left_alone();
  one_of_two_is_measured(5 * US);
  one_of_two_is_measured(20 * US);
  one_of_two_is_measured(10000 * US);
  rest(&settable, 1000 * US);
  rest(&fixed, 1000 * US);
  rest(&fixed, 10 * US); /* A clock without setperiod. */
  return check_status();
}
