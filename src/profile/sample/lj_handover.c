/*
** Captured samples of a sampler: encodes them, and hands chunks to the writer.
** Context: the holder of the sampler | overdue: any thread, not in the handler.
*/

#define lj_handover_c
#define LUA_CORE

#include "profile/base/lj_nanotime.h"
#include "profile/base/lj_relaxed.h"
#include "profile/base/lj_bgthread.h"
#include "profile/sample/lj_handover.h"
#include "profile/sample/lj_totals.h"

/* Count the bytes of the stream and of its names. Wake the thread that ends the samples. */
static void count_bytes(Sampler *s)
{
  const WBuf *wb = &s->stream.wb;
  uint32_t nfid = s->vm->funcs.nfid;
  uint64_t names = SIZELIMIT_BUILTINS + (uint64_t)s->symtab.naddr * SIZELIMIT_ADDR;
  if (s->symtab.more)
    names += (nfid < FUNCTAB_FUNCS ? nfid : FUNCTAB_FUNCS) * SIZELIMIT_FUNC;
  sizelimit_count(s->size, &s->counted, wb->bytes + wb->done + names);
  if (sizelimit_isreached(s->size, SIZELIMIT_NEAR)) lj_bgthread_wake();
}

__attribute__((noinline, cold)) void lj_handover_encode(Sampler *s)
{
  lj_totals_account(s); /* For the counters in the chunks. */
  if (LJ_UNLIKELY(sizelimit_isreached(s->size, s->batch.used))) {
    lj_encoder_drop(&s->stream, &s->batch);
    return;
  }
  lj_encoder_run(&s->stream, &s->batch);
  if (s->size->max) count_bytes(s);
}

static uint64_t now_us(const Sampler *s)
{
  return (mono_ns() - s->origin_ns) / 1000;
}

/* Time in the stream of a row that is no sample: the real time of the profile, which may have ended
** long ago. The row does not precede the last sample.
*/
static uint64_t row_us(const Sampler *s)
{
  uint64_t us = (s->start_ns - s->origin_ns) / 1000 +
		relaxed_get(&s->counters[SPF_COUNTER_WALL_US]);
  return us > s->stream.time_us ? us : s->stream.time_us;
}

/* Encode all samples, and tell the lost ones. */
static void encode_all(Sampler *s)
{
  lj_handover_encode(s);
  lj_stream_direct(&s->stream);
  lj_encoder_rest(&s->stream, row_us(s));
}

/* Tell the CPU time of other threads. In the stream, it is of the thread 0. */
static void tell_others(Sampler *s)
{
  int i, moved = 0;
  for (i = 0; i < s->nevent; i++) {
    if (s->event[i].others == 0) continue;
    if (!moved) {
      lj_stream_move(&s->stream, 0);
      lj_stream_thread(&s->stream, "not sampled");
    }
    moved = 1;
    lj_encoder_others(&s->stream, i, s->event[i].others, row_us(s));
  }
}

int lj_handover_dump(Sampler *s, FuncTab *named)
{
  int err;
  encode_all(s);
  s->symtab.named = named;
  err = lj_stream_dump(&s->stream);
  s->symtab.named = NULL;
  return err;
}

int lj_handover_end(Sampler *s, FuncTab *named)
{
  encode_all(s);
  tell_others(s);
  s->symtab.named = named;
  return lj_stream_end(&s->stream);
}

void lj_handover_drain(Sampler *s)
{
  if (!sampler_isqueued(s) || !lj_chunkqueue_claim(&s->queue)) return;
  lj_chunkqueue_drain(&s->queue);
  lj_chunkqueue_release(&s->queue);
}

/* Has no sample encoded the captured ones in time? */
static int batch_isoverdue(const Sampler *s, uint64_t time_us)
{
  return relaxed_get(&s->batch.nsample) != 0 &&
	 time_us >= relaxed_get(&s->batch.first_us) + STREAM_OVERDUE_US;
}

void lj_handover_overdue(Sampler *s)
{
  uint64_t time_us = now_us(s);
  if (!sampler_isqueued(s) ||
      (!batch_isoverdue(s, time_us) && !lj_stream_isoverdue(&s->stream, time_us)))
    return;
  if (!lj_sampler_hold(s)) return;
  if (batch_isoverdue(s, time_us)) lj_handover_encode(s);
  if (lj_stream_isoverdue(&s->stream, time_us)) lj_stream_handover(&s->stream);
  lj_sampler_release(s);
}
