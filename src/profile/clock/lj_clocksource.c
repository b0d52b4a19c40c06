/*
** Clocks as a source of samples: parse, open, arm, stop.
** Context: as SourceOps says, not in the handler.
*/

#define lj_clocksource_c
#define LUA_CORE

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "profile/base/lj_nanotime.h"
#include "profile/base/lj_ossigmask.h"
#include "profile/base/lj_ossignal.h"
#include "profile/base/lj_relaxed.h"
#include "profile/clock/lj_clockaction.h"
#include "profile/clock/lj_clockbudget.h"
#include "profile/clock/lj_clockcost.h"
#include "profile/clock/lj_clocksource.h"
#include "profile/clock/lj_clocktick.h"

#define SILENT_NS 50000000 /* Since the last tick of a clock that revive looks at. */

LJ_STATIC_ASSERT(sizeof(ClockSpec) <= EVENT_OWN);

/* -- Specs ------------------------------------------------------------------- */

static const ClockSpec *clockspec_of(const EventSpec *spec)
{
  return (const ClockSpec *)&spec->own;
}

/* Enter a clock into the spec of its event. */
static void spec_set(EventSpec *spec, const ClockSpec *cs)
{
  memcpy(&spec->own, cs, sizeof(*cs));
  memcpy(spec->name, cs->name, EVENT_NAME_MAX);
  spec->unit = cs->unit;
  spec->period = cs->period;
  spec->measures = cs->unit != SPF_UNIT_US         ? EVENT_OCCURRENCES
		   : cs->kind == CLOCK_WALL_SIGNAL ? EVENT_REAL_TIME
						   : EVENT_CPU_TIME;
}

static EventParsed source_parse(const char *item, size_t len, const EventDefaults *by,
				EventSpec *spec, char *errmsg)
{
  ClockSpec cs;
  EventParsed parsed = lj_clockspec_parse(item, len, by, &cs, errmsg);
  if (parsed == EVENT_PARSED) spec_set(spec, &cs);
  return parsed;
}

static void source_prepare(const EventSpec *spec, int signo)
{
  lj_clockcost_measure(clockspec_of(spec), signo);
}

/* Has it ever been, at one of these calls? */
static int source_replaced(const Event *ev)
{
  ClockSource *src = clocksource_of(ev);
  if (lj_clockaction_isreplaced(ev->signo)) src->is_replaced = 1;
  return src->is_replaced;
}

/* -- Open, arm, stop --------------------------------------------------------- */

static EventStatus source_open(Event *ev, char *errmsg)
{
  Clock *c = &clocksource_of(ev)->clock;
  EventStatus status;
  c->sample = lj_clocktick_sample;
  c->owner = ev;
  c->signo = ev->signo;
  status = lj_clock_open(c, clockspec_of(&ev->spec), ev->tid, errmsg);
  if (status != EVENT_OK) return status;
  spec_set(&ev->spec, &c->spec);
  ev->signo = c->signo;
  ev->shared = c->shared;
  return EVENT_OK;
}

static int source_arm(Event *ev)
{
  memset(&clocksource_of(ev)->throttle, 0, sizeof(Throttle));
  clocksource_of(ev)->is_replaced = 0;
  return lj_clock_arm(&clocksource_of(ev)->clock) == EVENT_OK ? 0 : errno ? errno : EINVAL;
}

static void source_stop(Event *ev)
{
  source_replaced(ev);
  lj_clocktick_lose(ev);
  lj_clock_close(&clocksource_of(ev)->clock);
}

/* -- Signals ----------------------------------------------------------------- */

static SigBlocked source_blocked(const Event *ev)
{
  return lj_ossigmask_blocked(ev->tid, ev->signo);
}

/* The handler sets begin_ns. */
static void source_revive(Event *ev)
{
  Clock *c = &clocksource_of(ev)->clock;
  int is_silent = mono_ns() - relaxed_get(&c->begin_ns) > SILENT_NS;
  if (is_silent || relaxed_get(&c->was_on_tick)) lj_clock_revive(c);
}

/* Why samples are missing. Returns 0 if none are. */
static int missing_write(const Event *ev, char *text)
{
  const ClockSource *src = clocksource_of(ev);
  size_t left = relaxed_get(&src->clock.stack_left);
  char name[OSSIGNAL_NAME_MAX];
  if (left != 0) {
    snprintf(
      text, EVENT_TEXT_MAX,
      "%s: a signal stack had %zu bytes left; a sample needs %d, so samples are lost; "
      "see sigaltstack(2)",
      ev->spec.name, left, OSSIGNAL_STACK);
    return 1;
  }
  if (!src->is_replaced) return 0;
  lj_ossignal_name(ev->signo, name);
  snprintf(
    text, EVENT_TEXT_MAX,
    "%s: the program set its own handler for %s, which takes the samples' signals; start the "
    "profile later, or choose another signal",
    ev->spec.name, name);
  return 1;
}

/* Also of a clock that is closed now. */
static void source_limit(const Event *ev, char *text)
{
  const Clock *c = &clocksource_of(ev)->clock;
  size_t at;
  text[0] = '\0';
  if (!c->ops) return; /* It was never open. */
  if (missing_write(ev, text)) return;
  lj_clockbudget_limit(c, text);
  at = strlen(text);
  if (c->ops->note)
    snprintf(text + at, EVENT_TEXT_MAX - at, "%s%s", at ? ". " : "", c->ops->note);
}

const SourceOps lj_clocksource_ops = {
  .size = sizeof(ClockSource),
  .names = "cpu, ctimer, task-clock, itimer, wall-signal, or a perf event: cycles, "
	   "instructions, cache-misses, branch-misses, page-faults, context-switches, rHEX "
	   "and others",
  .parse = source_parse,
  .prepare = source_prepare,
  .open = source_open,
  .arm = source_arm,
  .stop = source_stop,
  .sync = lj_clocktick_lose,
  .blocked = source_blocked,
  .revive = source_revive,
  .replaced = source_replaced,
  .limit = source_limit,
  .forget = lj_clock_forget,
  .total = lj_clocktick_total,
};
