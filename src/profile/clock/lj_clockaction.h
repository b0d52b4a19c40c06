/*
** The actions of the clocks' signals: our handler as long as there are clocks, the
** program's before and after. Which signals are free for us.
**
** Runs outside of the handler; use, done and forget under the lock of lj_clock.
*/

#ifndef _LJ_CLOCKACTION_H
#define _LJ_CLOCKACTION_H

#include "profile/clock/lj_clock.h"

/* Can clocks have a signal? If not, says why in why[CLOCK_WHY_MAX]. */
LJ_FUNC int lj_clockaction_isfree(int signo, char *why);

/* One more clock has a signal; our handler is installed with the first. Returns 0, or
** -1 and errno, then it has not.
*/
LJ_FUNC int lj_clockaction_use(int signo);

/* A clock that is gone had its signal. own: this is its thread. With the last one, the
** program's action is put back, unless a signal of ours may be pending somewhere, which
** would end the program.
*/
LJ_FUNC void lj_clockaction_done(const Clock *c, int own);

/* In a child of fork(): put all back. */
LJ_FUNC void lj_clockaction_forget(void);

/* Do clocks run on a signal that the program has another handler for by now? */
LJ_FUNC int lj_clockaction_isreplaced(int signo);

/* Signals of the clocks that run: bit signo-1. Async-signal-safe. */
LJ_FUNC uint64_t lj_clockaction_inuse(void);

#endif
