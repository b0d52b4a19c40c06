/*
** System calls of live control, and seccomp filters that kill for them.
** Context: as each function says, outside of the handler.
**
** A program may install a filter at any time. Live control makes calls that the program itself may never
** make, long after its start.
*/

#ifndef _LJ_LIVECALLS_H
#define _LJ_LIVECALLS_H

#include "lj_def.h"

/* Why the calling thread cannot serve clients: a sentence, or NULL. Under the lock. */
LJ_FUNC const char *lj_livecalls_problem(void);

/* Can it at least refuse them? Under the lock. */
LJ_FUNC int lj_livecalls_canrefuse(void);

/* Why a recording cannot run on the calling thread: a sentence, or NULL. Under the lock. */
LJ_FUNC const char *lj_livecalls_recordproblem(void);

/* May a filter of another thread kill it for calls that the calling thread may make? */
LJ_FUNC int lj_livecalls_hasown(int tid);

#endif
