/*
** Lua stack of compiled code: running traces and trace exits. x86-64.
** Context: handler.
*/

#define lj_luatrace_c
#define LUA_CORE

#include "lj_obj.h"
#include "lj_frame.h"
#include "lj_jit.h"
#include "lj_dispatch.h"
#include "lj_target.h"
#include "lj_vm.h"
#include "profile/lua/lj_luatrace.h"

#if LJ_HASJIT

/* Registers of the VM's code, vm_x64.dasc. */
#define REG_RA   WALKREG_CX
#define REG_RC   WALKREG_AX
#define REG_BASE WALKREG_DX

#define OP_CALL 0xe8 /* call rel32 */

/* An exit stub pushes the low byte of its number. Then the code of its group pushes the high
** byte (asm_exitstub_gen).
*/
#define STUB_JMP_OFS 2 /* Offset behind the push of a stub. */
#define STUBS_SIZE   (EXITSTUBS_PER_GROUP * EXITSTUB_SPACING + 8)

#define VM_EXIT            ((uintptr_t)(void *)lj_vm_exit_handler)
#define VM_EXIT_INTERP     ((uintptr_t)(void *)lj_vm_exit_interp)
#define VM_EXIT_INTERP_END ((uintptr_t)(void *)lj_vm_floor)

/* -- Leaving a trace ---------------------------------------------------------- */

/* A word that a push of a byte wrote, which is sign-extended. */
static int pushed_byte(SafeLoad *pk, uintptr_t addr, uint32_t *b)
{
  uintptr_t w;
  if (!lj_safeload_word(pk, addr, &w) || (intptr_t)w != (int8_t)w) return 0;
  *b = (uint32_t)(w & 0xff);
  return 1;
}

/* Stack pointer of a trace that runs on a VM frame, 0 if unknown. */
static uintptr_t trace_sp(global_State *g, const VMFrame *vf, TraceNo traceno)
{
  const GCtrace *T = lj_jitfind_trace(g, traceno);
  return T ? vf->cf - (CFRAME_SIZE_JIT - CFRAME_SIZE) - T->spadjust : 0;
}

/* In an exit stub: its address and the pushed words give its number. */
static int exit_instub(TraceStack *ts, SafeLoad *pk, global_State *g, const VMFrame *vf)
{
  const jit_State *J = G2J(g);
  uintptr_t sp;
  uint32_t i, low;
  ts->from = (TraceNo)g->vmstate;
  for (i = 0; i < LJ_MAX_EXITSTUBGR; i++) {
    uintptr_t ofs = vf->code - (uintptr_t)J->exitstubgroup[i];
    if (!J->exitstubgroup[i] || ofs >= STUBS_SIZE) continue;
    if (ofs < (EXITSTUBS_PER_GROUP - 1) * EXITSTUB_SPACING + STUB_JMP_OFS) {
      ts->exitno = i * EXITSTUBS_PER_GROUP + (ExitNo)ofs / EXITSTUB_SPACING;
      return 1;
    }
    sp = trace_sp(g, vf, ts->from);
    if (!sp || !pushed_byte(pk, sp - 8, &low)) return 0;
    ts->exitno = ((i * EXITSTUBS_PER_GROUP) & ~(ExitNo)0xff) + low;
    return 1;
  }
  return 0;
}

/* Is the exit number still on the stack? lj_vm_exit_handler reads its high byte last, by
** mov ah, [rbp-16]. Then it saves other registers in these words.
*/
static int exit_isonstack(const uint8_t *ip)
{
  const uint8_t *end = (const uint8_t *)VM_EXIT_INTERP;
  for (; ip + 3 <= end; ip++)
    if (ip[0] == 0x8a && ip[1] == 0x65 && ip[2] == 0xf0) return 1;
  return 0;
}

/* In lj_vm_exit_handler before its call of C: the numbers of trace and exit are on the
** stack, then in registers, then in jit_State.
*/
static int exit_inhandler(TraceStack *ts, SafeLoad *pk, global_State *g, const VMFrame *vf,
			  const uintptr_t *reg)
{
  uint32_t low, high;
  uintptr_t sp;
  ts->from = (TraceNo)(g->vmstate < 0 ? reg[REG_RA] : (uintptr_t)g->vmstate);
  ts->exitno = (ExitNo)reg[REG_RC];
  if (exit_isonstack((const uint8_t *)reg[WALKREG_PC])) {
    sp = trace_sp(g, vf, ts->from);
    if (!sp || !pushed_byte(pk, sp - 8, &low) || !pushed_byte(pk, sp - 16, &high)) return 0;
    ts->exitno = (high << 8) | low;
  }
  return 1;
}

/* Do top and base of the Lua stack have the values that lj_snap_restore sets? */
static int exit_istop(const LuaArea *a, uintptr_t base, const BCIns *pc)
{
  uintptr_t top = (uintptr_t)a->L->top;
  FrameFunc ff;
  if (!lj_luaframe_has(a, base - 8) || !lj_luaframe_func(a, base - 8, &ff) || !ff.pt ||
      !lj_luaframe_pcinproto(ff.pt, (uintptr_t)(pc + 1)))
    return 0;
  switch (bc_op(*pc)) {
  case BC_CALLM:
  case BC_CALLMT:
  case BC_RETM:
  case BC_TSETM: return 1; /* It depends on the number of results. */
  default:
    if (bc_op(*pc) >= BC_FUNCF) return 1;
    break;
  }
  /* An error object that LuaJIT passes on is above that. */
  return top - base - ff.pt->framesize * sizeof(TValue) <= sizeof(TValue);
}

/* Has lj_trace_exit rebuilt the frames? It rebuilds them in a protected call, which has its
** own VM frame, and then sets the saved PC. The saved PC may be an old one: then the top
** does not fit. Without inlined frames lj_trace_exit rebuilds none: the exit keeps its place
** in the trace until lj_trace_exit returns.
*/
static int exit_isrestored(const TraceStack *ts, const LuaArea *a, global_State *g,
			   uintptr_t base, const TraceLeaf *leaf, uintptr_t savedpc)
{
  const GCtrace *T = lj_jitfind_trace(g, ts->from);
  const BCIns *pc;
  const SnapShot *snap;
  JitFind at;
  if (g->vmstate != ~LJ_VMST_EXIT || !T || ts->exitno >= T->nsnap) return 1;
  if (!leaf) return G2J(g)->state != LJ_TRACE_IDLE;
  if (leaf->reg && leaf->reg[WALKREG_PC] >= VM_EXIT)
    return *(const uint8_t *)leaf->reg[WALKREG_PC] != OP_CALL;
  if (lj_jitfind_exit(g, ts->from, ts->exitno, &at) && at.block &&
      at.block->node[at.seg->node].parent == TRACENODE_NONE)
    return 0;
  snap = &T->snap[ts->exitno];
  pc = snap_pc(&T->snapmap[snap->mapofs + snap->nent]);
  return savedpc == (uintptr_t)pc && exit_istop(a, base, pc);
}

/* Is fn the function of the frame with this base? */
static int base_runs(const LuaArea *a, uintptr_t base, const GCproto *pt)
{
  FrameFunc ff;
  return lj_luaframe_has(a, base - 8) && lj_luaframe_func(a, base - 8, &ff) && ff.pt == pt;
}

/* Base of a trace's first frame during an exit. L->base is that base, or the base of an
** inlined frame, since lj_trace_exit rebuilds one frame after the other. Returns 0 if
** several frames fit, such as in a function that calls itself.
*/
static uintptr_t exit_base(const TraceStack *ts, const LuaArea *a, global_State *g,
			   uintptr_t base)
{
  const GCtrace *T = lj_jitfind_trace(g, ts->from);
  const TraceBlock *b = ts->at.block;
  const GCproto *pt = NULL;
  const SnapShot *snap;
  uintptr_t found;
  uint32_t i;
  if (!T || !b || ts->exitno >= T->nsnap) return base;
  for (i = ts->at.seg->node; i < b->nnode; i = b->node[i].parent) pt = b->node[i].pt;
  if (!pt) return base;
  found = base_runs(a, base, pt) ? base : 0;
  snap = &T->snap[ts->exitno];
  for (i = 0; i < snap->nent; i++) {
    SnapEntry sn = T->snapmap[snap->mapofs + i];
    uintptr_t first = base - (snap_slot(sn) - LJ_FR2) * sizeof(TValue);
    if ((sn & SNAP_FRAME) && snap_slot(sn) > LJ_FR2 && base_runs(a, first, pt)) {
      if (found) return 0;
      found = first;
    }
  }
  return found;
}

/* In lj_vm_exit_interp, after the end of a trace. The last snapshot has the PC of the next
** instruction. The register may point to a copy of that instruction.
*/
static void look_end(TraceStack *ts, global_State *g, const TraceLeaf *leaf)
{
  const GCtrace *T = lj_jitfind_trace(g, (TraceNo)g->vmstate);
  const SnapShot *snap;
  if (g->vmstate <= 0 || !T || T->nsnap == 0 || !leaf || !leaf->reg) return;
  snap = &T->snap[T->nsnap - 1];
  ts->pc = (uintptr_t)snap_pc(&T->snapmap[snap->mapofs + snap->nent]) + sizeof(BCIns);
  ts->base = leaf->reg[REG_BASE];
}

/* PC of the first instruction after an exit. The saved PC may point to a copy of the
** instruction, see look_end.
*/
static uintptr_t exit_pc(const TraceStack *ts, global_State *g, uintptr_t savedpc)
{
  const GCtrace *T = lj_jitfind_trace(g, ts->from);
  const SnapShot *snap;
  if (g->vmstate != ~LJ_VMST_EXIT || !T || ts->exitno >= T->nsnap) return savedpc;
  snap = &T->snap[ts->exitno];
  return (uintptr_t)snap_pc(&T->snapmap[snap->mapofs + snap->nent]);
}

static void look_exit(TraceStack *ts, const LuaArea *a, global_State *g, const VMFrame *vf,
		      uintptr_t base, int moves, const TraceLeaf *leaf)
{
  SafeLoad *pk = a->pk;
  const jit_State *J = G2J(g);
  uintptr_t jit_base = (uintptr_t)tvref(g->jit_base), savedpc = 0;
  if (vf->code - VM_EXIT_INTERP < VM_EXIT_INTERP_END - VM_EXIT_INTERP) {
    look_end(ts, g, leaf);
    return; /* The interpreter runs, so the registers have its values. */
  }
  if (!lj_hostwalk_isvm(vf->code)) {
    if (g->vmstate <= 0 || !exit_instub(ts, pk, g, vf)) return;
  } else if (leaf && jit_base) {
    if (!leaf->reg || !exit_inhandler(ts, pk, g, vf, leaf->reg)) return;
  } else {
    ts->from = J->parent;
    ts->exitno = J->exitno;
    lj_safeload_word(pk, vf->cf + CFRAME_OFS_PC, &savedpc);
    if (exit_isrestored(ts, a, g, base, leaf, savedpc)) {
      ts->exits = (g->vmstate == ~LJ_VMST_EXIT);
      ts->pc = exit_pc(ts, g, savedpc) + sizeof(BCIns);
      ts->base = base;
      return;
    }
  }
  ts->exits = 1;
  ts->runs = 1;
  if (!lj_jitfind_exit(g, ts->from, ts->exitno, &ts->at)) ts->at.block = NULL;
  /* LuaJIT moves a stack that is too small before it rebuilds frames. */
  ts->base = jit_base ? jit_base : moves ? base : exit_base(ts, a, g, base);
  if (!ts->base) {
    /* lj_snap_restore sets the PC first and the top last. */
    uintptr_t pc = exit_pc(ts, g, savedpc), begun = pc + sizeof(BCIns);
    ts->base = base;
    if (!leaf) lj_safeload_word(pk, vf[-1].cf + CFRAME_OFS_PC, &begun);
    if (begun == pc + sizeof(BCIns) && (!leaf || savedpc != pc)) {
      if (exit_istop(a, base, (const BCIns *)pc)) {
	ts->runs = 0;
	ts->pc = pc + sizeof(BCIns);
      } else if (!leaf) {
	ts->at.block = NULL;
      }
    }
  }
}

/* -- Running a trace ---------------------------------------------------------- */

void lj_luatrace_look(TraceStack *ts, const LuaArea *a, global_State *g, const VMFrame *vf,
		      uintptr_t base, int moves, const TraceLeaf *leaf)
{
  ts->runs = ts->exits = 0;
  ts->pc = 0;
  ts->at.block = NULL;
  ts->at.number = 0;
  ts->at.in_loop = 0;
  if (vf->place == VMF_EXIT) {
    look_exit(ts, a, g, vf, base, moves, leaf);
  } else if (vf->place == VMF_TRACE) {
    ts->runs = 1;
    ts->base = (uintptr_t)tvref(g->jit_base);
    lj_jitfind_waited(g, vf->code, &ts->at);
  }
}

#endif
