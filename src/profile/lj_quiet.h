/*
** Output without signals: SIGPIPE and SIGXFSZ end a program whose own output fails, and
** must not for ours. Any thread, also in the handler.
*/

#ifndef _LJ_QUIET_H
#define _LJ_QUIET_H

#include <signal.h>

#include "lj_def.h"

typedef struct Quiet {
  sigset_t mask, pending; /* As they were. */
} Quiet;

/* What this thread writes from here to the end sends neither of them. Keeps errno. */
LJ_FUNC void lj_quiet_begin(Quiet *q);

/* err: errno of what was written, or 0. Keeps errno. */
LJ_FUNC void lj_quiet_end(const Quiet *q, int err);

#endif
