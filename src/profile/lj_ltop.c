/*
** The top frame of a sample's Lua stack. Runs in the signal handler; see the
** header.
*/

#define lj_ltop_c
#define LUA_CORE

#ifndef _GNU_SOURCE
#define _GNU_SOURCE	/* For REG_RBX and friends. */
#endif
#include "lj_obj.h"
#include "lj_frame.h"
#include "lj_ff.h"
#include "profile/lj_ltop.h"

/* Registers of the interpreter, vm_x64.dasc. */
#define REG_BASE	REG_RDX
#define REG_PC		REG_RBX
#define REG_RB		REG_RBP

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
  if (cs->n < LTOP_CANDIDATES) {
    cs->c[cs->n].frame = f;
    cs->c[cs->n++].pc = pc;
  }
}

/* Candidate that agrees with the interpreter's PC: the function runs there, or
** is about to, or has just been returned from.
*/
static void cand_add_fitting(LuaTop *cs, const LuaArea *a, uintptr_t base,
			     uintptr_t pc)
{
  uintptr_t f = base - 8, header;
  FrameFunc ff;
  if (!lj_lframe_has(a, f) || !lj_lframe_func(a, f, &ff) || !ff.fn) return;
  header = ff.pt ? (uintptr_t)proto_bc(ff.pt) : (uintptr_t)mref(ff.fn->c.pc, char);
  /* A call sets PC to the function's header, the dispatch moves it on. */
  if (pc == header) pc += sizeof(BCIns);
  if (ff.pt ? lj_lframe_pcinproto(ff.pt, pc) : pc == header + sizeof(BCIns))
    cand_add(cs, base, ff.pt ? pc : 0);
  else if (pc == lj_lframe_link(f))
    cand_add(cs, base, ff.pt ? (uintptr_t)(proto_bc(ff.pt) + 1) : 0);
}

/* Candidate whose callee's frame is being built or was just removed. */
static void cand_add_caller(LuaTop *cs, const LuaArea *a, uintptr_t base,
			    uintptr_t pc)
{
  uintptr_t f = base - 8, prev;
  if (f < a->bot || f >= a->end) return;
  prev = lj_lframe_caller(a, f, pc);
  if (prev) cand_add(cs, prev + 8, pc);
}

/* -- Where they come from ------------------------------------------------------ */

/* C frame of the VM without a Lua frame of its own: lj_vm_cpcall runs a C
** function directly. Its "number of results" is the negative offset of the top
** of the Lua stack when it was entered.
*/
int lj_ltop_isbare(const LuaArea *a, uintptr_t cf, uintptr_t frame)
{
  int32_t nres;
  if (!lj_peek_ok(a->pk, (const void *)(cf + CFRAME_OFS_NRES), 4)) return 0;
  nres = *(const int32_t *)(cf + CFRAME_OFS_NRES);
  return nres < 0 &&
	 frame < a->bot - LJ_FR2*sizeof(TValue) + (uintptr_t)-(intptr_t)nres;
}

/* The interpreter, or another part of the assembler VM, was interrupted. vf is
** the VM frame that it runs on, NULL while there is none yet.
*/
static void collect_interpreter(LuaTop *cs, const LuaStack *ls,
				const LuaArea *a, const VMFrame *vf,
				uintptr_t Lbase, const ucontext_t *uc)
{
  const greg_t *greg = uc->uc_mcontext.gregs;
  uintptr_t base = (uintptr_t)greg[REG_BASE], pc = (uintptr_t)greg[REG_PC];
  uintptr_t saved;
  uint64_t delta = pc & ~(uint64_t)FRAME_TYPEP;
  cand_add_fitting(cs, a, base, pc);
  cand_add_caller(cs, a, base, pc);
  /* On the way back to C, PC turns from the link into the previous base. */
  if (pc - a->bot < a->end - a->bot) cand_add(cs, pc, 0);
  if ((uintptr_t)0-pc - a->bot < a->end - a->bot) cand_add(cs, 0-pc, 0);
  if (delta - 1 < a->end - a->bot) cand_add(cs, base - delta, 0);
  /* Old values of these may fit, too, so they come later. */
  cand_add_fitting(cs, a, Lbase, pc);
  cand_add_fitting(cs, a, (uintptr_t)greg[REG_RB], pc);
  if (ls->g->vmstate == ~LJ_VMST_C) {
    cand_add(cs, Lbase, 0);
    cand_add(cs, base, 0);
  } else {
    cand_add(cs, base, 0);
    cand_add(cs, Lbase, 0);
  }
  /* A coroutine's results replace the frame of coroutine.resume. */
  if (vf && lj_peek_word(ls->pk, vf->cf + CFRAME_OFS_PC, &saved))
    cand_add_caller(cs, a, Lbase, saved);
}

/* C code was interrupted that the VM called: the interpreter saved its base in
** L->base or, around a few calls of fast functions, in RB.
*/
static void collect_called(LuaTop *cs, const LuaStack *ls, const LuaArea *a,
			   const VMFrame *vf, uintptr_t Lbase)
{
  uintptr_t pc = vf ? vf->pc : 0;
  if (ls->g->vmstate == ~LJ_VMST_INTERP && vf) {
    cand_add_fitting(cs, a, vf->rb, pc);
    cand_add_fitting(cs, a, Lbase, pc);
    cand_add_caller(cs, a, Lbase, pc);
  }
  cand_add(cs, Lbase, pc);
}

/* L->base. While a stack is moved, it is still the address in the old one. */
static uintptr_t current_base(const LuaStack *ls, const LuaArea *a)
{
  uintptr_t base = (uintptr_t)a->L->base;
  if (ls->moving == a->L && base - a->bot >= a->end - a->bot)
    base += (uintptr_t)tvref(a->L->stack) - ls->moving_from;
  return base;
}

void lj_ltop_find(LuaTop *top, const LuaStack *ls, const LuaArea *a,
		  const ucontext_t *uc)
{
  const HostStack *hs = ls->hs;
  const VMFrame *vf = hs->nvm ? &hs->vm[0] : NULL, *code = vf;
  uintptr_t Lbase = current_base(ls, a);
  top->n = 0;
  top->ts.runs = top->ts.exits = 0;
  /* C code that was called protected has a VM frame to itself: the Lua code that
  ** it works for runs on the next one.
  */
  if (hs->nvm > 1 && hs->vm[1].L == a->L && lj_ltop_isbare(a, vf->cf, Lbase-8))
    code = &hs->vm[1];
#if LJ_HASJIT
  if (code && code->place != VMF_INTERP) {
    TraceStack *ts = &top->ts;
    lj_tstack_look(ts, ls->pk, ls->g, code, Lbase, code == vf ? uc : NULL);
    if (ts->runs) {
      if (ls->moving == a->L && ts->base - a->bot >= a->end - a->bot)
	ts->base += (uintptr_t)tvref(a->L->stack) - ls->moving_from;
      cand_add(top, ts->base, 0);
      return;
    }
    if (ts->pc) cand_add_fitting(top, a, Lbase, ts->pc);
  }
#endif
  if (hs->leaf == LEAF_VM)
    collect_interpreter(top, ls, a, vf, Lbase, uc);
  else
    collect_called(top, ls, a, code, Lbase);
}
