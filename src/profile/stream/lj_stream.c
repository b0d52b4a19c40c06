/*
** Profile stream: samples, stacks by reference, totals.
** Context: handler, unless the header says otherwise.
*/

#define lj_stream_c
#define LUA_CORE

#include <string.h>

#include "profile/base/lj_relaxed.h"
#include "profile/stream/lj_stream.h"
#include "profile/symbols/lj_symrecords.h"

/* Bits of the event in the tag of a sample. */
#define EVENT_SHIFT         4
#define sample_event(index) (((uint32_t)(index) << EVENT_SHIFT) & SPF_SAMPLE_EVENT)

/* -- Chunks ------------------------------------------------------------------ */

/* goes_on: the chunk refers to the stacks of the chunks before, too. */
static void chunk_begin(Stream *s, int goes_on)
{
  size_t mark = lj_wbuf_def_begin(&s->wb, SPF_CONTEXT);
  int i;
  s->step_us = s->typical_us;
  lj_wbuf_uleb(&s->wb, s->tid);
  lj_wbuf_uleb(&s->wb, s->time_us);
  lj_wbuf_uleb(&s->wb, s->session);
  lj_wbuf_uleb(&s->wb, s->step_us);
  if (goes_on) {
    lj_wbuf_uleb(&s->wb, s->stacks.nstack);
  } else {
    stacktab_next(&s->stacks);
    s->stacks_us = s->time_us;
    s->stacks_bytes = 0;
  }
  lj_wbuf_def_end(&s->wb, mark);
  lj_wbuf_commit(&s->wb);
  relaxed_set(&s->in_chunk, 0);
  relaxed_set(&s->chunk_us, s->time_us);
  for (i = 0; i < SPF_EVENTS_MAX; i++) s->event_us[i] = s->time_us;
}

/* Append the totals, into the reserved room. The handler may count ticks it leaves out
** while another thread hands over the chunk.
*/
static void counters_put(Stream *s)
{
  size_t mark;
  uint32_t i;
  s->wb.reserve = 0;
  mark = lj_wbuf_def_begin(&s->wb, SPF_COUNTERS);
  for (i = 0; i < SPF_COUNTER_REFUSED; i++) {
    uint64_t n = relaxed_get(&s->counters[i]);
    if (n) {
      lj_wbuf_uleb(&s->wb, i);
      lj_wbuf_uleb(&s->wb, n);
    }
  }
  lj_wbuf_def_end(&s->wb, mark);
  lj_wbuf_commit(&s->wb);
  s->wb.reserve = STREAM_RESERVE;
}

/* Does the next chunk keep the stacks of this one? If a chunk ended each second, repeated
** definitions would fill most of it. A damaged chunk also costs the later chunks that refer
** to its stacks. So the stacks begin again as often as without a background thread.
*/
static int stacks_go_on(const Stream *s)
{
  return s->age_us && s->stacks.nstack != 0 && s->stacks_bytes < s->stacks_max &&
	 s->time_us - s->stacks_us < STREAM_CHUNK_US;
}

/* Flush the current chunk and open the next one. Returns 0 if the stream has ended, or if
** the queue is full for now.
*/
static int chunk_flush(Stream *s)
{
  uint32_t lost = s->in_chunk;
  int goes_on;
  s->full = s->queue && !lj_chunkqueue_hasroom(s->queue);
  if (s->full) return 0;
  counters_put(s);
  if (s->queue) s->queue->samples = s->in_chunk;
  s->stacks_bytes += s->wb.done;
  goes_on = stacks_go_on(s);
  if (lj_wbuf_flush(&s->wb)) {
    chunk_begin(s, goes_on);
    return 1;
  }
  if (s->wb.failed) relaxed_add(&s->counters[SPF_COUNTER_LOST_WRITER], lost);
  relaxed_set(&s->in_chunk, 0);
  return 0;
}

/* From here on, the writer gets chunks at once, or through the queue. */
static void set_outside(Stream *s, int outside)
{
  if (s->queue) s->queue->outside = outside;
}

/* End the transaction of a definition. */
static int def_commit(void *ctx)
{
  Stream *s = (Stream *)ctx;
  if (!lj_wbuf_isopen(&s->wb)) return 1; /* No use to try again. */
  if (lj_wbuf_commit(&s->wb)) return 1;
  return !chunk_flush(s);
}

/* The stream as a sink of definitions. */
static DefSink stream_sink(Stream *s)
{
  DefSink to = { &s->wb, def_commit, s };
  return to;
}

void lj_stream_init(Stream *s, Symtab *st, uint64_t *counters, uint32_t tid, uint8_t *buf,
		    size_t cap, luam_Sysprof_writer writer, void *ctx, uint32_t session)
{
  s->st = st;
  s->counters = counters;
  s->tid = tid;
  s->session = session;
  s->time_us = s->typical_us = s->age_us = 0;
  s->full = 0;
  memset(s->period, 0, sizeof(s->period));
  lj_stacktab_reset(&s->stacks);
  lj_wbuf_init(&s->wb, buf, cap, STREAM_RESERVE, writer, ctx);
  s->stacks_max = s->wb.cap;
  set_outside(s, 1);
  chunk_begin(s, 0);
}

typedef struct MetaDef {
  const char *key, *value;
} MetaDef;

static void meta_put(WBuf *wb, const void *def)
{
  const MetaDef *m = (const MetaDef *)def;
  lj_wbuf_str(wb, m->key, strlen(m->key));
  lj_wbuf_str(wb, m->value, strlen(m->value));
}

void lj_stream_meta(Stream *s, const char *key, const char *value)
{
  DefSink to = stream_sink(s);
  MetaDef m = { key, value };
  lj_wbuf_define(&to, SPF_META, meta_put, &m);
}

typedef struct EventDef {
  int index;
  const EventSpec *spec;
} EventDef;

static void event_put(WBuf *wb, const void *def)
{
  const EventDef *e = (const EventDef *)def;
  lj_wbuf_uleb(wb, (uint64_t)e->index);
  lj_wbuf_str(wb, e->spec->name, strlen(e->spec->name));
  lj_wbuf_uleb(wb, (uint64_t)e->spec->unit);
  lj_wbuf_uleb(wb, e->spec->period);
}

void lj_stream_event(Stream *s, int index, const EventSpec *spec)
{
  DefSink to = stream_sink(s);
  EventDef e = { index, spec };
  s->period[index] = spec->unit == SPF_UNIT_US ? 0 : spec->period;
  if (index == 0 && eventspec_istime(spec)) s->typical_us = spec->period / 1000;
  lj_wbuf_define(&to, SPF_EVENT, event_put, &e);
}

typedef struct ThreadDef {
  uint32_t tid;
  const char *name;
} ThreadDef;

static void thread_put(WBuf *wb, const void *def)
{
  const ThreadDef *t = (const ThreadDef *)def;
  lj_wbuf_uleb(wb, t->tid);
  lj_wbuf_str(wb, t->name, strlen(t->name));
}

void lj_stream_thread(Stream *s, const char *name)
{
  DefSink to = stream_sink(s);
  ThreadDef t = { s->tid, name };
  lj_wbuf_define(&to, SPF_THREAD, thread_put, &t);
}

int lj_stream_begin(Stream *s)
{
  DefSink to = stream_sink(s);
  lj_loadmap_note(&s->st->loadmap, &to);
  chunk_flush(s);
  set_outside(s, 0);
  return s->wb.failed ? s->wb.err : 0;
}

void lj_stream_move(Stream *s, uint32_t tid)
{
  s->tid = tid;
  set_outside(s, 1);
  if (lj_wbuf_isopen(&s->wb)) chunk_flush(s);
  set_outside(s, 0);
}

/* Append the names of all functions and addresses, if there is room for a chunk. From here
** on, the writer gets chunks at once. New modules may stand at addresses of known stacks.
*/
static void names_put(Stream *s)
{
  DefSink to = stream_sink(s);
  set_outside(s, 1);
  if (s->full && lj_wbuf_isopen(&s->wb)) chunk_flush(s);
  if (lj_wbuf_isopen(&s->wb)) {
    stacktab_void(&s->stacks);
    lj_loadmap_note(&s->st->loadmap, &to);
    lj_symrecords_put(s->st, &to);
  }
}

int lj_stream_dump(Stream *s)
{
  names_put(s);
  if (lj_wbuf_isopen(&s->wb)) chunk_flush(s);
  set_outside(s, 0);
  return s->wb.failed ? s->wb.err : 0;
}

/* Append which checks refused broken stacks. The reserved room is not for this record. */
static void refusals_put(Stream *s)
{
  uint32_t i = SPF_COUNTER_REFUSED;
  int tries;
  while (i < SPF_COUNTER__MAX && !s->counters[i]) i++;
  if (i == SPF_COUNTER__MAX) return;
  for (tries = 0; tries < 2; tries++) {
    size_t mark = lj_wbuf_def_begin(&s->wb, SPF_COUNTERS);
    for (i = SPF_COUNTER_REFUSED; i < SPF_COUNTER__MAX; i++)
      if (s->counters[i]) {
	lj_wbuf_uleb(&s->wb, i);
	lj_wbuf_uleb(&s->wb, s->counters[i]);
      }
    lj_wbuf_def_end(&s->wb, mark);
    if (def_commit(s)) return;
  }
}

int lj_stream_end(Stream *s)
{
  names_put(s);
  if (lj_wbuf_isopen(&s->wb)) refusals_put(s);
  if (lj_wbuf_isopen(&s->wb)) {
    size_t mark;
    counters_put(s);
    s->wb.reserve = 0;
    mark = lj_wbuf_def_begin(&s->wb, SPF_END);
    lj_wbuf_def_end(&s->wb, mark);
    lj_wbuf_commit(&s->wb);
    if (s->queue) s->queue->samples = s->in_chunk;
    if (!lj_wbuf_flush(&s->wb) && s->wb.failed)
      relaxed_add(&s->counters[SPF_COUNTER_LOST_WRITER], s->in_chunk);
  }
  return s->wb.failed ? s->wb.err : 0;
}

/* -- Samples ----------------------------------------------------------------- */

/* Follow the median of the times between samples. Several events may come at once. */
static void step_learn(Stream *s, uint64_t dt)
{
  uint64_t by = s->typical_us / 256 + 1;
  if (dt == 0) return;
  if (dt > s->typical_us) s->typical_us += by;
  else if (dt < s->typical_us) s->typical_us -= by;
}

/* Must the sample wait for the writer? While the queue has no room, the stream keeps the
** end of the chunk for modules, which it writes only once.
*/
static int is_full(Stream *s)
{
  if (!s->queue || !lj_wbuf_isopen(&s->wb)) return 0;
  if (!s->full &&
      (lj_chunkqueue_hasroom(s->queue) || s->wb.pos + STREAM_MODULES < s->wb.cap))
    return 0;
  chunk_flush(s);
  return s->full;
}

void lj_stream_module(Stream *s, const uint8_t *record, size_t len)
{
  int tries;
  stacktab_void(&s->stacks);
  is_full(s);
  for (tries = 0; tries < 2 && lj_wbuf_isopen(&s->wb); tries++) {
    lj_wbuf_bytes(&s->wb, record, len);
    if (def_commit(s)) return;
  }
}

/* Is a chunk still in the queue? Then one that is not full would waste a buffer. */
static int is_waiting(const Stream *s)
{
  return s->queue && lj_chunkqueue_ispending(s->queue);
}

/* Age at which the stream flushes the chunk. */
static uint64_t chunk_age(const Stream *s)
{
  uint64_t age = s->chunk_us;
  return s->age_us               ? s->age_us
	 : age < STREAM_FIRST_US ? STREAM_FIRST_US
	 : age > STREAM_CHUNK_US ? STREAM_CHUNK_US
				 : age;
}

/* Where a thread writes, an old chunk without samples is not due. */
int lj_stream_isdue(const Stream *s, uint64_t time_us)
{
  return (s->in_chunk != 0 || !s->age_us) && time_us - s->chunk_us >= chunk_age(s) &&
	 !is_waiting(s);
}

static int count_lost(Stream *s, int counter)
{
  relaxed_add(&s->counters[counter], 1);
  return 0;
}

int lj_stream_sample(Stream *s, const Batch *b, int event, int state, uint64_t time_us,
		     uint64_t weight, const FrameSpan *lua, const FrameSpan *host)
{
  uint64_t lua_hash = lj_stacktab_hash(lua), host_hash = lj_stacktab_hash(host);
  int tries;
  if (is_full(s)) return count_lost(s, SPF_COUNTER_LOST_QUEUE);
  for (tries = 0; tries < 2; tries++) {
    int64_t dt = (int64_t)(time_us - s->time_us);
    uint64_t usual = s->period[event] ? s->period[event] : time_us - s->event_us[event];
    int64_t more = (int64_t)(weight - usual);
    uint32_t lua_id, host_id;
    if (!lj_wbuf_isopen(&s->wb)) return count_lost(s, SPF_COUNTER_LOST_WRITER);
    if (s->full) return count_lost(s, SPF_COUNTER_LOST_QUEUE);
    lua_id = lj_stacktab_id(&s->stacks, s->st, b, &s->wb, lua, lua_hash);
    host_id = lj_stacktab_id(&s->stacks, s->st, b, &s->wb, host, host_hash);
    lj_wbuf_byte(&s->wb, (uint8_t)(SPF_SAMPLE | sample_event(event) | state |
				   (more == 0 ? SPF_SAMPLE_WEIGHT_USUAL : 0)));
    if (event >= SPF_EVENT_IN_TAG)
      lj_wbuf_uleb(&s->wb, (uint64_t)(event - SPF_EVENT_IN_TAG));
    lj_wbuf_signed(&s->wb, dt - (int64_t)s->step_us);
    if (more != 0) lj_wbuf_signed(&s->wb, more);
    lj_stacktab_ref(&s->stacks, &s->wb, lua_id);
    lj_stacktab_ref(&s->stacks, &s->wb, host_id);
    if (lj_wbuf_commit(&s->wb)) {
      step_learn(s, (uint64_t)dt);
      s->time_us = s->event_us[event] = time_us;
      if (s->in_chunk == 0 && s->age_us) relaxed_set(&s->chunk_us, time_us);
      relaxed_set(&s->in_chunk, s->in_chunk + 1);
      if (lj_stream_isdue(s, time_us)) chunk_flush(s);
      return 1;
    }
    /* Did not fit: its definitions are void. */
    stacktab_next(&s->stacks);
    if (tries == 0) chunk_flush(s);
  }
  return count_lost(s, SPF_COUNTER_LOST_BUFFER);
}

/* -- Background thread ------------------------------------------------------- */

int lj_stream_isoverdue(const Stream *s, uint64_t time_us)
{
  return relaxed_get(&s->in_chunk) != 0 &&
	 time_us >= relaxed_get(&s->chunk_us) + STREAM_OVERDUE_US;
}

void lj_stream_handover(Stream *s)
{
  if (lj_wbuf_isopen(&s->wb) && s->in_chunk != 0 && !is_waiting(s)) chunk_flush(s);
}
