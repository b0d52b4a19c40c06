/*
** Sampler: who holds it, and what a holder does with captured samples.
** Context: hold, release, encode: handler or any thread | the rest: not in the handler.
*/

#define lj_sampler_c
#define LUA_CORE

#include <time.h>

#include "profile/base/lj_nanotime.h"
#include "profile/base/lj_osthread.h"
#include "profile/base/lj_relaxed.h"
#include "profile/session/lj_sampler.h"
#include "profile/session/lj_totals.h"

#define SEIZE_WAIT_NS 20000 /* Between two tries while another thread takes a sample. */

/* -- Hold -------------------------------------------------------------------- */

static int user_self(const Sampler *s)
{
  return s->reader.tid == lj_osthread_self() ? SAMPLER_THREAD : SAMPLER_OTHER;
}

int lj_sampler_hold(Sampler *s)
{
  int none = 0;
  return __atomic_compare_exchange_n(&s->user, &none, user_self(s), 0, __ATOMIC_ACQUIRE,
				     __ATOMIC_RELAXED);
}

void lj_sampler_release(Sampler *s)
{
  __atomic_store_n(&s->user, 0, __ATOMIC_RELEASE);
}

void lj_sampler_seize(Sampler *s)
{
  static const struct timespec wait = { 0, SEIZE_WAIT_NS };
  while (!lj_sampler_hold(s)) {
    if (user_self(s) == SAMPLER_THREAD || !lj_osthread_exists(s->reader.tid)) {
      __atomic_store_n(&s->user, user_self(s), __ATOMIC_SEQ_CST);
      return;
    }
    nanosleep(&wait, NULL);
  }
}

/* -- Captured samples -------------------------------------------------------- */

__attribute__((noinline, cold)) void lj_sampler_encode(Sampler *s)
{
  lj_totals_account(s); /* For the counters in the chunks. */
  lj_encoder_run(&s->stream, &s->batch);
}

int lj_sampler_dump(Sampler *s, FuncTab *named)
{
  int err;
  lj_sampler_encode(s);
  s->symtab.named = named;
  err = lj_stream_dump(&s->stream);
  s->symtab.named = NULL;
  return err;
}

int lj_sampler_end(Sampler *s, FuncTab *named)
{
  lj_sampler_encode(s);
  s->symtab.named = named;
  return lj_stream_end(&s->stream);
}

/* Has no sample encoded the captured ones in time? */
static int batch_isoverdue(const Sampler *s, uint64_t time_us)
{
  return relaxed_get(&s->batch.nsample) != 0 &&
	 time_us >= relaxed_get(&s->batch.first_us) + STREAM_OVERDUE_US;
}

void lj_sampler_handover(Sampler *s)
{
  uint64_t time_us = (mono_ns() - s->origin_ns) / 1000;
  if (!sampler_isqueued(s) ||
      (!batch_isoverdue(s, time_us) && !lj_stream_isoverdue(&s->stream, time_us)))
    return;
  if (!lj_sampler_hold(s)) return;
  if (batch_isoverdue(s, time_us)) lj_sampler_encode(s);
  if (lj_stream_isoverdue(&s->stream, time_us)) lj_stream_handover(&s->stream);
  lj_sampler_release(s);
}
