/*
** Blocks SIGPIPE and SIGXFSZ around our writes, so that a failed write never kills the host.
** Context: handler | any thread.
*/

#ifndef _LJ_NOSIG_H
#define _LJ_NOSIG_H

#include <signal.h>

#include "lj_def.h"

typedef struct NoSig {
  sigset_t mask, pending; /* Mask and pending signals before the block. */
} NoSig;

/* Block both signals for this thread. Keeps errno. */
LJ_FUNC void lj_nosig_begin(NoSig *q);

/* Unblock both signals. err: errno of the write, or 0. Keeps errno. */
LJ_FUNC void lj_nosig_end(const NoSig *q, int err);

#endif
