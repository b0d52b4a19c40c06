/*
** Clocks and events by name: what `clock=` of a start asks for.
**
**   list  := item (',' item)*
**   item  := name [':' modifier+] ['/period=' N '/']
**
** cpu is the cheapest clock that meets the asked rate, see lj_clock_open; each
** clock also has a name of its own: ctimer (the kernel's timer of a thread's
** CPU time), task-clock (perf's), itimer (setitimer(2), of the process) and wall.
** Names and modifiers of events are those of perf-list(1): u, k and p to ppp.
** Runs outside of the handler.
*/

#ifndef _LJ_CLOCKSPEC_H
#define _LJ_CLOCKSPEC_H

#include <stddef.h>

#include "lj_def.h"
#include "profile/format/lj_sysprof_format.h"

#define CLOCK_NAME_MAX 48  /* Bytes of a name, with its end. */
#define CLOCK_WHY_MAX  256 /* Bytes of a message, with its end. */

typedef enum ClockKind {
  CLOCK_CPU,    /* One of the next three, to be chosen. */
  CLOCK_CTIMER, /* timer_create() on the thread's CPU time. */
  CLOCK_PERF,   /* perf_event_open(), task-clock or an event. */
  CLOCK_ITIMER, /* setitimer(ITIMER_PROF). */
  CLOCK_WALL    /* timer_create() on CLOCK_MONOTONIC. */
} ClockKind;

typedef struct ClockSpec {
  ClockKind kind;
  char name[CLOCK_NAME_MAX]; /* As it was asked for; as it is used, once open. */
  int unit;                  /* SPF_UNIT_*, of the weights. */
  uint64_t period;           /* Nanoseconds of a clock, else occurrences. */
  int jitter;                /* Vary each period at random. */
  /* CLOCK_PERF only, fields of perf_event_attr. */
  uint32_t type;
  uint64_t config;
  uint8_t precise, exclude_user, exclude_kernel;
} ClockSpec;

/* Read a list of clocks into specs, at most SPF_EVENTS_MAX. interval_ns: period
** of those that are clocks; period: of the events without their own, 0 for each
** one's default. Returns how many there are, or 0 and one sentence in
** why[CLOCK_WHY_MAX].
*/
LJ_FUNC int lj_clockspec_parse(const char *list, uint64_t interval_ns, uint64_t period,
			       int jitter, ClockSpec *specs, char *why);

/* Is it something that happens in the kernel only? */
LJ_FUNC int lj_clockspec_iskernel(const ClockSpec *spec);

#endif
