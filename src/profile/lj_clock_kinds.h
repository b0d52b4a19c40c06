/*
** What the kinds of clocks have in common with lj_clock: how each is made, armed
** and ended. All but the ticks run outside of the handler.
*/

#ifndef _LJ_CLOCK_KINDS_H
#define _LJ_CLOCK_KINDS_H

#include "profile/lj_clock.h"

/* The signal handler found out whose signal it is. In the handler, on the clock's
** thread.
*/
LJ_FUNC void lj_clock_tick(Clock *c, const siginfo_t *info, ucontext_t *uc);

/* The kernel's id of the clock of a thread's CPU time. */
LJ_FUNC clockid_t lj_clock_thread_id(int tid);

/* A number in [1, n], for the clock alone. Async-signal-safe. */
LJ_FUNC uint64_t lj_clock_random(Clock *c, uint64_t n);

/* Open: 0, or an errno and, in why, the reason. value: what its signals are to
** carry. Arm: 0 or an errno; first: until the first tick. End: no more signals
** are sent after it.
*/

/* POSIX timers: CLOCK_CTIMER, CLOCK_WALL. */
LJ_FUNC int lj_clock_timer_open(Clock *c, uintptr_t value, char *why);
LJ_FUNC int lj_clock_timer_arm(Clock *c, uint64_t first);
LJ_FUNC void lj_clock_timer_end(Clock *c);

#endif
