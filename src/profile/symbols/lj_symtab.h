/*
** Symbol table of a session: functions, host addresses and builtins that were seen.
** Context: handler.
**
** The encoder remembers all functions and addresses of the samples. At stop, the VM thread
** writes their names (lj_symrecords). Holds the load map. Fixed memory.
*/

#ifndef _LJ_SYMTAB_H
#define _LJ_SYMTAB_H

#include "lj_obj.h"
#include "profile/capture/lj_batch.h"
#include "profile/capture/lj_framelist.h"
#include "profile/format/lj_wbuf.h"
#include "profile/symbols/lj_functab.h"
#include "profile/symbols/lj_loadmap.h"

#define SYMTAB_BITS      11
#define SYMTAB_ADDRS     (1 << SYMTAB_BITS) /* Host addresses remembered, */
#define SYMTAB_MORE_BITS 15
#define SYMTAB_MORE      (1 << SYMTAB_MORE_BITS) /* and with more memory. */
#define SYMTAB_PROBES    16                      /* Slots of these tables tried. */
#define SYMTAB_FUNCS     512                     /* Functions whose definition is known. */

/* Definition of a Lua function in the stream. */
typedef struct FuncDef {
  uint32_t fid;   /* The function, 0 for none. */
  uint32_t epoch; /* Chunk (or retry) that has it, 0 for none. */
  uint32_t rank;  /* NameRank of its name there. */
  uint32_t body;  /* Its body hash is in the stream. */
  uint32_t batch; /* Batch whose definition is at an offset. */
  uint32_t at;
} FuncDef;

/* Larger tables. Clear it before use. */
typedef struct SymtabMore {
  FuncDef def[FUNCTAB_FUNCS];
  uintptr_t addr[SYMTAB_MORE];
} SymtabMore;

/* Clear it before use, and set loadmap.pk. */
typedef struct Symtab {
  SymtabMore *more;  /* Larger tables, or NULL. */
  int has_funcs;     /* There were definitions. */
  FuncTab *named;    /* At stop: functions with readable prototypes, or NULL. */
  uint32_t naddr;    /* Addresses remembered. */
  int has_moved;     /* They are in the larger table. */
  uint8_t ffid[256]; /* Builtin functions seen. */
  LoadMap loadmap;
  FuncDef def[SYMTAB_FUNCS];    /* Definitions of Lua functions, by id. */
  uintptr_t addr[SYMTAB_ADDRS]; /* Hash table of addresses. */
} Symtab;

/* What a definition says of a function. */
typedef struct FuncText {
  uint32_t fid;
  const GCproto *head; /* Its prototype, or a copy of the head. */
  const char *chunk;   /* Name of its source. */
  uint32_t chunklen;
  const char *name, *path; /* See FuncEntry and FuncTab. */
  uint32_t namelen, pathlen;
} FuncText;

/* An entry of a table of functions. */
typedef struct NamedFunc {
  const FuncTab *ft;
  const FuncEntry *fe;
} NamedFunc;

/* Slot of a function's definition. */
static LJ_AINLINE FuncDef *symtab_def(Symtab *st, uint32_t fid)
{
  return st->more ? &st->more->def[fid % FUNCTAB_FUNCS] : &st->def[fid % SYMTAB_FUNCS];
}

/* Copy the definition of a function of the current sample into the batch. Returns 0 if
** there is no room.
*/
LJ_FUNC int lj_symtab_addfunc(const FuncTab *ft, Batch *b, FuncEntry *fe);

/* The same, unless the batch has it. */
static LJ_AINLINE int symtab_capture(FuncTab *ft, Batch *b, uint32_t fid)
{
  FuncEntry *fe = lj_functab_entry(ft, fid);
  return LJ_LIKELY(fe->batch == b->number) || lj_symtab_addfunc(ft, b, fe);
}

/* Note the definition of a function, which is in the batch at an offset. */
LJ_FUNC void lj_symtab_note(Symtab *st, const Batch *b, uint32_t at);

/* Append the definition of a function of the batch, unless this epoch has it already. */
LJ_FUNC void lj_symtab_define(Symtab *st, const Batch *b, WBuf *wb, uint32_t fid,
			      uint32_t epoch);

/* Append a definition with this payload to the batch. rank: NameRank of the name in it. Returns 0
** if there is no room.
*/
LJ_FUNC int lj_symtab_addpayload(Batch *b, uint32_t fid, uint32_t rank,
				 const uint8_t *payload, uint32_t len);

/* Append the payload of a definition. */
LJ_FUNC void lj_symtab_puttext(WBuf *wb, const FuncText *t);

/* Append the payload of that definition. A DefPayload of a NamedFunc, whose prototype
** can be read.
*/
LJ_FUNC void lj_symtab_putfunc(WBuf *wb, const void *named);

/* Remember the address or builtin function of a frame. */
LJ_FUNC void lj_symtab_see(Symtab *st, FrameWord w);

/* Was there a frame with this address? */
LJ_FUNC int lj_symtab_has(const Symtab *st, uintptr_t addr);

#endif
