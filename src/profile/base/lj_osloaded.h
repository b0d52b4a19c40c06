/*
** Loaded objects by address, without a lock.
** Context: find, describe and miss: handler and any thread | use: before all others | renew: under the
** lock, outside of the handler.
**
** glibc has _dl_find_object(3) from 2.35 on. For an older one, this module keeps a table of all
** objects that dl_iterate_phdr(3) lists. The program changes the list at any time, so the table is
** late. So find compares the memory at an object's addresses with the object: its build-id, else
** the beginning of its unwind index. Code that has taken the place of a known object is unknown,
** until renew. Without a build-id, describe also compares the head of the dynamic linker's
** description.
**
** The table has two arrays. renew fills the one that is not in use, and publishes it by its
** number. find reads the number before and after its search, and searches again if it has
** changed. It leaves nothing behind, so a handler may end anywhere in it. No array is freed.
*/

#ifndef _LJ_OSLOADED_H
#define _LJ_OSLOADED_H

#include <dlfcn.h> /* Needs _GNU_SOURCE, for _dl_find_object. */

#include "lj_def.h"
#include "profile/base/lj_safeload.h"

/* Limit of objects known at a time without `_dl_find_object`: (their frames are gaps) */
#define OSLOADED_MAX 1024

struct r_debug; /* Of <link.h>. */

/* The table is in use: the C library has no _dl_find_object. */
LJ_DATA int lj_osloaded_isown;

/* Use the table. maps: the dynamic linker's list of its descriptions, or NULL. */
LJ_FUNC void lj_osloaded_use(const struct r_debug *maps);

/* Bring the table up to date. Costs little if the program has loaded and unloaded nothing.
** Needs lj_osobjects_warmup.
*/
LJ_FUNC void lj_osloaded_renew(void);

/* Search the table, as _dl_find_object does. pk NULL: does not compare the memory. described: also
** compares the dynamic linker's description.
*/
LJ_FUNC int lj_osloaded_search(SafeLoad *pk, uintptr_t addr, struct dl_find_object *found,
			       int described);

/* An address was in no object. Returns 1 if renew may find one: once for each page and state
** of the table.
*/
LJ_FUNC int lj_osloaded_miss(uintptr_t addr);

/* Find the object of an address, its index and its place. Returns -1 if none is known. */
static LJ_AINLINE int osloaded_find(SafeLoad *pk, uintptr_t addr,
				    struct dl_find_object *found)
{
  return LJ_LIKELY(!lj_osloaded_isown) ? _dl_find_object((void *)addr, found)
				       : lj_osloaded_search(pk, addr, found, 0);
}

/* The same for callers that read the dynamic linker's description of the object. */
static LJ_AINLINE int osloaded_describe(SafeLoad *pk, uintptr_t addr,
					struct dl_find_object *found)
{
  return LJ_LIKELY(!lj_osloaded_isown) ? _dl_find_object((void *)addr, found)
				       : lj_osloaded_search(pk, addr, found, 1);
}

#endif
