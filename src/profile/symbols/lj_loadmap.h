/*
** Load map of a session: which ELF objects are loaded, and where.
**
** All objects are noted at start. In the handler, the addresses of each sample
** are compared with what is noted: what was loaded since then is found by the
** first sample in it, also if it takes the place of something else. Takes no
** lock: _dl_find_object(3) tells what an address belongs to. Fixed memory.
**
** Not looked at again are objects that stay: the program, the C library, the
** vdso, and the one that this code is in.
*/

#ifndef _LJ_LOADMAP_H
#define _LJ_LOADMAP_H

#include "lj_def.h"
#include "profile/format/lj_framelist.h"
#include "profile/base/lj_safeload.h"
#include "profile/format/lj_wbuf.h"

#define LOADMAP_MAX      512  /* Objects known at a time. */
#define LOADMAP_PATH_MAX 4096 /* Bytes of a path, with the zero. */
#define LOADMAP_ID_MAX   64   /* Bytes that tell objects apart. */

typedef struct Module {
  uintptr_t start, end; /* Addresses, end is the first behind it. */
  const void *map;      /* The dynamic linker's own description of it, */
  const void *eh_frame; /* its index of unwind information, */
  const uint8_t *id;    /* and its build-id, or what stands for it. */
  uint32_t idlen;
  uint32_t sample;  /* Looked at last in this one. */
  const char *name; /* Dynamic linker's name, if no build-id. */
  uint64_t idhash;  /* Hash of the bytes at id, and of the name. */
  int stays;        /* Cannot be unloaded while this code runs. */
} Module;

typedef struct Modules {
  uint32_t n;      /* Objects known. */
  uint32_t sample; /* Number of the current sample. */
  uint32_t oldest; /* Next one to be forgotten if there are many. */
  SafeLoad pk;
  char path[LOADMAP_PATH_MAX]; /* Of the object that is being noted. */
  Module list[LOADMAP_MAX];    /* By address, without overlaps. */
} Modules;

/* Append the loaded objects that are not known yet, or have taken the place of
** others. Not in the handler.
*/
LJ_FUNC void lj_loadmap_note(Modules *ms, WBuf *wb, DefCommit commit, void *ctx);

/* Append the objects that the addresses of a sample lie in, if they are not
** known. Returns 1 if there were any: stacks that were defined before are not
** to be referred to any more, because the same addresses are now other code.
** Async-signal-safe.
*/
LJ_FUNC int lj_loadmap_sample(Modules *ms, const FrameList *lua, const FrameList *host,
			      WBuf *wb, DefCommit commit, void *ctx);

#endif
