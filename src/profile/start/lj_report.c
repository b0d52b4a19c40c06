/*
** Self-report of a profile: counters, rates, costs.
** Context: any thread, outside of the handler. Takes the lock.
*/

#define lj_report_c
#define LUA_CORE

#include <stdio.h>
#include <string.h>

#include "lj_obj.h"
#include "profile/process/lj_process.h"
#include "profile/start/lj_report.h"
#include "profile/base/lj_ossignal.h"
#include "profile/session/lj_registry.h"

static uint64_t samples_of(const uint64_t *n)
{
  uint64_t sum = 0;
  int i;
  for (i = 0; i < SPF_VMST__MAX; i++) sum += n[i];
  return sum;
}

/* Sum of a counter of all events. */
static uint64_t events_sum(const ProfileTotals *t, int counter)
{
  uint64_t sum = 0;
  int i;
  for (i = 0; i < t->opt.nspec; i++) sum += t->of.event[i][counter];
  return sum;
}

static ProfileTotals totals; /* Under the lock. Too large for the stack of a VM's thread. */

void lj_report_counters(global_State *g, struct luam_Sysprof_Counters *c)
{
  const uint64_t *n = totals.of.counters;
  lj_process_lock();
  lj_registry_totals(g, &totals);
  c->vmst_interp = n[SPF_VMST_INTERP];
  c->vmst_lfunc = n[SPF_VMST_LFUNC];
  c->vmst_ffunc = n[SPF_VMST_FFUNC];
  c->vmst_cfunc = n[SPF_VMST_CFUNC];
  c->vmst_gc = n[SPF_VMST_GC];
  c->vmst_exit = n[SPF_VMST_EXIT];
  c->vmst_record = n[SPF_VMST_RECORD];
  c->vmst_opt = n[SPF_VMST_OPT];
  c->vmst_asm = n[SPF_VMST_ASM];
  c->vmst_trace = n[SPF_VMST_TRACE];
  c->samples = samples_of(n);
  lj_process_unlock();
}

/* Under the lock. */
static void report_of(const ProfileTotals *t, struct luam_Sysprof_SelfReport *r)
{
  const uint64_t *n = t->of.counters;
  const EventSpec *first = &t->of.used[0];
  size_t at = 0;
  uint64_t us, ticks;
  int i;
  memset(r, 0, sizeof(*r));
  for (i = 0; i < t->opt.nspec && at < sizeof(r->clock); i++)
    if (t->of.used[i].name[0]) /* Empty if the start failed. */
      at += (size_t)snprintf(r->clock + at, sizeof(r->clock) - at, "%s%s", at ? "," : "",
			     t->of.used[i].name);
  us = first->measures == EVENT_REAL_TIME ? t->wall_us : t->of.cpu_us;
  if (t->opt.nspec && eventspec_istime(first) && first->period)
    r->asked_hz = 1e9 / (double)first->period;
  ticks = t->of.event[0][SPF_EVENT_SAMPLES];
  ticks -= t->of.rests[0] < ticks ? t->of.rests[0] : ticks;
  if (us) r->achieved_hz = (double)ticks * 1e6 / (double)us;
  r->samples = samples_of(n);
  r->overruns = events_sum(t, SPF_EVENT_OVERRUNS);
  r->lost_buffer = n[SPF_COUNTER_LOST_BUFFER];
  r->lost_writer = n[SPF_COUNTER_LOST_WRITER];
  r->lost_queue = n[SPF_COUNTER_LOST_QUEUE];
  r->lost_nested = n[SPF_COUNTER_LOST_NESTED];
  r->throttled = events_sum(t, SPF_EVENT_THROTTLED);
  for (i = 0; i < SPF_BROKEN__MAX; i++) {
    r->lua_broken[i] = n[SPF_COUNTER_LUA_BROKEN + i];
    r->host_broken[i] = n[SPF_COUNTER_HOST_BROKEN + i];
  }
  if (t->of.handler.total)
    r->handler_mean_ns = n[SPF_COUNTER_HANDLER_NS] / t->of.handler.total;
  if (r->samples) r->signal_mean_ns = events_sum(t, SPF_EVENT_SIGNAL_NS) / r->samples;
  r->handler_p99_ns = n[SPF_COUNTER_HANDLER_P99_NS];
  r->handler_max_ns = n[SPF_COUNTER_HANDLER_MAX_NS];
  r->cpu_us = t->cpu_us;
  r->wall_us = t->wall_us;
  r->sessions = t->sessions;
  r->replaced = (uint32_t)t->replaced;
  lj_ossignal_names(t->of.signo, t->opt.nspec, r->signal, sizeof(r->signal));
  r->shared = (uint32_t)t->of.shared;
  r->unsampled = (uint32_t)n[SPF_COUNTER_UNSAMPLED];
  r->uncopied = n[SPF_COUNTER_UNCOPIED];
  snprintf(r->limit, sizeof(r->limit), "%s", t->of.limit);
}

void lj_report_self(global_State *g, struct luam_Sysprof_SelfReport *r)
{
  lj_process_lock();
  lj_registry_totals(g, &totals);
  report_of(&totals, r);
  lj_process_unlock();
}

int lj_report_hints(global_State *g, ReportHint *hint)
{
  struct luam_Sysprof_SelfReport r;
  int n = 0;
  lj_report_self(g, &r);
  if (r.shared) {
    hint[n].fact = "the program has a handler for the signal of the clocks";
    hint[n++].so = "its interrupted calls are restarted";
  }
  if (strstr(r.clock, "itimer")) {
    hint[n].fact = "the kernel keeps the clock itimer over exec";
    hint[n++].so = "SIGPROF ends a program that follows by exec";
  }
  return n;
}
