/*
** Budget of all clocks: the least time between two ticks that leaves the program its share.
** Context: least in the handler | measured, signal, safe: any | the rest under the lock of
** lj_clock.
**
** A tick takes an interrupt, a signal and a sample. The clocks of a process take at most a
** third of the time of its processors. A clock of CPU time ticks on a running thread only.
** So the clocks of a thread share a third of one processor. A clock of real time ticks while
** its thread sleeps, too. So all of these in a process share a third of its processors. If
** both kinds are open, each gets half.
**
** Nothing here depends on what ticks measure, except the time of a sample.
*/

#ifndef _LJ_CLOCKBUDGET_H
#define _LJ_CLOCKBUDGET_H

#include "profile/clock/lj_clockops.h"

/* Time of an interrupt and its signal until it is measured: the longest that was seen. */
#define CLOCKBUDGET_SIGNAL_NS 65000

/* Time of a sample until it is measured. */
#define CLOCKBUDGET_SAMPLE_NS 5000

/* Store the time of an interrupt and its signal for a kind of clocks. */
LJ_FUNC void lj_clockbudget_measured(ClockKind kind, uint64_t ns);

/* Return that time. 0 for a clock on the kernel's tick, which adds no interrupt. */
LJ_FUNC uint64_t lj_clockbudget_signal(ClockKind kind);

/* Shortest period at which a clock of perf that does not stop itself leaves its thread the
** time to run. 0: a shorter one is safe, because it does stop itself, or needs no perf.
*/
LJ_FUNC uint64_t lj_clockbudget_safe(const ClockSpec *spec);

/* Set the period of a spec to the kernel's tick if a clock of perf could not keep it without
** the danger that the kernel hangs, see lj_clockkernel.h. The same if the spec prefers the
** tick, and interrupts at its period would take over 2 % of the time. Set off_tick if delays off
** the kernel's tick would take at most 1 %.
*/
LJ_FUNC void lj_clockbudget_prefer(ClockSpec *spec);

/* Set the cost of the ticks of an open clock. */
LJ_FUNC void lj_clockbudget_price(Clock *c);

/* Give an open clock its part, before it is armed. */
LJ_FUNC void lj_clockbudget_join(Clock *c);

/* Take the part back. Does nothing for a clock without one. */
LJ_FUNC void lj_clockbudget_leave(Clock *c);

/* In a child of fork(): no clock has a part. */
LJ_FUNC void lj_clockbudget_forget(void);

/* Least time from one tick of a clock to the next, in nanoseconds. sample_ns: time of a
** sample. Async-signal-safe.
*/
LJ_FUNC uint64_t lj_clockbudget_least(const Clock *c, uint64_t sample_ns);

/* Write one sentence into text[EVENT_TEXT_MAX] if an open clock does not reach its rate
** on this machine: the rate, and why. Otherwise "".
*/
LJ_FUNC void lj_clockbudget_limit(const Clock *c, char *text);

#endif
