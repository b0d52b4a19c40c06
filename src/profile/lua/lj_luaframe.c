/*
** Checked reading of Lua frames.
** Context: handler.
*/

#define lj_luaframe_c
#define LUA_CORE

#include "lj_obj.h"
#include "lj_dispatch.h"
#include "profile/format/lj_sysprof_format.h"
#include "profile/lua/lj_luaframe.h"

#define PROTO_BC_MAX (1u << 26) /* No function has more bytecode. */

int lj_luaframe_area(LuaArea *a, const LuaInput *in, lua_State *L)
{
  uintptr_t stack = (uintptr_t)tvref(L->stack);
  a->pk = in->pk;
  a->L = L;
  a->bot = stack + LJ_FR2 * sizeof(TValue);
  a->end = stack + (uintptr_t)L->stacksize * sizeof(TValue);
  if (stack == 0 || (stack & 7) != 0 || a->end <= a->bot) return 0;
  if (LJ_UNLIKELY(in->moving_to != 0) && in->moving == L) {
    a->bot += in->moving_to - in->moving_from;
    a->end += in->moving_to - in->moving_from;
  }
  return 1;
}

int lj_luaframe_isproto(SafeLoad *pk, const GCproto *pt)
{
  return ((uintptr_t)pt & 7) == 0 && lj_safeload_vm(pk, pt, sizeof(GCproto)) &&
	 pt->gct == (uint8_t)~LJ_TPROTO && pt->sizebc > 0 && pt->sizebc <= PROTO_BC_MAX;
}

int lj_luaframe_func(const LuaArea *a, uintptr_t f, FrameFunc *ff)
{
  uint64_t slot = lj_luaframe_slot(f);
  uint32_t tag = (uint32_t)((int64_t)slot >> 47);
  uintptr_t p = (uintptr_t)(slot & LJ_GCVMASK);
  const GCfunc *fn = (const GCfunc *)p;
  ff->fn = NULL;
  ff->pt = NULL;
  if (tag == (uint32_t)LJ_TTHREAD) return p == (uintptr_t)a->L;
  if (tag != (uint32_t)LJ_TFUNC || (p & 7) != 0 ||
      !lj_safeload_vm(a->pk, fn, sizeof(GCfuncC)) || fn->c.gct != (uint8_t)~LJ_TFUNC)
    return 0;
  if (isluafunc(fn)) {
    GCproto *pt = (GCproto *)(mref(fn->l.pc, char) - sizeof(GCproto));
    if (!lj_luaframe_isproto(a->pk, pt)) return 0;
    ff->pt = pt;
  } else if (mref(fn->c.pc, char) - (char *)L2GG(a->L) >= (ptrdiff_t)sizeof(GG_State) ||
	     mref(fn->c.pc, char) < (char *)L2GG(a->L)) {
    return 0; /* The header of a C function is in the VM's own state. */
  }
  ff->fn = (GCfunc *)fn;
  return 1;
}

uintptr_t lj_luaframe_caller(const LuaArea *a, uintptr_t f, uintptr_t pc, FrameFunc *ff)
{
  BCIns call;
  uintptr_t prev;
  if ((pc & 3) != 0 ||
      !lj_safeload_vmcopy(a->pk, &call, (const BCIns *)pc - 1, sizeof(call)))
    return 0;
  prev = f - (uintptr_t)(1 + LJ_FR2 + bc_a(call)) * sizeof(TValue);
  if (prev >= f || !lj_luaframe_has(a, prev) || !lj_luaframe_func(a, prev, ff) || !ff->pt ||
      !lj_luaframe_pcinproto(ff->pt, pc))
    return 0;
  return prev;
}

/* -- Which check refused a frame --------------------------------------------- */

/* Check the slots of a frame again. Returns -1 if they hold a function. */
static int slot_refusal(const LuaArea *a, uintptr_t f)
{
  uint64_t slot = lj_luaframe_slot(f);
  uint32_t tag = (uint32_t)((int64_t)slot >> 47);
  const GCfunc *fn = (const GCfunc *)(uintptr_t)(slot & LJ_GCVMASK);
  FrameFunc ff;
  if (lj_luaframe_func(a, f, &ff)) return -1;
  if (tag == (uint32_t)LJ_TTHREAD) return SPF_REFUSED_SLOT_NOT_THREAD;
  if (tag != (uint32_t)LJ_TFUNC) return SPF_REFUSED_SLOT_NOT_FUNCTION;
  if (((uintptr_t)fn & 7) != 0 || !lj_safeload_vm(a->pk, fn, sizeof(GCfuncC)) ||
      fn->c.gct != (uint8_t)~LJ_TFUNC)
    return SPF_REFUSED_FUNC_INVALID;
  return isluafunc(fn) ? SPF_REFUSED_PROTO_INVALID : SPF_REFUSED_CFUNC_INVALID;
}

int lj_luaframe_refusal(const LuaArea *a, uintptr_t f)
{
  if (f - a->bot >= a->end - a->bot || (f & 7) != 0) return SPF_REFUSED_FRAME_OUTSIDE;
  if (!lj_luaframe_has(a, f)) return SPF_REFUSED_FRAME_UNREADABLE;
  return slot_refusal(a, f);
}

int lj_luaframe_caller_refusal(const LuaArea *a, uintptr_t f, uintptr_t pc)
{
  BCIns call;
  uintptr_t prev;
  FrameFunc ff;
  if ((pc & 3) != 0 ||
      !lj_safeload_vmcopy(a->pk, &call, (const BCIns *)pc - 1, sizeof(call)))
    return SPF_REFUSED_PC_UNREADABLE;
  prev = f - (uintptr_t)(1 + LJ_FR2 + bc_a(call)) * sizeof(TValue);
  if (prev >= f || !lj_luaframe_has(a, prev)) return SPF_REFUSED_CALLER_OUTSIDE;
  if (!lj_luaframe_func(a, prev, &ff)) return SPF_REFUSED_CALLER_INVALID;
  return ff.pt ? SPF_REFUSED_PC_NOT_IN_CALLER : SPF_REFUSED_CALLER_NOT_LUA;
}
