/*
** Totals of a sampler: of its events, its counters and its time.
** Context: the holder of the sampler | look, add: under the lock, while samples come.
*/

#define lj_totals_c
#define LUA_CORE

#include <string.h>

#include "profile/base/lj_nanotime.h"
#include "profile/labels/lj_labels.h"
#include "profile/sample/lj_totals.h"

/* -- Events ------------------------------------------------------------------ */

static uint64_t source_total(const SampleEvent *ev)
{
  return ev->e.spec.ops->total ? ev->e.spec.ops->total(&ev->e) : 0;
}

void lj_totals_begin(Sampler *s, int later)
{
  int i;
  s->cpu_base = later ? 0 : thread_ns(s->reader.tid) / 1000;
  for (i = 0; i < s->nevent; i++) s->event[i].base = later ? 0 : source_total(&s->event[i]);
}

void lj_totals_look(Sampler *s)
{
  uint64_t cpu_ns = thread_ns(s->reader.tid), now_ns = mono_ns();
  int i;
  if (s->over_us) return;
  if (cpu_ns) s->cpu_seen = s->cpu_before + cpu_ns / 1000 - s->cpu_base;
  for (i = 0; i < s->nevent; i++) {
    SampleEvent *ev = &s->event[i];
    uint64_t total = source_total(ev);
    if (total) ev->seen = ev->before + total - ev->base;
    if (cpu_ns == 0) continue; /* It has ended. */
    ev->e.alive_ns = now_ns;
    ev->e.alive_cpu_ns = cpu_ns;
  }
}

uint64_t lj_totals_us(const Sampler *s)
{
  return s->over_us ? s->over_us : (mono_ns() - s->start_ns) / 1000;
}

void lj_totals_time(Sampler *s)
{
  relaxed_set(&s->counters[SPF_COUNTER_WALL_US], lj_totals_us(s));
}

/* Events of the VM go on after the samples of its thread, and bring its CPU time. */
void lj_totals_settle(Sampler *s)
{
  int i;
  lj_totals_account(s);
  if (s->cpu_seen > s->cpu_us || s->over_us) s->cpu_us = s->cpu_seen;
  for (i = 0; i < s->nevent; i++) {
    SampleEvent *ev = &s->event[i];
    if (ev->seen > sampleevent_total(ev))
      relaxed_set(&ev->e.counters[SPF_EVENT_TOTAL], ev->seen);
  }
  lj_totals_time(s);
}

void lj_totals_keep(Sampler *s)
{
  int i;
  s->cpu_before = s->cpu_us;
  for (i = 0; i < s->nevent; i++) s->event[i].before = sampleevent_total(&s->event[i]);
  lj_totals_begin(s, 0);
}

/* -- Time of samples --------------------------------------------------------- */

/* Context: handler, too. */
__attribute__((noinline, cold)) void lj_totals_account(Sampler *s)
{
  uint32_t i, n;
  if (s->nspent < SAMPLER_SPENT) totals_list(s);
  n = s->nspent;
  relaxed_set(&s->nspent, 0);
  for (i = 0; i < n; i++) {
    uint64_t ns = s->spent[i];
    relaxed_add(&s->counters[SPF_COUNTER_HANDLER_NS], ns);
    if (ns > s->counters[SPF_COUNTER_HANDLER_MAX_NS])
      relaxed_set(&s->counters[SPF_COUNTER_HANDLER_MAX_NS], ns);
    hist_add(&s->handler, hist_class(ns), 1);
  }
  relaxed_set(&s->counters[SPF_COUNTER_HANDLER_P99_NS], hist_p99(&s->handler));
}

/* -- Sums -------------------------------------------------------------------- */

/* Append a sentence if it fits. */
static size_t limit_add(char *text, size_t at, size_t size, const char *one)
{
  size_t len = strlen(one);
  if (len == 0 || at + len + sizeof(". ") > size) return at;
  if (at) {
    memcpy(text + at, ". ", 2);
    at += 2;
  }
  memcpy(text + at, one, len + 1);
  return at + len;
}

void lj_totals_limit(const Sampler *s, char *text, size_t size)
{
  char one[EVENT_TEXT_MAX];
  size_t at = 0;
  int i;
  text[0] = '\0';
  if (s->note) at = limit_add(text, at, size, s->note);
  if (s->number == s->opt->number) { /* The session of the VM's thread. */
    lj_labels_limit(s->gate->g, one, sizeof(one));
    at = limit_add(text, at, size, one);
  }
  for (i = 0; i < s->nevent; i++) {
    const Event *e = &s->event[i].e;
    one[0] = '\0';
    if (e->spec.ops->limit) e->spec.ops->limit(e, one);
    at = limit_add(text, at, size, one);
  }
}

static void add_spent(SampleTotals *t, uint64_t ns)
{
  t->counters[SPF_COUNTER_HANDLER_NS] += ns;
  if (ns > t->counters[SPF_COUNTER_HANDLER_MAX_NS])
    t->counters[SPF_COUNTER_HANDLER_MAX_NS] = ns;
  hist_add(&t->handler, hist_class(ns), 1);
}

void lj_totals_add(const Sampler *s, SampleTotals *t)
{
  uint64_t spent = relaxed_get(&s->spent_ns), cpu_us = relaxed_get(&s->cpu_us);
  char limit[EVENT_TEXT_MAX];
  uint32_t i, k, nspent;
  for (i = 0; i < SPF_COUNTER__MAX; i++) {
    uint64_t n = relaxed_get(&s->counters[i]);
    if (i != SPF_COUNTER_HANDLER_MAX_NS && i != SPF_COUNTER_WALL_US) t->counters[i] += n;
    else if (n > t->counters[i]) t->counters[i] = n;
  }
  for (i = 0; i < HIST_CLASSES; i++) {
    uint32_t n = relaxed_get(&s->handler.n[i]);
    if (n) hist_add(&t->handler, i, n);
  }
  /* Times that samples have only listed. */
  nspent = relaxed_get(&s->nspent);
  for (i = 0; i < nspent; i++) add_spent(t, relaxed_get(&s->spent[i]));
  if (spent) add_spent(t, spent);
  t->counters[SPF_COUNTER_HANDLER_P99_NS] = hist_p99(&t->handler);
  t->counters[SPF_COUNTER_LOST_WRITER] += relaxed_get(&s->queue.lost);
  for (i = 0; i < (uint32_t)s->nevent; i++) {
    const Event *e = &s->event[i].e;
    t->used[i] = e->spec;
    t->signo[i] = e->signo;
    t->shared |= e->shared;
    t->taken[i] += relaxed_get(&s->event[i].taken);
    t->rests[i] += relaxed_get(&s->event[i].rests) + relaxed_get(&s->stream.event[i].rows);
    for (k = 0; k < SPF_EVENT__MAX; k++) t->event[i][k] += relaxed_get(&e->counters[k]);
  }
  lj_totals_limit(s, limit, sizeof(limit));
  if (limit[0]) memcpy(t->limit, limit, sizeof(limit));
  t->cpu_us += cpu_us > s->cpu_seen && !s->over_us ? cpu_us : s->cpu_seen;
}
