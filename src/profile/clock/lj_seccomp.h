/*
** System calls that a seccomp filter ends the process for, as the filters of
** systemd's services do if they are not told otherwise.
*/

#ifndef _LJ_SECCOMP_H
#define _LJ_SECCOMP_H

#include "lj_def.h"

/* Would the process end, or may it, if it made this call? With a filter, a child tries
** it, with no arguments, once: known, 0 at first, keeps the answer. A filter that is
** added to another later is not asked. Not in the handler.
*/
LJ_FUNC int lj_seccomp_isdeadly(long nr, int *known);

#endif
