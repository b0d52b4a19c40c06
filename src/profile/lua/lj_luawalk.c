/*
** Lua stack of a sample, read from the interrupted machine state.
** Runs in the signal handler; see the header for the contract.
*/

#define lj_luawalk_c
#define LUA_CORE

#include "lj_obj.h"
#include "lj_alloc.h"
#include "lj_bc.h"
#include "lj_frame.h"
#include "lj_debug.h"
#include "lj_ff.h"
#include "lj_gc.h"
#include "profile/symbols/lj_callname.h"
#include "profile/lua/lj_lmove.h"
#include "profile/lua/lj_luawalk.h"
#include "profile/lua/lj_luatop.h"

#define LUAWALK_THREADS 1000 /* Nested coroutines walked at most. */

/* -- Frames ------------------------------------------------------------------ */

/* Read the continuation of frame f and the PC that goes with it. A metamethod's
** is code of the VM, and its PC belongs to the Lua function below, if that is
** one. Returns 0 if they are not valid.
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
  lj_luamemo_word(&ls->tail, w);
  lj_framelist_push(ls->frames, w);
}

static LJ_AINLINE void push_word(LuaWalk *ls, FrameWord w, TopFunc kind)
{
  if (ls->top == TOP_NONE) ls->top = kind;
  push_step(ls, w);
}

/* Push a Lua function that is at a place that is remembered. Of the others, below
** the top one, nothing is asked for if they are not kept.
*/
static LJ_AINLINE void push_site(LuaWalk *ls, LuaSite *site)
{
  ls->unnamed = NULL;
  if (ls->leaf_only && ls->top != TOP_NONE) return;
  if (LJ_UNLIKELY(!site->is_named)) {
    FuncEntry *fe = lj_functab_entry(ls->funcs, frame_payload_lo(site->word));
    site->is_named = !(fe->pt == site->pt && lj_callname_wanted(fe));
    if (!site->is_named) ls->unnamed = fe;
  }
  push_word(ls, site->word, TOP_LUA);
}

/* Push a Lua function that is at pc. Returns 0 if it cannot be read. */
static int push_proto(LuaWalk *ls, const GCproto *pt, uintptr_t pc)
{
  LuaSite *site = pc ? lj_luasites_find(&ls->sites, ls->funcs, pc) : NULL;
  FuncEntry *fe;
  FrameWord w;
  if (site && site->pt == pt) {
    push_site(ls, site);
    return 1;
  }
  fe = lj_functab_see(ls->funcs, ls->pk, pt);
  if (!fe) return 0;
  w = frame_word2(SPF_FRAME_LFUNC, fe->fid, func_line(ls->pk, pt, pc));
  if (lj_luaframe_pcinproto(pt, pc) &&
      lj_safeload_vm(ls->pk, (const BCIns *)pc - 1, sizeof(BCIns)))
    lj_luasites_set(&ls->sites, ls->funcs, pt, pc, w);
  ls->unnamed = lj_callname_wanted(fe) ? fe : NULL;
  push_word(ls, w, TOP_LUA);
  return 1;
}

static void push_cfunc(LuaWalk *ls, uint32_t ffid, lua_CFunction f)
{
  if (ffid > FF_C) push_word(ls, frame_word(SPF_FRAME_FFUNC, ffid), TOP_FAST);
  else push_word(ls, frame_word(SPF_FRAME_CFUNC, (uintptr_t)f), TOP_C);
}

static int push_func(LuaWalk *ls, const FrameFunc *ff, uintptr_t pc)
{
  if (ff->pt) return push_proto(ls, ff->pt, pc);
  if (ff->fn->c.ffid == FF_C)
    lj_luamemo_load(&ls->tail, (uintptr_t)&ff->fn->c.f, (uintptr_t)ff->fn->c.f);
  push_cfunc(ls, ff->fn->c.ffid, ff->fn->c.f);
  return 1;
}

/* -- The chain of VM frames ---------------------------------------------------- */

static void chain_set(LuaWalk *ls, LuaChain *ch, uintptr_t link)
{
  ch->last = ch->cf;
  ch->cf = link & (uintptr_t)CFRAME_RAWMASK;
  ch->resume = (link & CFRAME_RESUME) != 0;
  ch->bare = (ch->cf != 0 && lj_luatop_maybebare(ls->pk, ch->cf));
}

/* The step depends on whether the current VM frame may be bare, and on whose. */
static void chain_keepbare(LuaWalk *ls, const LuaChain *ch)
{
  uintptr_t addr = ch->cf + CFRAME_OFS_NRES, nres = 0;
  if (!ls->tail.keeps) return;
  lj_safeload_word(ls->pk, addr, &nres);
  lj_luamemo_load(&ls->tail, addr + 1, nres);
}

/* Pass one VM frame. */
static int chain_pass(LuaWalk *ls, LuaChain *ch)
{
  uintptr_t link;
  if (ch->cf == 0) return 0; /* More boundaries than VM frames. */
  push_step(ls, frame_word(ch->resume ? SPF_FRAME_RESUME : SPF_FRAME_CBOUND, 0));
  ls->nbounds++;
  if (!lj_safeload_word(ls->pk, ch->cf + CFRAME_OFS_PREV, &link)) return 0;
  lj_luamemo_load(&ls->tail, ch->cf + CFRAME_OFS_PREV, link);
  chain_set(ls, ch, link);
  if (ch->cf != 0) chain_keepbare(ls, ch);
  return 1;
}

/* PC that a Lua function saved in its VM frame before it left for C. */
static uintptr_t chain_savedpc(LuaWalk *ls, const LuaChain *ch)
{
  uintptr_t pc = 0;
  if (ch->cf != 0 && lj_safeload_word(ls->pk, ch->cf + CFRAME_OFS_PC, &pc))
    lj_luamemo_load(&ls->tail, ch->cf + CFRAME_OFS_PC, pc);
  return pc;
}

/* -- Compiled code ------------------------------------------------------------ */

#if LJ_HASJIT

/* PC behind an instruction of a prototype. */
static uintptr_t node_pc(const GCproto *pt, BCPos pos)
{
  return pos < pt->sizebc ? (uintptr_t)(proto_bc(pt) + pos + 1) : 0;
}

/* Push the functions of a trace, from the place where it is to that at its
** base. Returns 0 if one cannot be read.
*/
static int push_trace(LuaWalk *ls, const JitFind *at)
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
  /* A caller is noted before what it calls: this ends. */
  for (i = at->seg->node; i < b->nnode; i = b->node[i].parent) count++;
  lj_framelist_push(
    ls->frames, frame_word2(SPF_FRAME_TRACE, at->number * 2 + (at->in_loop != 0), count));
  pos = at->seg->pos;
  for (i = at->seg->node; i < b->nnode; i = n->parent) {
    n = &b->node[i];
    if (!n->pt) {
      push_cfunc(ls, n->ffid, n->cfunc);
    } else {
      if (!lj_luaframe_isproto(ls->pk, n->pt) ||
	  !push_proto(ls, n->pt, node_pc(n->pt, pos)))
	return 0;
      if (n->parent < b->nnode && ls->unnamed) {
	const GCproto *caller = b->node[n->parent].pt;
	if (caller && lj_luaframe_isproto(ls->pk, caller))
	  lj_callname_inlined(ls->funcs, ls->unnamed, ls->pk, ls->g, caller,
			      node_pc(caller, n->callpos));
      }
    }
    pos = n->callpos;
  }
  return 1;
}

#endif

/* What the VM itself does, as a frame of its own. */
static void push_work(LuaWalk *ls, const LuaTop *top)
{
  uint32_t work, arg = 0;
  switch (~ls->g->vmstate) {
  case LJ_VMST_GC:
    work = SPF_WORK_GC;
    switch (ls->g->gc.state) {
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

/* -- Walking one coroutine --------------------------------------------------- */

/* Frame below a Lua frame, its function, and the place where it goes on if that
** is remembered. Returns 0 if it is not valid.
*/
static LJ_AINLINE uintptr_t frame_caller(LuaWalk *ls, const LuaArea *a, uintptr_t f,
					 uintptr_t pc, FrameFunc *ff, LuaSite **site)
{
  LuaSite *s = lj_luasites_at(&ls->sites, ls->funcs, pc, f);
  if (LJ_LIKELY(s != NULL)) {
    uintptr_t prev = f - s->delta;
    *site = s;
    if (LJ_LIKELY(lj_luaframe_has(a, prev) && lj_luaframe_isof(a, prev, s->pt, ff)))
      return prev;
  }
  *site = NULL;
  return lj_luaframe_caller(a, f, pc, ff);
}

/* The rest of the coroutine is that of the last walk, from its n-th frame to the
** bottom.
*/
static void walk_join(LuaWalk *ls, LuaChain *ch, uint32_t n)
{
  const LuaMemoSteps *ts = &ls->tail.kept;
  const LuaMemoState *s = &ts->state[n - 1];
  ls->tail.walked_nbound = ls->nbounds;
  ls->nbounds += s->nbound;
  if (s->nbound > 0) ch->last = ls->tail.last;
  ch->cf = 0;
  ls->tail.walked_last = ch->last;
  if (!ls->leaf_only) lj_framelist_pushall(ls->frames, ts->word, s->word);
}

/* Walk the frames of one coroutine. Returns 1 if they are valid to the end.
** bare: no frame runs on the innermost VM frame. at: the trace that runs on the
** top frame, or NULL.
*/
static int walk_thread(LuaWalk *ls, const LuaArea *a, const Candidate *top, LuaChain *ch,
		       int bare, const JitFind *at)
{
  uintptr_t f = top->frame, pc = top->pc, slots = 0;
  FrameFunc ff;
  LuaSite *site = NULL; /* Where this frame is, if that is remembered. */
  int known = 0;        /* The function of this frame has been read. */
  int skip = 0;         /* This frame is the lower part of a vararg frame. */
  LuaMemo *tail = &ls->tail;
  uint32_t depth = 0;
  if (bare && !chain_pass(ls, ch)) return 0;
  lj_luamemo_begin(tail, a, ls->funcs, f, !ls->leaf_only);
  for (;;) {
    uint64_t link;
    uintptr_t prev;
    FrameFunc here;
    int keeps = tail->keeps && ls->top != TOP_NONE;
    uint32_t n;
    if (tail->same > 0 && ls->top != TOP_NONE &&
	(n = lj_luamemo_join(tail, f, pc, ch, skip)) > 0) {
      walk_join(ls, ch, n);
      tail->depth = depth + n;
      return 1;
    }
    depth++;
    if (keeps) lj_luamemo_step(tail, f, pc, ch, skip, ls->nbounds);
    if (ch->bare) chain_keepbare(ls, ch);
    while (ch->bare && lj_luatop_isbare(a, ch->cf, f))
      if (!chain_pass(ls, ch)) return 0;
    if (f == a->bot) {
      if (keeps) lj_luamemo_keep(tail, f, NULL);
      tail->walked_nbound = ls->nbounds;
      tail->walked_last = ch->last;
      tail->depth = depth;
      return 1;
    }
    if (!known && (!lj_luaframe_has(a, f) || !lj_luaframe_func(a, f, &ff))) return 0;
    known = 0;
#if LJ_HASJIT
    if (at) {
      if (!push_trace(ls, at)) return 0;
      skip = (at->block != NULL); /* Its functions include this one. */
      at = NULL;
    }
#else
    UNUSED(at);
#endif
    if (site && !skip) push_site(ls, site);
    else if (ff.fn && !skip && !push_func(ls, &ff, pc)) return 0;
    site = NULL;
    if (!skip) slots = f + 8;
    skip = 0;
    link = lj_luaframe_link(f);
    here = ff;
    if ((link & FRAME_TYPE) == FRAME_LUA) {
      pc = (uintptr_t)link;
      prev = frame_caller(ls, a, f, pc, &ff, &site);
      if (prev == 0) return 0;
      known = 1;
    } else {
      uint64_t delta = link & ~(uint64_t)FRAME_TYPEP;
      if (delta == 0 || delta > f - a->bot) return 0;
      prev = f - (uintptr_t)delta;
      pc = 0;
      switch (link & FRAME_TYPEP) {
      case FRAME_C:
      case FRAME_CP:
	if (!chain_pass(ls, ch)) return 0;
	pc = chain_savedpc(ls, ch);
	break;
      case FRAME_CONT: {
	uintptr_t cont;
	if (!frame_contvalid(a, f, prev, &cont, &pc)) return 0;
	lj_luamemo_load(tail, f - 24, cont);
	lj_luamemo_load(tail, f - 16, pc);
	if (LJ_HASFFI && cont == LJ_CONT_FFI_CALLBACK) {
	  if (!chain_pass(ls, ch)) return 0;
	  pc = chain_savedpc(ls, ch);
	}
	break;
      }
      case FRAME_VARG: /* The lower part holds the same function. */
	if (!lj_luaframe_has(a, prev) || lj_luaframe_slot(prev) != lj_luaframe_slot(f))
	  return 0;
	skip = 1;
	break;
      default: /* FRAME_PCALL, FRAME_PCALLH */
	if (!frame_ispcallfunc(a, prev)) return 0;
	break;
      }
    }
    if (here.pt && ls->unnamed) {
      CallFrame cf = { here.fn, f, slots, prev, pc };
      int is_final = lj_callname_isfinal(ls->unnamed, ls->g, &cf);
      if (!is_final && !ls->pk->keeping) {
	lj_callname_frame(ls->funcs, ls->unnamed, ls->pk, ls->g, &cf);
	is_final = lj_callname_isfinal(ls->unnamed, ls->g, &cf);
      }
      keeps = keeps && is_final;
    }
    if (keeps && here.fn) lj_luamemo_keep(tail, f, here.fn);
    else lj_luamemo_restart(tail);
    f = prev;
  }
}

/* -- Walking all coroutines -------------------------------------------------- */

/* Find the coroutine that resumed another one, whose outermost VM frame is cf.
** Sets *L to NULL if a host program did. Returns 0 if it cannot be known.
*/
static int find_resumer(const LuaWalk *ls, uintptr_t cf, lua_State **L)
{
  const HostWalk *hs = ls->hs;
  uintptr_t ret, p;
  uint32_t i;
  *L = NULL;
  if (!lj_safeload_word(ls->pk, cf + CFRAME_SIZE - 8, &ret)) return 0;
  if (lj_hostwalk_isvm(ret)) { /* coroutine.resume called lj_vm_resume. */
    uintptr_t cf2 = cf + CFRAME_SIZE;
    if (!lj_safeload_word(ls->pk, cf2 + CFRAME_OFS_L, &p) ||
	!lj_hostwalk_isthread(ls->pk, ls->g, p) ||
	(uintptr_t)cframe_raw(((lua_State *)p)->cframe) != cf2)
      return 0;
    *L = (lua_State *)p;
    return 1;
  }
  for (i = 0; i < hs->nvm && i < HOSTWALK_VMFRAMES; i++) /* lua_resume() */
    if (hs->vm[i].cf > cf) {
      *L = hs->vm[i].L;
      return 1;
    }
  return hs->broken < 0 && hs->nvm <= HOSTWALK_VMFRAMES;
}

/* Walk from a top frame of L to the bottom of the last resumer. Returns 1 if all
** frames are valid, 0 if not, -1 if there is no frame for a VM frame.
*/
static int walk_threads(LuaWalk *ls, lua_State *L, const LuaTop *top, int i, int bare)
{
  Candidate c = top->c[i];
  const JitFind *at = top->ts.runs ? &top->ts.at : NULL;
  int n;
  for (n = 0; n < LUAWALK_THREADS; n++) {
    LuaArea a;
    LuaChain ch;
    ch.cf = ch.last = 0;
    if (!lj_luawalk_area(ls, &a, L) || !lj_safeload_vm(ls->pk, L, sizeof(lua_State)))
      return 0;
    chain_set(ls, &ch, (uintptr_t)L->cframe);
    if (!walk_thread(ls, &a, &c, &ch, bare && n == 0, at)) return 0;
    if (ch.cf != 0) return -1; /* A VM frame is left over. */
    /* Below the main thread, or if it runs in no VM frame, is the host. */
    if (ch.last == 0 || L == mainthread(ls->g)) return 1;
    if (!find_resumer(ls, ch.last, &L)) {
      ls->broken = SPF_BROKEN_NO_CFI;
      lj_framelist_push(ls->frames, frame_word(SPF_FRAME_BROKEN, ls->broken));
      return 1;
    }
    if (!L) return 1;
    c.frame = (uintptr_t)L->base - 8;
    c.pc = 0;
    at = NULL;
  }
  return 0;
}

/* Walk from one of the candidates. */
static int walk_candidate(LuaWalk *ls, lua_State *L, const LuaTop *top, int i, int bare)
{
  lj_framelist_reset(ls->frames);
  ls->top = TOP_NONE;
  ls->broken = -1;
  ls->nbounds = 0;
  push_work(ls, top);
  if (top->c[i].ffid) push_cfunc(ls, top->c[i].ffid, NULL);
  return walk_threads(ls, L, top, i, bare);
}

/* Does LuaJIT's own allocator provide the memory, and say what it unmaps? */
static int memory_istold(const global_State *g)
{
#ifdef LUAJIT_USE_SYSMALLOC
  UNUSED(g);
  return 0;
#else
  return g->allocf == lj_alloc_f;
#endif
}

int lj_luawalk_area(const LuaWalk *ls, LuaArea *a, lua_State *L)
{
  if (!lj_luaframe_area(a, ls->pk, L)) return 0;
  if (LJ_UNLIKELY(ls->moving_to) && ls->moving == L) {
    a->bot += ls->moving_to - ls->moving_from;
    a->end += ls->moving_to - ls->moving_from;
  }
  return 1;
}

/* Walk from the candidates for the top frame of L. Returns 1 if one of them is valid,
** 0 if there is none, -1 if none is valid.
*/
static int walk_candidates(LuaWalk *ls, lua_State *L, const ucontext_t *uc)
{
  SafeLoad *pk = ls->pk;
  LuaTop top;
  LuaArea a;
  int i;
  top.n = 0;
  if (lj_hostwalk_isthread(pk, ls->g, (uintptr_t)L) && lj_luawalk_area(ls, &a, L))
    lj_luatop_find(&top, ls, &a, uc);
  for (i = 0; i < top.n; i++) {
    int bare, res;
    /* While a VM frame is entered or left, it has no Lua frame of its own. */
    for (bare = 0; bare <= 1; bare++) {
      uint32_t fresh = pk->fresh;
      res = walk_candidate(ls, L, &top, i, bare);
      if (res > 0) {
	if (pk->fresh == fresh && ls->broken < 0) lj_luamemo_end(&ls->tail, ls->funcs);
	/* All that was read is memory of the VM, then: no need to probe it in
	** the next sample. Walked again, because other candidates were read, too.
	*/
	if (pk->fresh != fresh && ls->broken < 0 && pk->kept != pk->generation) {
	  pk->keeping = 1;
	  walk_candidate(ls, L, &top, i, bare);
	  pk->keeping = 0;
	}
	return 1;
      }
      if (res == 0) break;
    }
  }
  return top.n ? -1 : 0;
}

void lj_luawalk_walk(LuaWalk *ls, const ucontext_t *uc)
{
  lua_State *L = ls->hs->nvm ? ls->hs->vm[0].L : mainthread(ls->g);
  int res;
  if (!memory_istold(ls->g)) lj_safeload_forget(ls->pk);
  lj_luamemo_sample(&ls->tail);
  ls->moving_to = 0;
  res = walk_candidates(ls, L, uc);
  if (res < 0 && ls->moving) {
    ls->moving_to = lj_lmove_find(ls->pk, ls->moving, ls->moving_from, uc);
    if (ls->moving_to) res = walk_candidates(ls, L, uc);
  }
  if (res > 0) return;
  ls->broken = res < 0 ? SPF_BROKEN_CHAIN : SPF_BROKEN_NO_BASE;
  ls->top = TOP_UNKNOWN;
  ls->nbounds = 0;
  lj_framelist_reset(ls->frames);
  lj_framelist_push(ls->frames, frame_word(SPF_FRAME_BROKEN, ls->broken));
}
