/*
** Signals of the clocks: which clock one belongs to, and the signal handler.
**
** A table of slots holds the running clocks. What a clock's signals carry names
** its slot and a generation, so a late one of a clock that is gone is known as
** such. Each handler that uses a slot counts itself there, so that a clock can
** be closed from any thread. The handler reads the table without a lock; all
** the rest runs outside of the handler, under the caller's lock where it is said.
*/

#ifndef _LJ_CLOCKSIG_H
#define _LJ_CLOCKSIG_H

#include "profile/lj_clock.h"

/* Give a clock a slot and a value, and install the handler of its signal.
** CLOCK_BUSY if all are taken, CLOCK_ERROR and errno. Under the lock.
*/
LJ_FUNC ClockStatus lj_clocksig_claim(Clock *c);

/* The clock's kind is known now. Under the lock. */
LJ_FUNC void lj_clocksig_kind(const Clock *c);

/* Does a value belong to a clock that is not retired yet? */
LJ_FUNC int lj_clocksig_islive(uintptr_t value);

/* End the ticks of a clock: none is running when it returns, and none will. Not
** under the lock: another thread's tick may take its time.
*/
LJ_FUNC void lj_clocksig_retire(Clock *c);

/* Free the slot of a retired clock that is stopped. Signals that are
** pending are dropped; with the last clock of the signal the program's handler
** is put back. Under the lock.
*/
LJ_FUNC void lj_clocksig_release(Clock *c);

/* In a child of fork(): free all slots, put all handlers back. */
LJ_FUNC void lj_clocksig_forget(void);

/* Do clocks run on a signal that the program has another handler for by now? */
LJ_FUNC int lj_clocksig_isreplaced(int signo);

/* Does a tick of the clock run? Async-signal-safe. */
LJ_FUNC int lj_clocksig_isticking(const Clock *c);

/* Signals of the clocks that run: bit signo-1. Async-signal-safe. */
LJ_FUNC uint64_t lj_clocksig_inuse(void);

#endif
