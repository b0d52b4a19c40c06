/*
** Memory that the limits of the process's control groups leave.
** Context: under the lock, on any thread, outside of the handler.
*/

#ifndef _LJ_MEMROOM_H
#define _LJ_MEMROOM_H

#include "lj_def.h"

/* Bytes that the process's groups may still take; ~0 without a limit. Cached files that the kernel
** may drop do not count. May change errno.
*/
LJ_FUNC uint64_t lj_memroom_left(void);

#endif
