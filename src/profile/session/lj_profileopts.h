/*
** Options of a profile: what a start asks for.
** Context: set before the start; any thread and the handler read it.
*/

#ifndef _LJ_PROFILEOPTS_H
#define _LJ_PROFILEOPTS_H

#include "lmisclib.h"
#include "profile/clock/lj_clockspec.h"
#include "profile/format/lj_sysprof_format.h"

/* What a profile calls; the C API's setters fill one of these. */
typedef struct SysprofCallbacks {
  luam_Sysprof_writer writer;
  luam_Sysprof_on_stop on_stop;
  luam_Sysprof_backtracer backtracer; /* NULL for the built-in one. */
  void (*unasked)(void *ctx);         /* Before an end that nobody asked for, or NULL. */
  void (*no_thread)(int err);         /* The VM writes in place of a thread, or NULL: the
				      ** start fails without the thread. */
} SysprofCallbacks;

typedef struct ProfileOptions {
  int mode;    /* LUAM_SYSPROF_*. */
  int threads; /* LUAM_SYSPROF_THREADS_*. */
  int flush;   /* LUAM_SYSPROF_FLUSH_*, with a stream. */
  int signo;   /* Signal of the clocks. */
  SysprofCallbacks cb;
  void *ctx;    /* For the callbacks. */
  uint8_t *buf; /* Buffer of the first session, */
  size_t len;   /* and its size, as of all others. */
  luam_Sysprof_on_fork on_fork;
  uint32_t number; /* Number of the first session in the file. */
  uint64_t interval_ns;
  int nspec; /* Events. */
  ClockSpec spec[SPF_EVENTS_MAX];
} ProfileOptions;

#endif
