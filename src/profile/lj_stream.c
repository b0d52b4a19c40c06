/*
** The stream of a profile: samples, stacks by reference, totals.
** Runs in the signal handler, where the header does not say otherwise.
*/

#define lj_stream_c
#define LUA_CORE

#include <errno.h>
#include <string.h>

#include "profile/lj_shared.h"
#include "profile/lj_stream.h"

/* Largest differences of two addresses and of two lines that are written. */
#define STREAM_NEAR_MAX		((int64_t)1 << 40)
#define STREAM_LINES_MAX	1000

/* The bits of a sample's tag that tell its event. */
#define EVENT_SHIFT		4
#define sample_event(index) \
  (((uint32_t)(index) << EVENT_SHIFT) & SPF_SAMPLE_EVENT)

/* -- Chunks ------------------------------------------------------------------ */

/* Nothing is defined yet in what follows; ids of stacks begin again. */
static void epoch_next(Stream *s)
{
  s->epoch++;
  s->nstack = 0;
}

static void chunk_begin(Stream *s)
{
  size_t mark = lj_wbuf_def_begin(&s->wb, SPF_CONTEXT);
  int i;
  s->step_us = s->typical_us;
  lj_wbuf_uleb(&s->wb, s->tid);
  lj_wbuf_uleb(&s->wb, s->time_us);
  lj_wbuf_uleb(&s->wb, s->session);
  lj_wbuf_uleb(&s->wb, s->step_us);
  lj_wbuf_def_end(&s->wb, mark);
  lj_wbuf_commit(&s->wb);
  epoch_next(s);
  s->in_chunk = 0;
  s->chunk_us = s->time_us;
  for (i = 0; i < SPF_EVENTS_MAX; i++)
    s->event_us[i] = s->time_us;
}

/* Append the totals; the reserved room is for them. */
static void counters_put(Stream *s)
{
  size_t mark;
  uint32_t i;
  s->wb.reserve = 0;
  mark = lj_wbuf_def_begin(&s->wb, SPF_COUNTERS);
  for (i = 0; i < SPF_COUNTER__MAX; i++)
    if (s->counters[i]) {
      lj_wbuf_uleb(&s->wb, i);
      lj_wbuf_uleb(&s->wb, s->counters[i]);
    }
  lj_wbuf_def_end(&s->wb, mark);
  lj_wbuf_commit(&s->wb);
  s->wb.reserve = STREAM_RESERVE;
}

/* Hand the current chunk out and open the next. Returns 0 if there is none: the
** stream is over or, for now, full.
*/
static int chunk_flush(Stream *s)
{
  uint32_t lost = s->in_chunk;
  s->full = s->queue && !lj_wqueue_hasroom(s->queue);
  if (s->full) return 0;
  counters_put(s);
  if (s->queue) s->queue->samples = s->in_chunk;
  if (lj_wbuf_flush(&s->wb)) {
    chunk_begin(s);
    return 1;
  }
  if (s->wb.failed) shared_add(&s->counters[SPF_COUNTER_LOST_WRITER], lost);
  s->in_chunk = 0;
  return 0;
}

/* From here on chunks are written at once, or not any more. */
static void set_outside(Stream *s, int outside)
{
  if (s->queue) s->queue->outside = outside;
}

/* End the transaction of a definition. */
static int def_commit(void *ctx)
{
  Stream *s = (Stream *)ctx;
  if (!lj_wbuf_isopen(&s->wb)) return 1;  /* No use to try again. */
  if (lj_wbuf_commit(&s->wb)) return 1;
  return !chunk_flush(s);
}

void lj_stream_init(Stream *s, Symtab *st, uint64_t *counters, uint32_t tid,
		    uint8_t *buf, size_t cap, luam_Sysprof_writer writer,
		    void *ctx, uint32_t session)
{
  s->st = st;
  s->counters = counters;
  s->tid = tid;
  s->session = session;
  s->time_us = s->typical_us = 0;
  s->full = 0;
  if (s->epoch != 0) {  /* Was used before. Pages of new memory are left alone. */
    memset(s->stack, 0, sizeof(s->stack));
    memset(s->prefix, 0, sizeof(s->prefix));
    s->epoch = 0;
  }
  lj_wbuf_init(&s->wb, buf, cap, STREAM_RESERVE, writer, ctx);
  set_outside(s, 1);
  chunk_begin(s);
}

void lj_stream_meta(Stream *s, const char *key, const char *value)
{
  int tries;
  for (tries = 0; tries < 2; tries++) {
    size_t mark = lj_wbuf_def_begin(&s->wb, SPF_META);
    lj_wbuf_str(&s->wb, key, strlen(key));
    lj_wbuf_str(&s->wb, value, strlen(value));
    lj_wbuf_def_end(&s->wb, mark);
    if (def_commit(s)) return;
  }
}

void lj_stream_event(Stream *s, int index, const char *name, int unit,
		     uint64_t period)
{
  int tries;
  if (index == 0 && unit == SPF_UNIT_US) s->typical_us = period / 1000;
  for (tries = 0; tries < 2; tries++) {
    size_t mark = lj_wbuf_def_begin(&s->wb, SPF_EVENT);
    lj_wbuf_uleb(&s->wb, (uint64_t)index);
    lj_wbuf_str(&s->wb, name, strlen(name));
    lj_wbuf_uleb(&s->wb, (uint64_t)unit);
    lj_wbuf_uleb(&s->wb, period);
    lj_wbuf_def_end(&s->wb, mark);
    if (def_commit(s)) return;
  }
}

void lj_stream_thread(Stream *s, const char *name)
{
  int tries;
  for (tries = 0; tries < 2; tries++) {
    size_t mark = lj_wbuf_def_begin(&s->wb, SPF_THREAD);
    lj_wbuf_uleb(&s->wb, s->tid);
    lj_wbuf_str(&s->wb, name, strlen(name));
    lj_wbuf_def_end(&s->wb, mark);
    if (def_commit(s)) return;
  }
}

int lj_stream_begin(Stream *s)
{
  lj_modules_note(&s->st->modules, &s->wb, def_commit, s);
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

int lj_stream_dump(Stream *s)
{
  set_outside(s, 1);
  if (s->full && lj_wbuf_isopen(&s->wb)) chunk_flush(s);
  if (lj_wbuf_isopen(&s->wb)) {
    lj_modules_note(&s->st->modules, &s->wb, def_commit, s);
    lj_symtab_names(s->st, &s->wb, def_commit, s);
  }
  if (lj_wbuf_isopen(&s->wb)) chunk_flush(s);
  set_outside(s, 0);
  return s->wb.failed ? s->wb.err : 0;
}

int lj_stream_end(Stream *s)
{
  size_t mark;
  int ended;
  set_outside(s, 1);
  if (s->full && lj_wbuf_isopen(&s->wb)) chunk_flush(s);
  if (lj_wbuf_isopen(&s->wb)) {
    lj_modules_note(&s->st->modules, &s->wb, def_commit, s);
    lj_symtab_names(s->st, &s->wb, def_commit, s);
  }
  if (lj_wbuf_isopen(&s->wb)) {
    counters_put(s);
    s->wb.reserve = 0;
    mark = lj_wbuf_def_begin(&s->wb, SPF_END);
    lj_wbuf_def_end(&s->wb, mark);
    lj_wbuf_commit(&s->wb);
    if (s->queue) s->queue->samples = s->in_chunk;
    ended = lj_wbuf_flush(&s->wb);
    if (!ended && s->wb.failed)
      shared_add(&s->counters[SPF_COUNTER_LOST_WRITER], s->in_chunk);
  }
  return s->wb.failed ? s->wb.err : 0;
}

/* -- Samples ----------------------------------------------------------------- */

/* Hash of some outermost frames and the next one. */
static LJ_AINLINE uint64_t hash_next(uint64_t h, FrameWord w)
{
  h = (h ^ w) * U64x(9e3779b9,7f4a7c15);
  return h ^ (h >> 29);
}

/* Multiply two words and fold the product into one. */
static LJ_AINLINE uint64_t hash_mul(uint64_t a, uint64_t b)
{
  unsigned __int128 p = (unsigned __int128)a * b;
  return (uint64_t)p ^ (uint64_t)(p >> 64);
}

/* Hash of a list, never 0. No pair of frames waits for the one before it. */
static uint64_t frames_hash(const Frames *fr)
{
  const uint64_t step = U64x(9e3779b9,7f4a7c15);
  uint64_t h = fr->len, key = U64x(a0761d64,78bd642f);
  uint32_t i;
  for (i = 0; i + 2 <= fr->len; i += 2, key += step)
    h += hash_mul(fr->list[i] ^ key, fr->list[i+1] ^ ~(key * 3));
  if (i < fr->len) h += hash_mul(fr->list[i] ^ key, step);
  h = hash_mul(h ^ U64x(bf58476d,1ce4e5b9), U64x(94d049bb,133111eb));
  return h ? h : 1;
}

/* Slot of the n outermost frames, by the hashes in s->path: the one that has
** them, or one to put them.
*/
static StreamPrefix *prefix_slot(Stream *s, uint32_t n)
{
  uint64_t hash = s->path[n-1];
  StreamPrefix *p = &s->prefix[(hash >> 40) & (STREAM_PREFIXES-2)];
  if (p[0].hash == hash || p[0].epoch != s->epoch) return p;
  return p+1;
}

/* Number of the outermost frames that a stack of this chunk has, too, and its
** id. The other beginnings are from now on those of the stack with that id.
*/
static uint32_t prefix_share(Stream *s, const Frames *fr, uint32_t id,
			     uint32_t *base)
{
  uint64_t h = 0;
  uint32_t n;
  for (n = 1; n <= fr->len; n++)
    s->path[n-1] = h = hash_next(h, fr->list[fr->len-n]);
  *base = 0;
  for (n = fr->len; n > 0; n--) {
    StreamPrefix *p = prefix_slot(s, n);
    if (p->hash == s->path[n-1] && p->epoch == s->epoch) {
      *base = p->id;
      break;
    }
    p->hash = s->path[n-1];
    p->id = id;
    p->epoch = s->epoch;
  }
  return n;
}

/* The nearest frames rootward, to write the next ones as differences. */
typedef struct Above {
  FrameWord lua, host;		/* LFUNC and HOST, 0 for none. */
} Above;

/* Write a frame of a kind as a difference of its number, unless that is not
** worth it.
*/
static int near_put(WBuf *wb, int kind, uint64_t diff, int64_t most)
{
  int64_t sdiff = (int64_t)diff;
  if (sdiff < -most || sdiff > most) return 0;
  lj_wbuf_uleb(wb, frame_word(kind, wbuf_signed(sdiff)));
  return 1;
}

static void frame_put(WBuf *wb, FrameWord w, Above *above)
{
  int kind = frame_kind(w);
  if (kind == SPF_FRAME_LFUNC) {
    FrameWord lua = above->lua;
    above->lua = w;
    if (lua && frame_payload_lo(lua) == frame_payload_lo(w) &&
	near_put(wb, SPF_FRAME_LSAME,
		 (uint64_t)frame_aux(w) - (uint64_t)frame_aux(lua),
		 STREAM_LINES_MAX))
      return;
  } else if (kind == SPF_FRAME_HOST) {
    FrameWord host = above->host;
    above->host = w;
    if (host && near_put(wb, SPF_FRAME_NEAR,
			 frame_payload(w) - frame_payload(host),
			 STREAM_NEAR_MAX))
      return;
  }
  if (frame_hasaux(w)) {
    lj_wbuf_uleb(wb, (uint32_t)w);
    lj_wbuf_uleb(wb, frame_aux(w));
  } else {
    lj_wbuf_uleb(wb, w);
  }
}

/* How a stack of this chunk is referred to. The last two are often meant, and
** numbers have become large when many stacks are new.
*/
static void ref_put(Stream *s, uint32_t id)
{
  uint32_t before = s->nstack - id;  /* Stacks defined after it. */
  lj_wbuf_uleb(&s->wb, id == 0 ? 0 : before < 2 ? before + 1 : id + 2);
}

/* Write a stack out, as a difference to another one of this chunk. */
static void stack_define(Stream *s, StreamStack *ss, const Frames *fr)
{
  uint32_t i, base, keep = prefix_share(s, fr, ss->id, &base);
  uint32_t fresh = fr->len - keep;
  Above above = { 0, 0 };
  size_t mark;
  for (i = 0; i < fr->len; i++) {
    FrameWord w = fr->list[i];
    if (frame_kind(w) == SPF_FRAME_LFUNC) {
      lj_symtab_define(s->st, &s->wb, frame_payload_lo(w), s->epoch);
      if (i >= fresh && !above.lua) above.lua = w;
    } else if (frame_kind(w) == SPF_FRAME_HOST) {
      if (i >= fresh && !above.host) above.host = w;
    }
    if (i < fresh) lj_symtab_see(s->st, w);
  }
  mark = lj_wbuf_short_begin(&s->wb);
  ref_put(s, base);
  lj_wbuf_uleb(&s->wb, keep);
  for (i = fresh; i-- > 0; )
    frame_put(&s->wb, fr->list[i], &above);
  lj_wbuf_short_end(&s->wb, mark, SPF_STACK, SPF_STACK_LENGTH);
  ss->epoch = s->epoch;
  s->nstack = ss->id;
}

/* Id of a stack, defined in this chunk. */
static uint32_t stack_id(Stream *s, const Frames *fr, uint64_t hash)
{
  StreamStack *ss = NULL;
  uint32_t i, slot = (uint32_t)hash & (STREAM_STACKS-1);
  if (fr->len == 0) return 0;
  for (i = 0; i < STREAM_PROBES; i++) {
    ss = &s->stack[(slot + i) & (STREAM_STACKS-1)];
    if (ss->hash == hash || ss->hash == 0) break;
  }
  if (ss->hash != hash) {
    if (i == STREAM_PROBES) ss = &s->stack[slot];  /* Replace another. */
    ss->hash = hash;
    ss->epoch = 0;
  }
  if (ss->epoch != s->epoch) {
    ss->id = s->nstack + 1;
    stack_define(s, ss, fr);
  }
  return ss->id;
}

/* Follow the times between samples: what half of them are below. Several events
** may come at once.
*/
static void step_learn(Stream *s, uint64_t dt)
{
  uint64_t by = s->typical_us/256 + 1;
  if (dt == 0) return;
  if (dt > s->typical_us) s->typical_us += by;
  else if (dt < s->typical_us) s->typical_us -= by;
}

/* Is there no place for a sample before the writer has written? Where no chunk can
** be handed out, the end of this one is left to modules, which are noted once.
*/
static int is_full(Stream *s)
{
  if (!s->queue || !lj_wbuf_isopen(&s->wb)) return 0;
  if (!s->full && (lj_wqueue_hasroom(s->queue) ||
		   s->wb.pos + STREAM_MODULES < s->wb.cap))
    return 0;
  chunk_flush(s);
  return s->full;
}

/* Is a chunk not written yet? Then another one that is not full would only take a
** buffer.
*/
static int is_waiting(const Stream *s)
{
  return s->queue && lj_wqueue_ispending(s->queue);
}

static int count_lost(Stream *s, int counter)
{
  shared_add(&s->counters[counter], 1);
  return 0;
}

int lj_stream_sample(Stream *s, int event, int state, uint64_t time_us,
		     uint64_t weight, const Frames *lua, const Frames *host)
{
  uint64_t lua_hash = frames_hash(lua), host_hash = frames_hash(host);
  int tries;
  if (is_full(s)) return count_lost(s, SPF_COUNTER_LOST_QUEUE);
  if (lj_wbuf_isopen(&s->wb) &&
      lj_modules_sample(&s->st->modules, lua, host, &s->wb, def_commit, s))
    s->epoch++;  /* The same addresses are other code now. */
  for (tries = 0; tries < 2; tries++) {
    int64_t dt = (int64_t)(time_us - s->time_us);
    int64_t more = (int64_t)(weight - (time_us - s->event_us[event]));
    uint32_t lua_id, host_id;
    if (!lj_wbuf_isopen(&s->wb)) return count_lost(s, SPF_COUNTER_LOST_WRITER);
    if (s->full) return count_lost(s, SPF_COUNTER_LOST_QUEUE);
    lua_id = stack_id(s, lua, lua_hash);
    host_id = stack_id(s, host, host_hash);
    lj_wbuf_byte(&s->wb, (uint8_t)(SPF_SAMPLE | sample_event(event) | state |
		 (more == 0 ? SPF_SAMPLE_WEIGHT_IS_TIME : 0)));
    lj_wbuf_signed(&s->wb, dt - (int64_t)s->step_us);
    if (more != 0) lj_wbuf_signed(&s->wb, more);
    ref_put(s, lua_id);
    ref_put(s, host_id);
    if (lj_wbuf_commit(&s->wb)) {
      step_learn(s, (uint64_t)dt);
      s->time_us = s->event_us[event] = time_us;
      s->in_chunk++;
      if (time_us - s->chunk_us >= STREAM_CHUNK_US && !is_waiting(s)) chunk_flush(s);
      return 1;
    }
    /* Did not fit: what was defined for it is void. */
    epoch_next(s);
    if (tries == 0) chunk_flush(s);
  }
  return count_lost(s, SPF_COUNTER_LOST_BUFFER);
}
