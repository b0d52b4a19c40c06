/*
** Cost of a timer interrupt and its signal: a loop that sees itself interrupted.
** Context: any thread, not the handler.
**
** The calling thread arms a clock for a single tick, and reads the time in a loop. The tick
** makes one step of the loop long. The step, less the time in the handler, is the cost. So
** no tick can keep the loop from its end, whatever it costs.
**
** Where a clock of perf must not stop itself (lj_clockkernel.h), the handler stops it. A period
** of eight times the highest cost that is known comes before each tick.
*/

#define lj_clockcost_c
#define LUA_CORE

#include <string.h>

#include "profile/clock/lj_clock.h"
#include "profile/clock/lj_clock_cpu.h"
#include "profile/clock/lj_clockbudget.h"
#include "profile/clock/lj_clockcost.h"
#include "profile/clock/lj_clockkernel.h"
#include "profile/clock/lj_clockkinds.h"
#include "profile/base/lj_nanotime.h"
#include "profile/base/lj_osthread.h"
#include "profile/base/lj_relaxed.h"

#define TICKS     5       /* The second shortest counts: other threads may run in a step. */
#define PERIOD_NS 20000   /* From the handler of a tick to the next tick. */
#define WAIT_NS   5000000 /* For a tick, */
#define WAITS     8       /* and so many periods: the clock may stand still meanwhile. */
#define FRESH_NS  10000000000u

typedef struct Probe {
  Clock clock;
  uint32_t n;          /* Ticks. */
  uint64_t handler_ns; /* Handler's time for the last tick. */
} Probe;

static void probe_tick(void *owner, int overrun, ucontext_t *uc)
{
  Probe *p = (Probe *)owner;
  UNUSED(overrun);
  UNUSED(uc);
  relaxed_set(&p->handler_ns, mono_ns() - p->clock.begin_ns);
  relaxed_add(&p->n, 1);
}

/* Wait for a tick, in a loop. Returns its cost, or 0 if none came. */
static uint64_t tick_cost(Probe *p)
{
  uint32_t n = relaxed_get(&p->n);
  uint64_t begin = mono_ns(), before, now = begin;
  uint64_t end = begin + WAITS * p->clock.spec.period + WAIT_NS;
  if (lj_clock_arm(&p->clock) != EVENT_OK) return 0;
  while (now < end) {
    before = now;
    now = mono_ns();
    if (relaxed_get(&p->n) != n) {
      uint64_t step = mono_ns() - before, handler = relaxed_get(&p->handler_ns);
      return step > handler ? step - handler : 1;
    }
  }
  return 0;
}

static void sort(uint64_t *v, int n)
{
  int i, k;
  for (i = 1; i < n; i++)
    for (k = i; k > 0 && v[k - 1] > v[k]; k--) {
      uint64_t more = v[k - 1];
      v[k - 1] = v[k];
      v[k] = more;
    }
}

/* From the start of a kind's clock to its tick. */
static uint64_t period_of(ClockKind kind)
{
  uint64_t cost = lj_clockbudget_signal(kind);
  if (kind != CLOCK_PERF || !lj_clockkernel_hangs()) return PERIOD_NS;
  return CLOCK_ONESHOT_CYCLES *
	 (cost > CLOCKBUDGET_SIGNAL_NS ? cost : CLOCKBUDGET_SIGNAL_NS);
}

/* Returns the cost of a tick, or 0 if it cannot be measured. */
static uint64_t measure(ClockKind kind, int signo)
{
  const char *name = lj_clockkinds[kind]->probe;
  char errmsg[EVENT_ERRMSG_MAX];
  EventDefaults by = { period_of(kind), 0, 0, 0 };
  uint64_t cost[TICKS];
  ClockSpec spec;
  Probe p;
  int i = 0;
  memset(&p, 0, sizeof(p));
  p.clock.sample = probe_tick;
  p.clock.owner = &p;
  p.clock.signo = signo;
  p.clock.single = 1;
  if (lj_clockspec_parse(name, strlen(name), &by, &spec, errmsg) != EVENT_PARSED ||
      lj_clock_open(&p.clock, &spec, lj_osthread_self(), errmsg) != EVENT_OK)
    return 0;
  while (i < TICKS && (cost[i] = tick_cost(&p)) != 0) i++;
  lj_clock_close(&p.clock);
  if (i < TICKS) return 0;
  sort(cost, TICKS);
  return cost[1];
}

/* ThreadSanitizer delays handlers, so it keeps the value that nobody has measured. */
#ifdef __SANITIZE_THREAD__
#define CAN_MEASURE 0
#else
#define CAN_MEASURE 1
#endif

static void measure_kind(ClockKind kind, int signo)
{
  static uint64_t measured_ns[CLOCK__MAX];
  uint64_t now = mono_ns(), cost;
  if (!CAN_MEASURE) return;
  if (measured_ns[kind] != 0 && now - measured_ns[kind] < FRESH_NS) return;
  cost = measure(kind, signo);
  if (!cost) return;
  lj_clockbudget_measured(kind, cost);
  measured_ns[kind] = now;
}

void lj_clockcost_measure(const ClockSpec *spec, int signo)
{
  ClockKind kind = spec->kind == CLOCK_CPU ? CLOCK_CPU_FAST : spec->kind;
  if (lj_clockkinds[kind]->probe) measure_kind(kind, signo);
}
