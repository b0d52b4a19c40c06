/*
** Names of clocks and perf events: their items of the option `clock`.
** Context: any thread, not the handler.
**
**   item  := name [':' modifier+] ['/period=' N '/']
**
** Clocks are:
**   cpu          the best clock of CPU time that reaches the rate
**   ctimer       a timer of a thread's CPU time, timer_create(2)
**   task-clock   a thread's CPU time, as a perf event
**   itimer       one timer for the process, setitimer(2)
**   wall-signal  real time; its signals end calls early
** Events have the names and modifiers of perf-list(1): u, k, and p to ppp.
*/

#ifndef _LJ_CLOCKSPEC_H
#define _LJ_CLOCKSPEC_H

#include <stddef.h>

#include "lj_def.h"
#include "profile/event/lj_event.h"

/* The kinds of clocks, each with its ClockOps lj_clock_NAME_ops. A new kind needs a line
** here, its name in lj_clockspec.c, and a file with its table (see lj_clockops.h).
** lj_clockkinds.c includes the header of that file.
*/
/* clang-format off */
#define CLOCKKINDDEF(_) \
  _(CPU, cpu)       /* Opens one of the next two. */ \
  _(CTIMER, ctimer) /* timer_create() on the thread's CPU time. */ \
  _(PERF, perf)     /* perf_event_open(): task-clock or an event. */ \
  _(ITIMER, itimer) /* setitimer(ITIMER_PROF). */ \
  _(WALL_SIGNAL, wall_signal) /* timer_create() on CLOCK_MONOTONIC. */

typedef enum ClockKind {
#define CLOCKKINDENUM(kind, name) CLOCK_##kind,
CLOCKKINDDEF(CLOCKKINDENUM)
#undef CLOCKKINDENUM
  CLOCK__MAX
} ClockKind;
/* clang-format on */

typedef struct ClockSpec {
  ClockKind kind;
  char name[EVENT_NAME_MAX]; /* As requested; once open, the clock in use. */
  int unit;                  /* SPF_UNIT_*, of the weights. */
  uint64_t period;           /* Nanoseconds of a clock, occurrences of an event. */
  int jitter;                /* Vary each period at random. */
  uint8_t prefer_tick; /* Of a clock: if interrupts are costly, take the kernel's tick. */
  uint8_t
    off_tick; /* CLOCK_CPU: delays off the kernel's tick cost little. Once open: in use. */
  uint8_t is_unsafe; /* Once open: the kernel might hang at the period given up. */
  uint64_t given_up; /* Once open: the period in whose place the tick is taken; or 0. */
  /* CLOCK_PERF only, fields of perf_event_attr. */
  uint32_t type;
  uint64_t config;
  uint8_t precise, exclude_user, exclude_kernel;
  uint8_t in_kernel; /* Happens in the kernel only. */
} ClockSpec;

/* Read an item of the option `clock`, see SourceOps.parse. */
LJ_FUNC EventParsed lj_clockspec_parse(const char *item, size_t len,
				       const EventDefaults *by, ClockSpec *spec,
				       char *errmsg);

#endif
