/*
** Seccomp filters: does a system call kill the process?
** Context: any thread, not the handler.
*/

#ifndef _LJ_SECCOMP_H
#define _LJ_SECCOMP_H

#include "lj_def.h"

/* Does, or may, a filter kill the process for this system call? Filters of systemd's
** services do so by default. If there is a filter, a child tries the call once, without
** arguments; *known, 0 at first, caches the answer. A filter that the program adds later
** is not tried.
*/
LJ_FUNC int lj_seccomp_isdeadly(long nr, int *known);

#endif
