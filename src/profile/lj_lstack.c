/*
** Lua stack of a sample, read from the interrupted machine state.
** Runs in the signal handler; see the header for the contract.
*/

#define lj_lstack_c
#define LUA_CORE

#ifndef _GNU_SOURCE
#define _GNU_SOURCE	/* For REG_RBX and friends. */
#endif
#include "lj_obj.h"
#include "lj_bc.h"
#include "lj_frame.h"
#include "lj_debug.h"
#include "lj_ff.h"
#include "lj_jit.h"
#include "lj_dispatch.h"
#include "lj_vm.h"
#include "profile/lj_callname.h"
#include "profile/lj_lstack.h"

/* Registers of the interpreter, vm_x64.dasc. */
#define REG_BASE	REG_RDX
#define REG_PC		REG_RBX
#define REG_RB		REG_RBP

#define LSTACK_THREADS	1000	/* Nested coroutines walked at most. */
#define PROTO_BC_MAX	(1u << 26)  /* No function has more bytecode. */

/* -- Checked reading of frames ----------------------------------------------- */

/* One Lua stack. */
typedef struct Area {
  Peek *pk;
  lua_State *L;
  uintptr_t bot;		/* Frame slot of the bottom frame. */
  uintptr_t end;		/* End of the stack. */
} Area;

/* A function in a frame slot. */
typedef struct FrameFunc {
  GCfunc *fn;			/* NULL for the dummy frame of an error. */
  GCproto *pt;			/* Of a Lua function, else NULL. */
} FrameFunc;

static int area_init(Area *a, Peek *pk, lua_State *L)
{
  uintptr_t stack = (uintptr_t)tvref(L->stack);
  a->pk = pk;
  a->L = L;
  a->bot = stack + LJ_FR2*sizeof(TValue);
  a->end = stack + (uintptr_t)L->stacksize * sizeof(TValue);
  return stack != 0 && (stack & 7) == 0 && a->end > a->bot;
}

/* Could there be a frame with its link slot at f? */
static int area_has(const Area *a, uintptr_t f)
{
  return f >= a->bot && f < a->end && (f & 7) == 0 &&
	 lj_peek_ok(a->pk, (const void *)(f - 8), 16);
}

static uint64_t frame_link(uintptr_t f)
{
  return *(const uint64_t *)f;
}

static uint64_t frame_slot(uintptr_t f)
{
  return *(const uint64_t *)(f - 8);
}

static int proto_valid(Peek *pk, const GCproto *pt)
{
  return ((uintptr_t)pt & 7) == 0 && lj_peek_ok(pk, pt, sizeof(GCproto)) &&
	 pt->gct == (uint8_t)~LJ_TPROTO && pt->sizebc > 0 &&
	 pt->sizebc <= PROTO_BC_MAX;
}

/* Read the function of a frame. Returns 0 if there is none. */
static int frame_readfunc(const Area *a, uintptr_t f, FrameFunc *ff)
{
  uint64_t slot = frame_slot(f);
  uint32_t tag = (uint32_t)((int64_t)slot >> 47);
  uintptr_t p = (uintptr_t)(slot & LJ_GCVMASK);
  const GCfunc *fn = (const GCfunc *)p;
  ff->fn = NULL;
  ff->pt = NULL;
  if (tag == (uint32_t)LJ_TTHREAD) return p == (uintptr_t)a->L;
  if (tag != (uint32_t)LJ_TFUNC || (p & 7) != 0 ||
      !lj_peek_ok(a->pk, fn, sizeof(GCfuncC)) ||
      fn->c.gct != (uint8_t)~LJ_TFUNC)
    return 0;
  if (isluafunc(fn)) {
    GCproto *pt = (GCproto *)(mref(fn->l.pc, char) - sizeof(GCproto));
    if (!proto_valid(a->pk, pt)) return 0;
    ff->pt = pt;
  } else if (mref(fn->c.pc, char) - (char *)L2GG(a->L) >=
	     (ptrdiff_t)sizeof(GG_State) ||
	     mref(fn->c.pc, char) < (char *)L2GG(a->L)) {
    return 0;  /* The header of a C function is in the VM's own state. */
  }
  ff->fn = (GCfunc *)fn;
  return 1;
}

/* Does a PC, which points behind its instruction, belong to a prototype? */
static int pc_inproto(const GCproto *pt, uintptr_t pc)
{
  uintptr_t bc = (uintptr_t)proto_bc(pt);
  return pc > bc && pc <= bc + (uintptr_t)pt->sizebc*sizeof(BCIns) &&
	 (pc & 3) == 0;
}

/* Frame below a Lua frame whose caller continues at pc. Returns 0 if the
** caller's frame is not that of the Lua function that pc belongs to.
*/
static uintptr_t frame_caller(const Area *a, uintptr_t f, uintptr_t pc)
{
  const BCIns *call = (const BCIns *)pc - 1;
  FrameFunc ff;
  uintptr_t prev;
  if ((pc & 3) != 0 || !lj_peek_ok(a->pk, call, sizeof(BCIns))) return 0;
  prev = f - (uintptr_t)(1 + LJ_FR2 + bc_a(*call))*sizeof(TValue);
  if (prev >= f || !area_has(a, prev) || !frame_readfunc(a, prev, &ff) ||
      !ff.pt || !pc_inproto(ff.pt, pc))
    return 0;
  return prev;
}

/* Read the continuation of frame f and the PC that goes with it. A metamethod's
** is code of the VM, and its PC belongs to the Lua function below, if that is
** one. Returns 0 if they are not valid.
*/
static int frame_contvalid(const Area *a, uintptr_t f, uintptr_t prev,
			   uintptr_t *cont, uintptr_t *pc)
{
  FrameFunc ff;
  if (!area_has(a, f-24) || !area_has(a, prev) || !frame_readfunc(a, prev, &ff))
    return 0;
  *cont = (uintptr_t)frame_link(f-24);
  *pc = (uintptr_t)frame_link(f-16);
  if (*cont == LJ_CONT_TAILCALL || *cont == LJ_CONT_FFI_CALLBACK) return 1;
  return lj_hstack_isvm(*cont) && (!ff.pt || pc_inproto(ff.pt, *pc));
}

/* Is the function of a frame the builtin pcall or xpcall? */
static int frame_ispcallfunc(const Area *a, uintptr_t f)
{
  FrameFunc ff;
  return area_has(a, f) && frame_readfunc(a, f, &ff) && ff.fn && !ff.pt &&
	 (ff.fn->c.ffid == FF_pcall || ff.fn->c.ffid == FF_xpcall);
}

/* -- Walking one coroutine --------------------------------------------------- */

/* A place where the top frame may be. */
typedef struct Candidate {
  uintptr_t frame;		/* Link slot of the top frame. */
  uintptr_t pc;			/* PC of the top function, 0 if unknown. */
} Candidate;

/* Current line of a Lua function, 0 if unknown. */
static uint32_t func_line(Peek *pk, GCproto *pt, uintptr_t pc)
{
  const char *info = proto_lineinfo(pt);
  size_t sz = pt->numline < 256 ? 1 : pt->numline < 65536 ? 2 : 4;
  BCPos pos;
  if (!info || !pc_inproto(pt, pc)) return 0;
  pos = proto_bcpos(pt, (const BCIns *)pc) - 1;
  if (pos > 0 && !lj_peek_ok(pk, info + (pos-1)*sz, sz)) return 0;
  return (uint32_t)lj_debug_line(pt, pos);
}

static int push_func(LuaStack *ls, const FrameFunc *ff, uintptr_t pc)
{
  FrameWord w;
  TopFunc kind;
  if (ff->pt) {
    uint32_t fid = lj_symtab_lfunc(ls->st, ls->pk, ff->pt);
    if (fid == 0) return 0;
    w = frame_word2(SPF_FRAME_LFUNC, fid, func_line(ls->pk, ff->pt, pc));
    kind = TOP_LUA;
  } else if (isffunc(ff->fn)) {
    w = frame_word(SPF_FRAME_FFUNC, ff->fn->c.ffid);
    kind = TOP_FAST;
  } else {
    w = frame_word(SPF_FRAME_CFUNC, (uintptr_t)ff->fn->c.f);
    kind = TOP_C;
  }
  if (ls->top == TOP_NONE) ls->top = kind;
  lj_frames_push(ls->frames, w);
  return 1;
}

/* C frame of the VM without a Lua frame of its own: lj_vm_cpcall runs a C
** function directly. Its "number of results" is the negative offset of the top
** of the Lua stack when it was entered.
*/
static int cframe_isbare(const Area *a, uintptr_t cf, uintptr_t frame)
{
  int32_t nres;
  if (!lj_peek_ok(a->pk, (const void *)(cf + CFRAME_OFS_NRES), 4)) return 0;
  nres = *(const int32_t *)(cf + CFRAME_OFS_NRES);
  return nres < 0 &&
	 frame < a->bot - LJ_FR2*sizeof(TValue) + (uintptr_t)-(intptr_t)nres;
}

/* State of the C frame chain that is followed along with the Lua frames. */
typedef struct Chain {
  uintptr_t cf;			/* Current VM frame, 0 at the end. */
  uintptr_t last;		/* VM frame before it. */
  int resume;			/* The current one resumed this coroutine. */
} Chain;

static void chain_set(Chain *ch, uintptr_t link)
{
  ch->last = ch->cf;
  ch->cf = link & (uintptr_t)CFRAME_RAWMASK;
  ch->resume = (link & CFRAME_RESUME) != 0;
}

/* Pass one VM frame. */
static int chain_pass(LuaStack *ls, Chain *ch)
{
  uintptr_t link;
  if (ch->cf == 0) return 0;  /* More boundaries than VM frames. */
  lj_frames_push(ls->frames,
		 frame_word(ch->resume ? SPF_FRAME_RESUME : SPF_FRAME_CBOUND, 0));
  ls->nbounds++;
  if (!lj_peek_word(ls->pk, ch->cf + CFRAME_OFS_PREV, &link)) return 0;
  chain_set(ch, link);
  return 1;
}

/* PC that a Lua function saved in its VM frame before it left for C. */
static uintptr_t chain_savedpc(LuaStack *ls, const Chain *ch)
{
  uintptr_t pc = 0;
  if (ch->cf != 0) lj_peek_word(ls->pk, ch->cf + CFRAME_OFS_PC, &pc);
  return pc;
}

/* Walk the frames of one coroutine. Returns 1 if they are valid to the end.
** bare: no frame runs on the innermost VM frame.
*/
static int walk_thread(LuaStack *ls, const Area *a, const Candidate *top,
		       Chain *ch, int bare)
{
  uintptr_t f = top->frame, pc = top->pc, slots = 0;
  int skip = 0;  /* This frame is the lower part of a vararg frame. */
  if (bare && !chain_pass(ls, ch)) return 0;
  for (;;) {
    uint64_t link;
    FrameFunc ff;
    uintptr_t prev;
    while (ch->cf != 0 && cframe_isbare(a, ch->cf, f))
      if (!chain_pass(ls, ch)) return 0;
    if (f == a->bot) return 1;
    if (!area_has(a, f) || !frame_readfunc(a, f, &ff)) return 0;
    if (ff.fn && !skip && !push_func(ls, &ff, pc)) return 0;
    if (!skip) slots = f + 8;
    skip = 0;
    link = frame_link(f);
    if ((link & FRAME_TYPE) == FRAME_LUA) {
      prev = frame_caller(a, f, (uintptr_t)link);
      if (prev == 0) return 0;
      pc = (uintptr_t)link;
    } else {
      uint64_t delta = link & ~(uint64_t)FRAME_TYPEP;
      if (delta == 0 || delta > f - a->bot) return 0;
      prev = f - (uintptr_t)delta;
      pc = 0;
      switch (link & FRAME_TYPEP) {
      case FRAME_C: case FRAME_CP:
	if (!chain_pass(ls, ch)) return 0;
	pc = chain_savedpc(ls, ch);
	break;
      case FRAME_CONT: {
	uintptr_t cont;
	if (!frame_contvalid(a, f, prev, &cont, &pc)) return 0;
	if (LJ_HASFFI && cont == LJ_CONT_FFI_CALLBACK) {
	  if (!chain_pass(ls, ch)) return 0;
	  pc = chain_savedpc(ls, ch);
	}
	break;
	}
      case FRAME_VARG:  /* The lower part holds the same function. */
	if (!area_has(a, prev) || frame_slot(prev) != frame_slot(f)) return 0;
	skip = 1;
	break;
      default:  /* FRAME_PCALL, FRAME_PCALLH */
	if (!frame_ispcallfunc(a, prev)) return 0;
	break;
      }
    }
    if (ff.pt && lj_callname_wanted(ls->st, ff.pt)) {
      CallFrame cf = { ff.fn, f, slots, prev, pc };
      lj_callname_frame(ls->st, ls->pk, ls->g, &cf);
    }
    f = prev;
  }
}

/* -- Finding the top frame --------------------------------------------------- */

#define CANDIDATES_MAX	16

typedef struct Candidates {
  int n;
  Candidate c[CANDIDATES_MAX];
} Candidates;

static void cand_add(Candidates *cs, uintptr_t base, uintptr_t pc)
{
  uintptr_t f = base - 8;
  int i;
  for (i = 0; i < cs->n; i++)
    if (cs->c[i].frame == f) {
      if (cs->c[i].pc == 0) cs->c[i].pc = pc;
      return;
    }
  if (cs->n < CANDIDATES_MAX) {
    cs->c[cs->n].frame = f;
    cs->c[cs->n++].pc = pc;
  }
}

/* Candidate that agrees with the interpreter's PC: the function runs there, or
** is about to, or has just been returned from.
*/
static void cand_add_fitting(Candidates *cs, const Area *a, uintptr_t base,
			     uintptr_t pc)
{
  uintptr_t f = base - 8, header;
  FrameFunc ff;
  if (!area_has(a, f) || !frame_readfunc(a, f, &ff) || !ff.fn) return;
  header = ff.pt ? (uintptr_t)proto_bc(ff.pt) : (uintptr_t)mref(ff.fn->c.pc, char);
  /* A call sets PC to the function's header, the dispatch moves it on. */
  if (pc == header) pc += sizeof(BCIns);
  if (ff.pt ? pc_inproto(ff.pt, pc) : pc == header + sizeof(BCIns))
    cand_add(cs, base, ff.pt ? pc : 0);
  /* The results of a call stand in the callee's frame: a Lua function that
  ** does not fit may be one of them.
  */
  else if (!ff.pt && pc == frame_link(f))
    cand_add(cs, base, 0);
}

/* Candidate whose callee's frame is being built or was just removed. */
static void cand_add_caller(Candidates *cs, const Area *a, uintptr_t base,
			    uintptr_t pc)
{
  uintptr_t f = base - 8, prev;
  if (f < a->bot || f >= a->end) return;
  prev = frame_caller(a, f, pc);
  if (prev) cand_add(cs, prev + 8, pc);
}

/* Does the VM build the frame of a callee? BASE is that frame already, while PC
** is in the caller still: mov [BASE-8], PC; mov PC, LFUNC:RB->pc
*/
static int vm_calls(const uint8_t *ip)
{
  return ip[0] == 0x48 &&
	 ((ip[1] == 0x89 && ip[2] == 0x5a && ip[3] == 0xf8) ||
	  (ip[1] == 0x8b && ip[2] == 0x5d && ip[3] == offsetof(GCfuncL, pc)));
}

#define VM_RETURN_MAX	128	/* Bytes of code of a return, at most. */

/* Does the VM return to a Lua function? PC is in the caller already, or soon,
** while BASE is the callee's up to lea BASE, [BASE+RA*8-16].
*/
static int vm_returns(const uint8_t *ip)
{
  const uint8_t *begin = (const uint8_t *)(void *)lj_vm_asm_begin;
  int i;
  if (ip < begin + lj_bc_ofs[BC_RETM] || ip >= begin + lj_bc_ofs[BC_FORI])
    return 0;
  for (i = 0; i < VM_RETURN_MAX; i++) {
    const uint8_t *p = ip + i;
    if (p[0] == 0x48 && p[1] == 0x8d && p[2] == 0x54 && p[3] == 0xca &&
	p[4] == 0xf0)
      return 1;
    if (p[0] == 0x41 && p[1] == 0xff && p[2] == 0x24 && p[3] == 0xee)
      return 0;  /* jmp [DISPATCH+OP*8]: BASE is the caller's. */
  }
  return 0;
}

/* L->base. While a stack is moved, it is still the address in the old one. */
static uintptr_t current_base(const LuaStack *ls, const Area *a)
{
  uintptr_t base = (uintptr_t)a->L->base;
  if (ls->moving == a->L && base - a->bot >= a->end - a->bot)
    base += (uintptr_t)tvref(a->L->stack) - ls->moving_from;
  return base;
}

/* Where the top frame may be, best first. The VM frame that runs it is vf, NULL
** in host code below all VM frames.
*/
static void cand_collect(Candidates *cs, const LuaStack *ls, const Area *a,
			 const VMFrame *vf, const ucontext_t *uc)
{
  const greg_t *greg = uc->uc_mcontext.gregs;
  uintptr_t Lbase = current_base(ls, a);
  uintptr_t jit_base = (uintptr_t)tvref(ls->g->jit_base);
  int32_t vmstate = ls->g->vmstate;
  uintptr_t pc = vf ? vf->pc : 0;
  cs->n = 0;
  if (vmstate >= 0 || vmstate == ~LJ_VMST_EXIT) {
    if (jit_base) cand_add(cs, jit_base, 0);
    if (ls->hs->leaf != LEAF_VM) {
      cand_add(cs, Lbase, pc);
      return;
    }
  } else if (jit_base && vf && !pc && ls->hs->leaf != LEAF_VM) {
    cand_add(cs, jit_base, 0);  /* First instructions of a trace. */
  }
  if (ls->hs->leaf == LEAF_VM) {
    const uint8_t *ip = (const uint8_t *)greg[REG_RIP];
    uintptr_t base = (uintptr_t)greg[REG_BASE], saved;
    uint64_t delta;
    pc = (uintptr_t)greg[REG_PC];
    delta = pc & ~(uint64_t)FRAME_TYPEP;
    /* If a function calls itself, both fit. */
    if (vm_calls(ip) || (vm_returns(ip) && area_has(a, base - 8) &&
			 frame_link(base - 8) == pc))
      cand_add_caller(cs, a, base, pc);
    cand_add_fitting(cs, a, base, pc);
    cand_add_caller(cs, a, base, pc);
    /* On the way back to C, PC turns from the link into the previous base. */
    if (pc - a->bot < a->end - a->bot) cand_add(cs, pc, 0);
    if ((uintptr_t)0-pc - a->bot < a->end - a->bot) cand_add(cs, 0-pc, 0);
    if (delta - 1 < a->end - a->bot) cand_add(cs, base - delta, 0);
    /* Old values of these may fit, too, so they come later. */
    cand_add_fitting(cs, a, Lbase, pc);
    cand_add_fitting(cs, a, (uintptr_t)greg[REG_RB], pc);
    if (vmstate == ~LJ_VMST_C) {
      cand_add(cs, Lbase, 0);
      cand_add(cs, base, 0);
    } else {
      cand_add(cs, base, 0);
      cand_add(cs, Lbase, 0);
    }
    /* A coroutine's results replace the frame of coroutine.resume. */
    if (vf && lj_peek_word(ls->pk, vf->cf + CFRAME_OFS_PC, &saved))
      cand_add_caller(cs, a, Lbase, saved);
    return;
  }
  /* In C code that the VM called: the interpreter saved its base in L->base or,
  ** around a few calls of fast functions, in RB.
  */
  if (vmstate == ~LJ_VMST_INTERP && vf) {
    cand_add_fitting(cs, a, vf->rb, pc);
    cand_add_fitting(cs, a, Lbase, pc);
    cand_add_caller(cs, a, Lbase, pc);
  }
  cand_add(cs, Lbase, pc);
}

/* -- Walking all coroutines -------------------------------------------------- */

/* Find the coroutine that resumed another one, whose outermost VM frame is cf.
** Sets *L to NULL if a host program did. Returns 0 if it cannot be known.
*/
static int find_resumer(const LuaStack *ls, uintptr_t cf, lua_State **L)
{
  const HostStack *hs = ls->hs;
  uintptr_t ret, p;
  uint32_t i;
  *L = NULL;
  if (!lj_peek_word(ls->pk, cf + CFRAME_SIZE - 8, &ret)) return 0;
  if (lj_hstack_isvm(ret)) {  /* coroutine.resume called lj_vm_resume. */
    uintptr_t cf2 = cf + CFRAME_SIZE;
    if (!lj_peek_word(ls->pk, cf2 + CFRAME_OFS_L, &p) ||
	!lj_hstack_isthread(ls->pk, ls->g, p) ||
	(uintptr_t)cframe_raw(((lua_State *)p)->cframe) != cf2)
      return 0;
    *L = (lua_State *)p;
    return 1;
  }
  for (i = 0; i < hs->nvm && i < HSTACK_VMFRAMES; i++)  /* lua_resume() */
    if (hs->vm[i].cf > cf) {
      *L = hs->vm[i].L;
      return 1;
    }
  return hs->broken < 0 && hs->nvm <= HSTACK_VMFRAMES;
}

/* Walk from the given top frame of L to the bottom of the last resumer. Returns
** 1 if all frames are valid, 0 if not, -1 if there is no frame for a VM frame.
*/
static int walk_threads(LuaStack *ls, lua_State *L, const Candidate *top,
			int bare)
{
  Candidate c = *top;
  int n;
  for (n = 0; n < LSTACK_THREADS; n++) {
    Area a;
    Chain ch;
    ch.cf = ch.last = 0;
    if (!area_init(&a, ls->pk, L)) return 0;
    chain_set(&ch, (uintptr_t)L->cframe);
    if (!walk_thread(ls, &a, &c, &ch, bare && n == 0)) return 0;
    if (ch.cf != 0) return -1;  /* A VM frame is left over. */
    /* Below the main thread, or if it runs in no VM frame, is the host. */
    if (ch.last == 0 || L == mainthread(ls->g)) return 1;
    if (!find_resumer(ls, ch.last, &L)) {
      ls->broken = SPF_BROKEN_NO_CFI;
      lj_frames_push(ls->frames, frame_word(SPF_FRAME_BROKEN, ls->broken));
      return 1;
    }
    if (!L) return 1;
    c.frame = (uintptr_t)L->base - 8;
    c.pc = 0;
  }
  return 0;
}

void lj_lstack_walk(LuaStack *ls, const ucontext_t *uc)
{
  const VMFrame *vf = ls->hs->nvm ? &ls->hs->vm[0] : NULL;
  lua_State *L = vf ? vf->L : mainthread(ls->g);
  Candidates cs;
  Area a;
  int i;
  ls->broken = -1;
  cs.n = 0;
  if (lj_hstack_isthread(ls->pk, ls->g, (uintptr_t)L) &&
      area_init(&a, ls->pk, L))
    cand_collect(&cs, ls, &a, vf, uc);
  for (i = 0; i < cs.n; i++) {
    int bare, res = -1;
    /* While a VM frame is entered or left, it has no Lua frame of its own. */
    for (bare = 0; bare <= 1 && res < 0; bare++) {
      lj_frames_reset(ls->frames);
      ls->top = TOP_NONE;
      ls->broken = -1;
      ls->nbounds = 0;
      res = walk_threads(ls, L, &cs.c[i], bare);
    }
    if (res > 0) return;
  }
  ls->broken = cs.n ? SPF_BROKEN_CHAIN : SPF_BROKEN_NO_BASE;
  ls->top = TOP_UNKNOWN;
  ls->nbounds = 0;
  lj_frames_reset(ls->frames);
  lj_frames_push(ls->frames, frame_word(SPF_FRAME_BROKEN, ls->broken));
}
