/*
** Encoder: turns a batch of captured samples into records of the stream.
** Context: whoever holds the sampler.
*/

#define lj_encoder_c
#define LUA_CORE

#include <string.h>

#include "profile/base/lj_relaxed.h"
#include "profile/stream/lj_encoder.h"
#include "profile/stream/lj_frameruns.h"

/* -- Lost samples ------------------------------------------------------------ */

void lj_encoder_lose(Stream *s, int event, uint64_t weight, const uint64_t *field)
{
  StreamEvent *ev = &s->event[event];
  int i;
  ev->lost += weight;
  for (i = 0; i < ev->nfield; i++)
    if (ev->field[i].kind == SPF_FIELD_COUNT) ev->lost_field[i] += field[i];
}

/* Append a sample without a stack. It counts once it is in the stream. Returns as lj_stream_sample
** does.
*/
static __attribute__((noinline, cold)) int work_put(Stream *s, int event, int work,
						    uint64_t weight, const uint64_t *field,
						    uint64_t time_us)
{
  static const Batch none;
  uint64_t mem[sizeof(RawSample) / sizeof(uint64_t) + SPF_FIELDS_MAX] = { 0 };
  FrameWord leaf = frame_word2(SPF_FRAME_WORK, (uint32_t)work, 0);
  FrameSpan lua = { &leaf, 1 }, host = { &leaf, 0 };
  StreamEvent *ev = &s->event[event];
  RawSample *r = (RawSample *)mem;
  int lost;
  r->head.tag = SPF_SAMPLE;
  r->head.event = (uint8_t)event;
  r->head.state = SPF_VMST_CFUNC;
  r->head.nfield = (uint8_t)ev->nfield;
  r->time_us = time_us;
  r->weight = weight;
  memcpy(rawsample_fields(r), field, sizeof(uint64_t) * (size_t)ev->nfield);
  lost = lj_stream_sample(s, &none, r, &lua, &host);
  if (lost) return lost;
  relaxed_add(&ev->counters[SPF_EVENT_SAMPLES], 1);
  relaxed_add(&ev->rows, 1);
  relaxed_add(&s->counters[SPF_VMST_CFUNC], 1);
  return 0;
}

void lj_encoder_others(Stream *s, int event, uint64_t weight, uint64_t time_us)
{
  static const uint64_t none[SPF_FIELDS_MAX];
  work_put(s, event, SPF_WORK_OTHERS, weight, none, time_us);
}

/* Append one sample for all lost ones of an event. Without room, a later one tells them. */
static void lost_put(Stream *s, int event, uint64_t time_us)
{
  StreamEvent *ev = &s->event[event];
  if (work_put(s, event, SPF_WORK_UNKEPT, ev->lost, ev->lost_field, time_us)) return;
  ev->lost = 0;
  memset(ev->lost_field, 0, sizeof(ev->lost_field));
}

void lj_encoder_rest(Stream *s, uint64_t time_us)
{
  int i;
  for (i = 0; i < s->nevent; i++)
    if (s->event[i].lost) lost_put(s, i, time_us);
}

/* Count a lost sample. */
static void sample_lost(Stream *s, const RawSample *r, int counter)
{
  relaxed_add(&s->counters[counter], 1);
  lj_encoder_lose(s, r->head.event, r->weight, rawsample_fields(r));
}

/* -- Batches ----------------------------------------------------------------- */

static void sample_put(Stream *s, const Batch *b, RawSample *r)
{
  FrameWord *words = rawsample_words(r);
  FrameSpan lua = lj_frameruns_fold(words, r->nlua);
  FrameSpan host = lj_frameruns_fold(words + r->nlua, r->nhost);
  int lost;
  if (LJ_UNLIKELY(s->event[r->head.event].lost != 0))
    lost_put(s, r->head.event, r->time_us);
  lost = lj_stream_sample(s, b, r, &lua, &host);
  if (LJ_UNLIKELY(lost != 0)) sample_lost(s, r, lost);
}

/* Count a mark, or the ends of things, as lost. */
static void record_lost(Stream *s, const RawDef *def)
{
  if (def->head.tag == SPF_ENDED)
    relaxed_add(&s->event[def->id].counters[SPF_EVENT_LOST_ENDS], def->rank);
  else relaxed_add(&s->counters[SPF_COUNTER_LOST_MARKS], 1);
}

void lj_encoder_run(Stream *s, Batch *b)
{
  uint32_t at;
  for (at = 0; at < b->used; at += batch_at(b, at)->size) {
    RawHead *head = batch_at(b, at);
    const RawDef *def = (const RawDef *)head;
    switch (head->tag) {
    case SPF_SAMPLE: sample_put(s, b, (RawSample *)head); break;
    case SPF_LFUNC: lj_symtab_note(s->st, b, at); break;
    case SPF_LABELS:
    case SPF_TEXT: lj_stream_note(s, b, at); break;
    case SPF_MODULE: lj_stream_module(s, rawdef_bytes(def), def->len); break;
    default:
      if (!lj_stream_record(s, rawdef_bytes(def), def->len)) record_lost(s, def);
    }
  }
  lj_batch_reset(b);
}

void lj_encoder_drop(Stream *s, Batch *b)
{
  uint32_t at;
  for (at = 0; at < b->used; at += batch_at(b, at)->size) {
    RawHead *head = batch_at(b, at);
    if (head->tag == SPF_SAMPLE) sample_lost(s, (RawSample *)head, SPF_COUNTER_LOST_BUFFER);
    else if (head->tag == SPF_ENDED || head->tag == SPF_MARK)
      record_lost(s, (const RawDef *)head);
  }
  lj_batch_reset(b);
}
