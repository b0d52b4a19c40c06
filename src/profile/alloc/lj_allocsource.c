/*
** Allocations as a source of samples: the event `alloc`.
** Context: as SourceOps says | samples: ordinary code of the VM's thread.
*/

#define lj_allocsource_c
#define LUA_CORE

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "profile/alloc/lj_allocdraw.h"
#include "profile/alloc/lj_allochook.h"
#include "profile/alloc/lj_allocsource.h"
#include "profile/alloc/lj_alloctype.h"
#include "profile/base/lj_nanotime.h"
#include "profile/event/lj_eventparse.h"

/* Fields of a sample. */
enum { FIELD_OBJECTS, FIELD_TYPE, FIELD_LIVE, FIELD_SIZE, FIELD_CYCLE, FIELD__MAX };

static const EventField fields[FIELD__MAX] = {
  { SPF_FIELD_COUNT, "objects" }, { SPF_FIELD_TEXT, "type" },   { SPF_FIELD_THING, "live" },
  { SPF_FIELD_SIZE, "size" },     { SPF_FIELD_CYCLE, "cycle" },
};

/* Part of an event that belongs to this source. */
typedef struct AllocSource {
  AllocHook *hook; /* Of an open event. */
  /* Of any event: of its thread. */
  AllocTypes types;
  int is_replaced; /* The program has replaced the VM's allocator. */
} AllocSource;

#define LOOK_NS   1000000000 /* Time from one look at the time of samples to the next. */
#define SHARE     500        /* Samples may take 1/SHARE of the time. */
#define SHARE_LOW 2000       /* Below this, the period gets shorter again. */

/* Is it the default period? */
static int spec_adapts(const EventSpec *spec)
{
  return spec->own.bytes[0];
}

static AllocSource *source_of(const Event *ev)
{
  return (AllocSource *)ev->source;
}

/* -- Samples ----------------------------------------------------------------- */

/* Count bytes in the total of an event. Another thread may stop the source meanwhile. */
static void count(Event *ev, AllocHook *h, uint64_t bytes)
{
  bytes += __atomic_exchange_n(&h->uncounted, 0, __ATOMIC_RELAXED);
  __atomic_add_fetch(&ev->counters[SPF_EVENT_TOTAL], bytes, __ATOMIC_RELAXED);
}

/* The event of the VM's session counts what the VM holds. The collector's cycles and the period
** of what is left are the same in all sessions.
*/
static void count_vm(AllocHook *h, uint64_t now_ns)
{
  EventDoor *door = h->door;
  uint64_t *counters = h->home->counters;
  uint64_t cycles = relaxed_get(&door->gc_cycles);
  relaxed_set(
    &counters[SPF_EVENT_HELD],
    door->is_freed ? 0 : (uint64_t)relaxed_get(&((global_State *)door->vm)->gc.total));
  if (cycles) {
    relaxed_set(&counters[SPF_EVENT_CYCLE_US],
		(now_ns - relaxed_get(&door->gc_end_ns)) / 1000);
    relaxed_set(&counters[SPF_EVENT_CYCLE_HELD], relaxed_get(&door->gc_held));
  }
  if (cycles != counters[SPF_EVENT_CYCLES])
    door->set_all(door, &lj_allocsource_ops, SPF_EVENT_CYCLES, cycles);
  if (h->live.period != counters[SPF_EVENT_LEFT_PERIOD])
    door->set_all(door, &lj_allocsource_ops, SPF_EVENT_LEFT_PERIOD, h->live.period);
}

/* Begin a countdown. */
static void begin(AllocHook *h)
{
  uint64_t drawn = lj_allocdraw_distance(&h->draw, h->period);
  relaxed_set(&h->drawn, drawn);
  relaxed_set(&h->left, drawn);
}

/* Take a sample by the event of the thread's session. Returns 0 if it took none. */
static int take(Event *ev, AllocHook *h, size_t osize, size_t size, const WalkRegs *regs,
		SampleHead *head)
{
  const global_State *g = (const global_State *)ev->door->vm;
  AllocSite site;
  uint8_t name[32];
  SampleDef def = { SPF_TEXT, 0, name, 0 };
  head->time_ns = mono_ns();
  if (spec_adapts(&ev->spec)) head->cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
  site = lj_alloctype_find(&source_of(ev)->types, regs, g, osize, size);
  def.id = (uint32_t)site.type;
  def.len = (uint32_t)strlen(lj_alloctype_name(site.type));
  memcpy(name + 1, lj_alloctype_name(site.type), def.len);
  name[0] = (uint8_t)def.len++;
  head->def = &def;
  head->ndef = 1;
  head->field[FIELD_TYPE] = def.id;
  if (lj_alloclive_makeroom(&h->live, &h->draw, ev))
    head->field[FIELD_LIVE] = lj_alloclive_begin(&h->live, &h->draw, h->period, size);
  else relaxed_add(&ev->counters[SPF_EVENT_LOST_ENDS], 1);
  count_vm(h, head->time_ns);
  head->field[FIELD_SIZE] = size;
  head->field[FIELD_CYCLE] = relaxed_get(&ev->door->gc_cycles);
  head->inner = site.inner;
  lj_allocdraw_weights(&h->draw, h->period, size, &head->weight,
		       &head->field[FIELD_OBJECTS]);
  if (ev->take(ev, head, regs)) {
    lj_alloclive_sampled(&h->live, head->session);
    return 1;
  }
  lj_alloclive_lost(&h->live);
  return 0;
}

/* The period of a program that allocates fast gets longer. Only the default one does: who asks
** for a period gets it. A countdown and the weight of its sample have the same period, so sums
** stay unbiased. A short burst of allocations doubles it only once.
*/
static void adapt(Event *ev, AllocHook *h, const SampleHead *head)
{
  uint64_t passed_ns = head->end_ns - h->since_ns, period = h->period;
  uint64_t look_ns = passed_ns < LOOK_NS ? LOOK_NS : passed_ns;
  h->spent_ns += head->spent_ns;
  if (h->spent_ns > look_ns / SHARE) {
    if (period < ALLOC_PERIOD_MAX) period *= 2;
  } else if (passed_ns < LOOK_NS) {
    return;
  } else if (h->spent_ns < look_ns / SHARE_LOW && period > ev->spec.period) {
    period /= 2;
  }
  if (period > ev->counters[SPF_EVENT_LONGEST] && period > ev->spec.period)
    relaxed_set(&ev->counters[SPF_EVENT_LONGEST], period);
  h->since_ns = head->end_ns;
  h->spent_ns = 0;
  if (period == h->period) return;
  h->period = period;
  begin(h);
}

/* The door lives as long as the VM; an event, only until leave. */
static void alloc_sample(AllocHook *h, size_t osize, size_t size, const WalkRegs *regs)
{
  SampleHead head = { 0 };
  Event *ev;
  __atomic_add_fetch(&h->uncounted, h->drawn - h->left + size, __ATOMIC_RELAXED);
  begin(h);
  ev = h->door->enter(h->door, &lj_allocsource_ops);
  if (!ev) return;
  count(ev, h, 0);
  if (take(ev, h, osize, size, regs, &head) && spec_adapts(&ev->spec)) adapt(ev, h, &head);
  h->door->leave(h->door);
}

/* -- Source ------------------------------------------------------------------ */

#define DIGITS_MAX 40 /* Of a wrong period in a message. */

static void refuse_period(const char *digits, int n, char *errmsg)
{
  snprintf(errmsg, EVENT_ERRMSG_MAX,
	   "the period of 'alloc' is %.*s%s bytes; it must be between 1 and %llu",
	   n < DIGITS_MAX ? n : DIGITS_MAX, digits, n > DIGITS_MAX ? "..." : "",
	   (unsigned long long)ALLOC_PERIOD_MAX);
}

static EventParsed alloc_parse(const char *item, size_t len, const EventDefaults *by,
			       EventSpec *spec, char *errmsg)
{
  static const char name[] = "alloc";
  size_t nlen = sizeof(name) - 1, klen = sizeof("/period=") - 1;
  if (len == 4 && memcmp(item, "live", 4) == 0) {
    snprintf(errmsg, EVENT_ERRMSG_MAX,
	     "'live' is recorded by 'alloc'; choose alloc, and show it with --event=live");
    return EVENT_REFUSED;
  }
  if (!lj_eventparse_isname(item, len, name)) return EVENT_UNKNOWN;
  spec->period = by->period ? by->period : ALLOC_PERIOD;
  spec->own.bytes[0] = (len == nlen && !by->period);
  if (len > nlen && !lj_eventparse_number(item + nlen, len - nlen, "period",
					  ALLOC_PERIOD_MAX, &spec->period)) {
    snprintf(errmsg, EVENT_ERRMSG_MAX,
	     "'alloc' is followed by '%.*s'; expected /period=BYTES/, such as "
	     "alloc/period=524288/",
	     (int)(len - nlen < 32 ? len - nlen : 32), item + nlen);
    return EVENT_REFUSED;
  }
  if (spec->period == 0 || spec->period > ALLOC_PERIOD_MAX) {
    char given[24];
    int n = snprintf(given, sizeof(given), "%llu", (unsigned long long)spec->period);
    if (len == nlen) refuse_period(given, n, errmsg);
    else refuse_period(item + nlen + klen, (int)(len - nlen - klen - 1), errmsg);
    return EVENT_REFUSED;
  }
  strcpy(spec->name, name);
  spec->measures = EVENT_OCCURRENCES;
  spec->unit = SPF_UNIT_BYTES;
  spec->has_weights = 1;
  spec->nfield = FIELD__MAX;
  spec->field = fields;
  return EVENT_PARSED;
}

static EventStatus alloc_open(Event *ev, char *errmsg)
{
  AllocSource *as = source_of(ev);
  as->hook = lj_allochook_of((global_State *)ev->door->vm);
  if (!as->hook ||
      !lj_alloclive_open(&as->hook->live, ev->spec.period, &ev->door->gc_cycles)) {
    snprintf(errmsg, EVENT_ERRMSG_MAX,
	     "the event alloc has no memory for its table; free some memory");
    errno = ENOMEM;
    return EVENT_ERROR;
  }
  return EVENT_OK;
}

static int alloc_arm(Event *ev)
{
  AllocHook *h = source_of(ev)->hook;
  h->door = ev->door;
  h->home = ev;
  h->period = ev->spec.period;
  h->since_ns = mono_ns();
  h->spent_ns = 0;
  h->uncounted = 0;
  h->sample = alloc_sample;
  lj_allocdraw_seed(&h->draw, mono_ns() ^ (uintptr_t)ev);
  begin(h);
  lj_allochook_start(h);
  return 0;
}

/* Report which blocks have ended; only the thread that runs the VM knows. Returns 0 if it is not
** known, or the session is in use.
*/
static int report(Event *ev, AllocHook *h, int is_ours)
{
  AllocSource *as = source_of(ev);
  count_vm(h, mono_ns());
  if (!is_ours) return 0;
  if (!lj_allochook_isin(h) || h->was_out) {
    h->was_out = 0;
    as->is_replaced = 1;
    lj_alloclive_end(&h->live, SPF_ENDED_DROPPED);
  }
  if (ev->door->is_freed) lj_alloclive_end(&h->live, SPF_ENDED_GONE);
  return lj_alloclive_report(&h->live, ev);
}

static void alloc_sync(Event *ev)
{
  report(ev, source_of(ev)->hook, ev->door->is_ours(ev->door));
}

/* The rest of the countdown counts in this event, whatever thread it was for. */
static void alloc_stop(Event *ev)
{
  AllocHook *h = source_of(ev)->hook;
  int is_ours = ev->door->is_ours(ev->door);
  if (ev->is_armed && !report(ev, h, is_ours))
    relaxed_add(&ev->counters[SPF_EVENT_LOST_ENDS], relaxed_get(&h->live.nended));
  lj_allochook_stop(h, is_ours);
  if (ev->is_armed) count(ev, h, relaxed_get(&h->drawn) - relaxed_get(&h->left));
  if (is_ours) lj_alloclive_close(&h->live);
}

static void alloc_limit(const Event *ev, char *text)
{
  uint64_t longest = relaxed_get(&ev->counters[SPF_EVENT_LONGEST]);
  text[0] = '\0';
  if (relaxed_get(&source_of(ev)->is_replaced))
    snprintf(
      text, EVENT_TEXT_MAX,
      "alloc: the program replaced the VM's allocator; allocations are missing, and what "
      "is live is not known");
  else if (longest)
    snprintf(
      text, EVENT_TEXT_MAX,
      "alloc: the program allocates fast; the period grew from %llu to %llu KiB, so that "
      "samples take 1/%d of the time",
      (unsigned long long)(ev->spec.period >> 10), (unsigned long long)(longest >> 10),
      SHARE);
}

const SourceOps lj_allocsource_ops = {
  .size = sizeof(AllocSource),
  .is_of_vm = 1,
  .names = "alloc",
  .parse = alloc_parse,
  .open = alloc_open,
  .arm = alloc_arm,
  .stop = alloc_stop,
  .sync = alloc_sync,
  .limit = alloc_limit,
  .forget = lj_allochook_forget,
};
