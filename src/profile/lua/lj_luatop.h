/*
** Candidates for the top frame of a sample's Lua stack.
** Context: handler.
**
** The VM keeps no record of its top frame while it runs Lua code. The handler reads the
** frame base from the places where the VM may hold it at the interrupted instruction.
** It makes a short list of candidates, the best one first, and the walk tries them.
*/

#ifndef _LJ_LUATOP_H
#define _LJ_LUATOP_H

#include "profile/lua/lj_luaframe.h"
#include "profile/lua/lj_luatrace.h"

#define LUATOP_CANDIDATES 16

/* A place where the top frame may be. */
typedef struct Candidate {
  uintptr_t frame; /* Link slot of the top frame. */
  uintptr_t pc;    /* PC of the top function, 0 if unknown. */
  uint32_t ffid;   /* Builtin above the frame, without a frame now, or 0. */
} Candidate;

typedef struct LuaTop {
  TraceStack ts; /* If ts.runs, ts.base is the only candidate. */
  int n;
  Candidate c[LUATOP_CANDIDATES];
} LuaTop;

/* List candidates for the top frame of a coroutine: that of the innermost VM frame, or the
** main thread if no VM frame exists. Async-signal-safe.
*/
LJ_FUNC void lj_luatop_find(LuaTop *top, const LuaInput *in, const LuaArea *a);

/* Can a VM frame exist without a Lua frame? See lj_luatop_hasnoframe. */
LJ_FUNC int lj_luatop_maynoframe(SafeLoad *pk, uintptr_t cf);

/* Is cf a VM frame that runs no Lua frame of its own, with frame on top? */
LJ_FUNC int lj_luatop_hasnoframe(const LuaArea *a, uintptr_t cf, uintptr_t frame);

/* Find the new address of the stack of in->moving, whose old memory is freed.
** Returns 0 if it is not found. Async-signal-safe.
**
** LuaJIT reallocates a stack, and stores its new address some forty instructions later.
** In between, the allocator may write words of its own into the old memory. The
** interrupted code holds the new address in a register or on the C stack.
*/
LJ_FUNC uintptr_t lj_luatop_newstack(const LuaInput *in, const WalkRegs *regs);

#endif
