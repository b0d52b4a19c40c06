/*
** Names of Lua functions, as they are called.
**
** The instruction that called a function tells how the caller names it: a
** global, a field, a method, a local. Such a name counts only if it leads to
** the very function that runs: after a tail call that is another function than
** the one that was called. What cannot be verified gives no name.
**
** Runs in the signal handler, with the walk of the Lua stack: no lock, no
** allocation, every load checked. A function is looked up at a few of its
** calls only, and few functions in one sample.
*/

#ifndef _LJ_CALLNAME_H
#define _LJ_CALLNAME_H

#include "lj_obj.h"
#include "profile/symbols/lj_symtab.h"

/* The frame of a Lua function, and the frame below it. */
typedef struct CallFrame {
  const GCfunc *fn; /* The function. */
  uintptr_t f;      /* Link slot of its frame, the lower one of a
				** vararg function. */
  uintptr_t slots;  /* Its first local, in the upper one. */
  uintptr_t prev;   /* Link slot of the frame below. */
  uintptr_t pc;     /* Where that goes on, if that is known. */
} CallFrame;

/* Is a name wanted for this function, the last one that an id was got for? */
static LJ_AINLINE int lj_callname_wanted(const Symtab *st, const GCproto *pt)
{
  const SymLFunc *lf = &st->lfunc[st->last];
  return lf->pt == pt && lf->rank < SYMNAME_CALL && lf->tries < SYMTAB_NAME_TRIES;
}

/* Was it looked for often enough at this call? */
static LJ_AINLINE int lj_callname_isdone(const Symtab *st, uintptr_t pc)
{
  const SymLFunc *lf = &st->lfunc[st->last];
  return lf->site == ((uint32_t)pc ^ (uint32_t)(pc >> 32)) &&
	 lf->tries >= SYMTAB_NAME_TRIES / 2;
}

/* Look for the name of a function that wants one. Async-signal-safe. */
LJ_FUNC void lj_callname_frame(Symtab *st, SafeLoad *pk, global_State *g,
			       const CallFrame *cf);

/* Would that find nothing new at this call? Async-signal-safe. */
LJ_FUNC int lj_callname_isfinal(const Symtab *st, const global_State *g,
				const CallFrame *cf);

/* Look for that of a function that is compiled into its caller and has no frame.
** pc points behind the call in the caller's bytecode. Async-signal-safe.
*/
LJ_FUNC void lj_callname_inlined(Symtab *st, SafeLoad *pk, global_State *g,
				 const GCproto *pt, const GCproto *caller, uintptr_t pc);

#endif
