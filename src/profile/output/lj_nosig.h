/*
** Output without signals: SIGPIPE and SIGXFSZ end a program whose own output fails, and
** must not for ours. Any thread, also in the handler.
*/

#ifndef _LJ_NOSIG_H
#define _LJ_NOSIG_H

#include <signal.h>

#include "lj_def.h"

typedef struct NoSig {
  sigset_t mask, pending; /* As they were. */
} NoSig;

/* What this thread writes from here to the end sends neither of them. Keeps errno. */
LJ_FUNC void lj_nosig_begin(NoSig *q);

/* err: errno of what was written, or 0. Keeps errno. */
LJ_FUNC void lj_nosig_end(const NoSig *q, int err);

#endif
