/*
** Symbols of a profile: ids of Lua functions, and what was seen of the host.
**
** In the handler: gives each Lua function a small id when it is first seen and
** remembers the addresses of host code. At stop, outside of it: names for what
** was seen. Holds the load map. Fixed memory.
*/

#ifndef _LJ_SYMTAB_H
#define _LJ_SYMTAB_H

#include "lj_obj.h"
#include "profile/format/lj_framelist.h"
#include "profile/symbols/lj_loadmap.h"
#include "profile/base/lj_safeload.h"
#include "profile/format/lj_wbuf.h"

#define SYMTAB_LFUNCS     4096  /* Lua functions known at a time, power of 2. */
#define SYMTAB_ADDRS      32768 /* Host addresses remembered, power of 2. */
#define SYMTAB_PROBES     16    /* Slots of a hash table tried. */
#define SYMTAB_CHUNK_MAX  240   /* Bytes of a chunk's name that are kept. */
#define SYMTAB_NAME_MAX   64    /* Bytes of a function's name that are kept. */
#define SYMTAB_NAME_TRIES 8     /* Calls at which a name is looked for. */

/* Where the name of a Lua function comes from, the best last. */
typedef enum SymNameRank {
  SYMNAME_NONE,
  SYMNAME_ROLE,  /* What it is called for: a metamethod, an iterator. */
  SYMNAME_CALL,  /* As it is named where it is called. */
  SYMNAME_UPVAL, /* Of a variable that holds it. */
  SYMNAME_DEF,   /* As it is named where it is defined. */
  SYMNAME_PATH   /* From the globals or a loaded module on. */
} SymNameRank;

/* A part of a name: any bytes, in memory that was found to be readable. */
typedef struct NamePart {
  const char *s;
  uint32_t len;
} NamePart;

/* A Lua function. The same prototype keeps its id as long as it is known; if
** its memory is used for another function, that gets another id: the VM says
** when a prototype is freed, and the key covers what identifies a function in
** its source. The functions of one sample are never replaced within it, as long
** as they are less than half of the table.
*/
typedef struct SymLFunc {
  uint64_t key;      /* Hash of the prototype's identity. */
  const GCproto *pt; /* The prototype, NULL when it was freed. */
  uint32_t fid;      /* Id, 0 for a free entry. */
  uint32_t epoch;    /* Chunk (or retry) that defines it. */
  uint32_t site;     /* Call at which a name was last looked for. */
  uint8_t tries;     /* Calls at which none was found. */
  uint8_t rank;      /* SymNameRank of the name. */
  uint8_t namelen;
  char name[SYMTAB_NAME_MAX];
} SymLFunc;

typedef struct Symtab {
  uint32_t nfid;                     /* Last id given. */
  uint32_t naddr;                    /* Addresses remembered. */
  uint32_t last;                     /* Index of the function asked for last. */
  uint32_t freed;                    /* Prototypes freed. */
  uint32_t lookups;                  /* Names looked for in this sample, */
  uint64_t lookups_gen;              /* which is this generation of Peek. */
  int vm_readable;                   /* At stop: its prototypes can be read. */
  uint8_t ffid[256];                 /* Builtin functions seen. */
  uint16_t index[SYMTAB_LFUNCS * 2]; /* Hash table over lfunc, plus 1. */
  SymLFunc lfunc[SYMTAB_LFUNCS];     /* By id, the oldest replaced first. */
  uintptr_t addr[SYMTAB_ADDRS];      /* Hash table of addresses. */
  Modules modules;                   /* Load map. */
} Symtab;

/* Is an id too young to be given up in this sample? */
static LJ_AINLINE int lj_symtab_isrecent(const Symtab *st, uint32_t fid)
{
  return st->nfid - fid < SYMTAB_LFUNCS / 2;
}

/* Id of a valid prototype, 0 if it cannot be read. Async-signal-safe. */
LJ_FUNC uint32_t lj_symtab_lfunc(Symtab *st, SafeLoad *pk, const GCproto *pt);

/* Entry of a prototype that is alive, NULL if it was not seen. Async-signal-
** safe; does not read the prototype.
*/
LJ_FUNC SymLFunc *lj_symtab_find(Symtab *st, const GCproto *pt);

/* A prototype is freed: its id is never given again. Not in the handler. */
LJ_FUNC void lj_symtab_free(Symtab *st, const GCproto *pt);

/* Name a function by parts, unless it has a name of that rank or of a better
** one. Async-signal-safe.
*/
LJ_FUNC void lj_symtab_setname(SymLFunc *lf, SymNameRank rank, const NamePart *part,
			       uint32_t n);

/* Append the definition of a Lua function, unless this epoch has it already.
** Only in the sample that its id was got for. Async-signal-safe.
*/
LJ_FUNC void lj_symtab_define(Symtab *st, WBuf *wb, uint32_t fid, uint32_t epoch);

/* Is a readable prototype a main chunk? Bytecode without debug information has no
** lines: then it is, if it looks like one.
*/
LJ_FUNC int lj_symtab_ismain(const GCproto *pt);

/* Remember what a frame refers to, for lj_symtab_names. Async-signal-safe. */
LJ_FUNC void lj_symtab_see(Symtab *st, FrameWord w);

/* Append the names of all that was seen. Not in the handler. Returns 0 if
** memory ran out; names are missing then.
*/
LJ_FUNC int lj_symtab_names(Symtab *st, WBuf *wb, DefCommit commit, void *ctx);

#endif
