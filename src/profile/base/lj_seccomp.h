/*
** Seccomp filters: does a system call kill the process?
** Context: any thread, not the handler.
**
** A filter belongs to a thread: others have it only if they inherited it, or if the program asked for
** that. So the thread that will make a call tests it.
*/

#ifndef _LJ_SECCOMP_H
#define _LJ_SECCOMP_H

#include "lj_def.h"

/* A system call with arguments that do nothing, but that a filter may look at. */
typedef struct SeccompCall {
  const char *name;
  long nr;
  long arg[3];
} SeccompCall;

/* No descriptor, address, command or flags of a call are -1, so it fails. */
/* clang-format off */
#define SECCOMP_CALL(name) { #name, SYS_##name, { -1, -1, -1 } }
/* clang-format on */

/* Answers so far: zero at first. */
typedef struct SeccompKnown {
  uint64_t of;      /* Thread and number of filters. */
  const char *name; /* Of the first deadly call, or NULL. */
  int untried;      /* The filter refuses that call, so nobody could try the others. */
} SeccompKnown;

/* Filters of a thread of this process. 0: it has none. Kernels before 5.9 do not count them: 1. */
LJ_FUNC uint32_t lj_seccomp_filters(int tid);

/* May a call's errno be the answer of a filter? */
LJ_FUNC int lj_seccomp_isrefusal(int err);

/* strerror(err), and that a filter of the calling thread may be the cause, if it may. */
LJ_FUNC const char *lj_seccomp_strerror(int err);

/* Name of the first of n system calls for which a filter of the calling thread kills the process; NULL
** if none does. In doubt, it is the call that the trial lacks, and known->untried is set. Filters of systemd's services do so by default. If there is a
** filter, a child tries the calls. It tries them again when the thread has more filters.
*/
LJ_FUNC const char *lj_seccomp_deadly(const SeccompCall *calls, int n, SeccompKnown *known);

/* Name of the first of n system calls that a filter of the calling thread refuses with an error; NULL if
** it refuses none. Makes the calls, so none may be deadly.
*/
LJ_FUNC const char *lj_seccomp_refused(const SeccompCall *calls, int n);

#endif
