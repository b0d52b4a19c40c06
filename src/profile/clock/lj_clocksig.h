/*
** The signal handler of the clocks: whose signal it is.
**
** Runs in the handler, but for passto. Async-signal-safe.
*/

#ifndef _LJ_CLOCKSIG_H
#define _LJ_CLOCKSIG_H

#include <signal.h>

#include "lj_def.h"

/* Have the clock whose signal it is tick; one that is not ours is passed on. */
LJ_FUNC void lj_clocksig_handler(int signo, siginfo_t *info, void *uc);

/* What a signal is passed on to: the program's action. Outside of the handler, which
** may run meanwhile.
*/
LJ_FUNC void lj_clocksig_passto(int signo, const struct sigaction *sa);

/* The value in the table of clocks that a signal stands for, 0 if it is none of
** ours, or the timer's of the process.
*/
LJ_FUNC uintptr_t lj_clocksig_value(const siginfo_t *info);

#endif
