/*
** Totals of a sampler: of its events, its counters and its time.
** Context: the holder of the sampler | look, add: under the lock, while samples come.
*/

#ifndef _LJ_TOTALS_H
#define _LJ_TOTALS_H

#include "profile/base/lj_relaxed.h"
#include "profile/sample/lj_sampler.h"

/* Sums of several samplers. */
typedef struct SampleTotals {
  EventSpec used[SPF_EVENTS_MAX]; /* Events in use, */
  int signo[SPF_EVENTS_MAX];      /* and their signals. */
  int shared;                     /* The program has a handler for one of these. */
  char limit[EVENT_TEXT_MAX];     /* Why an event does not reach its rate; "": it does. */
  uint64_t counters[SPF_COUNTER__MAX];
  uint64_t event[SPF_EVENTS_MAX][SPF_EVENT__MAX]; /* Counters of the events. */
  uint64_t taken[SPF_EVENTS_MAX];                 /* Totals at the last samples. */
  uint64_t rests[SPF_EVENTS_MAX];                 /* Samples that are no tick. */
  Hist handler;                                   /* Times of samples. */
  uint64_t cpu_us;                                /* CPU time of the threads. */
} SampleTotals;

/* Raise the total of an event to a total of its source. */
static LJ_AINLINE void totals_raise(SampleEvent *ev, uint64_t total)
{
  uint64_t now = ev->before + total - ev->base;
  if (total != 0 && now > sampleevent_total(ev))
    relaxed_set(&ev->e.counters[SPF_EVENT_TOTAL], now);
}

/* Raise the totals to those that a sample brings. */
static LJ_AINLINE void totals_sample(SampleEvent *ev, const SampleHead *head)
{
  Sampler *s = ev->sampler;
  totals_raise(ev, head->total);
  if (head->cpu_ns)
    relaxed_set(&s->cpu_us, s->cpu_before + head->cpu_ns / 1000 - s->cpu_base);
  relaxed_set(&s->counters[SPF_COUNTER_WALL_US], (head->time_ns - s->start_ns) / 1000);
}

/* Begin the totals of a thread. later: it began after the profile, so all of its time
** counts.
*/
LJ_FUNC void lj_totals_begin(Sampler *s, int later);

/* Read the totals from outside of the thread. When the thread has ended, they lack only the
** time since the last look.
*/
LJ_FUNC void lj_totals_look(Sampler *s);

/* Raise the totals to the last look. */
LJ_FUNC void lj_totals_settle(Sampler *s);

/* Keep the totals for the next thread of the sampler, then begin. */
LJ_FUNC void lj_totals_keep(Sampler *s);

/* Count the times of the last samples. */
LJ_FUNC void lj_totals_account(Sampler *s);

/* List the time of the last sample. */
static LJ_AINLINE void totals_list(Sampler *s)
{
  uint64_t ns = s->spent_ns;
  if (ns == 0) return;
  relaxed_set(&s->spent[s->nspent], ns);
  relaxed_set(&s->spent_ns, 0);
  relaxed_set(&s->nspent, s->nspent + 1);
  if (LJ_UNLIKELY(s->nspent == SAMPLER_SPENT)) lj_totals_account(s);
}

/* Real time since the start, in microseconds: up to now, or to the end of the samples. */
LJ_FUNC uint64_t lj_totals_us(const Sampler *s);

/* Bring the real time up to now. */
LJ_FUNC void lj_totals_time(Sampler *s);

/* Write why events do not reach their rates, or lack something: a sentence for each that fits, ". "
** between them. "": all do.
*/
LJ_FUNC void lj_totals_limit(const Sampler *s, char *text, size_t size);

/* Add the sampler's totals to the sums. */
LJ_FUNC void lj_totals_add(const Sampler *s, SampleTotals *t);

#endif
