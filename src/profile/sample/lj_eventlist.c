/*
** Events of a sampler: open, arm, stop, and what the program did to their signals.
** Context: under the lock, on any thread, outside of the handler.
*/

#define lj_eventlist_c
#define LUA_CORE

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "profile/base/lj_relaxed.h"
#include "profile/base/lj_seccomp.h"
#include "profile/sample/lj_eventlist.h"
#include "profile/sample/lj_marks.h"
#include "profile/sample/lj_sample.h"
#include "profile/sample/lj_sleeper.h"

void lj_eventlist_init(Sampler *s)
{
  int i;
  for (i = 0; i < s->nevent; i++) {
    SampleEvent *ev = &s->event[i];
    ev->sampler = s;
    ev->e.spec = s->opt->spec[i];
    ev->e.index = i;
    ev->e.door = &s->gate->door;
    ev->e.take = lj_sample_take;
    ev->e.mark = lj_marks_mark;
    ev->e.ended = lj_marks_ended;
    ev->e.keep = lj_sleeper_keep;
    ev->e.append = lj_sleeper_append;
  }
}

/* -- Open, arm, stop --------------------------------------------------------- */

static int is_in(const Event *e, EventSet set)
{
  const SourceOps *ops = e->spec.ops;
  if (ops->is_of_vm) return set == EVENTS_ALL || set == EVENTS_OF_VM;
  return set == EVENTS_WITHOUT_SIGNALS ? !ops->blocked
	 : set == EVENTS_BY_SIGNALS    ? ops->blocked != NULL
				       : set != EVENTS_OF_VM;
}

static void event_stop(Event *e)
{
  if (!e->is_open) return;
  e->spec.ops->stop(e);
  e->is_open = e->is_armed = 0;
}

EventStatus lj_eventlist_open(Sampler *s, EventSet set, char *errmsg)
{
  int i;
  for (i = 0; i < s->nevent; i++) {
    Event *e = &s->event[i].e;
    EventStatus status;
    e->tid = s->reader.tid;
    if (e->is_open || !is_in(e, set)) continue;
    e->spec = s->opt->spec[i];
    e->signo = s->opt->signo;
    status = e->spec.ops->open(e, errmsg);
    if (status != EVENT_OK) {
      int err = errno;
      while (i-- > 0)
	if (!s->event[i].e.is_armed) event_stop(&s->event[i].e);
      errno = err;
      return status;
    }
    e->is_open = 1;
  }
  return EVENT_OK;
}

int lj_eventlist_arm(Sampler *s, char *errmsg)
{
  int i;
  for (i = 0; i < s->nevent; i++) {
    Event *e = &s->event[i].e;
    int err;
    if (!e->is_open || e->is_armed) continue;
    err = e->spec.ops->arm(e);
    e->is_armed = (err == 0);
    if (err == 0) continue;
    snprintf(errmsg, EVENT_ERRMSG_MAX, "the clock %s did not start: %s%s", e->spec.name,
	     strerror(err),
	     lj_seccomp_isrefusal(err)
	       ? " (a seccomp filter may refuse ioctl or timer_settime)"
	       : "");
    lj_eventlist_stop(s, EVENTS_OF_THREADS);
    return err;
  }
  return 0;
}

void lj_eventlist_stop(Sampler *s, EventSet set)
{
  int i;
  for (i = s->nevent; i-- > 0;) {
    Event *e = &s->event[i].e;
    if (is_in(e, set)) event_stop(e);
  }
}

void lj_eventlist_sync(Sampler *s)
{
  int i;
  for (i = 0; i < s->nevent; i++) {
    Event *e = &s->event[i].e;
    if (e->is_armed && e->spec.ops->sync) e->spec.ops->sync(e);
  }
}

uint64_t lj_eventlist_look(Sampler *s)
{
  uint64_t next_ns = ~(uint64_t)0, ns;
  int i;
  for (i = 0; i < s->nevent; i++) {
    Event *e = &s->event[i].e;
    if (!e->is_armed || !e->spec.ops->look) continue;
    ns = e->spec.ops->look(e);
    if (ns < next_ns) next_ns = ns;
  }
  return next_ns;
}

void lj_eventlist_like(Sampler *s, const Sampler *other)
{
  int i;
  for (i = 0; i < s->nevent; i++) {
    s->event[i].e.spec = other->event[i].e.spec;
    s->event[i].e.signo = other->event[i].e.signo;
  }
}

/* -- Signals ----------------------------------------------------------------- */

void lj_eventlist_revive(Sampler *s)
{
  int i;
  for (i = 0; i < s->nevent; i++) {
    Event *e = &s->event[i].e;
    if (e->is_open && e->spec.ops->revive) e->spec.ops->revive(e);
  }
}

int lj_eventlist_isreplaced(const Sampler *s)
{
  int i, is_replaced = 0;
  for (i = 0; i < s->nevent; i++) {
    const Event *e = &s->event[i].e;
    if (e->is_open && e->spec.ops->replaced) is_replaced |= e->spec.ops->replaced(e);
  }
  return is_replaced;
}

SigBlocked lj_eventlist_blocked(const Sampler *s)
{
  SigBlocked all = SIGBLOCKED_NOT;
  int i;
  for (i = 0; i < s->nevent && all != SIGBLOCKED_YES; i++) {
    const Event *e = &s->event[i].e;
    SigBlocked one = e->spec.ops->blocked ? e->spec.ops->blocked(e) : SIGBLOCKED_NOT;
    if (one != SIGBLOCKED_NOT) all = one;
  }
  return all;
}

uint64_t lj_eventlist_tick_us(const Sampler *s)
{
  uint64_t least_us = ~(uint64_t)0;
  int i;
  for (i = 0; i < s->nevent; i++) {
    const Event *e = &s->event[i].e;
    uint64_t us = e->spec.measures == EVENT_CPU_TIME ? e->spec.period / 1000 : 0;
    if (is_in(e, EVENTS_BY_SIGNALS) && us < least_us) least_us = us;
  }
  return least_us;
}

uint64_t lj_eventlist_ticks(const Sampler *s)
{
  int i = 0;
  while (i < s->nevent && !is_in(&s->event[i].e, EVENTS_BY_SIGNALS)) i++;
  return i < s->nevent ? relaxed_get(&s->event[i].e.counters[SPF_EVENT_SAMPLES]) : 0;
}
