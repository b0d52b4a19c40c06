/*
** Clocks of sampled threads: open, arm, close.
** Context: any thread, not the handler.
**
** A clock belongs to one thread and has one owner; a thread may have several. sysprof and
** LuaJIT's jit.profile share this module; a process runs one of the two at a time. The
** handler passes a signal of another sender on to the program's own handler.
**
**   open -> arm -> (ticks) -> close
*/

#ifndef _LJ_CLOCK_H
#define _LJ_CLOCK_H

#include "lj_def.h"
#include "profile/clock/lj_clockops.h"
#include "profile/base/lj_ossignal.h"

/* Create a clock of a thread of this process and install the signal handler. The caller
** has set sample, owner and signo. The kind CLOCK_CPU becomes the kind that was
** opened, see c->spec. On EVENT_ERROR, errmsg[EVENT_ERRMSG_MAX] gets one sentence with
** the reason and the remedy.
*/
LJ_FUNC EventStatus lj_clock_open(Clock *c, const ClockSpec *spec, int tid, char *errmsg);

/* Start it; the first tick comes after a random part of the period. A single clock ticks once,
** after its period, and may be armed again then. EVENT_OK or EVENT_ERROR.
*/
LJ_FUNC EventStatus lj_clock_arm(Clock *c);

/* Start a clock again whose signal the program has taken, by sigwait() for example. Call it
** now and then for a clock that has not ticked for a while.
*/
LJ_FUNC void lj_clock_revive(Clock *c);

/* Stop and close an open clock, armed or not. Waits for a tick that runs on another
** thread; no tick follows.
*/
LJ_FUNC void lj_clock_close(Clock *c);

/* Signals that clocks and control choose from: the first one without a handler of the program. 0 ends
** them.
*/
LJ_DATA const int lj_clock_choices[];

/* lj_clockaction_share and _unshare, from any thread. */
LJ_FUNC int lj_clock_sharesignal(int signo, SignalHandler handler, struct sigaction *old);
LJ_FUNC int lj_clock_unsharesignal(int signo, SignalHandler handler,
				   const struct sigaction *old);

/* Start and stop a clock for jit.profile, interval in milliseconds. Start returns 0 if
** sysprof runs.
*/
LJ_FUNC int lj_clock_jitp_start(void (*handler)(int), int interval);
LJ_FUNC void lj_clock_jitp_stop(void);

/* In a child of fork(): forget the parent's clocks, which tick on in the parent. The C
** library's fork() calls this.
*/
LJ_FUNC void lj_clock_forget(void);

#endif
