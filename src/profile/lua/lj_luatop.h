/*
** The top frame of a sample's Lua stack: where it may be.
**
** The VM keeps no record of its top frame while it runs Lua code, so the frame
** base is looked for where the VM may hold it at that instruction: a short list
** of candidates, best first, which the walk of the stack tries. Runs in the
** signal handler.
*/

#ifndef _LJ_LUATOP_H
#define _LJ_LUATOP_H

#include "profile/lua/lj_luaframe.h"
#include "profile/lua/lj_luawalk.h"
#include "profile/lua/lj_luatrace.h"

#define LUATOP_CANDIDATES 16

/* A place where the top frame may be. */
typedef struct Candidate {
  uintptr_t frame; /* Link slot of the top frame. */
  uintptr_t pc;    /* PC of the top function, 0 if unknown. */
  uint32_t ffid;   /* Builtin above it whose frame is gone, or 0. */
} Candidate;

typedef struct LuaTop {
  TraceStack ts; /* If ts.runs, the only candidate is its base. */
  int n;
  Candidate c[LUATOP_CANDIDATES];
} LuaTop;

/* Look for the top frame of the stack that the innermost VM frame runs on, or of
** the main thread if there is none. Async-signal-safe.
*/
LJ_FUNC void lj_luatop_find(LuaTop *top, const LuaWalk *ls, const LuaArea *a,
			    const ucontext_t *uc);

/* Can lj_luatop_isbare be true of a VM frame? */
LJ_FUNC int lj_luatop_maybebare(SafeLoad *pk, uintptr_t cf);

/* Is cf a VM frame that runs no Lua frame of its own, with frame on top? */
LJ_FUNC int lj_luatop_isbare(const LuaArea *a, uintptr_t cf, uintptr_t frame);

#endif
