/*
** Throttle: follows the time of a sample and sets the clock's period.
** Context: handler, on the sampled thread.
*/

#define lj_throttle_c
#define LUA_CORE

#include "profile/clock/lj_clockbudget.h"
#include "profile/clock/lj_throttle.h"

#define THROTTLE_WEIGHT 8 /* A sample has 1/8 of the weight in the moving mean. */
#define THROTTLE_JUMP   8 /* It counts as so many means at most. */
#define THROTTLE_GROW   8 /* Times that the period of an event grows at once, at most. */

__thread uint64_t lj_throttle_rest_ns __attribute__((tls_model("initial-exec")));

int lj_throttle_enter(uint64_t begin_ns)
{
  return begin_ns >= lj_throttle_rest_ns;
}

/* Follow the handler's time. On a busy machine other threads run for milliseconds while a
** sample is taken. One such sample must not make the next hundreds rare.
*/
static void follow(Throttle *t, uint64_t spent_ns)
{
  uint64_t most;
  if (t->mean_ns == 0) t->mean_ns = CLOCKBUDGET_SAMPLE_NS;
  most = THROTTLE_JUMP * t->mean_ns;
  if (spent_ns > most) spent_ns = most;
  t->mean_ns += spent_ns / THROTTLE_WEIGHT - t->mean_ns / THROTTLE_WEIGHT;
}

/* The period of an event that has just ticked interval_ns after its last tick. */
static uint64_t event_period(const Clock *c, uint64_t least_ns, uint64_t interval_ns)
{
  uint64_t period = lj_clockops_mean(c);
  double ratio = (double)least_ns / ((double)interval_ns + 1);
  if (ratio <= 1 && period == c->spec.period) return period;
  if (ratio > THROTTLE_GROW) ratio = THROTTLE_GROW;
  return (uint64_t)((double)period * ratio);
}

static int differ(uint64_t a, uint64_t b)
{
  uint64_t most = a > b ? a : b, diff = a > b ? a - b : b - a;
  return diff * THROTTLE_WEIGHT > most;
}

/* Periods that the clock leaves out until its next tick, as a whole number; the rest counts
** at a later tick.
*/
static uint64_t left_out(Clock *c)
{
  uint64_t n;
  if (LJ_LIKELY(c->period_set == 0)) return 0;
  c->left += c->period_set - c->spec.period;
  n = c->left / c->spec.period;
  c->left -= n * c->spec.period;
  return n;
}

uint64_t lj_throttle_leave(Throttle *t, Clock *c, uint64_t end_ns, uint64_t spent_ns,
			   uint64_t interval_ns)
{
  uint64_t period;
  if (spent_ns > interval_ns / 2) lj_throttle_rest_ns = end_ns + spent_ns;
  follow(t, spent_ns);
  period = lj_clockbudget_least(c, t->mean_ns);
  if (c->spec.unit != SPF_UNIT_US) period = event_period(c, period, interval_ns);
  if (period <= c->spec.period) period = 0;
  if (LJ_UNLIKELY(differ(period, c->period_set))) c->ops->setperiod(c, period);
  return left_out(c);
}
