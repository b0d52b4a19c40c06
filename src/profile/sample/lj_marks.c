/*
** Marks, and ends of things: what a source appends beside its samples.
** Context: ordinary code, not in the handler.
*/

#define lj_marks_c
#define LUA_CORE

#include "profile/base/lj_nanotime.h"
#include "profile/base/lj_relaxed.h"
#include "profile/sample/lj_handover.h"
#include "profile/sample/lj_marks.h"
#include "profile/sample/lj_sample.h"

/* Payload of a record: some numbers. */
typedef struct Numbers {
  uint64_t first[2];
  const uint64_t *more;
  int nmore;
} Numbers;

/* Append a record to the batch. Returns 0 if it has no room. */
static int batch_put(Batch *b, uint8_t tag, const Numbers *num, uint32_t id,
		     uint32_t things)
{
  size_t mark;
  int i;
  lj_batch_def_begin(b);
  mark = lj_wbuf_def_begin(&b->def, tag);
  lj_wbuf_uleb(&b->def, num->first[0]);
  lj_wbuf_uleb(&b->def, num->first[1]);
  for (i = 0; i < num->nmore; i++) lj_wbuf_uleb(&b->def, num->more[i]);
  lj_wbuf_def_end(&b->def, mark);
  return lj_batch_def_end(b, id, things);
}

/* Append a record of a sampler that is held. An empty batch has room. */
static void put_held(Sampler *s, uint8_t tag, const Numbers *num, uint32_t id,
		     uint32_t things)
{
  if (batch_put(&s->batch, tag, num, id, things)) return;
  lj_handover_encode(s);
  batch_put(&s->batch, tag, num, id, things);
}

/* Hold a sampler, and append a record. Returns 0 if it is held, or if all buffers wait for the
** writer: then the record would be lost.
*/
static int put(Sampler *s, uint8_t tag, const Numbers *num, uint32_t id, uint32_t things)
{
  if (s->opt->mode == LUAM_SYSPROF_DEFAULT) return 1;
  if (sampler_isqueued(s) && !lj_chunkqueue_hasroom(&s->queue)) return 0;
  if (!lj_sampler_hold(s)) return 0;
  put_held(s, tag, num, id, things);
  lj_sample_nested(s);
  lj_sampler_release(s);
  return 1;
}

static Sampler *sampler_of(const Event *ev)
{
  return ((const SampleEvent *)ev)->sampler;
}

static Numbers mark_now(const Sampler *s, int kind, const uint64_t *arg, int n)
{
  Numbers num = { { (mono_ns() - s->origin_ns) / 1000, (uint64_t)kind }, arg, n };
  return num;
}

int lj_marks_mark(Event *ev, int kind, const uint64_t *arg, int n)
{
  Sampler *s = sampler_of(ev);
  Numbers num = mark_now(s, kind, arg, n);
  return put(s, SPF_MARK, &num, 0, 0);
}

void lj_marks_dump(Sampler *s)
{
  Numbers num = mark_now(s, SPF_MARK_DUMP, NULL, 0);
  put_held(s, SPF_MARK, &num, 0, 0);
}

/* Return the sampler of a session of the same profile, or NULL. Within a hook, or under the
** lock.
*/
static Sampler *sampler_find(Sampler *s, uint32_t session)
{
  VmReader *reader;
  if (s->number == session) return s;
  for (reader = __atomic_load_n(&s->gate->first, __ATOMIC_SEQ_CST); reader;
       reader = __atomic_load_n(&reader->next, __ATOMIC_SEQ_CST))
    if (sampler_of_reader(reader)->number == session) return sampler_of_reader(reader);
  return NULL;
}

int lj_marks_ended(Event *ev, uint32_t session, int how, const SampleEnd *end, int n)
{
  LJ_STATIC_ASSERT(sizeof(SampleEnd) == 2 * sizeof(uint64_t));
  Sampler *s = sampler_find(sampler_of(ev), session);
  Numbers num = { { (uint64_t)ev->index, (uint64_t)how }, &end->thing, 2 * n };
  if (!s) {
    relaxed_add(&ev->counters[SPF_EVENT_LOST_ENDS], (uint64_t)n);
    return 1;
  }
  return put(s, SPF_ENDED, &num, (uint32_t)ev->index, (uint32_t)n);
}
