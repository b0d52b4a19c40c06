/*
** Symbols of a profile: ids of Lua functions, and what was seen of the host.
**
** In the handler: gives each Lua function a small id when it is first seen and
** remembers the addresses of host code. At start and stop, outside of it: the
** load map, and names for the remembered addresses. Fixed memory.
*/

#ifndef _LJ_SYMTAB_H
#define _LJ_SYMTAB_H

#include "lj_obj.h"
#include "profile/lj_frames.h"
#include "profile/lj_peek.h"
#include "profile/lj_wbuf.h"

#define SYMTAB_LFUNCS	4096	/* Lua functions known at a time, power of 2. */
#define SYMTAB_ADDRS	32768	/* Host addresses remembered, power of 2. */
#define SYMTAB_MODULES	512	/* Loaded objects noted. */
#define SYMTAB_PROBES	16	/* Slots of a hash table tried. */
#define SYMTAB_CHUNK_MAX  240	/* Bytes of a chunk's name that are kept. */

/* A Lua function. The same prototype keeps its id as long as it is known; if
** its memory is used for another function, that gets another id, because the
** key covers what identifies a function in its source. The functions of one
** sample are never replaced within it, as long as they are less than half of
** the table.
*/
typedef struct SymLFunc {
  uint64_t key;			/* Hash of the prototype's identity. */
  const GCproto *pt;		/* The prototype, alive in this sample. */
  uint32_t fid;			/* Id, 0 for a free entry. */
  uint32_t epoch;		/* Chunk (or retry) that defines it. */
} SymLFunc;

typedef struct Symtab {
  uint32_t nfid;			/* Last id given. */
  uint32_t naddr;			/* Addresses remembered. */
  uint32_t nmodule;			/* Loaded objects noted. */
  uint8_t ffid[256];			/* Builtin functions seen. */
  uint16_t index[SYMTAB_LFUNCS*2];	/* Hash table over lfunc, plus 1. */
  SymLFunc lfunc[SYMTAB_LFUNCS];	/* By id, the oldest replaced first. */
  uintptr_t addr[SYMTAB_ADDRS];		/* Hash table of addresses. */
  uintptr_t module[SYMTAB_MODULES];	/* Start addresses. */
} Symtab;

/* Id of a valid prototype, 0 if it cannot be read. Async-signal-safe. */
LJ_FUNC uint32_t lj_symtab_lfunc(Symtab *st, Peek *pk, const GCproto *pt);

/* Append the definition of a Lua function, unless this epoch has it already.
** Only in the sample that its id was got for. Async-signal-safe.
*/
LJ_FUNC void lj_symtab_define(Symtab *st, WBuf *wb, uint32_t fid,
			      uint32_t epoch);

/* Remember what a frame refers to, for lj_symtab_names. Async-signal-safe. */
LJ_FUNC void lj_symtab_see(Symtab *st, FrameWord w);

/* Ends the transaction of one definition. Returns 0 if it did not fit; the
** buffer is empty then and the definition is to be appended again.
*/
typedef int (*SymtabCommit)(void *ctx);

/* Append the loaded objects that were not noted yet. Not in the handler. */
LJ_FUNC void lj_symtab_modules(Symtab *st, WBuf *wb, SymtabCommit commit,
			       void *ctx);

/* Append the names of all that was seen. Not in the handler. Returns 0 if
** memory ran out; names are missing then.
*/
LJ_FUNC int lj_symtab_names(Symtab *st, WBuf *wb, SymtabCommit commit,
			    void *ctx);

#endif
