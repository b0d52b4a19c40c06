/*
** Call names: the name that a caller uses for a Lua function.
** Context: handler.
**
** The instruction that called a function shows how the caller names it: as a global, a
** field, a method or a local. Such a name counts only if it leads to the function that
** runs. After a tail call, the function that runs differs from the called one. The
** search drops a name that it cannot verify.
**
** Takes no lock, allocates nothing, checks every load. Searches at a few calls of each
** function only, and for few functions in one sample.
*/

#ifndef _LJ_CALLNAME_H
#define _LJ_CALLNAME_H

#include "lj_obj.h"
#include "profile/symbols/lj_functab.h"

/* The frame of a Lua function, and the frame below it. */
typedef struct CallFrame {
  const GCfunc *fn; /* The function. */
  uintptr_t f;      /* Link slot of its frame, the lower one of a
				** vararg function. */
  uintptr_t slots;  /* Its first local, in the upper one. */
  uintptr_t prev;   /* Link slot of the frame below. */
  uintptr_t pc;     /* PC of the frame below, 0 if unknown. */
} CallFrame;

/* Does this function need a name? */
static LJ_AINLINE int lj_callname_wanted(const FuncEntry *fe)
{
  return fe->rank < NAME_CALL && fe->tries < FUNCTAB_NAME_TRIES;
}

/* Has the search for its name failed often enough at this call? */
static LJ_AINLINE int lj_callname_isdone(const FuncEntry *fe, uintptr_t pc)
{
  return fe->site == ((uint32_t)pc ^ (uint32_t)(pc >> 32)) &&
	 fe->tries >= FUNCTAB_NAME_TRIES / 2;
}

/* Search for the name of a function that wants one. */
LJ_FUNC void lj_callname_frame(FuncTab *ft, FuncEntry *fe, SafeLoad *pk, global_State *g,
			       const CallFrame *cf);

/* Search for the name of a C function. */
LJ_FUNC void lj_callname_cfunc(FuncTab *ft, CFuncEntry *e, SafeLoad *pk, global_State *g,
			       const CallFrame *cf);

/* Does the collector call the function whose link slot is f? vmframe: the VM's C frame by which C called
** it. That frame then has -1 for the error function, as no other call does (gc_call_finalizer).
*/
LJ_FUNC int lj_callname_isfinalizer(SafeLoad *pk, const global_State *g, uintptr_t f,
				    uintptr_t vmframe);

/* Name a function that the collector calls. */
LJ_FUNC void lj_callname_finalizer(FuncEntry *fe);
LJ_FUNC void lj_callname_cfinalizer(FuncTab *ft, CFuncEntry *e);

/* Would this search find nothing new at this call? */
LJ_FUNC int lj_callname_isfinal(const FuncEntry *fe, const global_State *g,
				const CallFrame *cf);

/* Search for the name of a function that is compiled into its caller and has no frame.
** pc points behind the call in the caller's bytecode.
*/
LJ_FUNC void lj_callname_inlined(FuncTab *ft, FuncEntry *fe, SafeLoad *pk, global_State *g,
				 const GCproto *caller, uintptr_t pc);

#endif
