/*
** Candidates for the top frame of a sample's Lua stack.
** Context: handler.
*/

#define lj_luatop_c
#define LUA_CORE

#include "lj_obj.h"
#include "lj_bc.h"
#include "lj_frame.h"
#include "lj_ff.h"
#include "lj_vm.h"
#include "profile/lua/lj_luatop.h"

/* Registers of the interpreter, vm_x64.dasc. */
#define REG_BASE WALKREG_DX
#define REG_PC   WALKREG_BX
#define REG_RB   WALKREG_BP

LJ_ASMF void lj_vm_ffi_callback(void);
LJ_ASMF void lj_cont_ffi_callback(void);

/* Where the VM enters an FFI callback. */
#define VM_CALLBACK     ((uintptr_t)(void *)lj_vm_ffi_callback)
#define VM_CALLBACK_END ((uintptr_t)(void *)lj_cont_ffi_callback)

/* -- Candidates --------------------------------------------------------------- */

static void cand_add(LuaTop *cs, uintptr_t base, uintptr_t pc)
{
  uintptr_t f = base - 8;
  int i;
  for (i = 0; i < cs->n; i++)
    if (cs->c[i].frame == f) {
      if (cs->c[i].pc == 0) cs->c[i].pc = pc;
      return;
    }
  if (cs->n < LUATOP_CANDIDATES) {
    cs->c[cs->n].frame = f;
    cs->c[cs->n].ffid = 0;
    cs->c[cs->n++].pc = pc;
  }
}

/* Candidate that agrees with the interpreter's PC: the function runs at the PC, is about to
** run, or has just returned.
*/
static void cand_add_fitting(LuaTop *cs, const LuaArea *a, uintptr_t base, uintptr_t pc)
{
  uintptr_t f = base - 8, header;
  FrameFunc ff;
  if (!lj_luaframe_has(a, f) || !lj_luaframe_func(a, f, &ff) || !ff.fn) return;
  header = ff.pt ? (uintptr_t)proto_bc(ff.pt) : (uintptr_t)mref(ff.fn->c.pc, char);
  /* The first call of a hot function sets a bit in the PC. */
  if (ff.pt && lj_luaframe_pcinproto(ff.pt, pc - 1)) pc--;
  /* A call sets PC to the function's header. The dispatch adds an instruction. */
  if (pc == header) pc += sizeof(BCIns);
  if (ff.pt ? lj_luaframe_pcinproto(ff.pt, pc) : pc == header + sizeof(BCIns))
    cand_add(cs, base, ff.pt ? pc : 0);
  /* A call leaves its results in the callee's frame. So a Lua function that does not fit
  ** may be one of the results.
  */
  else if (!ff.pt && pc == lj_luaframe_link(f)) cand_add(cs, base, 0);
}

/* Candidate whose callee's frame the VM is building or has just removed. */
static void cand_add_caller(LuaTop *cs, const LuaArea *a, uintptr_t base, uintptr_t pc)
{
  uintptr_t f = base - 8, prev;
  FrameFunc ff;
  if (f < a->bot || f >= a->end) return;
  prev = lj_luaframe_caller(a, f, pc, &ff);
  if (prev) cand_add(cs, prev + 8, pc);
}

/* Candidate whose Lua function the VM is about to enter: the PC is at its header. */
static void cand_add_entered(LuaTop *cs, const LuaArea *a, uintptr_t base)
{
  FrameFunc ff;
  if (lj_luaframe_has(a, base - 8) && lj_luaframe_func(a, base - 8, &ff) && ff.pt)
    cand_add(cs, base, (uintptr_t)(proto_bc(ff.pt) + 1));
}

/* Candidate whose Lua function waits for C code that a finalizer has left: that one's end sets the VM's
** state as if C code ran by itself. A function that is entered has saved no PC of its own.
*/
static void cand_add_finalized(LuaTop *cs, const LuaArea *a, uintptr_t base, uintptr_t pc)
{
  FrameFunc ff;
  if (lj_luaframe_has(a, base - 8) && lj_luaframe_func(a, base - 8, &ff) && ff.pt &&
      lj_luaframe_pcinproto(ff.pt, pc))
    cand_add(cs, base, pc);
}

/* Candidate whose Lua function was an FFI callback and has returned. While C code converts
** the result, the saved PC is behind the function's end.
*/
static void cand_add_left(LuaTop *cs, const LuaArea *a, const VMFrame *vf, uintptr_t base)
{
  FrameFunc ff;
  uintptr_t saved, end;
  if (!lj_luaframe_has(a, base - 8) || !lj_luaframe_func(a, base - 8, &ff) || !ff.pt ||
      !lj_safeload_word(a->pk, vf->cf + CFRAME_OFS_PC, &saved))
    return;
  end = (uintptr_t)(proto_bc(ff.pt) + ff.pt->sizebc);
  if (saved == end + sizeof(BCIns)) cand_add(cs, base, end);
}

/* Candidate below a frame that C code or the VM itself made. The frame returns to it, delta
** bytes below. If the VM made the call for an instruction, the frame holds the PC behind
** that instruction.
*/
static void cand_add_below(LuaTop *cs, const LuaArea *a, uintptr_t base, uint64_t delta)
{
  uintptr_t f = base - 8, prev = f - (uintptr_t)delta, pc;
  FrameFunc ff;
  if (delta - 1 >= a->end - a->bot) return;
  if (lj_luaframe_has(a, f - 16) && lj_luaframe_has(a, prev) &&
      lj_luaframe_func(a, prev, &ff) && ff.pt &&
      lj_luaframe_pcinproto(ff.pt, (pc = (uintptr_t)lj_luaframe_link(f - 16))))
    cand_add(cs, prev + 8, pc);
  else cand_add(cs, prev + 8, 0);
}

/* Builtin that a Lua function calls for each iteration of a loop, with its frame at f. The
** loop keeps a copy of the call, which shows the builtin after its frame is gone.
*/
static uint32_t iterator_ffid(const LuaArea *a, uintptr_t f, uintptr_t pc)
{
  FrameFunc ff;
  uintptr_t kept = f - 3 * sizeof(TValue);
  if (bc_op(*((const BCIns *)pc - 1)) != BC_ITERC || !lj_luaframe_has(a, kept) ||
      !lj_luaframe_func(a, kept, &ff) || !ff.fn || ff.pt)
    return 0;
  return ff.fn->c.ffid;
}

/* Candidate below a builtin that calls C after it has written results over its own frame.
** RB then holds the builtin's base. PC is the link of the overwritten frame. Or PC is still
** the builtin's own, and the link is in the frame.
*/
static void cand_add_overwritten(LuaTop *cs, const LuaArea *a, uintptr_t base, uintptr_t pc)
{
  uintptr_t f = base - 8, prev;
  FrameFunc ff;
  int n = cs->n;
  if (!lj_luaframe_has(a, f)) return;
  if (pc - (uintptr_t)(L2GG(a->L)->bcff + 1) < sizeof(L2GG(a->L)->bcff))
    pc = (uintptr_t)lj_luaframe_link(f);
  if ((pc & FRAME_TYPE) != FRAME_LUA) {
    cand_add_below(cs, a, base, pc & ~(uint64_t)FRAME_TYPEP);
  } else if ((prev = lj_luaframe_caller(a, f, pc, &ff)) != 0 &&
	     (uint32_t)bc_op(*((const BCIns *)pc - 1)) - BC_CALLM <= BC_ITERN - BC_CALLM) {
    cand_add(cs, prev + 8, pc);
    if (cs->n > n) cs->c[n].ffid = iterator_ffid(a, f, pc);
  }
}

/* -- Where they come from ------------------------------------------------------ */

/* Link slot of the outermost frame in the run of Lua frames that frame belongs to: C code
** called that frame, or it is the bottom.
*/
static uintptr_t run_end(const LuaArea *a, uintptr_t frame)
{
  uintptr_t f = frame, prev;
  FrameFunc ff;
  while (f > a->bot && lj_luaframe_has(a, f)) {
    uint64_t link = lj_luaframe_link(f);
    if ((link & FRAME_TYPE) == FRAME_LUA) {
      prev = lj_luaframe_caller(a, f, (uintptr_t)link, &ff);
    } else {
      uint32_t type = (uint32_t)(link & FRAME_TYPEP);
      if (type == FRAME_C || type == FRAME_CP) break;
      if (type == FRAME_CONT && lj_luaframe_has(a, f - 24) &&
	  lj_luaframe_link(f - 24) == LJ_CONT_FFI_CALLBACK)
	break;
      prev = f - (uintptr_t)(link & ~(uint64_t)FRAME_TYPEP);
    }
    if (prev >= f || prev < a->bot) break;
    f = prev;
  }
  return f;
}

/* "Number of results" of a VM frame, 0 if it cannot be read. */
static int32_t frame_nres(SafeLoad *pk, uintptr_t cf)
{
  uintptr_t w;
  if (!lj_safeload_word(pk, cf + CFRAME_OFS_NRES, &w)) return 0;
  return (int32_t)(uint32_t)w; /* The upper half has another meaning. */
}

int lj_luatop_maynoframe(SafeLoad *pk, uintptr_t cf)
{
  return frame_nres(pk, cf) < 0;
}

/* Is this a C frame of the VM without a Lua frame? lj_vm_cpcall makes one: it runs a C
** function directly. Its "number of results" is the negative offset of the top of the Lua
** stack at its entry. The C function may have moved the base upwards, such as the exit of a
** trace does.
*/
int lj_luatop_hasnoframe(const LuaArea *a, uintptr_t cf, uintptr_t frame)
{
  int32_t nres = frame_nres(a->pk, cf);
  uintptr_t top;
  if (nres >= 0) return 0;
  top = a->bot - LJ_FR2 * sizeof(TValue) + (uintptr_t) - (intptr_t)nres;
  return frame < top || run_end(a, frame) < top;
}

/* Is the VM building the frame of a callee? BASE is that frame already, and PC is still in
** the caller: mov [BASE-8], PC; mov PC, LFUNC:RB->pc
*/
static int vm_calls(const uint8_t *ip)
{
  return ip[0] == 0x48 &&
	 ((ip[1] == 0x89 && ip[2] == 0x5a && ip[3] == 0xf8) ||
	  (ip[1] == 0x8b && ip[2] == 0x5d && ip[3] == offsetof(GCfuncL, pc)));
}

#define VM_RETURN_MAX 128 /* Largest size of the code of a return, in bytes. */

/* Is the VM returning to a Lua function? PC is or will be in the caller, and BASE belongs
** to the callee until lea BASE, [BASE+RA*8-16].
*/
static int vm_returns(const uint8_t *ip)
{
  const uint8_t *begin = (const uint8_t *)(void *)lj_vm_asm_begin;
  int i;
  if (ip < begin + lj_bc_ofs[BC_RETM] || ip >= begin + lj_bc_ofs[BC_FORI]) return 0;
  for (i = 0; i < VM_RETURN_MAX; i++) {
    const uint8_t *p = ip + i;
    if (p[0] == 0x48 && p[1] == 0x8d && p[2] == 0x54 && p[3] == 0xca && p[4] == 0xf0)
      return 1;
    if (p[0] == 0x41 && p[1] == 0xff && p[2] == 0x24 && p[3] == 0xee)
      return 0; /* jmp [DISPATCH+OP*8]: BASE belongs to the caller. */
  }
  return 0;
}

/* Add 4 to PC: add rbx, 4. */
static int vm_movespc(const uint8_t *ip)
{
  return ip[0] == 0x48 && ip[1] == 0x83 && ip[2] == 0xc3 && ip[3] == 4;
}

/* Where a short jump leads, or the place itself. Dual numbers share the code that reads the next
** instruction, after a comparison has moved PC to it.
*/
static const uint8_t *vm_jump(const uint8_t *ip)
{
  return ip[0] == 0xeb ? ip + 2 + (int8_t)ip[1] : ip;
}

/* Is the VM about to execute the instruction at PC? Otherwise PC is behind the current
** instruction. The VM reads the instruction, decodes it and moves PC, in this order.
** lj_vm_exit_interp has other code between these:
** mov eax, [rbx]; movzx ecx, ah; movzx ebp, al; add rbx, 4
*/
static int vm_goeson(const uint8_t *ip)
{
  const uint8_t *end = (const uint8_t *)(void *)lj_vm_floor;
  ip = vm_jump(ip);
  if (ip < (const uint8_t *)(void *)lj_vm_exit_interp)
    return vm_movespc(ip) || (ip[0] == 0x0f && vm_movespc(ip + 3)) ||
	   (ip[0] == 0x0f && vm_movespc(ip + 6)) || (ip[0] == 0x8b && vm_movespc(ip + 8));
  for (; ip + 4 <= end; ip++)
    if (vm_movespc(ip)) return 1;
  return 0;
}

/* List candidates after an interrupt of the interpreter or another part of the assembler
** VM. vf: the VM frame that it runs on, or NULL before the VM has made one.
*/
static void collect_interpreter(LuaTop *cs, const LuaInput *in, const LuaArea *a,
				const VMFrame *vf, uintptr_t Lbase)
{
  const uintptr_t *reg = in->hs->regs.r;
  const uint8_t *ip = (const uint8_t *)reg[WALKREG_PC];
  uintptr_t base = reg[REG_BASE], pc = reg[REG_PC], rb = reg[REG_RB], saved;
  uint64_t delta;
  uint32_t i;
  if (vm_goeson(ip)) pc += sizeof(BCIns);
  delta = pc & ~(uint64_t)FRAME_TYPEP;
  if ((uintptr_t)ip - VM_CALLBACK < VM_CALLBACK_END - VM_CALLBACK)
    cand_add_entered(cs, a, Lbase);
  /* If a function calls itself, both fit. */
  if (vm_calls(ip) ||
      (vm_returns(ip) && lj_luaframe_has(a, base - 8) && lj_luaframe_link(base - 8) == pc))
    cand_add_caller(cs, a, base, pc);
  cand_add_fitting(cs, a, base, pc);
  cand_add_caller(cs, a, base, pc);
  /* On the way back to C, the register of PC gets the previous base. */
  if (pc - a->bot < a->end - a->bot) cand_add(cs, pc, 0);
  if ((uintptr_t)0 - pc - a->bot < a->end - a->bot) cand_add(cs, 0 - pc, 0);
  /* The base of a metamethod is BASE, or delta above BASE. BASE belongs to the caller until
  ** the frame is complete. After the return BASE belongs to the caller again, and RB to the
  ** metamethod.
  */
  if (rb - base == delta ||
      ((pc & FRAME_TYPEP) == FRAME_CONT && !vm_calls(ip) && lj_luaframe_has(a, base - 8) &&
       lj_luaframe_link(base - 8) != pc))
    cand_add_below(cs, a, base + (uintptr_t)delta, delta);
  cand_add_below(cs, a, base, delta);
  cand_add_overwritten(cs, a, rb, pc);
  /* Old values of these registers may fit, too, so these candidates come later. */
  cand_add_fitting(cs, a, Lbase, pc);
  cand_add_fitting(cs, a, rb, pc);
  /* While C code enters the VM, PC belongs to the run of Lua frames below. */
  for (i = 0; i < 2 && i < in->hs->nvm; i++)
    if (in->hs->vm[i].L == a->L) cand_add_fitting(cs, a, Lbase, in->hs->vm[i].pc);
  if (in->g->vmstate == ~LJ_VMST_C) {
    cand_add(cs, Lbase, 0);
    cand_add(cs, base, 0);
  } else {
    cand_add(cs, base, 0);
    cand_add(cs, Lbase, 0);
  }
  /* A coroutine's results replace the frame of coroutine.resume. */
  if (vf && lj_safeload_word(in->pk, vf->cf + CFRAME_OFS_PC, &saved)) {
    cand_add_caller(cs, a, Lbase, saved);
    if ((saved & FRAME_TYPEP) == FRAME_CONT)
      cand_add_below(cs, a, Lbase, saved & ~(uint64_t)FRAME_TYPEP);
  }
}

/* List candidates after an interrupt of C code that the VM called. The interpreter saved
** its base in L->base or, around a few calls of fast functions, in RB.
*/
static void collect_called(LuaTop *cs, const LuaInput *in, const LuaArea *a,
			   const VMFrame *vf, uintptr_t Lbase)
{
  uintptr_t pc = vf ? vf->pc : 0;
  /* While a trace is recorded, the interpreter runs the same instructions. */
  if (vf && (in->g->vmstate == ~LJ_VMST_INTERP || in->g->vmstate == ~LJ_VMST_RECORD)) {
    cand_add_fitting(cs, a, vf->rb, pc);
    cand_add_overwritten(cs, a, vf->rb, pc);
  }
  if (in->g->vmstate == ~LJ_VMST_INTERP && vf) {
    cand_add_fitting(cs, a, Lbase, pc);
    cand_add_caller(cs, a, Lbase, pc);
    if ((pc & FRAME_TYPEP) == FRAME_CONT)
      cand_add_below(cs, a, Lbase, pc & ~(uint64_t)FRAME_TYPEP);
  }
  if (in->g->vmstate == ~LJ_VMST_C) {
    cand_add_finalized(cs, a, Lbase, pc);
    cand_add_entered(cs, a, Lbase);
  } else if (vf) {
    cand_add_left(cs, a, vf, Lbase);
  }
  cand_add(cs, Lbase, pc);
}

/* Base of a coroutine. While the VM moves the stack, the base is still an address in the
** old stack.
*/
static uintptr_t moved_base(const LuaInput *in, const LuaArea *a, uintptr_t base)
{
  if (in->moving == a->L && base - a->bot >= a->end - a->bot)
    base += a->bot - LJ_FR2 * sizeof(TValue) - in->moving_from;
  return base;
}

void lj_luatop_find(LuaTop *top, const LuaInput *in, const LuaArea *a)
{
  const HostWalk *hs = in->hs;
  const VMFrame *vf = hs->nvm ? &hs->vm[0] : NULL, *code = vf;
  uintptr_t Lbase = moved_base(in, a, (uintptr_t)a->L->base);
  uint32_t i;
  top->n = 0;
  top->ts.runs = top->ts.exits = 0;
  /* A host may run the main thread by lua_resume(). While the main thread is suspended, or
  ** after an error, nothing runs on it. L->base belongs to its last frame then.
  */
  if (!vf && a->L->cframe == NULL && a->L->status != LUA_OK) {
    cand_add(top, a->bot + 8, 0);
    return;
  }
  /* A protected call of C code has a VM frame without Lua frames, and the optimiser has
  ** two. The Lua code that caused the call runs on the next VM frame.
  */
  for (i = 1; i < hs->nvm && i < HOSTWALK_VMFRAMES && hs->vm[i].L == a->L &&
	      lj_luatop_hasnoframe(a, code->cf, Lbase - 8);
       i++)
    code = &hs->vm[i];
#if LJ_HASJIT
  if (code && code->place != VMF_INTERP) {
    TraceStack *ts = &top->ts;
    TraceLeaf leaf;
    leaf.reg = hs->leaf == LEAF_VM ? hs->regs.r : NULL;
    lj_luatrace_look(ts, a, in->g, code, Lbase, in->moving == a->L,
		     code == vf ? &leaf : NULL);
    if (ts->runs) {
      cand_add(top, moved_base(in, a, ts->base), 0);
      return;
    }
    if (ts->pc) cand_add_fitting(top, a, ts->base, ts->pc);
  }
#endif
  if (hs->leaf == LEAF_VM) collect_interpreter(top, in, a, vf, Lbase);
  else collect_called(top, in, a, code, Lbase);
}

/* -- A stack that is being moved ------------------------------------------------ */

#define MOVE_CWORDS 128 /* Words of the C stack to search. */
#define MOVE_LOST   8   /* Words of freed memory that the allocator may overwrite. */

/* Does this address hold a copy of the stack of L, which was at from? The first slot is L
** itself. The other slots in use must equal those in the old memory, except for the first
** few: the allocator may have overwritten those.
*/
static int is_copy(SafeLoad *pk, lua_State *L, uintptr_t from, uintptr_t to)
{
  const uintptr_t used = (uintptr_t)L->top - from;
  uintptr_t ofs, old, new;
  if (to == from || !lj_safeload_word(pk, to, &new) ||
      new != (((uint64_t)LJ_TTHREAD << 47) | (uintptr_t)L))
    return 0;
  for (ofs = sizeof(TValue); ofs < used; ofs += sizeof(TValue)) {
    if (!lj_safeload_word(pk, to + ofs, &new) || !lj_safeload_word(pk, from + ofs, &old))
      return 0;
    if (old != new &&ofs >= MOVE_LOST * sizeof(TValue)) return 0;
  }
  return 1;
}

uintptr_t lj_luatop_newstack(const LuaInput *in, const WalkRegs *regs)
{
  SafeLoad *pk = in->pk;
  lua_State *L = in->moving;
  const uintptr_t from = in->moving_from;
  uintptr_t sp = regs->r[WALKREG_SP] & ~(uintptr_t)7, to;
  int i;
  if ((uintptr_t)tvref(L->stack) != from ||
      (uintptr_t)L->top - from > (uintptr_t)L->stacksize * sizeof(TValue))
    return 0;
  for (i = 0; i < WALKREG__MAX; i++)
    if ((regs->valid & (1u << i)) && is_copy(pk, L, from, regs->r[i])) return regs->r[i];
  for (i = 0; i < MOVE_CWORDS; i++)
    if (lj_safeload_word(pk, sp + (uintptr_t)i * 8, &to) && is_copy(pk, L, from, to))
      return to;
  return 0;
}
