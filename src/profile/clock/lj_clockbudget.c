/*
** Budget of all clocks: their parts, and the time that a tick takes.
** Context: see the header.
*/

#define lj_clockbudget_c
#define LUA_CORE

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* For CPU_COUNT. */
#endif
#include <sched.h>
#include <stdio.h>

#include "profile/clock/lj_clock_cpu.h"
#include "profile/clock/lj_clock_offtick.h"
#include "profile/clock/lj_clockbudget.h"
#include "profile/clock/lj_clockkernel.h"
#include "profile/clock/lj_clockkinds.h"
#include "profile/base/lj_nanotime.h"
#include "profile/base/lj_relaxed.h"

static uint64_t signal_ns[CLOCK__MAX]; /* Interrupt and signal. 0: not measured. */

/* Under the lock; the handler reads the numbers. */
static Clock *parts;    /* Clocks with a part, linked by part_next. */
static uint32_t ntimed; /* Of these, clocks of CPU time and events, */
static uint32_t nwall;  /* and clocks of real time. */

/* -- Costs ------------------------------------------------------------------- */

void lj_clockbudget_measured(ClockKind kind, uint64_t ns)
{
  relaxed_set(&signal_ns[kind], ns);
}

uint64_t lj_clockbudget_signal(ClockKind kind)
{
  uint64_t ns = relaxed_get(&signal_ns[kind]);
  if (!lj_clockkinds[kind]->probe) return 0;
  return ns ? ns : CLOCKBUDGET_SIGNAL_NS;
}

#define PREFER_PARTS   50  /* Interrupts of a preferred rate take one part of so many. */
#define OFF_TICK_PARTS 100 /* The same of delays off the kernel's tick. */

/* Interrupt and signal of a clock that is faster than the kernel's tick. */
static uint64_t cost_of(const ClockSpec *spec)
{
  int is_fast = (lj_clockkinds[spec->kind]->probe != NULL);
  return lj_clockbudget_signal(is_fast ? spec->kind : CLOCK_CPU_FAST);
}

/* With jitter, a period may be half as long. */
uint64_t lj_clockbudget_safe(const ClockSpec *spec)
{
  int is_fast = (spec->kind == CLOCK_CPU && lj_clock_cpu_isfast(spec));
  if (spec->unit != SPF_UNIT_US ||
      !(is_fast || spec->kind == CLOCK_CPU_FAST || spec->off_tick) ||
      !lj_clockkernel_hangs())
    return 0;
  return CLOCK_ONESHOT_CYCLES * cost_of(spec) * (spec->jitter ? 2 : 1);
}

void lj_clockbudget_prefer(ClockSpec *spec)
{
  uint64_t tick = kernel_tick_ns(), safe = lj_clockbudget_safe(spec);
  spec->is_unsafe = spec->period < safe;
  if (spec->is_unsafe ||
      (spec->prefer_tick && spec->unit == SPF_UNIT_US && spec->period < tick &&
       PREFER_PARTS * cost_of(spec) > spec->period)) {
    spec->given_up = spec->period;
    spec->period = spec->is_unsafe && safe > tick ? safe : tick;
  }
  spec->off_tick = (spec->kind == CLOCK_CPU && !lj_clock_cpu_isfast(spec) &&
		    OFF_TICK_PARTS * cost_of(spec) <= spec->period);
}

void lj_clockbudget_price(Clock *c)
{
  c->signal_ns = lj_clockbudget_signal(c->spec.off_tick ? CLOCK_CPU_FAST : c->spec.kind);
  c->safe_ns = lj_clockbudget_safe(&c->spec);
}

/* -- Parts ------------------------------------------------------------------- */

/* Processors on which a thread may run. A number too small is safe. */
static uint32_t processors_of(int tid)
{
  cpu_set_t set;
  return sched_getaffinity(tid, sizeof(set), &set) == 0 ? (uint32_t)CPU_COUNT(&set) : 1;
}

static uint32_t *kind_count(const Clock *c)
{
  return c->spec.kind == CLOCK_WALL_SIGNAL ? &nwall : &ntimed;
}

/* Tell the clocks of a thread and a kind of time how many they are. */
static void thread_count(const Clock *like)
{
  const uint32_t *kind = kind_count(like);
  uint32_t n = 0;
  Clock *c;
  for (c = parts; c; c = c->part_next) n += (c->tid == like->tid && kind_count(c) == kind);
  for (c = parts; c; c = c->part_next)
    if (c->tid == like->tid && kind_count(c) == kind) relaxed_set(&c->in_thread, n);
}

void lj_clockbudget_join(Clock *c)
{
  c->processors = processors_of(c->tid);
  c->part_next = parts;
  parts = c;
  relaxed_add(kind_count(c), 1);
  thread_count(c);
}

void lj_clockbudget_leave(Clock *c)
{
  Clock **p = &parts;
  while (*p && *p != c) p = &(*p)->part_next;
  if (!*p) return;
  *p = c->part_next;
  relaxed_add(kind_count(c), (uint32_t)-1);
  thread_count(c);
}

void lj_clockbudget_forget(void)
{
  parts = NULL;
  relaxed_set(&ntimed, 0);
  relaxed_set(&nwall, 0);
}

/* -- Least times ------------------------------------------------------------- */

/* Parts into which a third of one processor is divided for a clock. */
static uint64_t divisor_of(const Clock *c)
{
  uint64_t timed = relaxed_get(&ntimed), wall = relaxed_get(&nwall), all;
  uint64_t n = relaxed_get(&c->in_thread), kinds = timed > 0 && wall > 0 ? 2 : 1;
  if (n == 0) n = 1;
  n *= kinds;
  if (c->spec.kind != CLOCK_WALL_SIGNAL || c->processors == 0) return n;
  all = (wall * kinds + c->processors - 1) / c->processors;
  return n > all ? n : all;
}

uint64_t lj_clockbudget_least(const Clock *c, uint64_t sample_ns)
{
  uint64_t least = SPF_TICK_CYCLES * divisor_of(c) * (c->signal_ns + sample_ns);
  if (least < c->kernel_ns) least = c->kernel_ns;
  return least > c->safe_ns ? least : c->safe_ns;
}

static void unsafe_write(const Clock *c, double asked_ns, double cost_ns, char *text)
{
  double period_ns = (double)lj_clockops_mean(c);
  snprintf(text, EVENT_TEXT_MAX,
	   "%s takes %.0f samples a second instead of %.0f: kernels 6.16 and 6.17 may hang "
	   "above %.0f, because a timer interrupt costs %.0f us here",
	   c->spec.name, 1e9 / period_ns, 1e9 / asked_ns,
	   1e9 / (cost_ns * CLOCK_ONESHOT_CYCLES * (c->spec.jitter ? 2 : 1)),
	   cost_ns / 1e3);
}

/* Only cpu changes to the tick. Its spec has the name of the clock that it has chosen. */
static void on_tick_write(char *text)
{
  snprintf(
    text, EVENT_TEXT_MAX,
    "cpu ticked with the kernel while its thread was switched over %d times a second: shares "
    "may be off by more than chance; task-clock's are not, but it slows each switch",
    OFFTICK_SWITCHES);
}

#define PREEMPTED_CPU_NS 250000000u /* CPU time that is worth the sentence, */
#define PREEMPTED_RATE   20         /* and times in a second of it. */

/* The thread's last tick may be writing the numbers. Returns 0 if others had the processor rarely. */
static int preempted_write(const Clock *c, char *text)
{
  uint64_t first_ns = relaxed_get(&c->first.cpu_ns);
  uint64_t cpu_ns = relaxed_get(&c->now.cpu_ns) - first_ns;
  uint64_t times = relaxed_get(&c->now.preempted) - relaxed_get(&c->first.preempted);
  double rate = (double)times / ((double)cpu_ns / 1e9);
  if (first_ns == 0 || cpu_ns < PREEMPTED_CPU_NS || rate < PREEMPTED_RATE) return 0;
  snprintf(
    text, EVENT_TEXT_MAX,
    "%s ticks with the kernel, which gave the processor to others %.0f times a second: "
    "shares may be off by more than chance; task-clock's are not",
    c->spec.name, rate);
  return 1;
}

void lj_clockbudget_limit(const Clock *c, char *text)
{
  uint64_t period = c->spec.period;
  uint64_t least = SPF_TICK_CYCLES * (c->signal_ns + CLOCKBUDGET_SAMPLE_NS);
  double cost = (double)cost_of(&c->spec);
  text[0] = '\0';
  if (c->spec.unit != SPF_UNIT_US) return;
  if (c->spec.is_unsafe) unsafe_write(c, (double)c->spec.given_up, cost, text);
  else if (c->safe_ns > least && c->safe_ns > period)
    unsafe_write(c, (double)period, cost, text);
  else if (c->kernel_ns > least && c->kernel_ns > period)
    snprintf(text, EVENT_TEXT_MAX,
	     "%s takes %.0f samples a second instead of %.0f: "
	     "kernel.perf_event_max_sample_rate allows no more",
	     c->spec.name, 1e9 / (double)c->kernel_ns, 1e9 / (double)period);
  else if (c->signal_ns > 0 && least > period)
    snprintf(text, EVENT_TEXT_MAX,
	     "%s takes about %.0f samples a second instead of %.0f: a timer interrupt "
	     "costs %.0f us here",
	     c->spec.name, 1e9 / (double)least, 1e9 / (double)period,
	     (double)c->signal_ns / 1e3);
  else if (c->spec.given_up)
    snprintf(
      text, EVENT_TEXT_MAX,
      "%s takes %.0f samples a second: a timer interrupt costs %.0f us here, so %.0f "
      "would take %.1f %% of the time; hz=%.0f asks for them",
      c->spec.name, 1e9 / (double)period, cost / 1e3, 1e9 / (double)c->spec.given_up,
      1e2 * cost / (double)c->spec.given_up, 1e9 / (double)c->spec.given_up);
  else if (c->spec.kind == CLOCK_CTIMER && preempted_write(c, text))
    return; /* Wrong shares are worse than few samples. */
  else if (c->ops && !c->ops->probe && period < kernel_tick_ns())
    snprintf(
      text, EVENT_TEXT_MAX,
      "%s takes %.0f samples a second instead of %.0f: it keeps to the kernel's tick; "
      "task-clock:u and wall-signal take more",
      c->spec.name, 1e9 / (double)kernel_tick_ns(), 1e9 / (double)period);
  else if (relaxed_get(&c->was_on_tick)) on_tick_write(text);
}
