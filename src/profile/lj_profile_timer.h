/*
** Profiling clock: periodic signals for the calling thread.
**
** One timer per profiled thread; its signal carries the timer's owner. Used by
** sysprof, where every VM may have one, and by LuaJIT's own jit.profile; only
** one of these two kinds runs at a time in a process. Signals that did not
** come from here are passed on to the handler that was there before.
*/

#ifndef _LJ_PROFILE_TIMER_H
#define _LJ_PROFILE_TIMER_H

#include <signal.h>
#include <time.h>
#include <sys/types.h>
#include <ucontext.h>

#include "lj_def.h"

/* The signal of the clock. */
#define PROFILE_SIGNAL	SIGPROF

/* Timers at a time in a process. */
#define PROFILE_TIMERS_MAX	64

/* Called in the signal handler, errno is kept. overrun: further expirations
** that this signal stands for.
*/
typedef void (*ProfileTick)(void *owner, int overrun, ucontext_t *uc);

typedef struct ProfileTimer {
  ProfileTick tick;	/* Called on expiration. Set before the start. */
  void *owner;		/* Passed to tick. Set before the start. */
  int clock;		/* LUAM_SYSPROF_CLOCK_*. Set before the start. */
  uint64_t interval_ns;	/* Set before the start. */
  timer_t id;		/* The kernel's timer, if armed. */
  int armed;		/* It has been started. */
  int slot;		/* Place in the table of running timers. */
  pid_t pid;		/* Process that started it: timers are not inherited. */
} ProfileTimer;

typedef enum ProfileTimerStatus {
  PROFILE_TIMER_OK,
  PROFILE_TIMER_BUSY,	/* The other kind of profiler runs, or too many. */
  PROFILE_TIMER_ERROR	/* See errno. */
} ProfileTimerStatus;

/* Reserve a timer and install the signal handler. Not in a handler. */
LJ_FUNC ProfileTimerStatus lj_profile_timer_claim(ProfileTimer *t);

/* Start a claimed timer for the calling thread. PROFILE_TIMER_OK or _ERROR. */
LJ_FUNC ProfileTimerStatus lj_profile_timer_arm(ProfileTimer *t);

/* Stop and give up a claimed timer, armed or not. No tick runs after it returns,
** if called by the same thread.
*/
LJ_FUNC void lj_profile_timer_stop(ProfileTimer *t);

/* The same for jit.profile, interval in milliseconds. Start returns 0 if
** sysprof runs.
*/
LJ_FUNC int lj_profile_timer_jitp_start(void (*handler)(int), int interval);
LJ_FUNC void lj_profile_timer_jitp_stop(void);

/* The kernel's id of the calling thread. */
LJ_FUNC int lj_profile_timer_tid(void);

#endif
