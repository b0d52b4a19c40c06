/*
** Loaded ELF objects: range, build-id, path, and whether one has replaced another.
** Context: handler, unless a function says otherwise.
**
** Reads the object in memory. Another thread may unload it at any time, so all loads go
** through lj_safeload_copy. Strings and tables are bounded, and nothing takes a lock.
*/

#ifndef _LJ_ELFOBJ_H
#define _LJ_ELFOBJ_H

#include "lj_def.h"
#include "profile/base/lj_elfnote.h"
#include "profile/base/lj_safeload.h"

#define ELFOBJ_ID_MAX ELFNOTE_ID_MAX /* Bytes that distinguish objects. */
/* Limit of a path, in bytes: (cut) */
#define ELFOBJ_PATH_MAX 4096

struct dl_find_object; /* Of <dlfcn.h>, */
struct dl_phdr_info;   /* and <link.h>. */

/* A loaded object, with all that identifies it. */
typedef struct ElfObj {
  uintptr_t start, end; /* Addresses, end is the first behind it. */
  const void *map;      /* The dynamic linker's own description of it, */
  const void *eh_frame; /* its index of unwind information, */
  const uint8_t *id;    /* and its build-id, or other bytes to compare. */
  const char *name;     /* Dynamic linker's name, without a build-id. */
  uint64_t idhash;      /* Hash of the bytes at id, and of the name. */
  uint32_t idlen;       /* Bytes at id. */
  int stays;            /* The process cannot unload it while this code runs. */
} ElfObj;

/* Description of an object, for its record. */
typedef struct ElfRecord {
  ElfObj obj;
  uintptr_t bias;
  uint32_t idlen;            /* Bytes of id, 0: the object has no build-id. */
  uint8_t id[ELFOBJ_ID_MAX]; /* Copy of the build-id. */
  size_t pathlen;            /* Of path. */
  char *path;                /* Room for ELFOBJ_PATH_MAX bytes; set by the caller. */
} ElfRecord;

/* Is a known object still the one that the dynamic linker has at its address? */
LJ_FUNC int lj_elfobj_same(SafeLoad *pk, const ElfObj *o, const struct dl_find_object *dl);

/* The same without a word of the dynamic linker: are its bytes still at its address? */
LJ_FUNC int lj_elfobj_remains(SafeLoad *pk, const ElfObj *o);

/* Describe the object that the dynamic linker has at an address. */
LJ_FUNC void lj_elfobj_found(SafeLoad *pk, ElfRecord *d, const struct dl_find_object *dl);

/* Describe the memory of an object that was unloaded. */
LJ_FUNC void lj_elfobj_none(ElfRecord *d, const ElfObj *o);

/* Describe an object of dl_iterate_phdr(3). dl: the result of _dl_find_object for it, or
** NULL. Needs lj_osobjects_warmup. VM thread.
*/
LJ_FUNC void lj_elfobj_loaded(SafeLoad *pk, ElfRecord *d, const struct dl_phdr_info *info,
			      const struct dl_find_object *dl);

#endif
