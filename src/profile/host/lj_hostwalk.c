/*
** Host stack walk: C code, VM frames, unwinding of the C library.
** Context: handler, VM thread for the warmup; see the header. x86-64.
*/

#define lj_hostwalk_c
#define LUA_CORE

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* For REG_RIP and friends. */
#endif
#include "lj_obj.h"
#include "lj_frame.h"
#include "lj_jit.h"
#include "lj_dispatch.h"
#include "profile/base/lj_osloaded.h"
#include "profile/base/lj_osobjects.h"
#include "profile/host/lj_cfi.h"
#include "profile/host/lj_ehindex.h"
#include "profile/host/lj_hostwalk.h"
#include "profile/host/lj_prologue.h"

int lj_hostwalk_warmup(void)
{
  lj_safeload_warmup();
  lj_osobjects_warmup();
  lj_osloaded_renew();
  lj_ehindex_warmup();
  return lj_vmcode_warmup();
}

/* For what few walks do: its code lies elsewhere. */
#define HOSTWALK_RARE __attribute__((noinline, cold))

/* Words of the frames that the C library's unwinder leaves, at most. */
#define LANDING_MAX 4096

/* State of a walk. */
typedef struct Walk {
  HostWalk *hs;
  WalkRegs regs;       /* Registers of the current frame. */
  CFrameChains chains; /* Chains of the crossed VM frames. */
  lua_State *L;        /* Coroutine that ran last, or NULL. */
  uintptr_t expect;    /* Its next VM frame, or 0. */
  int recorded;        /* The memo has this step. */
} Walk;

/* Is the PC of the current frame its next instruction, and no return address? */
#define walk_exact(w) (!(w)->regs.is_return)

static void walk_push(Walk *w, FrameWord word)
{
  if (w->hs->frames) lj_framelist_push(w->hs->frames, word);
}

static void walk_push_host(Walk *w)
{
  walk_push(w, frame_word(SPF_FRAME_HOST, lj_cfi_lookup_pc(&w->regs)));
}

/* refused: SPF_REFUSED_* of this gap. */
static HOSTWALK_RARE void walk_broken(Walk *w, int reason, int refused)
{
  if (w->hs->broken < 0) {
    w->hs->broken = reason;
    w->hs->refused = refused;
  }
  walk_push(w, frame_word(SPF_FRAME_BROKEN, reason));
}

/* Forget a register of the caller. */
static void walk_forget(Walk *w, int reg)
{
  w->regs.valid &= ~(1u << reg);
}

/* Load a saved register: known if it can be read. */
static void walk_load(Walk *w, int reg, uintptr_t addr)
{
  if (lj_safeload_word(w->hs->pk, addr, &w->regs.r[reg])) w->regs.valid |= 1u << reg;
  else walk_forget(w, reg);
}

/* Return from the current frame: its return address is at addr. */
static int walk_return(Walk *w, uintptr_t addr)
{
  uintptr_t pc;
  if (!lj_safeload_word(w->hs->pk, addr, &pc)) return 0;
  w->regs.r[WALKREG_PC] = pc;
  w->regs.r[WALKREG_SP] = addr + 8;
  w->regs.valid &= WALKREG_PRESERVED;
  w->regs.is_return = 1;
  return 1;
}

/* Return from an incomplete frame, which has n saved registers. */
static HOSTWALK_RARE int walk_partial(Walk *w, int n, const uint8_t *saved)
{
  uintptr_t sp = w->regs.r[WALKREG_SP];
  int i;
  for (i = 0; i < n; i++) walk_load(w, saved[i], sp + (uintptr_t)i * 8);
  return walk_return(w, sp + (uintptr_t)n * 8);
}

/* -- Frames of the VM -------------------------------------------------------- */

/* Leave a complete VM frame. */
static int walk_leave(Walk *w, uintptr_t cf)
{
  walk_load(w, WALKREG_R14, cf + VMFRAME_R14);
  walk_load(w, WALKREG_R15, cf + VMFRAME_R15);
  walk_load(w, WALKREG_BX, cf + VMFRAME_BX);
  walk_load(w, WALKREG_BP, cf + VMFRAME_BP);
  return walk_return(w, cf + VMFRAME_PC);
}

/* Leave a VM frame from compiled code, or from the way out of it. */
static int walk_leave_trace(Walk *w, uintptr_t cf)
{
  walk_load(w, WALKREG_R12, cf + VMFRAME_TRACE_R12);
  walk_load(w, WALKREG_R13, cf + (intptr_t)VMFRAME_TRACE_R13);
  return walk_leave(w, cf);
}

/* Code that runs on a VM frame, by the address there. */
static VMPlace walk_place(const Walk *w, uintptr_t code)
{
  const global_State *g = w->hs->g;
  switch (lj_vmcode_part(code)) {
  case VMCODE_EXIT: return VMF_EXIT;
  case VMCODE_EXIT_INTERP:
    return walk_exact(w) && tvref(g->jit_base) ? VMF_EXIT : VMF_INTERP;
  case VMCODE_NONE: break;
  default: return VMF_INTERP;
  }
  if (lj_vmcode_isexitstub(g, code)) return VMF_EXIT;
  return lj_vmcode_isjit(&w->hs->areas, w->hs->pk, g, code) ? VMF_TRACE : VMF_INTERP;
}

/* Cross the linked VM frame at cf. gap: the frames above it are missing. */
static int walk_cross(Walk *w, uintptr_t cf, lua_State *L, int gap)
{
  HostWalk *hs = w->hs;
  uintptr_t sp = w->regs.r[WALKREG_SP];
  uintptr_t code = gap ? 0 : lj_cfi_lookup_pc(&w->regs);
  VMPlace place = gap ? VMF_INTERP : walk_place(w, code);
  walk_push(w, frame_word(SPF_FRAME_VM, 0));
  if (hs->nvm < HOSTWALK_VMFRAMES) {
    VMFrame *vf = &hs->vm[hs->nvm];
    uint32_t known = !gap && place == VMF_INTERP ? w->regs.valid : 0;
    vf->cf = cf;
    vf->L = L;
    vf->place = place;
    vf->code = code;
    vf->sp = gap ? 0 : sp;
    vf->pc = (known & (1u << WALKREG_BX)) ? w->regs.r[WALKREG_BX] : 0;
    vf->rb = (known & (1u << WALKREG_BP)) ? w->regs.r[WALKREG_BP] : 0;
    if (hs->memo.on && !gap && !walk_exact(w) && cf == w->expect && L == w->L &&
	lj_vmcode_part(code) == VMCODE_INTERP)
      w->recorded = lj_hostmemo_vm(&hs->memo, vf, &w->regs, frame_word(SPF_FRAME_VM, 0));
  }
  hs->nvm++;
  w->L = L;
  w->expect = lj_cframe_pass(hs->pk, &w->chains, L, cf);
  if (gap) {
    walk_forget(w, WALKREG_R12);
    walk_forget(w, WALKREG_R13);
  } else if (place != VMF_INTERP ||
	     (cf != sp && lj_vmcode_part(code) == VMCODE_EXIT_INTERP)) {
    return walk_leave_trace(w, cf);
  }
  return walk_leave(w, cf);
}

/* May the next VM frame be on this thread? If the VM runs on this thread, a frame on the
** thread's first stack is of this thread.
*/
static int walk_mayjump(const Walk *w)
{
  const HostWalk *hs = w->hs;
  if (lj_hostwalk_iselsewhere(hs, w->regs.r[WALKREG_SP]) || !hs->stack_hi)
    return !hs->cross_thread;
  return !lj_hostwalk_iselsewhere(hs, w->expect);
}

/* The walk cannot go on: skip the frames up to the next VM frame. */
static HOSTWALK_RARE int walk_gap(Walk *w, int reason, int refused)
{
  walk_broken(w, reason, refused);
  if (w->expect <= w->regs.r[WALKREG_SP] || !walk_mayjump(w) ||
      lj_cframe_L(w->hs->pk, w->hs->g, w->expect) != w->L)
    return 0;
  return walk_cross(w, w->expect, w->L, 1);
}

/* Does a trace, or the way out of it, run on this VM frame of a coroutine? */
static int walk_trace_fits(const Walk *w, const global_State *g, const lua_State *L,
			   uintptr_t cf)
{
  uintptr_t sp = w->regs.r[WALKREG_SP];
  return cf - VMFRAME_SLACK - sp <= VMFRAME_TRACE_MAX && L &&
	 lj_cframe_L(w->hs->pk, g, cf) == L;
}

/* -- Frames of other VMs ----------------------------------------------------- */

/* Is this another VM, by its main thread? Another thread may close it at any time. */
static HOSTWALK_RARE int foreign_is(Walk *w, global_State *g)
{
  SafeLoad *pk = w->hs->pk;
  uintptr_t L;
  return g && g != w->hs->g && ((uintptr_t)g & 7) == 0 &&
	 lj_safeload_word(pk, (uintptr_t)&g->mainthref, &L) && lj_cframe_vm(pk, L) == g;
}

/* VM of the dispatch table in R14, where compiled code has its own. */
static HOSTWALK_RARE global_State *foreign_vm(Walk *w)
{
  global_State *g = (global_State *)(w->regs.r[WALKREG_R14] - GG_G2DISP);
  return (w->regs.valid & (1u << WALKREG_R14)) && foreign_is(w, g) ? g : NULL;
}

/* Is the current frame one of another VM on this thread? Pushes it as host code and leaves
** it, or returns 0.
*/
static HOSTWALK_RARE int walk_foreign(Walk *w, VMCode part, int *ok)
{
  SafeLoad *pk = w->hs->pk;
  uintptr_t sp = w->regs.r[WALKREG_SP], cf = 0;
  int from_trace = (part == VMCODE_NONE || part == VMCODE_EXIT);
  if (from_trace) {
    global_State *g = foreign_vm(w);
    uintptr_t L;
    if (!g || !lj_safeload_word(pk, (uintptr_t)&g->cur_L, &L) ||
	!lj_cframe_isthread(pk, g, L) ||
	(part == VMCODE_NONE && !lj_vmcode_isforeign(pk, g, lj_cfi_lookup_pc(&w->regs))) ||
	!lj_safeload_word(pk, (uintptr_t) & ((lua_State *)L)->cframe, &cf))
      return 0;
    cf &= (uintptr_t)CFRAME_RAWMASK;
    if (!walk_trace_fits(w, g, (lua_State *)L, cf)) return 0;
  } else {
    uintptr_t end = sp + (walk_exact(w) ? VMFRAME_SLACK : 0), L;
    for (cf = sp; cf <= end; cf += 8) {
      global_State *g = lj_safeload_word(pk, cf + CFRAME_OFS_L, &L) ? lj_cframe_vm(pk, L)
								    : NULL;
      if (foreign_is(w, g)) break;
    }
    if (cf > end) return 0;
  }
  if (walk_exact(w)) w->hs->leaf = LEAF_HOST; /* Its registers are not this VM's. */
  walk_push_host(w);
  *ok = from_trace ? walk_leave_trace(w, cf) : walk_leave(w, cf);
  return 1;
}

/* -- Going from frame to frame -------------------------------------------- */

/* Shortly before the C library's unwinder lands in the VM, it overwrites two return
** addresses. Its own one becomes that of the C function which the VM had called. That one
** becomes the landing place. Then the frames up to there are gone.
*/
static HOSTWALK_RARE int walk_landing(Walk *w, int *ok)
{
  HostWalk *hs = w->hs;
  uintptr_t pc = w->regs.r[WALKREG_PC], sp = w->regs.r[WALKREG_SP];
  uintptr_t cf = w->expect, to;
  int n;
  if (cf > sp && lj_safeload_word(hs->pk, cf - 8, &to) &&
      (to == pc || lj_vmcode_islanding(to)) && lj_cframe_L(hs->pk, hs->g, cf) == w->L) {
    *ok = walk_cross(w, cf, w->L, 1);
    return 1;
  }
  /* An error that ends the call from C has unlinked the frame. */
  for (cf = sp + 8, n = 0; n < LANDING_MAX; cf += 8, n++) {
    if (!lj_safeload_word(hs->pk, cf - 8, &to)) break;
    if ((to == pc || lj_vmcode_islanding(to)) && w->L &&
	lj_cframe_L(hs->pk, hs->g, cf) == w->L &&
	lj_cframe_unlinked(hs->pk, &w->chains, w->L, cf)) {
      *ok = walk_leave(w, cf);
      return 1;
    }
  }
  return 0;
}

/* The current frame is in the assembler VM. Returns 0 if it cannot be left. */
static int walk_vm(Walk *w, VMCode part)
{
  HostWalk *hs = w->hs;
  uintptr_t pc = w->regs.r[WALKREG_PC], sp = w->regs.r[WALKREG_SP];
  uintptr_t cf, end = sp + (walk_exact(w) ? VMFRAME_SLACK : 0);
  const uint8_t *saved;
  lua_State *L;
  int n, ok;
  if (walk_exact(w) && (n = lj_vmcode_partial(pc, &saved)) >= 0)
    return walk_partial(w, n, saved);
  if (w->expect != 0 && w->expect - sp <= VMFRAME_SLACK)
    return walk_cross(w, w->expect, w->L, 0);
  if ((part == VMCODE_EXIT || part == VMCODE_EXIT_INTERP) &&
      walk_trace_fits(w, hs->g, w->L, w->expect))
    return walk_cross(w, w->expect, w->L, 0);
  /* Another coroutine than the one that ran last. */
  for (cf = sp; cf <= end; cf += 8) {
    L = lj_cframe_L(hs->pk, hs->g, cf);
    if (L && lj_cframe_linked(hs->pk, &w->chains, L, cf)) return walk_cross(w, cf, L, 0);
  }
  if (walk_foreign(w, part, &ok)) return ok;
  /* The VM has not linked this frame yet, or has unlinked it: no Lua function runs on
  ** it. The first C function that an FFI callback calls links its frame.
  */
  if (part == VMCODE_CALLBACK || (walk_exact(w) && part != VMCODE_EXIT))
    return walk_leave(w, sp);
  L = lj_cframe_L(hs->pk, hs->g, sp);
  if (L && lj_cframe_unlinked(hs->pk, &w->chains, L, sp)) return walk_leave(w, sp);
  if (walk_landing(w, &ok)) return ok;
  return walk_gap(w, SPF_BROKEN_NO_CFI, SPF_REFUSED_HOST_NO_CFRAME);
}

/* Which part of a frame of the VM was not readable? */
static HOSTWALK_RARE int walk_vmrefusal(const Walk *w)
{
  const uint8_t *saved;
  return walk_exact(w) && lj_vmcode_partial(w->regs.r[WALKREG_PC], &saved) >= 0
	   ? SPF_REFUSED_HOST_PARTIAL
	   : SPF_REFUSED_HOST_RETURN;
}

/* The step needs the frame pointer, which is not known in a thread that sleeps. */
static HOSTWALK_RARE void walk_findbp(Walk *w, const CfiRule *rule)
{
  HostWalk *hs = w->hs;
  uintptr_t pc = lj_cfi_lookup_pc(&w->regs);
  Fde fde;
  if (lj_ehframe_find(hs->pk, pc, &hs->cfi.copy, &fde) == CFI_STEP)
    lj_prologue_find(hs->pk, rule, fde.pc_begin, pc, &w->regs);
}

/* Our own tables have no step: take one that a module has computed. */
static HOSTWALK_RARE CfiResult walk_row(Walk *w)
{
  HostWalk *hs = w->hs;
  const CfiRule *rule = lj_rowtab_find(&hs->rows, hs->pk, lj_cfi_lookup_pc(&w->regs));
  return rule ? lj_cficache_step(rule, hs->pk, &w->regs) : CFI_NONE;
}

/* The current frame is in host code, or in a trace. Returns 0 at the end. */
static int walk_host(Walk *w)
{
  HostWalk *hs = w->hs;
  uintptr_t pc = w->regs.r[WALKREG_PC];
  FrameWord here = frame_word(SPF_FRAME_HOST, lj_cfi_lookup_pc(&w->regs));
  const uint8_t *saved;
  const CfiRule *rule;
  CfiResult res;
  int n = -1, ok;
  if (walk_exact(w) && (n = lj_vmcode_partial(pc, &saved)) >= 0) {
    walk_push(w, here);
    return walk_partial(w, n, saved);
  }
  rule = cficache_staying(&hs->cfi, lj_cfi_lookup_pc(&w->regs));
  if (!rule) {
    /* A trace runs on the VM frame that it was entered from. */
    if (!hs->no_vm_access &&
	lj_vmcode_isjit(&hs->areas, hs->pk, hs->g, lj_cfi_lookup_pc(&w->regs)) &&
	walk_trace_fits(w, hs->g, w->L, w->expect))
      return walk_cross(w, w->expect, w->L, 0);
    rule = lj_cficache_find(&hs->cfi, hs->pk, lj_cfi_lookup_pc(&w->regs));
  }
  if (!(rule && rule->is_inner) && lj_cfi_isstart(hs->pk, &hs->cfi.copy, &w->regs)) {
    walk_push(w, frame_word(SPF_FRAME_HOST, pc));
    return 0;
  }
  if (rule && rule->stays && hs->memo.on && !walk_exact(w))
    w->recorded = lj_hostmemo_host(&hs->memo, rule, &w->regs, here);
  if (LJ_UNLIKELY(hs->is_remote) && rule && rule->cfa_reg == WALKREG_BP &&
      !(w->regs.valid & (1u << WALKREG_BP)))
    walk_findbp(w, rule);
  res = rule ? lj_cficache_step(rule, hs->pk, &w->regs)
	     : lj_cfi_step(hs->pk, &hs->cfi.copy, &w->regs);
  if (LJ_UNLIKELY(res == CFI_NONE) && hs->has_rows && !rule) res = walk_row(w);
  if (res == CFI_NO_OBJECT)
    hs->rows.missing |= lj_osloaded_miss(lj_cfi_lookup_pc(&w->regs));
  /* Callbacks may be in a gap between the segments of an object that has no rule for them. */
  if ((res == CFI_NO_OBJECT || res == CFI_NONE) && walk_exact(w) && !hs->no_vm_access &&
      (n = lj_vmcode_callback(hs->pk, hs->g, pc, &saved)) >= 0) {
    walk_push(w, here);
    return walk_partial(w, n, saved);
  }
  if (res == CFI_NO_OBJECT && walk_foreign(w, VMCODE_NONE, &ok)) return ok;
  walk_push(w, here);
  switch (res) {
  case CFI_STEP: return 1;
  case CFI_ROOT: return 0;
  case CFI_FAULT: return walk_gap(w, SPF_BROKEN_FAULT, SPF_REFUSED_HOST_SAVED);
  case CFI_NO_OBJECT: return walk_gap(w, SPF_BROKEN_NO_CFI, SPF_REFUSED_HOST_NO_OBJECT);
  case CFI_UNLOADED: return walk_gap(w, SPF_BROKEN_FAULT, SPF_REFUSED_HOST_UNLOADED);
  default: return walk_gap(w, SPF_BROKEN_NO_CFI, SPF_REFUSED_HOST_NO_RULE);
  }
}

/* Start with the registers of the innermost frame and the coroutine that ran last. */
static void walk_init(Walk *w, HostWalk *hs, const WalkRegs *regs)
{
  uintptr_t cur_L = hs->no_vm_access ? 0 : (uintptr_t)gcref(hs->g->cur_L), cf;
  int i;
  w->regs = *regs;
  for (i = 0; i < CFRAME_CHAINS; i++) w->chains.c[i].L = NULL;
  w->chains.turn = w->chains.links = 0;
  w->hs = hs;
  w->L = NULL;
  w->expect = 0;
  if (lj_cframe_isthread(hs->pk, hs->g, cur_L) &&
      lj_safeload_word(hs->pk, cur_L + offsetof(lua_State, cframe), &cf)) {
    w->L = (lua_State *)cur_L;
    w->expect = cf & (uintptr_t)CFRAME_RAWMASK;
  }
}

/* The current frame is in the VM's code. If a signal interrupted it there, keep the
** registers: ours, or one for a handler of the program that our signal interrupted.
*/
static LJ_AINLINE void walk_leaf(Walk *w)
{
  HostWalk *hs = w->hs;
  if (!walk_exact(w) || hs->nvm > 0 || w->regs.valid != WALKREG_ALL) return;
  hs->leaf = LEAF_VM;
  hs->regs = w->regs;
}

/* Has the walk crossed all VM frames that the top Lua frame can depend on? Below the
** outermost one of the main thread is only the host.
*/
static int walk_hasfew(const Walk *w)
{
  const HostWalk *hs = w->hs;
  return hs->nvm >= HOSTWALK_FEW ||
	 (hs->nvm > 0 && w->expect == 0 && w->L == mainthread(hs->g));
}

/* Take the rest of the stack from the last walk, from its n-th frame to the root. */
static void walk_reuse(Walk *w, uint32_t n)
{
  HostWalk *hs = w->hs;
  const MemoSteps *ts = &hs->memo.lists->saved;
  uint32_t i;
  for (i = ts->step[n - 1].sum.extra; i-- > 0; hs->nvm++)
    if (hs->nvm < HOSTWALK_VMFRAMES) hs->vm[hs->nvm] = ts->vm[i];
  if (hs->frames) lj_framelist_pushall(hs->frames, ts->frame, n);
}

void lj_hostwalk_walk(HostWalk *hs, const WalkRegs *regs)
{
  Walk w;
  int more = 1, steps;
  lj_safeload_stack(hs->pk, hs->stack_lo, hs->stack_hi, regs->r[WALKREG_SP]);
  /* During the walk, another thread may unmap memory of the VM. */
  if (hs->cross_thread || hs->no_vm_access) lj_safeload_forget(hs->pk);
  hs->areas.by_copy = hs->is_remote;
  walk_init(&w, hs, regs);
  hs->nvm = 0;
  hs->broken = -1;
  hs->leaf = LEAF_HOST;
  lj_hostmemo_begin(&hs->memo, hs->pk, !hs->few_vm_frames);
  for (steps = 0; more && steps < HOSTWALK_STEPS; steps++) {
    VMCode part = lj_vmcode_part(lj_cfi_lookup_pc(&w.regs));
    if (hs->memo.verified && !walk_exact(&w) &&
	lj_hostmemo_reuse(&hs->memo, &w.regs, w.L, w.expect)) {
      walk_reuse(&w, hs->memo.reused);
      more = 0;
      break;
    }
    w.recorded = 0;
    if (part != VMCODE_NONE) {
      walk_leaf(&w);
      more = walk_vm(&w, part);
      if (!more && hs->broken < 0) walk_broken(&w, SPF_BROKEN_FAULT, walk_vmrefusal(&w));
    } else {
      more = walk_host(&w);
    }
    if (!w.recorded) lj_hostmemo_restart(&hs->memo);
    if (hs->few_vm_frames && walk_hasfew(&w)) return;
  }
  if (!more && hs->broken < 0) lj_hostmemo_end(&hs->memo);
  if (more && steps == HOSTWALK_STEPS)
    walk_broken(&w, SPF_BROKEN_NO_CFI, SPF_REFUSED_HOST_STEPS_MAX);
}
