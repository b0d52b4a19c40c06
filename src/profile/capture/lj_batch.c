/*
** Batch of captured samples: raw records between the handler and the encoder.
** Context: whoever holds the sampler.
*/

#define lj_batch_c
#define LUA_CORE

#include <string.h>

#include "lj_arch.h"
#include "profile/base/lj_relaxed.h"
#include "profile/capture/lj_batch.h"

void lj_batch_reset(Batch *b)
{
  b->used = 0;
  if (b->has_refs) memset(b->refs, 0, sizeof(b->refs));
  b->has_refs = 0;
  relaxed_set(&b->nsample, 0);
  do
    b->number = b->numbers ? __atomic_add_fetch(b->numbers, 1, __ATOMIC_RELAXED)
			   : b->number + 1;
  while (b->number == 0);
}

static size_t batch_room(const Batch *b)
{
  return b->size - b->used;
}

static uint8_t *batch_end(Batch *b)
{
  return (uint8_t *)b->mem + b->used;
}

#define WORDS_FEW 4 /* Below that many, a loop is faster than the string instruction. */

/* Copy the words of a side. memcpy() of the C library takes more code to fetch. */
static LJ_AINLINE void words_copy(FrameWord *to, const FrameList *fr)
{
#if LJ_TARGET_X64
  const FrameWord *from = fr->list;
  size_t n = fr->len;
  if (n >= WORDS_FEW)
    __asm__ volatile("rep movsq" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
  else
    while (n > 0) n--, to[n] = from[n];
#else
  memcpy(to, fr->list, fr->len * sizeof(FrameWord));
#endif
}

RawSample *lj_batch_sample(Batch *b, uint64_t time_us, const uint64_t *field, int nfield,
			   const FrameList *lua, const FrameList *host)
{
  RawSample *r = (RawSample *)batch_end(b);
  size_t size = sizeof(*r) + ((size_t)nfield + lua->len + host->len) * sizeof(FrameWord);
  FrameWord *words;
  int i;
  if (size > batch_room(b)) return NULL;
  r->head.size = (uint32_t)size;
  r->head.tag = SPF_SAMPLE;
  r->head.nfield = (uint8_t)nfield;
  r->time_us = time_us;
  r->nlua = (uint16_t)lua->len;
  r->nhost = (uint16_t)host->len;
  for (i = 0; i < nfield; i++) rawsample_fields(r)[i] = field[i];
  words = rawsample_words(r);
  words_copy(words, lua);
  words_copy(words + lua->len, host);
  b->used += (uint32_t)size;
  if (b->nsample == 0) relaxed_set(&b->first_us, time_us);
  relaxed_set(&b->nsample, b->nsample + 1);
  return r;
}

int lj_batch_ref(Batch *b, int tag, uint32_t id, const uint8_t *payload, uint32_t len)
{
  uint64_t *slot = &b->refs[batch_refslot(tag, id)];
  size_t mark;
  if (*slot == batch_refkey(tag, id)) return 1;
  lj_batch_def_begin(b);
  mark = lj_wbuf_def_begin(&b->def, (uint8_t)tag);
  lj_wbuf_uleb(&b->def, id);
  lj_wbuf_bytes(&b->def, payload, len);
  lj_wbuf_def_end(&b->def, mark);
  if (!lj_batch_def_end(b, id, 0)) return 0;
  *slot = batch_refkey(tag, id);
  b->has_refs = 1;
  return 1;
}

void lj_batch_def_begin(Batch *b)
{
  size_t room = batch_room(b);
  b->def.buf = batch_end(b) + sizeof(RawDef);
  b->def.cap = room > sizeof(RawDef) ? room - sizeof(RawDef) : 0;
  b->def.pos = 0;
  b->def.overflow = 0;
}

int lj_batch_def_end(Batch *b, uint32_t id, uint32_t rank)
{
  RawDef *d = (RawDef *)batch_end(b);
  size_t size = (sizeof(*d) + b->def.pos + 7) & ~(size_t)7;
  if (b->def.overflow || size > batch_room(b)) return 0;
  d->head.size = (uint32_t)size;
  d->head.tag = rawdef_bytes(d)[0];
  d->len = (uint32_t)b->def.pos;
  d->id = id;
  d->rank = rank;
  b->used += (uint32_t)size;
  return 1;
}

uint32_t lj_batch_find(const Batch *b, int tag, uint32_t id)
{
  uint32_t at, found = BATCH_SIZE;
  for (at = 0; at < b->used; at += batch_at(b, at)->size) {
    const RawDef *d = (const RawDef *)batch_at(b, at);
    if (d->head.tag == tag && d->id == id) found = at;
  }
  return found;
}
