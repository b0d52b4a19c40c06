/*
** Kinds of clocks: one table of functions for each.
** Context: handler or any thread, as ClockOps says of each function.
**
** lj_clocksig finds the clock of a signal, calls tick, and then Clock.sample if a period
** has passed.
*/

#ifndef _LJ_CLOCKOPS_H
#define _LJ_CLOCKOPS_H

#include <signal.h>
#include <time.h>
#include <ucontext.h>

#include "lj_def.h"
#include "profile/clock/lj_clockspec.h"

/* Limit of open clocks of a process, a power of two: (the thread has no samples) */
#define CLOCKS_MAX 16384

/* A clock whose period lasts as many interrupts leaves its thread the time to run. */
#define CLOCK_ONESHOT_CYCLES 8

typedef struct Clock Clock;

/* Take a sample. In the handler, on the clock's thread; the handler keeps errno.
** overrun: further periods that this sample stands for. uc: NULL if the stack has no room for
** a sample: then it is lost.
*/
typedef void (*ClockSample)(void *owner, int overrun, ucontext_t *uc);

typedef struct ClockOps {
  /* -- Under the lock of lj_clock, not in the handler -- */
  /* Create it, stopped. Returns 0, or an errno and one sentence in
  ** errmsg[EVENT_ERRMSG_MAX].
  */
  int (*open)(Clock *c, char *errmsg);
  /* Start it. first: until the first tick, in the spec's unit. Sets Clock.armed before a
  ** tick can arrive. Returns 0 or an errno.
  */
  int (*arm)(Clock *c, uint64_t first);
  void (*stop)(Clock *c);    /* Send no more signals. */
  void (*drained)(Clock *c); /* Stopped, and no signal is pending. NULL: nothing. */
  void (*close)(Clock *c);   /* Free what it holds; no tick runs. NULL: nothing. */
  /* The program may have taken the signal that would have started it again. Starts it if it
  ** has stood still since the last call, while its thread ran. NULL: it repeats by itself.
  */
  void (*revive)(Clock *c);
  void (*forget)(void); /* In a child of fork(): forget all clocks. NULL: nothing. */

  /* -- Async-signal-safe -- */
  /* Total of the thread so far, in nanoseconds or occurrences; 0 if it has ended. */
  uint64_t (*count)(const Clock *c);
  /* On the clock's thread: a signal has arrived. Returns the overrun, or -1 if no period
  ** has passed. Sets up the next period.
  */
  int (*tick)(Clock *c, const siginfo_t *info);
  /* After the tick and its sample: let the next tick come. NULL: nothing. */
  void (*resume)(Clock *c);
  /* On the clock's thread: tick after each period from now on, in the spec's unit; 0 for the
  ** spec's own. Stores it in Clock.period_set.
  */
  void (*setperiod)(Clock *c, uint64_t period);
  /* On the thread of an armed clock: has a period passed since the last tick? The kernel may
  ** have dropped the signal. NULL: it drops none.
  */
  int (*isdue)(const Clock *c);

  /* -- Async-signal-safe. NULL, unless signals carry a number in place of Clock.value -- */
  /* Value of the clock that sent a signal. 0: another sender. The kernel uses numbers again,
  ** so a late signal may name the clock of another thread.
  */
  uintptr_t (*value)(const siginfo_t *info);
  /* A signal of a closed clock has arrived, its last one: forget the number. */
  void (*late)(const siginfo_t *info, uintptr_t value);

  /* -- Async-signal-safe. NULL, unless all clocks of the kind share a timer -- */
  int (*issignal)(int signo, int si_code); /* Does the timer send such signals? */
  int (*isused)(void);                     /* Do clocks use the timer now? */
  /* Has the kernel passed over the running thread of this clock? */
  int (*isstarved)(const Clock *c);

  int only_signo;    /* The only signal that it can send. 0: any. */
  const char *probe; /* Name of the clock that measures the interrupt of a tick. NULL: the
		     ** ticks come with the kernel's own, without an interrupt.
		     */
  uint8_t has_last;  /* tick stores the total in Clock.last. */
  const char *note;  /* What its user should know: a sentence. NULL: nothing. */
} ClockOps;

/* What switched the calling thread so far, and its CPU time. */
typedef struct ThreadSwitches {
  uint64_t cpu_ns;
  uint64_t waits;     /* It gave the processor up. */
  uint64_t preempted; /* Another thread took the processor. */
} ThreadSwitches;

struct Clock {
  ClockSample sample; /* Set before open, like the next two. */
  void *owner;        /* Passed to sample. */
  int signo;          /* The signal. 0: the default, which open stores here. */
  int single;         /* Each arm is for one tick. Set before open. */
  int shared;         /* The program has a handler for the signal. Set by open. */
  const ClockOps *ops;
  ClockSpec spec;
  int tid;             /* The thread. */
  uintptr_t value;     /* Identifies its signals, see lj_clockslot.h. */
  uint32_t process;    /* Process that opened it: a child does not inherit clocks. */
  int armed;           /* Started. */
  timer_t timer;       /* CLOCK_CTIMER, CLOCK_WALL_SIGNAL. */
  int fd;              /* CLOCK_PERF: descriptor that signals; else -1. */
  int count_fd;        /* CLOCK_PERF: descriptor that counts an event; -1 for a clock. */
  uint8_t on_tick;     /* Off-tick clock: who ticks, see lj_clock_offtick.c; */
  uint8_t was_on_tick; /* the timer did so for some time; */
  uint8_t nlook;       /* its looks since then. */
  int stops;           /* CLOCK_PERF: how it stops for a tick, see lj_clock_perf.c. */
  uint64_t kernel_ns;  /* Shortest period that the kernel allows; 0: any. Set by open. */
  uint64_t signal_ns;  /* Interrupt and signal of a tick, once open; 0: none of its own. */
  uint64_t safe_ns;    /* CLOCK_PERF: shortest period on a kernel that hangs; else 0. */
  uint32_t processors; /* On which its thread may run. */
  uint32_t
    in_thread;      /* Armed clocks of its thread, of real time or of CPU time like this. */
  Clock *part_next; /* Next clock with a part of the budget, see lj_clockbudget.c. */
  size_t
    stack_left; /* Set by the handler: what a signal stack that is too small had left. */
  uint64_t uncounted; /* Ticks for which it had too little even to count them. */
  /* Set by the handler only, once armed. */
  uint64_t begin_ns;         /* CLOCK_MONOTONIC when the handler began with this tick. */
  uint64_t random;           /* State of lj_clockops_random. */
  uint64_t last;             /* Total at the last tick, in nanoseconds or occurrences. */
  uint64_t period_now;       /* Period until the next tick. */
  uint64_t period_set;       /* In place of the spec's, by the budget; or 0. */
  uint64_t left;             /* Left out by period_set, below a period of the spec. */
  ThreadSwitches first, now; /* CLOCK_CTIMER: at its first and last tick, without waits. */
  ThreadSwitches looked;     /* Off-tick clock: at its last look. */
  uint64_t read_ns, read_cpu_ns;        /* CLOCK_MONOTONIC and CPU time at the last read. */
  uint64_t ticked_ns;                   /* Periods of the ticks since then, */
  uint32_t nticked;                     /* and how many. */
  uint64_t raw, enabled_ns, running_ns; /* CLOCK_PERF: last values read. */
  uint64_t look_cpu_ns, look_enabled_ns; /* CLOCK_PERF: at the last revive; else 0. */
  uint32_t saving; /* CLOCK_PERF: odd while a tick changes last and these. */
};

/* Read them. Async-signal-safe. */
LJ_FUNC void lj_clockops_switches(ThreadSwitches *ts);

/* Seed the random numbers of a clock, from its tid. */
LJ_FUNC void lj_clockops_seed(Clock *c);

/* A random number in [1, n]. */
LJ_FUNC uint64_t lj_clockops_random(Clock *c, uint64_t n);

/* The next period. Without jitter it is the clock's own. With jitter it lies between half
** and one and a half of that, and its mean is that.
*/
LJ_FUNC uint64_t lj_clockops_period(Clock *c);

/* CPU time of the calling thread, the clock's, at its tick; ticked_ns: its period, which has
** passed since the last tick. A system call reads it, unless that is needless: the thread
** has used at least the periods since the last read, and at most the real time. So if the
** two agree, the thread was never off the processor, and the real time is the CPU time. Each
** read corrects what was left out before, so the sum of all weights stays the CPU time. Only
** for a clock with exact ticks: one on the kernel's tick may come a whole tick late.
*/
LJ_FUNC uint64_t lj_clockops_cpu(Clock *c, uint64_t ticked_ns);

/* Read it at the next tick. */
static LJ_AINLINE void lj_clockops_cpu_forget(Clock *c)
{
  c->read_ns = 0;
}

/* The period without jitter. */
static LJ_AINLINE uint64_t lj_clockops_mean(const Clock *c)
{
  return c->period_set ? c->period_set : c->spec.period;
}

/* Periods beyond the first one in an amount, to the nearest. */
LJ_FUNC int lj_clockops_overrun(const Clock *c, uint64_t amount);

#endif
