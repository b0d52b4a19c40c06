/*
** What is loaded: ELF objects, as they are in memory, and what tells one from
** another that takes its place.
**
** Runs in the signal handler, where not said otherwise: all loads are checked,
** strings and tables bounded, no lock is taken.
*/

#ifndef _LJ_ELFOBJ_H
#define _LJ_ELFOBJ_H

#include "profile/symbols/lj_loadmap.h"

struct dl_find_object; /* Of <dlfcn.h>, */
struct dl_phdr_info;   /* and <link.h>. */

/* What goes into the record of an object, but is not all kept. */
typedef struct ObjectRecord {
  Module m;
  uintptr_t bias;
  int has_buildid; /* m.id is one. */
  size_t pathlen;  /* Of the path, in Modules. */
} ObjectRecord;

/* Find the build-id in the notes of an object: returns its address and stores
** its length, or returns NULL. The notes are read by pk, unless that is NULL.
*/
LJ_FUNC const uint8_t *lj_elfobj_buildid(SafeLoad *pk, const uint8_t *notes, size_t sz,
					 uint32_t *len);

/* Is a known object what the dynamic linker has there now? */
LJ_FUNC int lj_elfobj_same(Modules *ms, const Module *m, const struct dl_find_object *obj);

/* Describe what the dynamic linker has at an address. */
LJ_FUNC void lj_elfobj_found(Modules *ms, ObjectRecord *d,
			     const struct dl_find_object *obj);

/* Describe what has taken the place of an object, but is none. */
LJ_FUNC void lj_elfobj_none(Modules *ms, ObjectRecord *d, const Module *m);

/* Begin to describe an object of dl_iterate_phdr(3): where it is. Returns 0 if
** nothing of it is loaded. Not in the handler.
*/
LJ_FUNC int lj_elfobj_range(const struct dl_phdr_info *info, ObjectRecord *d);

/* The rest; obj is what _dl_find_object says of it, or NULL. Not in the handler. */
LJ_FUNC void lj_elfobj_loaded(Modules *ms, ObjectRecord *d, const struct dl_phdr_info *info,
			      const struct dl_find_object *obj);

#endif
