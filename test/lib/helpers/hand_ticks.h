/*
** Samples by hand: the clock's first tick is an hour away, and the test calls the function
** that a tick calls.
*/

#ifndef HAND_TICKS_H
#define HAND_TICKS_H

#include "session.h"
#include "lj_obj.h"
#include "profile/base/lj_nanotime.h"
#include "profile/clock/lj_clocktick.h"
#include "profile/session/lj_registry.h"

#define HAND_HOUR_NS ((uint64_t)3600 * 1000000000)

/* Start a profile of a VM into a sink. Returns its sampler. */
static inline Sampler *hand_start(lua_State *L, struct luam_Sysprof_Options *opt)
{
  Profile *p;
  opt->interval_ns = HAND_HOUR_NS;
  REQUIRE(luaM_sysprof_start(L, opt) == PROFILE_SUCCESS);
  p = lj_registry_of(G(L));
  REQUIRE(p != NULL && profile_first(p) != NULL);
  return &profile_first(p)->sm;
}

/* Take a sample here, on the sampled thread. */
static inline void hand_take(Sampler *s)
{
  Event *ev = &s->event[0].e;
  Clock *c = &clocksource_of(ev)->clock;
  ucontext_t uc;
  getcontext(&uc);
  c->begin_ns = mono_ns();
  c->last = clock_ns(CLOCK_THREAD_CPUTIME_ID);
  lj_clocktick_sample(ev, 0, &uc);
}

#endif
