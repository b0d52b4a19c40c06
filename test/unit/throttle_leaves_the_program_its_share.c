/*
** The throttle on made-up times. It keeps the period of a clock at the least time of the
** budget, and leaves slower clocks alone. It makes the period of an event longer while the
** event ticks too often. It counts what it leaves out. A rest follows a long sample.
** BASE: none, its modules know no VM
*/

#include <string.h>

#include "profile/clock/lj_clockbudget.h"
#include "profile/clock/lj_throttle.h"
#include "check.h"

#define US      ((uint64_t)1000)
#define N       SPF_TICK_CYCLES
#define LONG_NS (1000 * US) /* Another thread runs in between. */

static Throttle t;
static Clock c;
static int ncalls; /* Periods that the throttle has set. */
static uint64_t now;

static void setperiod(Clock *clock, uint64_t period)
{
  CHECK(clock == &c);
  ncalls++;
  clock->period_set = period;
}

static const ClockOps ops = { .setperiod = setperiod };

static void begin(uint64_t period, uint64_t signal_ns, int unit)
{
  lj_throttle_rest_ns = 0;
  memset(&t, 0, sizeof(t));
  memset(&c, 0, sizeof(c));
  c.ops = &ops;
  c.spec.kind = CLOCK_PERF;
  c.spec.unit = unit;
  c.spec.period = period;
  c.signal_ns = signal_ns;
  ncalls = 0;
  now = 1000000 * US;
}

static uint64_t tick_after(uint64_t interval, uint64_t spent)
{
  now += interval;
  CHECK(lj_throttle_enter(now));
  return lj_throttle_leave(&t, &c, now + spent, spent, interval);
}

static uint64_t tick(uint64_t spent)
{
  uint64_t left_out = tick_after(c.period_set ? c.period_set : c.spec.period, spent);
  lj_throttle_rest_ns = 0;
  return left_out;
}

/* The asked period, and the time that ticks take, to the period that is set. */
static void period_is_some_cycles(void)
{
  uint64_t asked, signal, spent, least;
  int i;
  for (asked = 10 * US; asked <= 1000 * US; asked += 33 * US)
    for (signal = 1 * US; signal <= 300 * US; signal += 23 * US)
      for (spent = 1 * US; spent <= 60 * US; spent += 11 * US) {
	begin(asked, signal, SPF_UNIT_US);
	for (i = 0; i < 100; i++) tick(spent);
	least = N * (signal + spent);
	if (least <= asked) CHECK_EQ(c.period_set, 0);
	/* It follows the sample's time to an eighth. */
	else if (c.period_set == 0) CHECK(least - asked <= least / 8);
	else CHECK(c.period_set >= least * 7 / 8 && c.period_set <= least * 8 / 7);
	CHECK(ncalls < 60);
      }
}

/* A single long sample makes the period twice as long at most. */
static void mean_is_followed(void)
{
  int i;
  begin(10 * US, 4 * US, SPF_UNIT_US);
  for (i = 0; i < 100; i++) tick(3 * US);
  CHECK(t.mean_ns > 2800 && t.mean_ns <= 3100);
  tick(50 * LONG_NS);
  CHECK(t.mean_ns <= 6 * US);
  CHECK(c.period_set <= N * 10 * US);
  for (i = 0; i < 100; i++) tick(3 * US);
  CHECK(t.mean_ns > 2800 && t.mean_ns <= 3200);
}

/* Ticks taken and left out add up to the ticks that were asked for. */
static void what_is_left_out_is_counted(void)
{
  static const uint64_t asked[] = { 10 * US, 70 * US, 100 * US, 149 * US };
  uint64_t ticks, left, real, error;
  size_t i;
  for (i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
    begin(asked[i], 47 * US, SPF_UNIT_US);
    tick(3 * US);
    for (ticks = left = real = 0; ticks < 10000; ticks++) {
      left += tick(3 * US);
      real += c.period_set ? c.period_set : asked[i];
    }
    error = real / asked[i] - (ticks + left);
    CHECK(error <= 1);
  }
}

static void slow_clocks_are_left_alone(void)
{
  int i;
  begin(10000 * US, 65 * US, SPF_UNIT_US);
  for (i = 0; i < 100; i++) CHECK_EQ(tick(5 * US), 0);
  CHECK_EQ(ncalls, 0);
}

/* Occurrences of an event that come at random, at a rate that changes. The event ticks at
** the period. On the average its ticks take no more than their part of the time, and it has
** the asked period again where occurrences are rare.
*/
static void events_are_made_rare(void)
{
  const uint64_t signal = 20 * US, spent = 5 * US, least = N * (signal + spent);
  uint64_t each, period, ticks, real, left, occurrences;
  for (period = 1; period <= 1000; period *= 10)
    for (each = 100; each <= 1000 * US; each *= 10) {
      begin(period, signal, SPF_UNIT_COUNT);
      for (ticks = real = left = occurrences = 0; ticks < 1000; ticks++) {
	uint64_t n = c.period_set ? c.period_set : period, interval = n * each;
	occurrences += n;
	real += interval;
	left += tick_after(interval, spent);
	lj_throttle_rest_ns = 0;
      }
      /* The first ticks come too soon, until the period has grown. */
      CHECK(real >= 990 * (least < period * each ? period * each : least) * 7 / 8);
      if (period * each > least * 8 / 7) CHECK_EQ(c.period_set, 0);
      CHECK(occurrences / period - (ticks + left) <= 1 ||
	    (ticks + left) - occurrences / period <= c.period_set / period + 1);
      /* Then they are rare: the first tick already restores the period. */
      tick_after(LONG_NS * 1000, spent);
      CHECK(c.period_set <= period * 8 / 7);
    }
}

/* A sample of more than half an interval is followed by a rest of its own length. */
static void rest(uint64_t period)
{
  begin(period, 0, SPF_UNIT_US);
  tick_after(period, period / 2);
  CHECK(lj_throttle_enter(now + period / 2));
  tick_after(period, period / 2 + 1);
  now += period / 2 + 1; /* Its end. */
  CHECK(!lj_throttle_enter(now));
  CHECK(!lj_throttle_enter(now + period / 2));
  CHECK(lj_throttle_enter(now + period / 2 + 1));
}

int main(void)
{
  period_is_some_cycles();
  mean_is_followed();
  what_is_left_out_is_counted();
  slow_clocks_are_left_alone();
  events_are_made_rare();
  rest(1000 * US);
  rest(10 * US);
  return check_status();
}
