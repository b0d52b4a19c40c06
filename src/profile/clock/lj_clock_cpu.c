/*
** The clock `cpu`: opens ctimer or task-clock.
** Context: any thread, not the handler.
**
** Up to the rate of the kernel's tick, task-clock at random times comes first where its interrupts
** cost little, then ctimer. Above that rate task-clock comes first. If the first is unavailable,
** the other one follows. itimer is for users who choose it: the kernel keeps it over exec, and its
** signal ends the new program.
*/

#define lj_clock_cpu_c
#define LUA_CORE

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <linux/perf_event.h>

#include "profile/clock/lj_clock_cpu.h"
#include "profile/clock/lj_clock_offtick.h"
#include "profile/clock/lj_clock_perf.h"
#include "profile/clock/lj_clock_timer.h"
#include "profile/base/lj_nanotime.h"

typedef struct Choice {
  ClockKind kind;
  const ClockOps *ops;
  const char *name;
} Choice;

#define CHOICES 2
static const Choice off_tick = { CLOCK_PERF, &lj_clock_offtick_ops, "task-clock" };

/* clang-format off */
static const Choice slow[CHOICES] = {
  { CLOCK_CTIMER, &lj_clock_ctimer_ops, "ctimer" },
  { CLOCK_PERF, &lj_clock_perf_ops, "task-clock" }
}, fast[CHOICES] = {
  { CLOCK_CPU_FAST, &lj_clock_perf_ops, "task-clock" },
  { CLOCK_CTIMER, &lj_clock_ctimer_ops, "ctimer" }
};
/* clang-format on */

/* The kernel checks CPU timers on its own tick, so they cost no interrupt. A shorter period
** needs the task clock, which costs an interrupt for each of its ticks.
*/
int lj_clock_cpu_isfast(const ClockSpec *spec)
{
  return spec->period < kernel_tick_ns();
}

static const Choice *choices_of(const ClockSpec *spec)
{
  return lj_clock_cpu_isfast(spec) ? fast : slow;
}

/* The reason of a clock, without its first word. */
static const char *reason_of(const char *errmsg)
{
  return errmsg + strcspn(errmsg, "'");
}

static int choice_open(Clock *c, const Choice *choice, char *errmsg)
{
  c->ops = choice->ops;
  c->spec.kind = choice->kind;
  strcpy(c->spec.name, choice->name);
  return c->ops->open(c, errmsg);
}

static int cpu_open(Clock *c, char *errmsg)
{
  const Choice *choices = choices_of(&c->spec);
  char why[CHOICES][EVENT_ERRMSG_MAX];
  int err = 0, i;
  c->spec.type = PERF_TYPE_SOFTWARE;
  c->spec.config = PERF_COUNT_SW_TASK_CLOCK;
  if (c->spec.off_tick && choice_open(c, &off_tick, errmsg) == 0) return 0;
  c->spec.off_tick = 0;
  for (i = 0; i < CHOICES; i++) {
    err = choice_open(c, &choices[i], why[i]);
    if (err == 0) return 0;
  }
  snprintf(errmsg, EVENT_ERRMSG_MAX,
	   "clock 'cpu': %s, and %s; or choose 'itimer' and start no program by exec",
	   reason_of(why[0]), reason_of(why[1]));
  return err;
}

const ClockOps lj_clock_cpu_ops = { .open = cpu_open };
