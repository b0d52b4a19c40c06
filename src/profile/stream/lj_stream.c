/*
** Profile stream: samples, stacks by reference, totals.
** Context: handler, unless the header says otherwise.
*/

#define lj_stream_c
#define LUA_CORE

#include <string.h>

#include "profile/base/lj_relaxed.h"
#include "profile/host/lj_ehframe.h"
#include "profile/stream/lj_stream.h"
#include "profile/symbols/lj_symrecords.h"

#define EVENT_SHIFT 4 /* Of the event in the tag of a sample. */

/* Bits of an event in the tag of a sample. */
static LJ_AINLINE uint32_t sample_event(int index)
{
  return (uint32_t)(index < SPF_EVENT_IN_TAG ? index : SPF_EVENT_IN_TAG) << EVENT_SHIFT;
}

/* -- Chunks ------------------------------------------------------------------ */

/* The chunk (or the retry) has no labels and texts yet. */
static void refs_next(Stream *s)
{
  if (++s->ref_epoch == 0) s->ref_epoch = 1;
}

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
  s->labels = 0;
  refs_next(s);
  for (i = 0; i < SPF_EVENTS_MAX; i++) s->event[i].last_us = s->time_us;
}

static void counter_put(Stream *s, uint32_t id, uint64_t n)
{
  lj_wbuf_uleb(&s->wb, id);
  lj_wbuf_uleb(&s->wb, n);
}

/* Append the counters of an event. One that has fallen to 0 must replace what a chunk before told. */
static void event_counters_put(Stream *s, StreamEvent *ev, uint32_t first)
{
  uint32_t k;
  for (k = 0; k < SPF_EVENT__MAX && ev->counters; k++) {
    uint64_t n = relaxed_get(&ev->counters[k]);
    if (n == 0 && !(ev->told & 1u << k)) continue;
    counter_put(s, first + k, n);
    ev->told |= 1u << k;
  }
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
    if (n != 0) counter_put(s, i, n);
  }
  for (i = 0; i < (uint32_t)s->nevent; i++)
    event_counters_put(s, &s->event[i], SPF_COUNTER_EVENT + i * SPF_COUNTER_EVENT_STEP);
  lj_wbuf_def_end(&s->wb, mark);
  lj_wbuf_commit(&s->wb);
  s->wb.reserve = s->reserve;
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
  s->nevent = 0;
  memset(s->event, 0, sizeof(s->event));
  memset(s->ref, 0, sizeof(s->ref));
  s->reserve = STREAM_RESERVE;
  lj_stacktab_reset(&s->stacks);
  lj_wbuf_init(&s->wb, buf, cap, s->reserve, writer, ctx);
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
  int i;
  lj_wbuf_uleb(wb, (uint64_t)e->index);
  lj_wbuf_str(wb, e->spec->name, strlen(e->spec->name));
  lj_wbuf_uleb(wb, (uint64_t)e->spec->unit);
  lj_wbuf_uleb(wb, e->spec->period);
  for (i = 0; i < e->spec->nfield; i++) {
    const EventField *f = &e->spec->field[i];
    lj_wbuf_uleb(wb, (uint64_t)f->kind);
    lj_wbuf_str(wb, f->name, strlen(f->name));
  }
}

void lj_stream_event(Stream *s, int index, const EventSpec *spec, uint64_t *counters)
{
  DefSink to = stream_sink(s);
  EventDef e = { index, spec };
  StreamEvent *ev = &s->event[index];
  ev->counters = counters;
  ev->usual = spec->unit == SPF_UNIT_US ? 0 : spec->period;
  ev->nfield = spec->nfield;
  ev->field = spec->field;
  if (index >= s->nevent) s->nevent = index + 1;
  s->reserve += STREAM_RESERVE_EVENT;
  s->wb.reserve = s->reserve;
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

/* Find the function of an address by its unwind tables. */
static int code_start(void *loadmap, uintptr_t addr, uintptr_t *begin, uintptr_t *size)
{
  SafeLoad *pk = ((LoadMap *)loadmap)->pk;
  static EhCopy copy; /* Under the lock. */
  Fde fde;
  lj_safeload_reset(pk); /* Its bound of copies is for one search. */
  if (lj_ehframe_find(pk, addr, &copy, &fde) != CFI_STEP) return 0;
  *begin = fde.pc_begin;
  *size = fde.pc_size;
  return 1;
}

/* Other threads load and unload objects between the two lists. */
static int object_has(void *loadmap, const struct dl_phdr_info *info)
{
  return lj_loadmap_has((LoadMap *)loadmap, info);
}

void lj_stream_direct(Stream *s)
{
  set_outside(s, 1);
  if (s->full && lj_wbuf_isopen(&s->wb)) chunk_flush(s);
}

/* Append the names of all functions and addresses, if there is room for a chunk. New modules
** may stand at addresses of known stacks.
*/
static void names_put(Stream *s)
{
  CodeStarts starts = { code_start, &s->st->loadmap, object_has };
  DefSink to = stream_sink(s);
  lj_stream_direct(s);
  if (lj_wbuf_isopen(&s->wb)) {
    stacktab_void(&s->stacks);
    lj_loadmap_note(&s->st->loadmap, &to);
    lj_symrecords_put(s->st, &starts, &to);
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

/* Append a record. Returns 0 if there is no room. */
static int record_put(Stream *s, const uint8_t *record, size_t len)
{
  int tries;
  for (tries = 0; tries < 2 && lj_wbuf_isopen(&s->wb); tries++) {
    lj_wbuf_bytes(&s->wb, record, len);
    if (def_commit(s)) return lj_wbuf_isopen(&s->wb);
  }
  return 0;
}

void lj_stream_module(Stream *s, const uint8_t *record, size_t len)
{
  stacktab_void(&s->stacks);
  is_full(s);
  record_put(s, record, len);
}

int lj_stream_record(Stream *s, const uint8_t *record, size_t len)
{
  return !is_full(s) && record_put(s, record, len);
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

/* -- Labels and texts -------------------------------------------------------- */

void lj_stream_note(Stream *s, const Batch *b, uint32_t at)
{
  const RawDef *def = (const RawDef *)batch_at(b, at);
  StreamRef *ref = &s->ref[batch_refslot(def->head.tag, def->id)];
  uint64_t key = batch_refkey(def->head.tag, def->id);
  if (ref->key != key) ref->epoch = 0; /* Else the chunk may have the same definition. */
  ref->key = key;
  ref->at = at;
}

/* Append the definition of labels or of a text of the batch, unless the chunk has it. */
static void ref_define(Stream *s, const Batch *b, int tag, uint32_t id)
{
  StreamRef *ref = &s->ref[batch_refslot(tag, id)];
  const RawDef *def;
  if (id == 0) return;
  if (LJ_UNLIKELY(ref->key != batch_refkey(tag, id))) { /* Another one has the slot. */
    uint32_t at = lj_batch_find(b, tag, id);
    if (at == BATCH_SIZE) return;
    lj_stream_note(s, b, at);
  }
  if (ref->epoch == s->ref_epoch) return;
  def = (const RawDef *)batch_at(b, ref->at);
  lj_wbuf_bytes(&s->wb, rawdef_bytes(def), def->len);
  ref->epoch = s->ref_epoch;
}

/* Append what the labels and fields of a sample refer to, and switch to the labels. */
static void refs_put(Stream *s, const Batch *b, const RawSample *r)
{
  const StreamEvent *ev = &s->event[r->head.event];
  int i;
  for (i = 0; i < ev->nfield; i++)
    if (ev->field[i].kind == SPF_FIELD_TEXT)
      ref_define(s, b, SPF_TEXT, (uint32_t)rawsample_fields(r)[i]);
  if (LJ_LIKELY(r->labels == s->labels)) return;
  ref_define(s, b, SPF_LABELS, r->labels);
  if (r->labels < SPF_LABELLED_ID) {
    lj_wbuf_byte(&s->wb, (uint8_t)(SPF_LABELLED | r->labels));
  } else {
    lj_wbuf_byte(&s->wb, SPF_LABELLED | SPF_LABELLED_ID);
    lj_wbuf_uleb(&s->wb, r->labels - SPF_LABELLED_ID);
  }
}

/* -- Samples ----------------------------------------------------------------- */

/* Append the record of a sample. usual: its usual weight. */
static void sample_put(Stream *s, const RawSample *r, uint64_t usual, uint32_t lua_id,
		       uint32_t host_id)
{
  int event = r->head.event, i;
  int64_t more = (int64_t)(r->weight - usual);
  lj_wbuf_byte(&s->wb, (uint8_t)(SPF_SAMPLE | sample_event(event) | r->head.state |
				 (more == 0 ? SPF_SAMPLE_WEIGHT_USUAL : 0)));
  if (event >= SPF_EVENT_IN_TAG) lj_wbuf_uleb(&s->wb, (uint64_t)(event - SPF_EVENT_IN_TAG));
  lj_wbuf_signed(&s->wb, (int64_t)(r->time_us - s->time_us) - (int64_t)s->step_us);
  if (more != 0) lj_wbuf_signed(&s->wb, more);
  for (i = 0; i < r->head.nfield; i++) lj_wbuf_uleb(&s->wb, rawsample_fields(r)[i]);
  lj_stacktab_ref(&s->stacks, &s->wb, lua_id);
  lj_stacktab_ref(&s->stacks, &s->wb, host_id);
}

static void sample_kept(Stream *s, StreamEvent *ev, const RawSample *r)
{
  step_learn(s, r->time_us - s->time_us);
  s->time_us = ev->last_us = r->time_us;
  s->labels = r->labels;
  if (s->in_chunk == 0 && s->age_us) relaxed_set(&s->chunk_us, r->time_us);
  relaxed_set(&s->in_chunk, s->in_chunk + 1);
  if (lj_stream_isdue(s, r->time_us)) chunk_flush(s);
}

int lj_stream_sample(Stream *s, const Batch *b, const RawSample *r, const FrameSpan *lua,
		     const FrameSpan *host)
{
  uint64_t lua_hash = lj_stacktab_hash(lua), host_hash = lj_stacktab_hash(host);
  StreamEvent *ev = &s->event[r->head.event];
  int tries;
  if (is_full(s)) return SPF_COUNTER_LOST_QUEUE;
  for (tries = 0; tries < 2; tries++) {
    uint32_t lua_id, host_id;
    if (!lj_wbuf_isopen(&s->wb)) return SPF_COUNTER_LOST_WRITER;
    if (s->full) return SPF_COUNTER_LOST_QUEUE;
    lua_id = lj_stacktab_id(&s->stacks, s->st, b, &s->wb, lua, lua_hash);
    host_id = lj_stacktab_id(&s->stacks, s->st, b, &s->wb, host, host_hash);
    refs_put(s, b, r);
    sample_put(s, r, ev->usual ? ev->usual : r->time_us - ev->last_us, lua_id, host_id);
    if (lj_wbuf_commit(&s->wb)) {
      sample_kept(s, ev, r);
      return 0;
    }
    /* Did not fit: its definitions are void. */
    stacktab_next(&s->stacks);
    refs_next(s);
    if (tries == 0) chunk_flush(s);
  }
  return SPF_COUNTER_LOST_BUFFER;
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
