/*
** Sampler: who holds it.
** Context: hold, release: handler or any thread | seize: not in the handler.
*/

#define lj_sampler_c
#define LUA_CORE

#include <time.h>

#include "profile/base/lj_nanotime.h"
#include "profile/base/lj_osthread.h"
#include "profile/base/lj_relaxed.h"
#include "profile/sample/lj_sampler.h"

#define WAIT_NS 20000 /* Between two tries while another thread takes a sample. */

static const struct timespec nap = { 0, WAIT_NS };

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

int lj_sampler_holdsoon(Sampler *s, uint64_t ns)
{
  uint64_t waited_ns;
  for (waited_ns = 0; !lj_sampler_hold(s); waited_ns += WAIT_NS) {
    if (waited_ns >= ns) return 0;
    nanosleep(&nap, NULL);
  }
  return 1;
}

void lj_sampler_seize(Sampler *s)
{
  while (!lj_sampler_hold(s)) {
    if (user_self(s) == SAMPLER_THREAD || !lj_osthread_lives(s->reader.tid)) {
      __atomic_store_n(&s->user, user_self(s), __ATOMIC_SEQ_CST);
      return;
    }
    nanosleep(&nap, NULL);
  }
}
