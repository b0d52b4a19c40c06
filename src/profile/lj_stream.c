/*
** The stream of a profile: samples, stacks by reference, totals.
** Runs in the signal handler, where the header does not say otherwise.
*/

#define lj_stream_c
#define LUA_CORE

#include <errno.h>
#include <string.h>

#include "profile/lj_stream.h"

enum { SIDE_LUA, SIDE_HOST };

/* -- Chunks ------------------------------------------------------------------ */

/* Nothing is defined yet in what follows. */
static void epoch_next(Stream *s)
{
  s->epoch++;
  s->base[SIDE_LUA].id = s->base[SIDE_HOST].id = 0;
}

static void chunk_begin(Stream *s)
{
  size_t mark = lj_wbuf_def_begin(&s->wb, SPF_CONTEXT);
  lj_wbuf_uleb(&s->wb, s->tid);
  lj_wbuf_uleb(&s->wb, s->time_us);
  lj_wbuf_def_end(&s->wb, mark);
  lj_wbuf_commit(&s->wb);
  epoch_next(s);
  s->in_chunk = 0;
  s->chunk_us = s->time_us;
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

/* Hand the current chunk out and open the next. Returns 0 if there is none. */
static int chunk_flush(Stream *s)
{
  uint32_t lost = s->in_chunk;
  counters_put(s);
  if (lj_wbuf_flush(&s->wb)) {
    chunk_begin(s);
    return 1;
  }
  if (s->wb.failed) s->counters[SPF_COUNTER_LOST_WRITER] += lost;
  s->in_chunk = 0;
  return 0;
}

/* End the transaction of a definition outside of the handler. */
static int def_commit(void *ctx)
{
  Stream *s = (Stream *)ctx;
  if (!lj_wbuf_isopen(&s->wb)) return 1;  /* No use to try again. */
  if (lj_wbuf_commit(&s->wb)) return 1;
  return !chunk_flush(s);
}

void lj_stream_init(Stream *s, Symtab *st, uint64_t *counters, uint32_t tid,
		    uint8_t *buf, size_t cap, luam_Sysprof_writer writer,
		    void *ctx)
{
  s->st = st;
  s->counters = counters;
  s->tid = tid;
  s->epoch = s->nstack = 0;
  s->time_us = 0;
  memset(s->stack, 0, sizeof(s->stack));
  lj_wbuf_init(&s->wb, buf, cap, STREAM_RESERVE, writer, ctx);
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

int lj_stream_begin(Stream *s)
{
  lj_symtab_modules(s->st, &s->wb, def_commit, s);
  chunk_flush(s);
  return s->wb.failed ? s->wb.err : 0;
}

int lj_stream_end(Stream *s)
{
  size_t mark;
  int ended;
  if (lj_wbuf_isopen(&s->wb)) {
    lj_symtab_modules(s->st, &s->wb, def_commit, s);
    lj_symtab_names(s->st, &s->wb, def_commit, s);
  }
  if (lj_wbuf_isopen(&s->wb)) {
    counters_put(s);
    s->wb.reserve = 0;
    mark = lj_wbuf_def_begin(&s->wb, SPF_END);
    lj_wbuf_def_end(&s->wb, mark);
    lj_wbuf_commit(&s->wb);
    ended = lj_wbuf_flush(&s->wb);
    if (!ended && s->wb.failed)
      s->counters[SPF_COUNTER_LOST_WRITER] += s->in_chunk;
  }
  return s->wb.failed ? s->wb.err : 0;
}

/* -- Samples ----------------------------------------------------------------- */

static uint64_t frames_hash(const Frames *fr)
{
  uint64_t h = fr->len;
  uint32_t i;
  for (i = 0; i < fr->len; i++) {
    h = (h ^ fr->list[i]) * U64x(9e3779b9,7f4a7c15);
    h ^= h >> 29;
  }
  h *= U64x(bf58476d,1ce4e5b9);
  h ^= h >> 32;
  return h ? h : 1;
}

static void frame_put(WBuf *wb, FrameWord w)
{
  if (frame_hasaux(w)) {
    lj_wbuf_uleb(wb, (uint32_t)w);
    lj_wbuf_uleb(wb, frame_aux(w));
  } else {
    lj_wbuf_uleb(wb, w);
  }
}

/* Write a stack out, as a difference to the last one of its side. */
static void stack_define(Stream *s, StreamStack *ss, const Frames *fr, int side)
{
  StreamBase *base = &s->base[side];
  uint32_t i, keep = 0, fresh;
  size_t mark;
  if (base->id) {
    uint32_t most = base->len < fr->len ? base->len : fr->len;
    while (keep < most &&
	   base->list[base->len-1-keep] == fr->list[fr->len-1-keep])
      keep++;
  }
  fresh = fr->len - keep;
  for (i = 0; i < fr->len; i++) {
    if (frame_kind(fr->list[i]) == SPF_FRAME_LFUNC)
      lj_symtab_define(s->st, &s->wb, frame_payload_lo(fr->list[i]), s->epoch);
    if (i < fresh) lj_symtab_see(s->st, fr->list[i]);
  }
  mark = lj_wbuf_def_begin(&s->wb, SPF_STACK);
  lj_wbuf_uleb(&s->wb, ss->id);
  lj_wbuf_uleb(&s->wb, keep ? base->id : 0);
  lj_wbuf_uleb(&s->wb, keep);
  for (i = fresh; i-- > 0; )
    frame_put(&s->wb, fr->list[i]);
  lj_wbuf_def_end(&s->wb, mark);
  for (i = 0; i < fr->len; i++)
    base->list[i] = fr->list[i];
  base->len = fr->len;
  base->id = ss->id;
  ss->epoch = s->epoch;
}

/* Id of a stack, defined in this chunk. */
static uint32_t stack_id(Stream *s, const Frames *fr, uint64_t hash, int side)
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
    ss->id = ++s->nstack;
    ss->epoch = 0;
  }
  if (ss->epoch != s->epoch) stack_define(s, ss, fr, side);
  return ss->id;
}

int lj_stream_sample(Stream *s, int state, uint64_t time_us,
		     uint64_t weight_us, const Frames *lua, const Frames *host)
{
  uint64_t lua_hash = frames_hash(lua), host_hash = frames_hash(host);
  int tries;
  for (tries = 0; tries < 2; tries++) {
    uint64_t dt = time_us - s->time_us;
    uint32_t lua_id, host_id;
    if (!lj_wbuf_isopen(&s->wb)) {
      s->counters[SPF_COUNTER_LOST_WRITER]++;
      return 0;
    }
    lua_id = stack_id(s, lua, lua_hash, SIDE_LUA);
    host_id = stack_id(s, host, host_hash, SIDE_HOST);
    lj_wbuf_byte(&s->wb, (uint8_t)(SPF_SAMPLE | state |
		 (weight_us == dt ? SPF_SAMPLE_WEIGHT_IS_TIME : 0)));
    lj_wbuf_uleb(&s->wb, dt);
    if (weight_us != dt) lj_wbuf_uleb(&s->wb, weight_us);
    lj_wbuf_uleb(&s->wb, lua_id);
    lj_wbuf_uleb(&s->wb, host_id);
    if (lj_wbuf_commit(&s->wb)) {
      s->time_us = time_us;
      s->in_chunk++;
      if (time_us - s->chunk_us >= STREAM_CHUNK_US) chunk_flush(s);
      return 1;
    }
    /* Did not fit: what was defined for it is void. */
    epoch_next(s);
    if (tries == 0) chunk_flush(s);
  }
  s->counters[SPF_COUNTER_LOST_BUFFER]++;
  return 0;
}
