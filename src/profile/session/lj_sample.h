/*
** The sample: what a tick of a session's clock makes of the interrupted thread.
** Runs in the signal handler on the session's thread; takes no lock and touches
** its own session only, but for the few shared fields of Profile (lj_session.h).
*/

#ifndef _LJ_SAMPLE_H
#define _LJ_SAMPLE_H

#include "profile/session/lj_session.h"

/* Tick of a session's clock, see ClockTick. Async-signal-safe. */
LJ_FUNC void lj_sample_tick(void *session, int event, int overrun, ucontext_t *uc);

/* Count the time that the last sample has taken, which is done by the next one else.
** While no tick runs.
*/
LJ_FUNC void lj_sample_account(Session *s);

#endif
