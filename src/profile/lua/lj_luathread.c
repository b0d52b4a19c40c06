/*
** Unwinder of one coroutine: checks its Lua frames and lists them.
** Context: handler.
*/

#define lj_luathread_c
#define LUA_CORE

#include "lj_obj.h"
#include "lj_bc.h"
#include "lj_frame.h"
#include "lj_debug.h"
#include "lj_ff.h"
#include "lj_gc.h"
#include "profile/lua/lj_luathread.h"

/* -- Refusals ---------------------------------------------------------------- */

int lj_luathread_refuse(LuaWalk *ls, uint32_t depth, int code)
{
  uint32_t far = ls->passed + depth + 1;
  if (far > ls->furthest) {
    ls->furthest = far;
    ls->refused = code;
  }
  return 0;
}

/* -- Frames ------------------------------------------------------------------ */

/* Read the continuation of frame f and its PC. The continuation of a metamethod is code of
** the VM. If the function below is a Lua function, the PC belongs to it. Returns 0 if
** continuation or PC is not valid.
*/
static int frame_contvalid(const LuaArea *a, uintptr_t f, uintptr_t prev, uintptr_t *cont,
			   uintptr_t *pc)
{
  FrameFunc ff;
  if (!lj_luaframe_has(a, f - 24) || !lj_luaframe_has(a, prev) ||
      !lj_luaframe_func(a, prev, &ff))
    return 0;
  *cont = (uintptr_t)lj_luaframe_link(f - 24);
  *pc = (uintptr_t)lj_luaframe_link(f - 16);
  if (*cont == LJ_CONT_TAILCALL || *cont == LJ_CONT_FFI_CALLBACK) return 1;
  return lj_hostwalk_isvm(*cont) && (!ff.pt || lj_luaframe_pcinproto(ff.pt, *pc));
}

/* Which check of frame_contvalid refuses the frame? */
static LUAFRAME_COLD int cont_refusal(const LuaArea *a, uintptr_t f, uintptr_t prev)
{
  FrameFunc ff;
  if (!lj_luaframe_has(a, f - 24) || !lj_luaframe_has(a, prev))
    return SPF_REFUSED_CONT_OUTSIDE;
  if (!lj_luaframe_func(a, prev, &ff)) return SPF_REFUSED_CONT_CALLER;
  return lj_hostwalk_isvm(lj_luaframe_link(f - 24)) ? SPF_REFUSED_CONT_PC
						    : SPF_REFUSED_CONT_NOT_VM;
}

/* Is the function of a frame the builtin pcall or xpcall? */
static int frame_ispcallfunc(const LuaArea *a, uintptr_t f)
{
  FrameFunc ff;
  return lj_luaframe_has(a, f) && lj_luaframe_func(a, f, &ff) && ff.fn && !ff.pt &&
	 (ff.fn->c.ffid == FF_pcall || ff.fn->c.ffid == FF_xpcall);
}

/* -- Pushing frames ------------------------------------------------------------ */

/* Current line of a Lua function, 0 if unknown. */
static uint32_t func_line(SafeLoad *pk, const GCproto *pt, uintptr_t pc)
{
  const char *info = proto_lineinfo(pt);
  size_t sz = pt->numline < 256 ? 1 : pt->numline < 65536 ? 2 : 4;
  BCPos pos;
  if (!info || !lj_luaframe_pcinproto(pt, pc)) return 0;
  pos = proto_bcpos(pt, (const BCIns *)pc) - 1;
  if (pos > 0 && !lj_safeload_vm(pk, info + (pos - 1) * sz, sz)) return 0;
  return (uint32_t)lj_debug_line((GCproto *)pt, pos);
}

/* Push a frame that the steps of the walk find. */
static LJ_AINLINE void push_step(LuaWalk *ls, FrameWord w)
{
  lj_luamemo_word(&ls->memo, w);
  lj_framelist_push(ls->frames, w);
}

static LJ_AINLINE void push_word(LuaWalk *ls, FrameWord w, TopFunc kind)
{
  if (ls->top == TOP_NONE) ls->top = kind;
  if (kind == TOP_LUA) ls->has_lua = 1;
  push_step(ls, w);
}

/* Push a Lua function at a cached place. With leaf_only, skips the work for functions below
** the innermost one.
*/
static LJ_AINLINE void push_site(LuaWalk *ls, LuaSite *site)
{
  ls->unnamed = NULL;
  if (ls->leaf_only && ls->has_lua) return;
  if (LJ_UNLIKELY(!site->is_named)) {
    FuncEntry *fe = lj_functab_entry(ls->funcs, frame_payload_lo(site->word));
    site->is_named = !(fe->pt == site->pt && lj_callname_wanted(fe));
    if (!site->is_named) ls->unnamed = fe;
  }
  push_word(ls, site->word, TOP_LUA);
}

/* Push a Lua function that runs at pc. Returns 0 if it is not readable. */
static int push_proto(LuaWalk *ls, const GCproto *pt, uintptr_t pc)
{
  LuaSite *site = pc ? lj_luasites_find(&ls->sites, ls->funcs, pc) : NULL;
  FuncEntry *fe;
  FrameWord w;
  if (site && site->pt == pt) {
    push_site(ls, site);
    return 1;
  }
  fe = lj_functab_see(ls->funcs, ls->in.pk, pt);
  if (!fe) return 0;
  w = frame_word2(SPF_FRAME_LFUNC, fe->fid, func_line(ls->in.pk, pt, pc));
  if (lj_luaframe_pcinproto(pt, pc) &&
      lj_safeload_vm(ls->in.pk, (const BCIns *)pc - 1, sizeof(BCIns)))
    lj_luasites_set(&ls->sites, ls->funcs, pt, pc, w);
  ls->unnamed = lj_callname_wanted(fe) ? fe : NULL;
  push_word(ls, w, TOP_LUA);
  return 1;
}

static void push_builtin(LuaWalk *ls, uint32_t ffid)
{
  push_word(ls, frame_word(SPF_FRAME_FFUNC, ffid), TOP_FAST);
}

static void push_cfunc(LuaWalk *ls, const GCfuncC *fn)
{
  uintptr_t f = (uintptr_t)fn->f;
  CFuncTab *ct = &ls->funcs->cfuncs;
  CFuncEntry *e;
  if (fn->ffid > FF_C) {
    push_builtin(ls, fn->ffid);
    return;
  }
  e = cfunctab_see(ct, (uintptr_t)fn, f);
  if (e && LJ_UNLIKELY(cfunctab_wants(e))) ls->unnamed_c = e;
  push_word(ls, frame_cfunc(f, e ? e->number : 0), TOP_C);
}

static int push_func(LuaWalk *ls, const FrameFunc *ff, uintptr_t pc)
{
  if (ff->pt) return push_proto(ls, ff->pt, pc);
  if (ff->fn->c.ffid == FF_C)
    lj_luamemo_load(&ls->memo, (uintptr_t)&ff->fn->c.f, (uintptr_t)ff->fn->c.f);
  push_cfunc(ls, &ff->fn->c);
  return 1;
}

void lj_luathread_pushproto(LuaWalk *ls, const GCproto *pt, uintptr_t pc)
{
  push_proto(ls, pt, pc);
}

void lj_luathread_push(LuaWalk *ls, const GCfunc *fn, uintptr_t pc)
{
  if (isluafunc(fn)) push_proto(ls, funcproto(fn), pc);
  else push_cfunc(ls, &fn->c);
}

void lj_luathread_name(LuaWalk *ls, const CallFrame *cf)
{
  if (!ls->unnamed || !isluafunc(cf->fn) || ls->unnamed->pt != funcproto(cf->fn) ||
      lj_callname_isfinal(ls->unnamed, ls->in.g, cf))
    return;
  lj_callname_frame(ls->funcs, ls->unnamed, ls->in.pk, ls->in.g, cf);
}

/* -- The chain of VM frames ---------------------------------------------------- */

static void chain_set(LuaWalk *ls, LuaChain *ch, uintptr_t link)
{
  ch->last = ch->cf;
  ch->cf = link & (uintptr_t)CFRAME_RAWMASK;
  ch->resume = (link & CFRAME_RESUME) != 0;
  ch->may_lack_lua = (ch->cf != 0 && lj_luatop_maynoframe(ls->in.pk, ch->cf));
}

/* The step depends on whether the current VM frame may lack Lua frames, and on its owner. */
static void chain_recordkind(LuaWalk *ls, const LuaChain *ch)
{
  uintptr_t addr = ch->cf + CFRAME_OFS_NRES, nres = 0;
  if (!ls->memo.records) return;
  lj_safeload_word(ls->in.pk, addr, &nres);
  lj_luamemo_load(&ls->memo, addr + 1, nres);
}

/* Pass one VM frame. Returns 0 if the chain is at its end (ch->cf is 0) or not readable. */
static int chain_pass(LuaWalk *ls, LuaChain *ch)
{
  uintptr_t link;
  if (ch->cf == 0) return 0;
  push_step(ls, frame_word(ch->resume ? SPF_FRAME_RESUME : SPF_FRAME_CBOUND, 0));
  ls->nbounds++;
  if (!lj_safeload_word(ls->in.pk, ch->cf + CFRAME_OFS_PREV, &link)) return 0;
  lj_luamemo_load(&ls->memo, ch->cf + CFRAME_OFS_PREV, link);
  chain_set(ls, ch, link);
  if (ch->cf != 0) chain_recordkind(ls, ch);
  return 1;
}

/* SPF_REFUSED_* of a VM frame that the walk could not pass. none: the code for the end of
** the chain.
*/
static LUAFRAME_COLD int chain_refusal(const LuaChain *ch, int none)
{
  return ch->cf ? SPF_REFUSED_CFRAME_UNREADABLE : none;
}

/* PC that a Lua function saved in its VM frame before its call of C. */
static uintptr_t chain_savedpc(LuaWalk *ls, const LuaChain *ch)
{
  uintptr_t pc = 0;
  if (ch->cf != 0 && lj_safeload_word(ls->in.pk, ch->cf + CFRAME_OFS_PC, &pc))
    lj_luamemo_load(&ls->memo, ch->cf + CFRAME_OFS_PC, pc);
  return pc;
}

/* -- Compiled code ------------------------------------------------------------ */

#if LJ_HASJIT

/* PC behind an instruction of a prototype. */
static uintptr_t node_pc(const GCproto *pt, BCPos pos)
{
  return pos < pt->sizebc ? (uintptr_t)(proto_bc(pt) + pos + 1) : 0;
}

/* Push the functions of a trace, from its current place to the function at its base. Returns
** 0 if one is not readable.
*/
static LJ_NOINLINE int push_trace(LuaWalk *ls, const JitFind *at)
{
  const TraceBlock *b = at->block;
  const TraceNode *n;
  uint32_t i, count = 0;
  BCPos pos;
  if (!b) {
    ls->broken = SPF_BROKEN_TRACE;
    lj_framelist_push(ls->frames, frame_word(SPF_FRAME_BROKEN, ls->broken));
    return 1;
  }
  /* The map notes a caller before its callee, so the loop ends. */
  for (i = at->seg->node; i < b->nnode; i = b->node[i].parent) count++;
  lj_framelist_push(
    ls->frames, frame_word2(SPF_FRAME_TRACE, at->number * 2 + (at->in_loop != 0), count));
  pos = at->seg->pos;
  for (i = at->seg->node; i < b->nnode; i = n->parent) {
    n = &b->node[i];
    if (!n->pt && n->ffid > FF_C) {
      push_builtin(ls, n->ffid);
    } else if (!n->pt) { /* The trace may outlive the closure. */
      push_word(ls, frame_cfunc((uintptr_t)n->cfunc, 0), TOP_C);
    } else {
      if (!lj_luaframe_isproto(ls->in.pk, n->pt) ||
	  !push_proto(ls, n->pt, node_pc(n->pt, pos)))
	return 0;
      if (n->parent < b->nnode && ls->unnamed) {
	const GCproto *caller = b->node[n->parent].pt;
	if (caller && lj_luaframe_isproto(ls->in.pk, caller))
	  lj_callname_inlined(ls->funcs, ls->unnamed, ls->in.pk, ls->in.g, caller,
			      node_pc(caller, n->callpos));
      }
    }
    pos = n->callpos;
  }
  return 1;
}

#endif

/* Push the VM's own work as a frame. */
static void push_work(LuaWalk *ls, const LuaTop *top)
{
  uint32_t work, arg = 0;
  switch (~ls->in.g->vmstate) {
  case LJ_VMST_GC:
    work = SPF_WORK_GC;
    switch (ls->in.g->gc.state) {
    case GCSpropagate: arg = SPF_GC_PROPAGATE; break;
    case GCSatomic: arg = SPF_GC_ATOMIC; break;
    case GCSsweepstring: arg = SPF_GC_SWEEPSTRING; break;
    case GCSsweep: arg = SPF_GC_SWEEP; break;
    case GCSfinalize: arg = SPF_GC_FINALIZE; break;
    default: arg = SPF_GC_PAUSE; break;
    }
    break;
  case LJ_VMST_RECORD: work = SPF_WORK_RECORD; break;
  case LJ_VMST_OPT: work = SPF_WORK_OPT; break;
  case LJ_VMST_ASM: work = SPF_WORK_ASM; break;
  default:
    if (!top->ts.exits) return;
    work = SPF_WORK_EXIT;
    arg = (top->ts.from << 16) | (top->ts.exitno & 0xffff);
    break;
  }
  lj_framelist_push(ls->frames, frame_word2(SPF_FRAME_WORK, work, arg));
}

void lj_luathread_pushtop(LuaWalk *ls, const LuaTop *top, int i)
{
  push_work(ls, top);
  if (top->c[i].ffid > FF_C) push_builtin(ls, top->c[i].ffid);
}

/* -- Steps ------------------------------------------------------------------- */

/* Where a walk is: a frame, and what the steps above it have found out. Only inlined functions
** get its address, so that the compiler keeps its members in registers.
*/
typedef struct LuaStep {
  uintptr_t f, pc;   /* The frame, and the PC in it. */
  uintptr_t slots;   /* First slot of the function: vararg frames have two parts. */
  FrameFunc ff;      /* Its function, */
  int known;         /* if the step above has read it. */
  LuaSite *site;     /* Place of the frame, if cached. */
  int skip;          /* The function is pushed already: this is the lower part of a vararg
		     ** frame, or a trace has included it. */
  const JitFind *at; /* The trace that runs on the frame, or NULL. */
  LuaChain *chain;
} LuaStep;

#define STEP_VALID (-1) /* No check has refused the step; else SPF_REFUSED_*. */

/* Pass the VM frames that have no Lua frame here. */
static LJ_AINLINE int step_bounds(LuaWalk *ls, const LuaArea *a, LuaStep *st)
{
  LuaChain *ch = st->chain;
  if (ch->may_lack_lua) chain_recordkind(ls, ch);
  while (ch->may_lack_lua && lj_luatop_hasnoframe(a, ch->cf, st->f))
    if (!chain_pass(ls, ch)) return SPF_REFUSED_CFRAME_UNREADABLE;
  return STEP_VALID;
}

/* Push the functions of the trace that runs on the frame. They include the frame's own. */
static LJ_AINLINE int step_trace(LuaWalk *ls, LuaStep *st)
{
#if LJ_HASJIT
  const JitFind *at = st->at;
  if (LJ_LIKELY(!at)) return STEP_VALID;
  if (!push_trace(ls, at)) return SPF_REFUSED_INLINED_INVALID;
  st->skip = (at->block != NULL);
  st->at = NULL;
#else
  UNUSED(ls);
  UNUSED(st);
#endif
  return STEP_VALID;
}

/* Read the function of the frame, and push it. */
static LJ_AINLINE int step_push(LuaWalk *ls, const LuaArea *a, LuaStep *st)
{
  int refused;
  if (!st->known) {
    FrameFunc ff;
    if (!lj_luaframe_has(a, st->f) || !lj_luaframe_func(a, st->f, &ff))
      return lj_luaframe_refusal(a, st->f);
    st->ff = ff;
  }
  st->known = 0;
  refused = step_trace(ls, st);
  if (LJ_UNLIKELY(refused != STEP_VALID)) return refused;
  if (!st->skip) {
    FrameFunc ff = st->ff;
    if (st->site) push_site(ls, st->site);
    else if (ff.fn && !push_func(ls, &ff, st->pc)) return SPF_REFUSED_NO_ID;
    st->slots = st->f + 8;
  }
  st->site = NULL;
  st->skip = 0;
  return STEP_VALID;
}

/* Find the frame below a Lua frame, its function and, if cached, the place where it
** continues. Returns 0 if the frame is not valid.
*/
static LJ_AINLINE uintptr_t frame_caller(LuaWalk *ls, const LuaArea *a, uintptr_t f,
					 uintptr_t pc, FrameFunc *ff, LuaSite **site)
{
  LuaSite *s = lj_luasites_at(&ls->sites, ls->funcs, pc, f);
  if (LJ_LIKELY(s != NULL && s->delta != 0)) {
    uintptr_t prev = f - s->delta;
    *site = s;
    if (LJ_LIKELY(lj_luaframe_has(a, prev) && lj_luaframe_isof(a, prev, s->pt, ff)))
      return prev;
  }
  *site = NULL;
  return lj_luaframe_caller(a, f, pc, ff);
}

/* Find the frame below one that no Lua function has called, and where it continues: *pc.
** Returns 0 and sets *refused to SPF_REFUSED_* if the link is not valid.
*/
static LJ_NOINLINE uintptr_t link_other(LuaWalk *ls, const LuaArea *a, LuaChain *ch,
					uintptr_t f, uint64_t link, uintptr_t *pc,
					int *refused)
{
  uint64_t delta = link & ~(uint64_t)FRAME_TYPEP;
  uintptr_t prev = f - (uintptr_t)delta, cont;
  *pc = 0;
  if (delta == 0) {
    *refused = SPF_REFUSED_LINK_ZERO;
    return 0;
  }
  if (delta > f - a->bot) {
    *refused = SPF_REFUSED_LINK_OUTSIDE;
    return 0;
  }
  switch (link & FRAME_TYPEP) {
  case FRAME_C:
  case FRAME_CP:
    if (chain_pass(ls, ch)) *pc = chain_savedpc(ls, ch);
    else *refused = chain_refusal(ch, SPF_REFUSED_CALL_NO_CFRAME);
    break;
  case FRAME_CONT:
    if (!frame_contvalid(a, f, prev, &cont, pc)) {
      *refused = cont_refusal(a, f, prev);
      break;
    }
    lj_luamemo_load(&ls->memo, f - 24, cont);
    lj_luamemo_load(&ls->memo, f - 16, *pc);
    if (LJ_HASFFI && cont == LJ_CONT_FFI_CALLBACK) {
      if (chain_pass(ls, ch)) *pc = chain_savedpc(ls, ch);
      else *refused = chain_refusal(ch, SPF_REFUSED_CALLBACK_NO_CFRAME);
    }
    break;
  case FRAME_VARG: /* The lower part holds the same function. */
    if (!lj_luaframe_has(a, prev) || lj_luaframe_slot(prev) != lj_luaframe_slot(f))
      *refused = SPF_REFUSED_VARARG_DIFFERS;
    break;
  default: /* FRAME_PCALL, FRAME_PCALLH */
    if (!frame_ispcallfunc(a, prev)) *refused = SPF_REFUSED_PCALL_DIFFERS;
    break;
  }
  return prev;
}

/* Find the frame below: *prev, and the PC where it continues. */
static LJ_AINLINE int step_link(LuaWalk *ls, const LuaArea *a, LuaStep *st, uintptr_t *prev)
{
  uint64_t link = lj_luaframe_link(st->f);
  uintptr_t pc = (uintptr_t)link;
  int refused = STEP_VALID;
  if ((link & FRAME_TYPE) == FRAME_LUA) {
    FrameFunc ff;
    LuaSite *site;
    *prev = frame_caller(ls, a, st->f, pc, &ff, &site);
    if (*prev == 0) return lj_luaframe_caller_refusal(a, st->f, pc);
    st->ff = ff;
    st->site = site;
    st->known = 1;
  } else {
    *prev = link_other(ls, a, st->chain, st->f, link, &pc, &refused);
    st->skip = ((link & FRAME_TYPEP) == FRAME_VARG);
  }
  st->pc = pc;
  return refused;
}

static int is_finalizer(const LuaWalk *ls, const LuaStep *st)
{
  return lj_callname_isfinalizer(ls->in.pk, ls->in.g, st->f, st->chain->last);
}

/* Look for a name of a C function that the step has pushed. */
static LJ_NOINLINE void name_cfunc(LuaWalk *ls, const GCfunc *fn, const LuaStep *st,
				   uintptr_t prev)
{
  CFuncEntry *e = ls->unnamed_c;
  CallFrame cf = { fn, st->f, st->slots, prev, st->pc };
  ls->unnamed_c = NULL;
  if (e->fn != (uintptr_t)fn || ls->in.pk->keeping) return;
  if (is_finalizer(ls, st)) ls->finalizer_c = e;
  else lj_callname_cfunc(ls->funcs, e, ls->in.pk, ls->in.g, &cf);
}

/* Look for a name of the function that the step has pushed: in the call. Returns 0 if a later
** walk may find a better one, so that this step must not be saved. In a trace, a tail call may
** have replaced the function of the frame.
*/
static LJ_AINLINE int step_name(LuaWalk *ls, const FrameFunc *ff, const LuaStep *st,
				uintptr_t prev)
{
  if (LJ_UNLIKELY(ls->unnamed_c != NULL)) name_cfunc(ls, ff->fn, st, prev);
  if (LJ_LIKELY(!ls->unnamed) || !ff->pt || ls->unnamed->pt != ff->pt) return 1;
  {
    CallFrame cf = { ff->fn, st->f, st->slots, prev, st->pc };
    if (lj_callname_isfinal(ls->unnamed, ls->in.g, &cf)) return 1;
    if (ls->in.pk->keeping) return 0;
    if (is_finalizer(ls, st)) ls->finalizer = ls->unnamed;
    lj_callname_frame(ls->funcs, ls->unnamed, ls->in.pk, ls->in.g, &cf);
    return lj_callname_isfinal(ls->unnamed, ls->in.g, &cf);
  }
}

/* -- Walking one coroutine --------------------------------------------------- */

/* Reuse the rest of the coroutine from the last walk, from its n-th frame to the bottom.
*/
static void walk_reuse(LuaWalk *ls, LuaChain *ch, uint32_t n)
{
  const LuaMemoSteps *ts = &ls->memo.saved;
  const LuaMemoState *s = &ts->state[n - 1];
  ls->memo.walked_nbound = ls->nbounds;
  ls->nbounds += s->nbound;
  if (s->nbound > 0) ch->last = ls->memo.last;
  ch->cf = 0;
  if (!ls->leaf_only) lj_framelist_pushall(ls->frames, ts->word, s->sum.word);
}

static LJ_NOINLINE void name_finalizers(LuaWalk *ls)
{
  if (ls->finalizer) lj_callname_finalizer(ls->finalizer);
  if (ls->finalizer_c) lj_callname_cfinalizer(ls->funcs, ls->finalizer_c);
}

/* End the walk at the bottom. Returns -1 if VM frames are left over, else 1. */
static int walk_bottom(LuaWalk *ls, const LuaChain *ch, uint32_t depth)
{
  ls->memo.walked_last = ch->last;
  ls->memo.depth = depth;
  ls->passed += depth;
  if (ch->cf == 0) {
    if (LJ_UNLIKELY(ls->finalizer || ls->finalizer_c)) name_finalizers(ls);
    return 1;
  }
  lj_luathread_refuse(ls, 0, SPF_REFUSED_CFRAME_LEFT);
  return -1;
}

int lj_luathread_walk(LuaWalk *ls, const LuaArea *a, const Candidate *top, int no_lua_frame,
		      const JitFind *at)
{
  LuaMemo *memo = &ls->memo;
  LuaChain chain = { 0, 0, 0, 0 }, *const ch = &chain;
  LuaStep st = { .f = top->frame, .pc = top->pc, .at = at, .chain = ch };
  uint32_t depth = 0;
  ls->finalizer = NULL;
  ls->finalizer_c = NULL;
  chain_set(ls, ch, (uintptr_t)a->L->cframe);
  if (no_lua_frame && !chain_pass(ls, ch))
    return lj_luathread_refuse(ls, 0, chain_refusal(ch, SPF_REFUSED_ENTRY_NO_CFRAME));
  lj_luamemo_begin(memo, a, ls->funcs, st.f, !ls->leaf_only);
  for (;;) {
    int keeps = memo->records && ls->top != TOP_NONE, refused;
    FrameFunc ff;
    uintptr_t prev;
    uint32_t n;
    if (memo->verified > 0 && (ls->leaf_only ? ls->has_lua : ls->top != TOP_NONE) &&
	(n = lj_luamemo_reuse(memo, st.f, st.pc, ch, st.skip)) > 0) {
      walk_reuse(ls, ch, n);
      return walk_bottom(ls, ch, depth + n);
    }
    depth++;
    if (keeps) lj_luamemo_step(memo, st.f, st.pc, ch, st.skip, ls->nbounds);
    refused = step_bounds(ls, a, &st);
    if (LJ_LIKELY(refused == STEP_VALID)) {
      if (st.f == a->bot) {
	if (keeps) lj_luamemo_save(memo, st.f, NULL);
	memo->walked_nbound = ls->nbounds;
	return walk_bottom(ls, ch, depth);
      }
      refused = step_push(ls, a, &st);
    }
    ff = st.ff;
    if (LJ_LIKELY(refused == STEP_VALID)) refused = step_link(ls, a, &st, &prev);
    if (LJ_UNLIKELY(refused != STEP_VALID)) return lj_luathread_refuse(ls, depth, refused);
    if (step_name(ls, &ff, &st, prev) && keeps && ff.fn) lj_luamemo_save(memo, st.f, ff.fn);
    else lj_luamemo_restart(memo);
    st.f = prev;
  }
}
