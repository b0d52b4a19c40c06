/*
** Events of a sampler: open, arm, stop, and what the program did to their signals.
** Context: under the lock, on any thread, outside of the handler.
*/

#ifndef _LJ_EVENTLIST_H
#define _LJ_EVENTLIST_H

#include "profile/sample/lj_sampler.h"

/* Fill in the events that a start asks for. They are not open. */
LJ_FUNC void lj_eventlist_init(Sampler *s);

typedef enum EventSet {
  EVENTS_WITHOUT_SIGNALS, /* Of threads, without a signal. */
  EVENTS_BY_SIGNALS,      /* Of threads, with one. */
  EVENTS_OF_THREADS,      /* Both. */
  EVENTS_OF_VM,           /* Of the VM. */
  EVENTS_ALL
} EventSet;

/* Open a set of events. Skips open events. On EVENT_ERROR closes those that it has opened, and
** sets errno and errmsg[EVENT_ERRMSG_MAX].
*/
LJ_FUNC EventStatus lj_eventlist_open(Sampler *s, EventSet set, char *errmsg);

/* Arm the open events. Returns 0, or an errno and the reason: then those of threads are
** closed.
*/
LJ_FUNC int lj_eventlist_arm(Sampler *s, char *errmsg);

/* Close the open events of a set. */
LJ_FUNC void lj_eventlist_stop(Sampler *s, EventSet set);

/* Bring counters up to now, and report what has ended: a dump follows. */
LJ_FUNC void lj_eventlist_sync(Sampler *s);

/* Let the events look at the thread. Returns the nanoseconds until one must look again; the largest
** number: none.
*/
LJ_FUNC uint64_t lj_eventlist_look(Sampler *s);

/* Copy the events in use from another sampler. */
LJ_FUNC void lj_eventlist_like(Sampler *s, const Sampler *other);

/* Start events again that the program has stopped, because it took their signals. */
LJ_FUNC void lj_eventlist_revive(Sampler *s);

/* Has the program replaced the handler of an event's signal? */
LJ_FUNC int lj_eventlist_isreplaced(const Sampler *s);

/* Does the thread block a signal of an event? */
LJ_FUNC SigBlocked lj_eventlist_blocked(const Sampler *s);

/* Shortest CPU time between two samples with a signal, in microseconds. 0: unknown. The largest
** number: no event has a signal.
*/
LJ_FUNC uint64_t lj_eventlist_tick_us(const Sampler *s);

/* Samples of the first event with a signal. */
LJ_FUNC uint64_t lj_eventlist_ticks(const Sampler *s);

#endif
