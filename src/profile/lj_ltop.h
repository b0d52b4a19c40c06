/*
** The top frame of a sample's Lua stack: where it may be.
**
** The VM keeps no record of its top frame while it runs Lua code, so the frame
** base is looked for where the VM may hold it at that instruction: a short list
** of candidates, best first, which the walk of the stack tries. Runs in the
** signal handler.
*/

#ifndef _LJ_LTOP_H
#define _LJ_LTOP_H

#include "profile/lj_lframe.h"
#include "profile/lj_lstack.h"
#include "profile/lj_tstack.h"

#define LTOP_CANDIDATES 16

/* A place where the top frame may be. */
typedef struct Candidate {
  uintptr_t frame; /* Link slot of the top frame. */
  uintptr_t pc;    /* PC of the top function, 0 if unknown. */
  uint32_t ffid;   /* Builtin above it whose frame is gone, or 0. */
} Candidate;

typedef struct LuaTop {
  TraceStack ts; /* If ts.runs, the only candidate is its base. */
  int n;
  Candidate c[LTOP_CANDIDATES];
} LuaTop;

/* Look for the top frame of the stack that the innermost VM frame runs on, or of
** the main thread if there is none. Async-signal-safe.
*/
LJ_FUNC void lj_ltop_find(LuaTop *top, const LuaStack *ls, const LuaArea *a,
			  const ucontext_t *uc);

/* Can lj_ltop_isbare be true of a VM frame? */
LJ_FUNC int lj_ltop_maybebare(Peek *pk, uintptr_t cf);

/* Is cf a VM frame that runs no Lua frame of its own, with frame on top? */
LJ_FUNC int lj_ltop_isbare(const LuaArea *a, uintptr_t cf, uintptr_t frame);

#endif
