/*
** Ticks of a clock as samples of its event: total, throttle, counters.
** Context: handler, on the clock's thread.
*/

#ifndef _LJ_CLOCKTICK_H
#define _LJ_CLOCKTICK_H

#include "profile/clock/lj_clock.h"
#include "profile/clock/lj_throttle.h"
#include "profile/event/lj_event.h"

/* Event.source of a clock. */
typedef struct ClockSource {
  Clock clock;
  int is_replaced; /* The program has set its own handler. Under the lock. */
  /* Handler only, once armed. */
  Throttle throttle;
  uint64_t tick_ns;     /* Time of the last tick that took a sample, */
  uint64_t tick_cpu_ns; /* and CPU time of the last one; 0: unknown. */
} ClockSource;

static LJ_AINLINE ClockSource *clocksource_of(const Event *ev)
{
  return (ClockSource *)ev->source;
}

/* Take the sample of a tick, see ClockSample. owner: the Event. */
LJ_FUNC void lj_clocktick_sample(void *owner, int overrun, ucontext_t *uc);

/* Lose the time up to now if ticks since the last sample did not count. Under the lock. */
LJ_FUNC void lj_clocktick_lose(Event *ev);

/* See SourceOps.total. A clock of time also has one while it is closed: the CPU time of its
** thread. Any thread.
*/
LJ_FUNC uint64_t lj_clocktick_total(const Event *ev);

#endif
