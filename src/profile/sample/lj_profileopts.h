/*
** Options of a profile: events, mode, callbacks, buffer.
** Context: written before the start | read by any thread and the handler.
*/

#ifndef _LJ_PROFILEOPTS_H
#define _LJ_PROFILEOPTS_H

#include "lmisclib.h"
#include "profile/event/lj_event.h"

/* Callbacks of a profile. The setters of the C API fill in one of these. */
typedef struct SysprofCallbacks {
  luam_Sysprof_writer writer;
  luam_Sysprof_on_stop on_stop;
  luam_Sysprof_backtracer backtracer; /* NULL for the built-in one. */
  void (*unasked)(void *ctx);         /* Called before the VM or process ends, or NULL. */
  int (*goes_on)(void *ctx);  /* Does another VM of the same file go on when lua_close
				      ** ends the profile? NULL: no. */
  void (*no_thread)(int err); /* Called if the background thread does not start
				      ** and the VM thread writes instead. If NULL,
				      ** the start fails. */
} SysprofCallbacks;

/* When a profile ends by itself. 0: never. */
typedef struct ProfileLimits {
  uint64_t duration_ns; /* After so much real time. */
  uint64_t max_size;    /* Before the file is larger. */
} ProfileLimits;

/* Thread that runs a VM, as far as known. */
typedef struct VmThread {
  int tid;
  uintptr_t stack_lo, stack_hi; /* Its C stack; both 0 if unknown. */
} VmThread;

typedef struct ProfileOptions {
  VmThread thread; /* Thread of the first session. */
  int mode;        /* LUAM_SYSPROF_*. */
  int threads;     /* LUAM_SYSPROF_THREADS_*. A takeover changes it. */
  const int
    *others;  /* With all threads: those that other profiles have, then 0; or NULL. */
  int flush;  /* LUAM_SYSPROF_FLUSH_*, with a stream. */
  int signo;  /* Signal of the samples, or 0. */
  int walker; /* LUAM_SYSPROF_BACKTRACER_*. */
  int gc;     /* Collect garbage before a dump and before the end. */
  SysprofCallbacks cb;
  void *ctx;    /* Argument of the callbacks. */
  uint8_t *buf; /* Buffer of the first session. */
  size_t len;   /* Size of the buffer of each session. */
  luam_Sysprof_on_fork on_fork;
  uint32_t number; /* Number of the first session in the file. */
  uint64_t interval_ns;
  ProfileLimits limits;
  uint64_t
    end_ns;  /* CLOCK_MONOTONIC at which the samples end, the same in children; 0: never. */
  int nspec; /* Number of events. */
  EventSpec spec[SPF_EVENTS_MAX];
} ProfileOptions;

/* May the profile end by itself? */
static LJ_AINLINE int profileopts_ends(const ProfileOptions *o)
{
  return o->limits.duration_ns || o->limits.max_size;
}

/* Does an event look at sleeping threads? */
static LJ_AINLINE int profileopts_haslook(const ProfileOptions *o)
{
  int i;
  for (i = 0; i < o->nspec; i++)
    if (o->spec[i].ops->look) return 1;
  return 0;
}

#endif
