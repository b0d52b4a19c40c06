/*
** Stacks of the stream: each is written out when a chunk first refers to it, as a
** difference to another one of the chunk; afterwards it is its id.
**
** Runs in the signal handler; allocates nothing.
*/

#ifndef _LJ_STACKTAB_H
#define _LJ_STACKTAB_H

#include "profile/format/lj_framelist.h"
#include "profile/symbols/lj_symtab.h"
#include "profile/format/lj_wbuf.h"

#define STACKTAB_STACKS   16384 /* Stacks remembered, a power of two. */
#define STACKTAB_PROBES   8     /* Slots of the table tried. */
#define STACKTAB_PREFIXES 8192  /* Beginnings of stacks, a power of two. */

typedef struct StackEntry {
  uint64_t hash;  /* Of its frames, 0 for a free slot. */
  uint32_t id;    /* Its id in that chunk. */
  uint32_t epoch; /* In which it is defined. */
} StackEntry;

/* The outermost frames of a stack that is defined in this chunk. */
typedef struct StackPrefix {
  uint64_t hash;  /* Of these frames. */
  uint32_t id;    /* The stack. */
  uint32_t epoch; /* In which it is defined. */
} StackPrefix;

typedef struct StackTab {
  uint32_t epoch;  /* Definitions of older epochs are void. */
  uint32_t nstack; /* Stacks defined in this chunk. */
  StackEntry stack[STACKTAB_STACKS];
  StackPrefix prefix[STACKTAB_PREFIXES];
  uint64_t path[FRAMELIST_MAX]; /* Hashes of a stack's beginnings. */
} StackTab;

/* Forget all. Memory that is zero is left alone: its pages cost nothing so. */
LJ_FUNC void lj_stacktab_reset(StackTab *t);

/* What was defined is void, as its functions are: code may be other code now. */
static LJ_AINLINE void stacktab_void(StackTab *t)
{
  t->epoch++;
}

/* Nothing is defined yet in what follows, and ids begin again: a chunk begins, or what
** was written of a sample was taken back.
*/
static LJ_AINLINE void stacktab_next(StackTab *t)
{
  stacktab_void(t);
  t->nstack = 0;
}

/* Hash of a list of frames, never 0. Async-signal-safe. */
LJ_FUNC uint64_t lj_stacktab_hash(const FrameList *fr);

/* Id of a list with this hash, 0 if it is empty. It is defined in this chunk then:
** written, if it was not before, after the functions in it. Async-signal-safe.
*/
LJ_FUNC uint32_t lj_stacktab_id(StackTab *t, Symtab *st, WBuf *wb, const FrameList *fr,
				uint64_t hash);

/* Write how a stack of this chunk is referred to. Async-signal-safe. */
LJ_FUNC void lj_stacktab_ref(const StackTab *t, WBuf *wb, uint32_t id);

#endif
