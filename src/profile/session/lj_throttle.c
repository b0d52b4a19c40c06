/*
** Throttle: measures the cost of a sample and sets the clock's period.
** Context: handler, on the sampled thread.
*/

#define lj_throttle_c
#define LUA_CORE

#include "profile/session/lj_throttle.h"

#define THROTTLE_WINDOW 8 /* Probes of one mean. */
#ifdef __SANITIZE_THREAD__
/* ThreadSanitizer delays handlers. A clock would stop the program by ticks before the
** handler ran that slows it down.
*/
#define THROTTLE_PROBES 0
#else
#define THROTTLE_PROBES (1 + 3 * THROTTLE_WINDOW)
#endif
#define THROTTLE_PROBE_NS 1000           /* The kernel raises it to the clock's limit. */
#define THROTTLE_NONE     (~(uint64_t)0) /* No window has been measured. */
#define THROTTLE_WEIGHT   8 /* A sample has 1/8 of the weight in the moving mean. */
#define THROTTLE_JUMP     8 /* It counts as so many means at most. */

void lj_throttle_begin(Throttle *t, uint64_t period_ns)
{
  t->rest_until_ns = t->window_ns = t->handler_ns = 0;
  t->signal_ns = t->mean_ns = 0;
  t->outside_ns = THROTTLE_NONE;
  t->probed = NULL;
  t->probes = period_ns && period_ns < THROTTLE_BELOW_NS ? THROTTLE_PROBES : 0;
}

int lj_throttle_enter(Throttle *t, uint64_t begin_ns)
{
  if (begin_ns < t->rest_until_ns) return 0;
  if (t->probes > 0 && (t->probes - 1) % THROTTLE_WINDOW == 0) {
    uint64_t window = begin_ns - t->window_ns;
    uint64_t outside = window > t->handler_ns ? (window - t->handler_ns) / THROTTLE_WINDOW
					      : 0;
    if (t->window_ns != 0 && outside < t->outside_ns) t->outside_ns = outside;
    t->window_ns = begin_ns;
    t->handler_ns = 0;
  }
  return 1;
}

/* Return the period that leaves the program two thirds of the time, or 0 if the requested
** period does.
*/
static uint64_t period_for(const Throttle *t, const Clock *c)
{
  uint64_t least = THROTTLE_CYCLES * (t->signal_ns + t->mean_ns);
  return least > c->spec.period ? least : 0;
}

static int is_fast(const Clock *c)
{
  return c->spec.unit == SPF_UNIT_US && c->spec.period < THROTTLE_BELOW_NS;
}

static int differ(uint64_t a, uint64_t b)
{
  uint64_t most = a > b ? a : b, diff = a > b ? a - b : b - a;
  return diff * THROTTLE_WEIGHT > most;
}

/* Follow the handler's time. On a busy machine other threads run for milliseconds while a
** sample is taken. One such sample must not make the next hundreds rare.
*/
static void follow(Throttle *t, uint64_t spent_ns)
{
  uint64_t most = THROTTLE_JUMP * t->mean_ns;
  if (t->mean_ns == 0) {
    t->mean_ns = spent_ns;
    return;
  }
  if (spent_ns > most) spent_ns = most;
  t->mean_ns += spent_ns / THROTTLE_WEIGHT - t->mean_ns / THROTTLE_WEIGHT;
}

uint64_t lj_throttle_leave(Throttle *t, Clock *c, uint64_t end_ns, uint64_t spent_ns,
			   uint64_t interval_ns)
{
  uint64_t left_out = 0;
  if (spent_ns > interval_ns / 2) t->rest_until_ns = end_ns + spent_ns;
  follow(t, spent_ns);
  if (!c->ops->setperiod) return 0;
  if (t->probes > 0) {
    if (!t->probed && !is_fast(c)) { /* The first window has not begun. */
      t->window_ns = 0;
      return 0;
    }
    t->rest_until_ns = 0;
    t->handler_ns += spent_ns;
    if (!t->probed) c->ops->setperiod(t->probed = c, THROTTLE_PROBE_NS);
    if (--t->probes > 0) return 0;
    /* The first samples took longer: their caches were cold. */
    if (spent_ns < t->mean_ns) t->mean_ns = spent_ns;
    t->signal_ns = t->outside_ns ? t->outside_ns : 1; /* 0 is for a clock not measured. */
    t->probed->ops->setperiod(t->probed, period_for(t, t->probed));
  }
  if (t->signal_ns) {
    uint64_t period = period_for(t, c);
    if (differ(period, c->period_set)) c->ops->setperiod(c, period);
  }
  if (c->period_set > c->spec.period) left_out = c->period_set / c->spec.period - 1;
  return left_out;
}
