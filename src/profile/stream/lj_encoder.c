/*
** Encoder: turns a batch of captured samples into records of the stream.
** Context: whoever holds the sampler.
*/

#define lj_encoder_c
#define LUA_CORE

#include "profile/base/lj_relaxed.h"
#include "profile/stream/lj_encoder.h"
#include "profile/stream/lj_frameruns.h"

static void sample_put(Stream *s, const Batch *b, RawSample *r)
{
  StreamEvent *ev = &s->event[r->head.event];
  FrameWord *words = rawsample_words(r);
  FrameSpan lua = lj_frameruns_fold(words, r->nlua);
  FrameSpan host = lj_frameruns_fold(words + r->nlua, r->nhost);
  int is_kept;
  r->weight += ev->lost;
  is_kept = lj_stream_sample(s, b, r, &lua, &host);
  ev->lost = is_kept || ev->has_weights ? 0 : r->weight;
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
    if (head->tag == SPF_SAMPLE) relaxed_add(&s->counters[SPF_COUNTER_LOST_BUFFER], 1);
    else if (head->tag == SPF_ENDED || head->tag == SPF_MARK)
      record_lost(s, (const RawDef *)head);
  }
  lj_batch_reset(b);
}
