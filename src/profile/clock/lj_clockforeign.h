/*
** Signals of other senders, forwarded to the program's own handler.
** Context: handler | setaction, isreset: any thread, under the lock of lj_clock.
*/

#ifndef _LJ_CLOCKFOREIGN_H
#define _LJ_CLOCKFOREIGN_H

#include <signal.h>

#include "lj_def.h"
#include "profile/base/lj_ossignal.h"

/* Call the program's handler for a signal. before: the mask in force before our own. */
LJ_FUNC void lj_clockforeign_forward(int signo, siginfo_t *info, void *uc,
				     SignalMask before);

/* Set the program's action, which gets the signals of other senders. */
LJ_FUNC void lj_clockforeign_setaction(int signo, const struct sigaction *sa);

/* Did an action with SA_RESETHAND get its one signal? Its handler is SIG_DFL since. */
LJ_FUNC int lj_clockforeign_isreset(int signo);

#endif
