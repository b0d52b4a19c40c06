/*
** Identity of the process across fork(), and the library's stay in it.
** Context: any thread, not the handler.
**
** A process id cannot tell a child from its parent: in pid namespaces both may have the
** same one. The kernel clears a page of ours in every child that has memory of its own,
** also in one that was made without the C library's fork().
*/

#ifndef _LJ_OSPROCESS_H
#define _LJ_OSPROCESS_H

#include "lj_def.h"

/* The process, never 0. No ancestor of the process has or had the same. Memory that
** fork() copied can be recognized by it.
*/
LJ_FUNC uint32_t lj_osprocess_id(void);

/* Keep this library loaded until the process ends: another thread may run our handler, or
** have a signal for it pending, after a dlclose(). Takes the dynamic linker's lock, so not
** under a lock of ours.
*/
LJ_FUNC void lj_osprocess_pin(void);

#endif
