/*
** Top function by registers alone: what the VM runs, without walking a stack.
** Context: handler; see the header.
*/

#define lj_luastate_c
#define LUA_CORE

#include "lj_obj.h"
#include "lj_frame.h"
#include "lj_jit.h"
#include "lj_dispatch.h"
#include "lj_ff.h"
#include "profile/lua/lj_luastate.h"

/* Registers of the interpreter, vm_x64.dasc. */
#define REG_BASE     WALKREG_DX
#define REG_PC       WALKREG_BX
#define REG_DISPATCH WALKREG_R14

/* Function in the frame with a base, or NULL. */
static const GCfunc *func_at(SafeLoad *pk, const lua_State *L, uintptr_t base)
{
  uintptr_t stack = (uintptr_t)tvref(L->stack), slot = base - 2 * sizeof(TValue);
  const GCfunc *fn;
  uint64_t v;
  if (slot - stack >= (uintptr_t)L->stacksize * sizeof(TValue) || (slot & 7) != 0 ||
      !lj_safeload_isowned(pk, (const void *)slot, sizeof(TValue)))
    return NULL;
  v = *(const uint64_t *)slot;
  fn = (const GCfunc *)(uintptr_t)(v & LJ_GCVMASK);
  return (uint32_t)((int64_t)v >> 47) == (uint32_t)LJ_TFUNC && ((uintptr_t)fn & 7) == 0 &&
	     lj_safeload_isowned(pk, fn, sizeof(GCfuncC)) && fn->c.gct == (uint8_t)~LJ_TFUNC
	   ? fn
	   : NULL;
}

/* C code runs for the function at L->base: that is a builtin or another C function. */
static TopFunc top_called(SafeLoad *pk, const lua_State *L)
{
  const GCfunc *fn = func_at(pk, L, (uintptr_t)L->base);
  return !fn || isluafunc(fn) ? TOP_UNKNOWN : fn->c.ffid > FF_C ? TOP_FAST : TOP_C;
}

/* The interpreter runs at a PC, which belongs to the Lua function at a base. */
static TopFunc top_interpreted(SafeLoad *pk, const lua_State *L, const uintptr_t *reg)
{
  const GCfunc *fn = func_at(pk, L, reg[REG_BASE]);
  const GCproto *pt;
  if (!fn || !isluafunc(fn)) return TOP_UNKNOWN;
  pt = (const GCproto *)(mref(fn->l.pc, char) - sizeof(GCproto));
  return lj_safeload_isowned(pk, pt, sizeof(GCproto)) && lj_luaframe_isproto(pk, pt) &&
	     lj_luaframe_pcinproto(pt, reg[REG_PC])
	   ? TOP_LUA
	   : TOP_UNKNOWN;
}

TopFunc lj_luastate_top(SafeLoad *pk, global_State *g, const WalkRegs *regs)
{
  const lua_State *L = gco2th(gcref(g->cur_L));
  int in_vm = lj_hostwalk_isvm(regs->r[WALKREG_PC]);
  if (!luaframe_istold(g) || regs->valid != WALKREG_ALL || ((uintptr_t)L & 7) != 0 ||
      !lj_safeload_isowned(pk, L, sizeof(lua_State)) || L->gct != (uint8_t)~LJ_TTHREAD ||
      G(L) != g)
    return TOP_UNKNOWN;
  if (g->vmstate == ~LJ_VMST_C && !in_vm) return top_called(pk, L);
  if (g->vmstate == ~LJ_VMST_INTERP && in_vm &&
      regs->r[REG_DISPATCH] == (uintptr_t)g + GG_G2DISP)
    return top_interpreted(pk, L, regs->r);
  return TOP_UNKNOWN;
}
