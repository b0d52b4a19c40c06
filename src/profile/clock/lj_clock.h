/*
** Clocks: signals that make a thread take its samples.
**
** A clock belongs to one thread and has one owner; several may run on a thread.
** Used by sysprof and by LuaJIT's own jit.profile; only one of these two kinds
** runs at a time in a process. Signals that did not come from here are passed
** on to the handler that was there before.
**
**   open -> arm -> (ticks) -> close
*/

#ifndef _LJ_CLOCK_H
#define _LJ_CLOCK_H

#include <signal.h>
#include <time.h>
#include <sys/types.h>
#include <ucontext.h>

#include "lj_def.h"
#include "profile/clock/lj_clockspec.h"

/* Clocks at a time in a process, a power of two. */
#define CLOCKS_MAX 1024

/* Called in the signal handler, on the clock's thread; errno is kept. overrun:
** further ticks that this signal stands for.
*/
typedef void (*ClockTick)(void *owner, int event, int overrun, ucontext_t *uc);

typedef struct Clock {
  ClockTick tick;   /* Set before open. */
  void *owner;      /* Passed to tick. Set before open. */
  int event;        /* Passed to tick: index of the event. Set before open. */
  int signo;        /* The signal, 0 for SIGPROF, or SIGURG of perf's clocks and
			** those that may become one. Set before open. */
  ClockSpec spec;   /* What it ticks on. */
  int tid;          /* The thread. */
  uintptr_t value;  /* What its signals stand for, see lj_clockslot.h. */
  pid_t pid;        /* Process that opened it: clocks are not inherited. */
  int armed;        /* It has been started. */
  timer_t timer;    /* CLOCK_CTIMER, CLOCK_WALL. */
  int fd, count_fd; /* CLOCK_PERF: what signals, what counts; else -1. */
  /* Set by the handler only, once armed. */
  uint64_t begin_ns;   /* CLOCK_MONOTONIC when the handler began with the tick. */
  uint64_t random;     /* State of lj_clock_random. */
  uint64_t last;       /* Total at the last tick, in ns or occurrences. */
  uint64_t period_now; /* Period until the next tick. */
  uint64_t raw, enabled_ns, running_ns; /* CLOCK_PERF: what last was read. */
  uint32_t keeping; /* CLOCK_PERF: odd while a tick changes last and these. */
} Clock;

typedef enum ClockStatus {
  CLOCK_OK,
  CLOCK_BUSY, /* The other kind of profiler runs, or too many clocks. */
  CLOCK_ERROR /* Cannot be had: see errno and why. */
} ClockStatus;

/* Make a clock for a thread of this process and install the handler. CLOCK_CPU
** becomes what can be had, and c->spec says what: up to the rate of the kernel's
** tick CLOCK_CTIMER, above it task-clock where the kernel's part of the time may
** be seen, CLOCK_ITIMER where there are no timers. On CLOCK_ERROR, why[CLOCK_WHY_MAX]
** gets one sentence with the reason and the remedy. Not in a handler.
*/
LJ_FUNC ClockStatus lj_clock_open(Clock *c, const ClockSpec *spec, int tid, char *why);

/* Start it; the first tick comes after a random part of the period. CLOCK_OK or
** CLOCK_ERROR. Any thread, not in a handler.
*/
LJ_FUNC ClockStatus lj_clock_arm(Clock *c);

/* Stop and give up an open clock, armed or not. When it returns no tick of it runs
** on any thread, and none will: it waits for one that does. Not in a handler.
*/
LJ_FUNC void lj_clock_close(Clock *c);

/* Its total so far, in the unit of spec: CPU time of its thread or occurrences; 0
** if the thread is gone. Async-signal-safe.
*/
LJ_FUNC uint64_t lj_clock_total(const Clock *c);

/* CPU time of its thread at its tick, in nanoseconds. In the tick. */
LJ_FUNC uint64_t lj_clock_tick_cpu_ns(const Clock *c);

/* Start and stop a clock for jit.profile, interval in milliseconds. Start returns 0 if
** sysprof runs.
*/
LJ_FUNC int lj_clock_jitp_start(void (*handler)(int), int interval);
LJ_FUNC void lj_clock_jitp_stop(void);

/* In a child of fork(): forget the clocks of the parent, which go on there. Is
** done by itself, unless the child was made without the C library's fork().
*/
LJ_FUNC void lj_clock_forget(void);

/* The signals of all clocks that are open. Returns 0 if there are none. */
LJ_FUNC int lj_clock_signals(sigset_t *set);

#endif
