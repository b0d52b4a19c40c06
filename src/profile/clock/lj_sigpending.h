/*
** Signals that are pending when their clock closes. The program's action must not get
** them. Outside of the handler.
*/

#ifndef _LJ_SIGPENDING_H
#define _LJ_SIGPENDING_H

#include <sys/types.h>

#include "profile/clock/lj_clock.h"

/* Take back the signals of clocks that are gone which are pending for this thread, the
** clock's. Others are queued again as they were.
*/
LJ_FUNC void lj_sigpending_take(const Clock *c);

/* Has a thread of this process, the process as a whole, or any thread a signal pending?
** If in doubt, it has.
*/
LJ_FUNC int lj_sigpending_thread(int tid, int signo);
LJ_FUNC int lj_sigpending_process(pid_t pid, int signo);
LJ_FUNC int lj_sigpending_threads(int signo);

#endif
