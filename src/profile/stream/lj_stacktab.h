/*
** Stack table: writes each stack once in a chunk, and refers to it by its id.
** Context: handler.
**
** A chunk holds the frames of a stack before its first reference. It holds them as a
** difference to another stack of the chunk. Allocates nothing.
*/

#ifndef _LJ_STACKTAB_H
#define _LJ_STACKTAB_H

#include "profile/capture/lj_framelist.h"
#include "profile/symbols/lj_symtab.h"
#include "profile/format/lj_wbuf.h"

#define STACKTAB_STACKS        2048  /* Stacks in the table, a power of two. */
#define STACKTAB_PREFIXES      2048  /* Beginnings of stacks, a power of two. */
#define STACKTAB_MORE_STACKS   16384 /* The same of the larger tables. */
#define STACKTAB_MORE_PREFIXES 8192
#define STACKTAB_PROBES        8 /* Slots of a table tried. */

typedef struct StackEntry {
  uint64_t hash;  /* Of its frames, 0 for a free slot. */
  uint32_t id;    /* Id in that chunk. */
  uint32_t epoch; /* Epoch of its definition. */
} StackEntry;

/* The outermost frames of a stack that this chunk defines. */
typedef struct StackPrefix {
  uint64_t hash;  /* Of these frames. */
  uint32_t id;    /* The stack. */
  uint32_t epoch; /* Epoch of its definition. */
} StackPrefix;

/* Larger tables. Clear it before use. */
typedef struct StackMore {
  StackEntry stack[STACKTAB_MORE_STACKS];
  StackPrefix prefix[STACKTAB_MORE_PREFIXES];
} StackMore;

/* The tables stand first, so that the rest shares a page with what follows. */
typedef struct StackTab {
  StackEntry stack[STACKTAB_STACKS];
  StackPrefix prefix[STACKTAB_PREFIXES];
  uint64_t path[FRAMELIST_MAX]; /* Hashes of a stack's beginnings. */
  StackMore *more;              /* Larger tables, or NULL. */
  int has_moved;                /* The stacks are in the larger tables. */
  uint32_t epoch;               /* Definitions of older epochs are void. */
  uint32_t nstack;              /* Stacks defined in this chunk. */
  uint32_t nprefix;             /* Beginnings of them. */
} StackTab;

/* Forget all. Does not touch memory that is still zero: untouched pages cost nothing. */
LJ_FUNC void lj_stacktab_reset(StackTab *t);

/* All definitions are void: the same addresses may have other code now. */
static LJ_AINLINE void stacktab_void(StackTab *t)
{
  t->epoch++;
}

/* All definitions are void, and ids begin again: a chunk begins, or the stream has taken
** back a sample.
*/
static LJ_AINLINE void stacktab_next(StackTab *t)
{
  stacktab_void(t);
  t->nstack = t->nprefix = 0;
}

/* Hash of a list of frames, never 0. */
LJ_FUNC uint64_t lj_stacktab_hash(const FrameSpan *fr);

/* Id of a list with this hash, 0 if it is empty. Defines the list in this chunk, and its
** functions before it, unless the chunk has it already. The batch has the functions.
*/
LJ_FUNC uint32_t lj_stacktab_id(StackTab *t, Symtab *st, const Batch *b, WBuf *wb,
				const FrameSpan *fr, uint64_t hash);

/* Write the reference to a stack of this chunk. */
LJ_FUNC void lj_stacktab_ref(const StackTab *t, WBuf *wb, uint32_t id);

#endif
