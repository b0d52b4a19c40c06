/*
** Checked reading of Lua frames.
** Context: handler.
**
** A sample may interrupt the VM while a Lua stack is half-written. So each address is
** range-checked and probed before it is read, and each object is checked for its type.
**
** A page that is seen for the first time is probed, then loaded. Its memory cannot vanish in
** between, because it is the VM's:
** - A slot of a Lua stack refers to no freed object. Before the collector frees anything,
**   it marks the slots below the top, and clears those above it.
** - An object refers to memory that it owns, and to objects that are not freed.
** A PC comes from a register, or from a slot of any type, so it may point anywhere. The
** walk copies its instruction. An allocator of the program does not announce its unmaps.
** With such an allocator, a gap remains while the VM moves a Lua stack.
*/

#ifndef _LJ_LUAFRAME_H
#define _LJ_LUAFRAME_H

#include "lj_obj.h"
#include "lj_bc.h"
#include "profile/alloc/lj_allochook.h"
#include "profile/base/lj_safeload.h"
#include "profile/host/lj_hostwalk.h"

/* For functions that only refused candidates reach. */
#define LUAFRAME_COLD __attribute__((noinline, cold))

/* Input of the search for the top frame and of the walk. */
typedef struct LuaInput {
  SafeLoad *pk;          /* Fault-safe loads. */
  global_State *g;       /* The VM. */
  const HostWalk *hs;    /* Walked host stack: VM frames, leaf. */
  lua_State *moving;     /* The VM moves the stack of this coroutine, or NULL. */
  uintptr_t moving_from; /* Address of that stack before the move. */
  uint32_t unmaps;       /* lj_safeload_unmaps before the move. */
  uintptr_t moving_to;   /* Its new address if the old memory is freed, or 0. */
} LuaInput;

/* One Lua stack. A frame is named by the address of its link slot. */
typedef struct LuaArea {
  SafeLoad *pk;
  lua_State *L;
  uintptr_t bot; /* Link slot of the bottom frame. */
  uintptr_t end; /* End of the stack. */
} LuaArea;

/* A function in a frame slot. */
typedef struct FrameFunc {
  GCfunc *fn;  /* NULL for the dummy frame of an error. */
  GCproto *pt; /* Prototype of a Lua function, else NULL. */
} FrameFunc;

/* Does LuaJIT's own allocator provide the memory, and announce what it unmaps? */
static LJ_AINLINE int luaframe_istold(const global_State *g)
{
  return allochook_islj(allochook_below(g));
}

/* Set up the stack of a valid coroutine. Returns 0 if the coroutine has no stack. */
LJ_FUNC int lj_luaframe_area(LuaArea *a, const LuaInput *in, lua_State *L);

/* Does the address hold a prototype? */
LJ_FUNC int lj_luaframe_isproto(SafeLoad *pk, const GCproto *pt);

/* Read the function of a frame, after lj_luaframe_has. Returns 0 if it is not valid. */
LJ_FUNC int lj_luaframe_func(const LuaArea *a, uintptr_t f, FrameFunc *ff);

/* Find the caller of a Lua frame: its frame and function. pc: where the caller continues.
** Returns 0 if pc does not belong to the function in the caller's frame.
*/
LJ_FUNC uintptr_t lj_luaframe_caller(const LuaArea *a, uintptr_t f, uintptr_t pc,
				     FrameFunc *ff);

/* Which check refuses the frame at f? Returns SPF_REFUSED_*. Call it only after
** lj_luaframe_has or lj_luaframe_func has refused that frame.
*/
LJ_FUNC LUAFRAME_COLD int lj_luaframe_refusal(const LuaArea *a, uintptr_t f);

/* Which check refuses the caller of the frame at f? Returns SPF_REFUSED_*. Call it only
** after lj_luaframe_caller has refused that frame.
*/
LJ_FUNC LUAFRAME_COLD int lj_luaframe_caller_refusal(const LuaArea *a, uintptr_t f,
						     uintptr_t pc);

/* May a frame have its link slot at f? */
static LJ_AINLINE int lj_luaframe_has(const LuaArea *a, uintptr_t f)
{
  return f - a->bot < a->end - a->bot && (f & 7) == 0 && lj_safeload_near(a->pk, f - 8);
}

static LJ_AINLINE uint64_t lj_luaframe_link(uintptr_t f)
{
  return *(const uint64_t *)f;
}

static LJ_AINLINE uint64_t lj_luaframe_slot(uintptr_t f)
{
  return *(const uint64_t *)(f - 8);
}

/* Does a frame, after lj_luaframe_has, hold a Lua function of this live prototype?
*/
static LJ_AINLINE int lj_luaframe_isof(const LuaArea *a, uintptr_t f, const GCproto *pt,
				       FrameFunc *ff)
{
  uint64_t slot = lj_luaframe_slot(f);
  GCfunc *fn = (GCfunc *)(uintptr_t)(slot & LJ_GCVMASK);
  if ((uint32_t)((int64_t)slot >> 47) != (uint32_t)LJ_TFUNC || ((uintptr_t)fn & 7) != 0 ||
      !lj_safeload_vm(a->pk, fn, offsetof(GCfuncL, uvptr)) ||
      fn->l.gct != (uint8_t)~LJ_TFUNC || mref(fn->l.pc, const BCIns) != proto_bc(pt))
    return 0;
  ff->fn = fn;
  ff->pt = (GCproto *)pt;
  return 1;
}

/* Does a PC, which points behind its instruction, belong to a prototype? */
static LJ_AINLINE int lj_luaframe_pcinproto(const GCproto *pt, uintptr_t pc)
{
  uintptr_t bc = (uintptr_t)proto_bc(pt);
  return pc > bc && pc <= bc + (uintptr_t)pt->sizebc * sizeof(BCIns) && (pc & 3) == 0;
}

#endif
