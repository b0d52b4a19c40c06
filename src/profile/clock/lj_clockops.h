/*
** The kinds of clocks: what lj_clock needs of each.
**
**   open    make it, stopped: 0, or an errno and, in why[CLOCK_WHY_MAX], the
**           reason
**   arm     0 or an errno; first: until the first tick, in the spec's unit. Sets
**           armed as soon as a tick may run
**   stop    it sends no more signals
**   close   give back what it has; no tick runs
**   tick    in the handler, on the clock's thread: how many further ticks this
**           one stands for, or -1 if it is none; makes up the next period
**
** All but tick run outside of the handler, open and close under the lock of
** lj_clock.
*/

#ifndef _LJ_CLOCKOPS_H
#define _LJ_CLOCKOPS_H

#include "profile/clock/lj_clock.h"

/* POSIX timers: CLOCK_CTIMER, CLOCK_WALL. */
LJ_FUNC int lj_clock_timer_open(Clock *c, char *why);
LJ_FUNC int lj_clock_timer_arm(Clock *c, uint64_t first);
LJ_FUNC void lj_clock_timer_stop(Clock *c);
LJ_FUNC int lj_clock_timer_tick(Clock *c, const siginfo_t *info);

/* Events of the kernel: CLOCK_PERF. Their signals carry the descriptor only. */
LJ_FUNC int lj_clock_perf_open(Clock *c, char *why);
LJ_FUNC int lj_clock_perf_arm(Clock *c, uint64_t first);
LJ_FUNC void lj_clock_perf_stop(Clock *c);
LJ_FUNC void lj_clock_perf_close(Clock *c);
LJ_FUNC int lj_clock_perf_tick(Clock *c);
/* The reason and the remedy, if the open failed with an errno. */
LJ_FUNC void lj_clock_perf_why(int err, const ClockSpec *spec, char *why);
/* Is it time for a tick? In the handler. */
LJ_FUNC int lj_clock_perf_isdue(const Clock *c);
/* Occurrences so far, or nanoseconds of the task clock. Async-signal-safe. */
LJ_FUNC uint64_t lj_clock_perf_count(const Clock *c);
/* The value for a descriptor that a clock has or had, 0 if none. Async-signal-safe. */
LJ_FUNC uintptr_t lj_clock_perf_value(int fd);
/* No more signals come with this descriptor and value. Async-signal-safe. */
LJ_FUNC void lj_clock_perf_unlist(int fd, uintptr_t value);
/* In a child of fork(): close all that the parent had opened. */
LJ_FUNC void lj_clock_perf_forget(void);

/* The timer of the process: CLOCK_ITIMER. Its signal goes to any thread. */
LJ_FUNC int lj_clock_itimer_open(Clock *c, char *why);
LJ_FUNC int lj_clock_itimer_arm(Clock *c);
LJ_FUNC void lj_clock_itimer_stop(Clock *c);
LJ_FUNC int lj_clock_itimer_tick(Clock *c);
/* Is a signal with this code one of the timer? Async-signal-safe. */
LJ_FUNC int lj_clock_itimer_issignal(int signo, int si_code);
/* Does a clock of another thread have to be told of a tick? In the handler. */
LJ_FUNC int lj_clock_itimer_isstarved(const Clock *c);
LJ_FUNC void lj_clock_itimer_forget(void);

/* Have fork() left alone by the signals, and the child forget the clocks. Once in a
** process. Returns 0 or an errno.
*/
LJ_FUNC int lj_clock_atfork(void);

/* For all kinds. Async-signal-safe. */

/* The kernel's id of the clock of a thread's CPU time. */
LJ_FUNC clockid_t lj_clock_thread_id(int tid);

/* CPU time of a thread in nanoseconds, 0 if it is gone. */
LJ_FUNC uint64_t lj_clock_thread_ns(int tid);

/* A number in [1, n], for the clock alone. */
LJ_FUNC uint64_t lj_clock_random(Clock *c, uint64_t n);

/* The next period of a clock with jitter: its own on average, at most half of it
** more or less.
*/
LJ_FUNC uint64_t lj_clock_jitter(Clock *c);

/* The signal handler found out whose signal it is. */
LJ_FUNC void lj_clock_tick(Clock *c, const siginfo_t *info, ucontext_t *uc);

#endif
