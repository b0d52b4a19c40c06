/*
** Identity of the process across fork(), and the library's stay in it.
** Context: any thread, not the handler.
**
** A process id does not distinguish a child from its parent: in pid namespaces both may
** have the same. The kernel clears a page of ours in every child that has its own memory.
** It does so without the C library's fork(), too.
*/

#ifndef _LJ_OSPROCESS_H
#define _LJ_OSPROCESS_H

#include "lj_def.h"

/* Id of the process, never 0. No ancestor of the process has or had the same. Its owner
** recognizes memory that fork() copied by it.
*/
LJ_FUNC uint32_t lj_osprocess_id(void);

/* Count a call of fork(), and return the calls so far, with those that failed. A child inherits the count.
** Children of clone() and posix_spawn() are unknown.
*/
LJ_FUNC void lj_osprocess_addfork(void);
LJ_FUNC uint32_t lj_osprocess_forks(void);

/* Keep this library loaded until the process ends. After a dlclose(), another thread may
** run our handler, or have a signal pending that calls it. Takes the dynamic linker's
** lock, so the caller must not hold a lock of ours.
*/
LJ_FUNC void lj_osprocess_pin(void);

#endif
