/*
** Loaded objects that nobody can unload: the ranges of their addresses.
** Context: any thread, unless a function says otherwise.
**
** These objects stay while this library's code runs: the program, the kernel's vDSO, the
** dynamic linker, the C library, this library, and all that the dynamic linker loaded at
** the program's start. glibc unloads only what dlopen(3) has loaded. It lists objects in
** the order in which it loaded them: the program, LD_PRELOAD, what the program needs
** (DT_NEEDED), what the next object needs, and so on. warmup follows the list by these
** names, up to the first object that does not fit. Later objects count as unloadable.
*/

#ifndef _LJ_OSOBJECTS_H
#define _LJ_OSOBJECTS_H

#include "lj_def.h"

struct dl_phdr_info; /* Of <link.h>. */

/* Find the objects that stay, once, before the first sample. Under the lock. */
LJ_FUNC void lj_osobjects_warmup(void);

/* Is an address in an object that stays? Async-signal-safe. Needs lj_osobjects_warmup. */
LJ_FUNC int lj_osobjects_stay(uintptr_t addr);

/* Addresses of an object of dl_iterate_phdr(3). Returns 0 if nothing of it is loaded. */
LJ_FUNC int lj_osobjects_range(const struct dl_phdr_info *info, uintptr_t *start,
			       uintptr_t *end);

/* Index of an object's unwind information, or NULL. */
LJ_FUNC void *lj_osobjects_ehframe(const struct dl_phdr_info *info);

#endif
