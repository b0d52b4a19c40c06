/*
** Signal actions (sigaction) of the clocks, and pending signals of a closed clock.
** Context: any thread, not the handler | use, take, done, forget: under the lock.
**
** Our handler is installed while clocks are open, the program's before and after. The
** lock is that of lj_clock.
*/

#ifndef _LJ_CLOCKACTION_H
#define _LJ_CLOCKACTION_H

#include <signal.h>

#include "profile/clock/lj_clockops.h"
#include "profile/base/lj_ossignal.h"

/* May clocks use a signal? If not, errmsg[EVENT_ERRMSG_MAX] gets one sentence. */
LJ_FUNC int lj_clockaction_isfree(int signo, char *errmsg);

/* Does the program have a handler for a signal, installed or below ours? */
LJ_FUNC int lj_clockaction_isshared(int signo);

/* Count a clock, which uses its signal; the first one installs our handler. Returns 0, or -1
** and errno.
*/
LJ_FUNC int lj_clockaction_use(const Clock *c);

/* Take back the signals of closed clocks that are pending for the calling thread, the
** clock's. Other signals stay pending.
*/
LJ_FUNC void lj_clockaction_take(const Clock *c);

/* May a clock's signal be pending for its thread? */
LJ_FUNC int lj_clockaction_ispending(const Clock *c);

/* Discount a closed clock. own: the caller is its thread. The last one restores the
** program's action, unless a signal of ours may be pending: it would end the program.
*/
LJ_FUNC void lj_clockaction_done(const Clock *c, int own);

/* Install a handler of ours for the signals of other senders than clocks. If clocks use the signal, theirs
** calls it, as a handler of the program. *old gets the program's action. Returns 1; 0 if the program has a
** handler; or -1 and errno.
*/
LJ_FUNC int lj_clockaction_share(int signo, SignalHandler handler, struct sigaction *old);

/* Undo that below the clocks' handler: give old back, at once where no clock uses the signal and none of
** ours may be pending, else when the clocks end. Returns 0 if the clocks' handler is not installed.
*/
LJ_FUNC int lj_clockaction_unshare(int signo, SignalHandler handler,
				   const struct sigaction *old);

/* In a child of fork(): restore all actions. */
LJ_FUNC void lj_clockaction_forget(void);

/* Has the program replaced our handler of a signal that clocks use? */
LJ_FUNC int lj_clockaction_isreplaced(int signo);

/* The signals of all open clocks. */
LJ_FUNC SignalMask lj_clockaction_signals(void);

#endif
