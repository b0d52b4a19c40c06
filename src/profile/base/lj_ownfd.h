/*
** File descriptor of ours that the program may close, or reuse the number of.
** Context: any thread; take, outside of the handler. Async-signal-safe.
**
** Daemons close all descriptors that they do not know. The next file that the program opens then
** gets our number. So a descriptor counts as ours only while it has the identity of our file.
*/

#ifndef _LJ_OWNFD_H
#define _LJ_OWNFD_H

#include <sys/types.h>

#include "lj_def.h"

typedef struct OwnFd {
  int fd; /* -1: none. */
  dev_t dev;
  ino_t ino;
} OwnFd;

/* Own a descriptor, under a high number: programs and their children rarely reuse one. Closes
** fd. Returns 0 and sets errno on failure.
*/
LJ_FUNC int lj_ownfd_take(OwnFd *o, int fd);

/* Own a descriptor that is soon closed, under the number that it has. Returns 0 and sets errno on
** failure, then fd is closed.
*/
LJ_FUNC int lj_ownfd_borrow(OwnFd *o, int fd);

/* Is it still our file? */
LJ_FUNC int lj_ownfd_isours(const OwnFd *o);

/* Close the descriptor if it is ours, and forget it. */
LJ_FUNC void lj_ownfd_close(OwnFd *o);

#endif
