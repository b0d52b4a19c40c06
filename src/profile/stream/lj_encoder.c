/*
** Encoder: turns a batch of captured samples into records of the stream.
** Context: whoever holds the sampler.
*/

#define lj_encoder_c
#define LUA_CORE

#include "profile/stream/lj_encoder.h"
#include "profile/stream/lj_frameruns.h"

static void sample_put(Encoder *e, Stream *s, const Batch *b, RawSample *r)
{
  FrameWord *words = rawsample_words(r);
  FrameSpan lua = lj_frameruns_fold(words, r->nlua);
  FrameSpan host = lj_frameruns_fold(words + r->nlua, r->nhost);
  uint64_t weight = r->weight + e->lost[r->head.event];
  int kept = lj_stream_sample(s, b, r->head.event, r->head.state, r->time_us, weight, &lua,
			      &host);
  e->lost[r->head.event] = kept ? 0 : weight;
}

void lj_encoder_run(Encoder *e, Stream *s, Batch *b)
{
  uint32_t at;
  for (at = 0; at < b->used; at += batch_at(b, at)->size) {
    RawHead *head = batch_at(b, at);
    const RawDef *def = (const RawDef *)head;
    switch (head->tag) {
    case SPF_SAMPLE: sample_put(e, s, b, (RawSample *)head); break;
    case SPF_LFUNC: lj_symtab_note(s->st, b, at); break;
    case SPF_MODULE: lj_stream_module(s, rawdef_bytes(def), def->len); break;
    default: break; /* No source of today appends another one. */
    }
  }
  lj_batch_reset(b);
}
