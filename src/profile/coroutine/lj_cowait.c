/*
** Waits of coroutines: yields, resumes, sums.
** Context: as in the header.
*/

#define lj_cowait_c
#define LUA_CORE

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* For RUSAGE_THREAD. */
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "lj_obj.h"
#include "lj_bc.h"
#include "lj_debug.h"
#include "lj_dispatch.h"
#include "lj_frame.h"
#include "lj_gc.h"
#include "profile/base/lj_hash.h"
#include "profile/base/lj_relaxed.h"
#include "profile/coroutine/lj_cowait.h"
#include "profile/coroutine/lj_cowalk.h"
#include "profile/host/lj_vmstub.h"
#include "profile/labels/lj_labels.h"

#define FLUSH_NS      1000000000 /* From one flush of the sums to the next. */
#define SHARE         50         /* Samples of single waits may take 1/SHARE of the time. */
#define CREDIT_MAX_NS 5000000    /* A burst of samples takes no longer. */
#define SAMPLE_MIN_NS 2000  /* A sample counts as at least so long: its bytes cost, too. */
#define GAP_NS        50000 /* Without yield or resume: the thread may have slept. */
#define BUSY_NS       10000 /* Shorter times of a busy thread are not told apart. */
#define PROBES        8     /* Slots of the table of sums that are tried. */

static CoWait *states;

static CoWait *state_of(const global_State *g)
{
  return G2GG((global_State *)g)->cowait;
}

/* -- Time of a yield ---------------------------------------------------------- */

static LJ_AINLINE uint64_t yield_time(const CoWait *w, const lua_State *L)
{
  const CoRecord *r = corecord_find(w->records, L);
  return LJ_LIKELY(r != NULL) ? r->yielded : 0;
}

static LJ_AINLINE void yield_settime(CoWait *w, lua_State *L, uint64_t tick)
{
  CoRecord *r = corecord_find(w->records, L);
  if (LJ_LIKELY(r != NULL) || (r = lj_corecord_new(w->records, L)) != NULL)
    r->yielded = tick;
}

/* -- Samples ----------------------------------------------------------------- */

/* Take a sample of waits. The next one of the head begins at its end. Returns 0 if the session is
** in use. Then the sample is lost, unless the head says that it is retried.
*/
static int take(Event *ev, SampleHead *head, uint64_t ns, uint64_t waits)
{
  int taken;
  head->weight = ns;
  head->field[0] = waits;
  taken = ev->take(ev, head, NULL);
  if (taken || !head->is_retried)
    __atomic_add_fetch(&ev->counters[SPF_EVENT_TOTAL], ns, __ATOMIC_RELAXED);
  if (taken) head->time_ns = head->end_ns;
  return taken;
}

/* Set the leaf of a sum's sample. */
static void set_leaf(SampleHead *head, int kind)
{
  head->work = kind == COSUM_SHORT ? SPF_WORK_SHORT : SPF_WORK_UNSEEN;
  head->work_arg = kind == COSUM_SHORT ? 0 : SPF_UNSEEN_MANY;
}

/* Take samples of the sums of a site, and clear them. */
static int take_sums(CoWait *w, Event *ev, CoSite *cs)
{
  SampleStack stack = { NULL, cs->pt, (const void *)cs->pc };
  SampleHead head = { .stack = &stack, .is_retried = 1 };
  SampleDef def;
  int kind;
  if (cs->label) {
    lj_labels_define(w->g, cs->label, &def);
    head.labels = def.id;
    head.def = &def;
    head.ndef = 1;
  }
  for (kind = 0; kind < COSUM__MAX; kind++) {
    CoSum *sum = &cs->sum[kind];
    if (sum->waits == 0) continue;
    head.time_ns = mono_ns();
    set_leaf(&head, kind);
    if (!take(ev, &head, lj_ticks_ns(&w->rate, sum->ticks), sum->waits)) return 0;
    relaxed_set(&sum->ticks, 0);
    relaxed_set(&sum->waits, 0);
  }
  return 1;
}

static void site_clear(CoWait *w, CoSite *cs)
{
  relaxed_set(&cs->pc, 0);
  cs->pt = NULL;
  if (cs->label) labels_release(G2GG(w->g)->labels, cs->label);
  cs->label = 0;
}

/* Free the sites whose sums have been taken and where nobody waits. */
static void sites_clear(CoWait *w)
{
  int i;
  for (i = 0; i < COWAIT_SITES; i++)
    if (w->site[i].waiting == 0) site_clear(w, &w->site[i]);
}

int lj_cowait_flush(CoWait *w, Event *ev)
{
  int i, ok;
  lj_ticks_measure(&w->rate);
  ok = take_sums(w, ev, &w->other);
  for (i = 0; i < COWAIT_SITES && ok; i++)
    if (w->site[i].pc) ok = take_sums(w, ev, &w->site[i]);
  if (ok) sites_clear(w);
  return ok;
}

/* The thread that runs the VM may add to a sum meanwhile: that wait is lost. */
static void rest_of(CoWait *w, Event *ev, int kind)
{
  SampleHead head = { .time_ns = mono_ns() };
  TickRate rate = w->rate;
  uint64_t ticks = 0;
  int i;
  lj_ticks_measure(&rate);
  for (i = -1; i < COWAIT_SITES; i++) {
    CoSum *sum = &(i < 0 ? &w->other : &w->site[i])->sum[kind];
    ticks += __atomic_exchange_n(&sum->ticks, 0, __ATOMIC_RELAXED);
    head.field[0] += __atomic_exchange_n(&sum->waits, 0, __ATOMIC_RELAXED);
  }
  set_leaf(&head, kind);
  head.weight = lj_ticks_ns(&rate, ticks);
  if (head.field[0] == 0) return;
  __atomic_add_fetch(&ev->counters[SPF_EVENT_TOTAL], head.weight, __ATOMIC_RELAXED);
  ev->append(ev, &head);
}

void lj_cowait_rest(CoWait *w, Event *ev)
{
  int kind;
  for (kind = 0; kind < COSUM__MAX; kind++) rest_of(w, ev, kind);
}

/* Flush by the event of the running thread, if it has one. */
static void flush(CoWait *w, uint64_t now)
{
  Event *ev = w->door->enter(w->door, w->ops);
  if (ev) {
    lj_cowait_flush(w, ev);
    w->door->leave(w->door);
  }
  w->flush_at = now + (uint64_t)(FLUSH_NS / w->rate.ns);
}

/* -- Sums -------------------------------------------------------------------- */

static void sum_add(CoSum *sum, uint64_t ticks, uint64_t waits)
{
  relaxed_set(&sum->ticks, sum->ticks + ticks);
  relaxed_set(&sum->waits, sum->waits + waits);
}

/* Write where a site is. */
static void site_place(CoSite *cs)
{
  const GCstr *chunk = proto_chunkname(cs->pt);
  BCPos pos = proto_bcpos(cs->pt, (const BCIns *)cs->pc) - 1;
  BCLine line = proto_lineinfo(cs->pt) ? lj_debug_line((GCproto *)cs->pt, pos) : 0;
  size_t len = chunk->len, cut;
  const char *s = strdata(chunk);
  char num[16];
  snprintf(num, sizeof(num), ":%d", (int)line);
  if (len > 0 && (*s == '@' || *s == '=')) s++, len--;
  cut = len + strlen(num) >= COWAIT_PLACE ? len + strlen(num) - COWAIT_PLACE + 1 : 0;
  snprintf(cs->place, COWAIT_PLACE, "%.*s%s", (int)(len - cut), s + cut, num);
}

/* Find the innermost Lua function of a coroutine, and where it is. */
static void find_func(lua_State *L, CoSite *cs)
{
  CoWalk cw;
  CoStep step;
  lj_cowalk_begin(&cw, L);
  while (lj_cowalk_next(&cw, &step))
    if (isluafunc(step.fn)) {
      cs->pt = funcproto(step.fn);
      cs->pc = (uintptr_t)step.pc;
      return;
    }
}

/* Slot of a PC and a set of labels. */
static LJ_AINLINE uint32_t site_slot(uintptr_t pc, uint32_t label)
{
  return hash_slot(pc ^ (uint64_t)label << 48, COWAIT_BITS);
}

/* Return the site for a coroutine that yielded at a PC; other if there is no room. */
static LJ_NOINLINE CoSite *site_new(CoWait *w, lua_State *L, uintptr_t pc)
{
  CoSite found = { .pc = 0, .label = L->sysprof_label }, *room = NULL;
  uint32_t i, slot;
  find_func(L, &found);
  if (!found.pt || !found.pc) return &w->other;
  if (found.pc != pc) pc = found.pc;
  slot = site_slot(pc, found.label);
  for (i = 0; i < PROBES; i++, slot = (slot + 1) & (COWAIT_SITES - 1)) {
    CoSite *cs = &w->site[slot];
    if (cs->pc == pc && cs->label == found.label) return cs;
    if (!cs->pc && !room) room = cs;
  }
  if (!room) return &w->other;
  *room = found;
  labels_hold(G2GG(w->g)->labels, room->label);
  site_place(room);
  return room;
}

/* Return the site of a PC and a set of labels, or NULL. */
static LJ_AINLINE CoSite *site_find(CoWait *w, uintptr_t pc, uint32_t label)
{
  uint32_t i, slot = site_slot(pc, label);
  for (i = 0; i < PROBES; i++, slot = (slot + 1) & (COWAIT_SITES - 1))
    if (LJ_LIKELY(w->site[slot].pc == pc && w->site[slot].label == label))
      return &w->site[slot];
  return NULL;
}

/* Return the PC of the Lua function that has called what yielded, 0 if no Lua function has. */
static LJ_AINLINE uintptr_t caller_pc(const lua_State *L)
{
  uintptr_t pc = (uintptr_t)frame_ftsz(L->base - 1);
  return LJ_LIKELY((pc & FRAME_TYPE) == FRAME_LUA) ? pc : 0;
}

/* Return the site where a coroutine yields. */
static LJ_AINLINE CoSite *site_of(CoWait *w, lua_State *L)
{
  uintptr_t pc = caller_pc(L);
  CoSite *cs = pc ? site_find(w, pc, L->sysprof_label) : NULL;
  return LJ_LIKELY(cs != NULL) ? cs : site_new(w, L, pc);
}

/* A coroutine no longer waits. cs: its site; if that has lost count, another one has it. */
static LJ_AINLINE void waits_less(CoWait *w, CoSite *cs)
{
  if (LJ_UNLIKELY(cs->waiting == 0)) cs = &w->other;
  if (LJ_LIKELY(cs->waiting != 0)) relaxed_set(&cs->waiting, cs->waiting - 1);
}

/* Take the sums of a function that is about to be freed. If the session is in use, they lose the
** function. Nobody finds the place any more.
*/
static void site_ends(CoWait *w, Event *ev, CoSite *cs)
{
  int kind;
  if (!ev || !take_sums(w, ev, cs))
    for (kind = 0; kind < COSUM__MAX; kind++) {
      sum_add(&w->other.sum[kind], cs->sum[kind].ticks, cs->sum[kind].waits);
      sum_add(&cs->sum[kind], (uint64_t)0 - cs->sum[kind].ticks,
	      (uint64_t)0 - cs->sum[kind].waits);
    }
  w->other.waiting += cs->waiting; /* They are dead, and are freed soon. */
  cs->waiting = 0;
  site_clear(w, cs);
}

/* The collector frees strings before functions: so a function that it frees has no name then. */
void lj_cowait_marked(CoWait *w)
{
  Event *ev = NULL;
  int i, entered = 0;
  if (!relaxed_get(&w->on)) return;
  for (i = 0; i < COWAIT_SITES; i++) {
    CoSite *cs = &w->site[i];
    if (!cs->pt || !isdead(w->g, obj2gco(cs->pt))) continue;
    if (!entered) {
      ev = w->door->enter(w->door, w->ops);
      lj_ticks_measure(&w->rate);
      entered = 1;
    }
    site_ends(w, ev, cs);
  }
  if (ev) w->door->leave(w->door);
}

/* -- Waits ------------------------------------------------------------------- */

/* May a sample of a single wait be taken now? */
static int has_credit(CoWait *w, uint64_t now)
{
  w->credit_ns += (int64_t)(lj_ticks_ns(&w->rate, now - w->credit_at) / SHARE);
  if (w->credit_ns > CREDIT_MAX_NS) w->credit_ns = CREDIT_MAX_NS;
  w->credit_at = now;
  return w->credit_ns >= 0;
}

/* Take the samples of a wait. */
static void take_parts(CoWait *w, Event *ev, SampleHead *head, uint64_t from, uint64_t now)
{
  uint64_t all = lj_ticks_ns(&w->rate, now - from);
  uint64_t busy = lj_ticks_ns(&w->rate, now - (w->slept > from ? w->slept : from));
  if (busy < BUSY_NS) busy = 0;
  if (busy == all) {
    head->work = SPF_WORK_BUSY;
    take(ev, head, all, 1);
    return;
  }
  take(ev, head, all - busy, 1);
  head->work = SPF_WORK_BUSY;
  if (busy) take(ev, head, busy, 0);
}

/* Take samples with the stack of a coroutine. Returns 0 if the profile does not sample this thread. */
static LJ_NOINLINE int take_wait(CoWait *w, lua_State *L, uint64_t from, uint64_t now)
{
  SampleStack stack = { L, NULL, NULL };
  SampleHead head = { .stack = &stack };
  Event *ev = w->door->enter(w->door, w->ops);
  uint64_t begin_ns;
  int64_t spent_ns;
  if (!ev) return 0;
  begin_ns = head.time_ns = mono_ns();
  lj_ticks_measure(&w->rate);
  take_parts(w, ev, &head, from, now);
  w->door->leave(w->door);
  spent_ns = (int64_t)(mono_ns() - begin_ns);
  w->credit_ns -= spent_ns > SAMPLE_MIN_NS ? spent_ns : SAMPLE_MIN_NS;
  return 1;
}

/* Has the thread slept since the last look? A sleep counts unless a coroutine ran: that coroutine
** has blocked the thread, and others may have been ready.
*/
static LJ_NOINLINE void look_for_sleep(CoWait *w, uint64_t now, int is_blocking)
{
  struct rusage ru;
  if (getrusage(RUSAGE_THREAD, &ru) != 0 || ru.ru_nvcsw == w->sleeps) return;
  w->sleeps = ru.ru_nvcsw;
  if (!is_blocking) w->slept = now;
}

/* A wait has ended. A coroutine that was created while the event was off has no time, or an old
** one.
*/
static void wait_ends(CoWait *w, lua_State *L, uint64_t now)
{
  CoSite *cs = site_of(w, L);
  uint64_t from = yield_time(w, L), ticks;
  if (LJ_UNLIKELY(L->sysprof_record == CORECORD_NONE)) {
    waits_less(w, cs);
    relaxed_set(&w->untimed, w->untimed + 1);
    return;
  }
  if (LJ_LIKELY(from >= w->since)) waits_less(w, cs);
  else from = w->since;
  ticks = now > from ? now - from : 0;
  if (LJ_LIKELY(ticks < w->threshold)) {
    sum_add(&cs->sum[COSUM_SHORT], ticks, 1);
  } else if (!has_credit(w, now)) {
    relaxed_set(&w->many, w->many + 1);
    sum_add(&cs->sum[COSUM_MANY], ticks, 1);
  } else if (!take_wait(w, L, from, now)) {
    sum_add(&cs->sum[COSUM_MANY], ticks, 1);
  }
  if (LJ_UNLIKELY(now >= w->flush_at)) flush(w, now);
}

/* The running coroutine yields or ends. */
static LJ_AINLINE uint64_t run_ends(CoWait *w)
{
  uint64_t now = lj_ticks_now(&w->rate);
  if (LJ_UNLIKELY(now - w->last >= w->gap)) look_for_sleep(w, now, 1);
  w->running = NULL;
  return w->last = now;
}

/* Without the mark in its C frame, the coroutine cannot yield, and an error follows. */
void lj_cowait_yield(lua_State *L)
{
  CoWait *w = state_of(G(L));
  CoSite *cs;
  if (LJ_UNLIKELY(!relaxed_get(&w->on) || !((uintptr_t)L->cframe & CFRAME_RESUME))) return;
  yield_settime(w, L, run_ends(w));
  cs = site_of(w, L);
  relaxed_set(&cs->waiting, cs->waiting + 1);
}

void lj_cowait_left(lua_State *L)
{
  CoWait *w = state_of(G(L));
  if (w && relaxed_get(&w->on) && w->running == L) run_ends(w);
}

/* A builtin function does not tell that a coroutine has ended. If one has, and the thread slept
** since its last resume, that sleep counts as one after the end.
*/
void lj_cowait_resume(lua_State *L)
{
  CoWait *w = state_of(G(L));
  uint64_t now;
  if (LJ_UNLIKELY(L->cframe || !relaxed_get(&w->on))) return;
  now = lj_ticks_now(&w->rate);
  if (LJ_UNLIKELY(now - w->last >= w->gap))
    look_for_sleep(w, now, w->running && w->running->cframe);
  w->last = now;
  if (LJ_LIKELY(L->status == LUA_YIELD)) wait_ends(w, L, now);
  w->running = L;
}

/* Does a coroutine count among those that wait at a site? */
static int is_waiting(const CoWait *w, const lua_State *L)
{
  return relaxed_get(&w->on) && L->status == LUA_YIELD && yield_time(w, L) >= w->since;
}

void lj_cowait_threadfree(CoWait *w, const lua_State *L)
{
  if (w->running == L) w->running = NULL;
  if (is_waiting(w, L)) {
    uintptr_t pc = caller_pc(L);
    CoSite *cs = pc ? site_find(w, pc, L->sysprof_label) : NULL;
    waits_less(w, cs ? cs : &w->other);
  }
}

void lj_cowait_label(lua_State *L, uint32_t label)
{
  CoWait *w = state_of(G(L));
  int waits = w && is_waiting(w, L);
  if (waits) waits_less(w, site_of(w, L));
  labels_set(G2GG(G(L))->labels, L, label);
  if (waits) {
    CoSite *cs = site_of(w, L);
    relaxed_set(&cs->waiting, cs->waiting + 1);
  }
}

int lj_cowait_known(const global_State *g,
		    void (*known)(void *ctx, const char *place, uint32_t n), void *ctx)
{
  const CoWait *w = relaxed_get(&G2GG((global_State *)g)->cowait);
  int i;
  if (!w || !relaxed_get(&w->on)) return 0;
  for (i = 0; i < COWAIT_SITES; i++) {
    const CoSite *cs = &w->site[i];
    uintptr_t pc = relaxed_get(&cs->pc);
    uint32_t n = relaxed_get(&cs->waiting);
    char place[COWAIT_PLACE];
    memcpy(place, cs->place, sizeof(place));
    place[sizeof(place) - 1] = '\0';
    if (pc && n && relaxed_get(&cs->pc) == pc) known(ctx, place, n);
  }
  if (relaxed_get(&w->other.waiting)) known(ctx, NULL, relaxed_get(&w->other.waiting));
  return 1;
}

/* coroutine.resume(co, ...) */
static void call_resume(lua_State *L)
{
  if (L->top > L->base && tvisthread(L->base)) lj_cowait_resume(threadV(L->base));
}

/* The function of coroutine.wrap. Its upvalue is the coroutine. */
static void call_wrap(lua_State *L)
{
  cTValue *o = &curr_func(L)->c.upvalue[0];
  if (tvisthread(o)) lj_cowait_resume(threadV(o));
}

int lj_cowait_age(const lua_State *L, uint64_t *ns, int *is_least)
{
  const CoWait *w = state_of(G(L));
  uint64_t from, now;
  if (!w || !relaxed_get(&w->on) || L->status != LUA_YIELD ||
      L->sysprof_record == CORECORD_NONE)
    return 0;
  from = yield_time(w, L);
  now = lj_ticks_now(&w->rate);
  *is_least = from < w->since;
  if (*is_least) from = w->since;
  *ns = lj_ticks_ns(&w->rate, now > from ? now - from : 0);
  return 1;
}

/* -- Begin and end ----------------------------------------------------------- */

CoWait *lj_cowait_of(global_State *g)
{
  CoWait *w = state_of(g);
  if (w) return w;
  w = (CoWait *)calloc(1, sizeof(*w));
  if (!w) return NULL;
  w->records = lj_corecord_of(g);
  if (!w->records) {
    free(w);
    return NULL;
  }
  w->g = g;
  w->next = states;
  states = w;
  /* A VM with a state calls them, even if the event never begins. */
  lj_vmstub_hook[VMSTUB_YIELD] = lj_cowait_yield;
  lj_vmstub_hook[VMSTUB_RESUME] = call_resume;
  lj_vmstub_hook[VMSTUB_WRAP] = call_wrap;
  G2GG(g)->cowait = w;
  return w;
}

void lj_cowait_start(CoWait *w, const Event *ev, uint64_t threshold_ns)
{
  int i;
  lj_ticks_begin(&w->rate);
  for (i = 0; i < COWAIT_SITES; i++)
    if (w->site[i].label) labels_release(G2GG(w->g)->labels, w->site[i].label);
  memset(w->site, 0, sizeof(w->site));
  memset(&w->other, 0, sizeof(w->other));
  w->many = w->untimed = 0;
  w->door = ev->door;
  w->ops = ev->spec.ops;
  w->threshold = (uint64_t)((double)threshold_ns / w->rate.ns);
  w->gap = (uint64_t)(GAP_NS / w->rate.ns);
  w->credit_ns = CREDIT_MAX_NS;
  w->since = w->credit_at = w->last = w->slept = lj_ticks_now(&w->rate);
  w->running = NULL;
  look_for_sleep(w, w->since, 1);
  w->flush_at =
    w->since; /* The first one: its sample sees the code that resumes coroutines. */
  relaxed_set(&w->on, 1);
  lj_vmstub_put(w->g);
}

void lj_cowait_stop(CoWait *w, int is_ours)
{
  int i;
  relaxed_set(&w->on, 0);
  if (!is_ours) return;
  lj_vmstub_take(w->g);
  for (i = 0; i < COWAIT_SITES; i++) site_clear(w, &w->site[i]);
}

void lj_cowait_close(global_State *g)
{
  CoWait **at = &states;
  for (; *at; at = &(*at)->next)
    if ((*at)->g == g) {
      CoWait *w = *at;
      lj_cowait_stop(w, 1);
      *at = w->next;
      G2GG(g)->cowait = NULL;
      free(w);
      return;
    }
}

void lj_cowait_forget(void)
{
  CoWait *w;
  for (w = states; w; w = w->next) lj_cowait_stop(w, 0);
}
