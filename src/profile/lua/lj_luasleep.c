/*
** Lua stack of a thread that sleeps, read from another thread by copies alone.
** Context: background thread or any other, not the handler; see the header.
*/

#define lj_luasleep_c
#define LUA_CORE

#include "lj_obj.h"
#include "lj_bc.h"
#include "lj_dispatch.h"
#include "lj_ff.h"
#include "lj_frame.h"
#include "profile/lua/lj_jitmap.h"
#include "profile/lua/lj_luasleep.h"

#define STEPS_MAX    (1u << 17) /* Frames that are read, some of them several times. */
#define COROUTINES   1000       /* Nested coroutines. */
#define TRACES_MAX   65536      /* Traces that are searched. */
#define PROTO_BC_MAX (1u << 26) /* No function has more bytecode. */

/* A function in a slot of the Lua stack: a copy. */
typedef struct SlotFunc {
  int is_dummy;        /* The frame of an error, or the bottom. */
  const GCproto *pt;   /* Prototype of a Lua function, else NULL. */
  GCproto head;        /* Its head. */
  uint32_t ffid;       /* FF_* of a builtin or C function, and */
  uintptr_t fn, cfunc; /* its own address, and that of its code. */
} SlotFunc;

/* The coroutine that is being read. */
typedef struct Thread {
  uintptr_t L;
  lua_State copy;     /* Of its first words. */
  uintptr_t bot, end; /* As in LuaArea. */
  uintptr_t cf, last; /* Next C frame of the VM, and the last one passed. */
  int is_resume;      /* The next one resumed this coroutine. */
} Thread;

/* -- Copies ------------------------------------------------------------------ */

static int copy(LuaSleep *ls, void *to, uintptr_t from, size_t n)
{
  return lj_safeload_copy(ls->pk, to, (const void *)from, n);
}

static int word(LuaSleep *ls, uintptr_t addr, uintptr_t *w)
{
  return lj_safeload_word(ls->pk, addr, w);
}

/* Refuse the stack. Returns 0. */
static int refuse(LuaSleep *ls, int broken, int refused)
{
  ls->res.broken = broken;
  ls->res.refused = refused;
  return 0;
}

#define refuse_chain(ls, refused) refuse((ls), SPF_BROKEN_CHAIN, (refused))

/* -- Functions --------------------------------------------------------------- */

static int proto_copy(LuaSleep *ls, const GCproto *pt, GCproto *head)
{
  return ((uintptr_t)pt & 7) == 0 && copy(ls, head, (uintptr_t)pt, sizeof(*head)) &&
	 head->gct == (uint8_t)~LJ_TPROTO && head->sizebc > 0 &&
	 head->sizebc <= PROTO_BC_MAX;
}

/* First instruction of a prototype. */
static uintptr_t proto_code(const GCproto *pt)
{
  return (uintptr_t)pt + sizeof(GCproto);
}

/* Does a PC, which points behind its instruction, belong to a prototype? */
static int pc_isin(const GCproto *pt, const GCproto *head, uintptr_t pc)
{
  uintptr_t bc = proto_code(pt);
  return pc > bc && pc <= bc + (uintptr_t)head->sizebc * sizeof(BCIns) && (pc & 3) == 0;
}

/* Read the function whose frame is at f. Returns 0 if it is not valid. */
static int func_read(LuaSleep *ls, const Thread *t, uintptr_t f, SlotFunc *sf)
{
  uintptr_t slot, p;
  uint32_t tag;
  GCfuncL fn;
  memset(sf, 0, sizeof(*sf));
  if (f - t->bot >= t->end - t->bot || !word(ls, f - 8, &slot))
    return refuse_chain(ls, SPF_REFUSED_FRAME_UNREADABLE);
  tag = (uint32_t)((int64_t)slot >> 47);
  p = slot & LJ_GCVMASK;
  if (tag == (uint32_t)LJ_TTHREAD) {
    sf->is_dummy = 1;
    return p == t->L || refuse_chain(ls, SPF_REFUSED_SLOT_NOT_THREAD);
  }
  if (tag != (uint32_t)LJ_TFUNC) return refuse_chain(ls, SPF_REFUSED_SLOT_NOT_FUNCTION);
  if ((p & 7) != 0 || !copy(ls, &fn, p, offsetof(GCfuncL, uvptr)) ||
      fn.gct != (uint8_t)~LJ_TFUNC)
    return refuse_chain(ls, SPF_REFUSED_FUNC_INVALID);
  if (fn.ffid == FF_LUA) {
    sf->pt = (const GCproto *)(mref(fn.pc, char) - sizeof(GCproto));
    return proto_copy(ls, sf->pt, &sf->head) || refuse_chain(ls, SPF_REFUSED_PROTO_INVALID);
  }
  sf->ffid = fn.ffid;
  sf->fn = p;
  if (mref(fn.pc, char) - (char *)G2GG(ls->g) >= (ptrdiff_t)sizeof(GG_State) ||
      mref(fn.pc, char) < (char *)G2GG(ls->g) ||
      !word(ls, p + offsetof(GCfuncC, f), &sf->cfunc))
    return refuse_chain(ls, SPF_REFUSED_CFUNC_INVALID);
  return 1;
}

/* Line of a PC, 0 if it is unknown. The table of lines has no entry for the first instruction,
** the function's header. An entry is as wide as the number of lines demands (lj_debug.c).
*/
static uint32_t line_of(LuaSleep *ls, const GCproto *pt, const GCproto *head, uintptr_t pc)
{
  uintptr_t info = (uintptr_t)proto_lineinfo(head), pos;
  size_t size = head->numline < 256 ? 1 : head->numline < 65536 ? 2 : 4;
  uint32_t delta = 0;
  if (info == 0 || !pc_isin(pt, head, pc)) return 0;
  pos = (pc - proto_code(pt)) / sizeof(BCIns) - 1;
  if (pos > 0 && !copy(ls, &delta, info + (pos - 1) * size, size)) return 0;
  return (uint32_t)head->firstline + delta;
}

/* Index of a function in the list of this stack. Returns -1 if it is not readable, or the list
** is full.
*/
static int func_index(LuaSleep *ls, const GCproto *pt, const GCproto *head)
{
  SleepFunc *fn;
  GCstr name;
  uintptr_t at = (uintptr_t)proto_chunkname(head);
  uint32_t i;
  for (i = 0; i < ls->nfunc; i++)
    if (ls->func[i].pt == pt) return (int)i;
  if (ls->nfunc == LUASLEEP_FUNCS || (at & 7) != 0 || !copy(ls, &name, at, sizeof(name)) ||
      name.gct != (uint8_t)~LJ_TSTR)
    return -1;
  fn = &ls->func[ls->nfunc];
  fn->pt = pt;
  fn->head = *head;
  fn->key = lj_functab_key(pt, head, &name);
  fn->chunklen = (uint8_t)(name.len < FUNCTAB_CHUNK_MAX ? name.len : FUNCTAB_CHUNK_MAX);
  if (!copy(ls, fn->chunk, at + sizeof(GCstr), fn->chunklen)) return -1;
  return (int)ls->nfunc++;
}

/* -- Pushing frames ---------------------------------------------------------- */

static void push(LuaSleep *ls, FrameWord w, TopFunc kind)
{
  if (ls->res.top == TOP_NONE) ls->res.top = kind;
  lj_framelist_push(ls->frames, w);
}

static int push_lua(LuaSleep *ls, const GCproto *pt, const GCproto *head, uintptr_t pc)
{
  int i = func_index(ls, pt, head);
  if (i < 0) return refuse_chain(ls, SPF_REFUSED_NO_ID);
  push(ls, frame_word2(SPF_FRAME_LFUNC, (uint32_t)i, line_of(ls, pt, head, pc)), TOP_LUA);
  return 1;
}

/* Index of a C function in the list of this stack, plus 1; 0 if the list is full. */
static uint32_t cfunc_index(LuaSleep *ls, uintptr_t fn, uintptr_t f)
{
  SleepCFunc c = { fn, f };
  uint32_t i;
  for (i = 0; i < ls->ncfunc; i++)
    if (ls->cfunc[i].fn == fn && ls->cfunc[i].f == f) return i + 1;
  if (i == LUASLEEP_CFUNCS) return 0;
  ls->cfunc[ls->ncfunc++] = c;
  return ls->ncfunc;
}

/* fn: the closure, 0 if it may be freed. */
static void push_c(LuaSleep *ls, uint32_t ffid, uintptr_t fn, uintptr_t cfunc)
{
  if (ffid > FF_C) push(ls, frame_word(SPF_FRAME_FFUNC, ffid), TOP_FAST);
  else push(ls, frame_cfunc(cfunc, fn ? cfunc_index(ls, fn, cfunc) : 0), TOP_C);
}

static int push_func(LuaSleep *ls, const SlotFunc *sf, uintptr_t pc)
{
  if (sf->pt) return push_lua(ls, sf->pt, &sf->head, pc);
  if (!sf->is_dummy) push_c(ls, sf->ffid, sf->fn, sf->cfunc);
  return 1;
}

/* -- The chain of VM frames -------------------------------------------------- */

static void chain_set(Thread *t, uintptr_t link)
{
  t->last = t->cf;
  t->cf = link & (uintptr_t)CFRAME_RAWMASK;
  t->is_resume = (link & CFRAME_RESUME) != 0;
}

/* Pass one VM frame. Returns 0 at the end of the chain, or if it is not readable. */
static int chain_pass(LuaSleep *ls, Thread *t)
{
  uintptr_t link;
  if (t->cf == 0 || !word(ls, t->cf + CFRAME_OFS_PREV, &link)) return 0;
  lj_framelist_push(ls->frames,
		    frame_word(t->is_resume ? SPF_FRAME_RESUME : SPF_FRAME_CBOUND, 0));
  ls->res.nbounds++;
  chain_set(t, link);
  return 1;
}

/* PC that a Lua function saved in its VM frame before its call of C. */
static uintptr_t chain_savedpc(LuaSleep *ls, const Thread *t)
{
  uintptr_t pc = 0;
  if (t->cf != 0) word(ls, t->cf + CFRAME_OFS_PC, &pc);
  return pc;
}

/* Frame that called the one at f, by its link alone. Returns 0 if C code called it, or if the
** link is not valid.
*/
static uintptr_t frame_below(LuaSleep *ls, const Thread *t, uintptr_t f)
{
  uintptr_t link, prev;
  BCIns call;
  if (!word(ls, f, &link)) return 0;
  if ((link & FRAME_TYPE) == FRAME_LUA) {
    if (!copy(ls, &call, link - sizeof(BCIns), sizeof(call))) return 0;
    prev = f - (uintptr_t)(1 + LJ_FR2 + bc_a(call)) * sizeof(TValue);
  } else {
    uint32_t type = (uint32_t)(link & FRAME_TYPEP);
    uintptr_t cont;
    if (type == FRAME_C || type == FRAME_CP ||
	(type == FRAME_CONT && word(ls, f - 24, &cont) && cont == LJ_CONT_FFI_CALLBACK))
      return 0;
    prev = f - (link & ~(uint64_t)FRAME_TYPEP);
  }
  return prev < f && prev >= t->bot ? prev : 0;
}

/* Has a C frame of the VM no Lua frame above f? See lj_luatop_hasnoframe. */
static int has_noframe(LuaSleep *ls, const Thread *t, uintptr_t cf, uintptr_t f)
{
  uintptr_t w, top, prev;
  int32_t nres;
  if (cf == 0 || !word(ls, cf + CFRAME_OFS_NRES, &w)) return 0;
  nres = (int32_t)(uint32_t)w;
  if (nres >= 0) return 0;
  top = t->bot - LJ_FR2 * sizeof(TValue) + (uintptr_t) - (intptr_t)nres;
  for (; f >= top && f > t->bot && ls->steps < STEPS_MAX; ls->steps++, f = prev)
    if ((prev = frame_below(ls, t, f)) == 0) break;
  return f < top;
}

/* -- Compiled code ----------------------------------------------------------- */

#if LJ_HASJIT

/* Find the trace that has an address of machine code. */
static int trace_find(LuaSleep *ls, uintptr_t code, TraceSaved *t)
{
  const JitMap *tp = G2GG(ls->g)->tracepos;
  uintptr_t saved;
  uint32_t n, i, current = (uint32_t)ls->g->vmstate;
  if (!tp || !word(ls, (uintptr_t)&tp->saved, &saved) ||
      !copy(ls, &n, (uintptr_t)&tp->szsaved, sizeof(n)))
    return 0;
  if (n > TRACES_MAX) n = TRACES_MAX;
  if (current < n && copy(ls, t, saved + current * sizeof(*t), sizeof(*t)) && t->mcode &&
      code - t->mcode < t->szmcode)
    return 1;
  for (i = 1; i < n; i++)
    if (copy(ls, t, saved + i * sizeof(*t), sizeof(*t)) && t->mcode &&
	code - t->mcode < t->szmcode)
      return 1;
  return 0;
}

/* Find the last segment that begins at or below an offset. */
static int seg_find(LuaSleep *ls, uintptr_t first, uint32_t nseg, uint32_t ofs,
		    TraceSeg *seg)
{
  uint32_t lo = 0, hi = nseg;
  while (hi - lo > 1) {
    uint32_t mid = (lo + hi) / 2;
    if (!copy(ls, seg, first + mid * sizeof(*seg), sizeof(*seg))) return 0;
    if (seg->ofs <= ofs) lo = mid;
    else hi = mid;
  }
  return nseg > 0 && copy(ls, seg, first + lo * sizeof(*seg), sizeof(*seg));
}

/* Push one function of a trace, at a position. */
static int push_node(LuaSleep *ls, const TraceNode *n, BCPos pos)
{
  GCproto head;
  if (!n->pt) {
    push_c(ls, n->ffid, 0, (uintptr_t)n->cfunc);
    return 1;
  }
  if (!proto_copy(ls, n->pt, &head)) return refuse_chain(ls, SPF_REFUSED_INLINED_INVALID);
  return push_lua(ls, n->pt, &head,
		  pos < head.sizebc ? proto_code(n->pt) + (pos + 1) * sizeof(BCIns) : 0);
}

/* Push the functions of the trace that has called C from this address, to the one at its base.
** Returns -1 if its positions are unknown.
*/
static int push_trace(LuaSleep *ls, uintptr_t code)
{
  TraceSaved t;
  TraceBlock b;
  TraceSeg seg;
  TraceNode node;
  GCtrace T;
  uint32_t i, n = 0, ofs;
  BCPos pos;
  if (!trace_find(ls, code, &t) || !copy(ls, &T, (uintptr_t)t.T, sizeof(T))) return -1;
  ofs = (uint32_t)(code - t.mcode);
  if (!t.block || !copy(ls, &b, (uintptr_t)t.block, offsetof(TraceBlock, seg)) ||
      !seg_find(ls, (uintptr_t)t.block + offsetof(TraceBlock, seg), b.nseg, ofs, &seg))
    return -1;
  /* A caller comes before its callee, so the loops end. */
  for (i = seg.node; i < b.nnode; i = node.parent, n++)
    if (!copy(ls, &node, (uintptr_t)(b.node + i), sizeof(node)) ||
	(node.parent < b.nnode && node.parent >= i))
      return -1;
  lj_framelist_push(
    ls->frames, frame_word2(SPF_FRAME_TRACE,
			    (uint32_t)T.traceno * 2 + (T.mcloop && ofs >= T.mcloop), n));
  for (i = seg.node, pos = seg.pos; i < b.nnode; pos = node.callpos, i = node.parent)
    if (!copy(ls, &node, (uintptr_t)(b.node + i), sizeof(node)) ||
	!push_node(ls, &node, pos))
      return 0;
  return 1;
}

#endif

/* -- Steps ------------------------------------------------------------------- */

/* Find the caller of the Lua frame at f. Returns 0 if the PC does not belong to it. */
static uintptr_t lua_caller(LuaSleep *ls, const Thread *t, uintptr_t f, uintptr_t pc)
{
  SlotFunc sf;
  BCIns call;
  uintptr_t prev;
  if ((pc & 3) != 0 || !copy(ls, &call, pc - sizeof(BCIns), sizeof(call)))
    return (uintptr_t)refuse_chain(ls, SPF_REFUSED_PC_UNREADABLE);
  prev = f - (uintptr_t)(1 + LJ_FR2 + bc_a(call)) * sizeof(TValue);
  if (prev >= f || prev < t->bot)
    return (uintptr_t)refuse_chain(ls, SPF_REFUSED_CALLER_OUTSIDE);
  if (!func_read(ls, t, prev, &sf)) return 0;
  if (!sf.pt) return (uintptr_t)refuse_chain(ls, SPF_REFUSED_CALLER_NOT_LUA);
  if (!pc_isin(sf.pt, &sf.head, pc))
    return (uintptr_t)refuse_chain(ls, SPF_REFUSED_PC_NOT_IN_CALLER);
  return prev;
}

/* Is the continuation of the frame at f valid? Sets *pc to the place in the function below. */
static int cont_read(LuaSleep *ls, Thread *t, uintptr_t f, uintptr_t prev, uintptr_t *pc)
{
  uintptr_t cont;
  SlotFunc sf;
  if (!word(ls, f - 24, &cont) || !word(ls, f - 16, pc) || !func_read(ls, t, prev, &sf))
    return refuse_chain(ls, SPF_REFUSED_CONT_OUTSIDE);
  if (LJ_HASFFI && cont == LJ_CONT_FFI_CALLBACK) {
    if (!chain_pass(ls, t)) return refuse_chain(ls, SPF_REFUSED_CALLBACK_NO_CFRAME);
    *pc = chain_savedpc(ls, t);
    return 1;
  }
  if (cont == LJ_CONT_TAILCALL) return 1;
  if (!lj_hostwalk_isvm(cont)) return refuse_chain(ls, SPF_REFUSED_CONT_NOT_VM);
  return !sf.pt || pc_isin(sf.pt, &sf.head, *pc) || refuse_chain(ls, SPF_REFUSED_CONT_PC);
}

/* Find the frame below f, which no Lua function has called, and where it continues. Returns 0 if
** the link is not valid.
*/
static uintptr_t link_other(LuaSleep *ls, Thread *t, uintptr_t f, uintptr_t link,
			    uintptr_t *pc)
{
  uintptr_t delta = link & ~(uintptr_t)FRAME_TYPEP, prev = f - delta, here, there;
  SlotFunc sf;
  *pc = 0;
  if (delta == 0) return (uintptr_t)refuse_chain(ls, SPF_REFUSED_LINK_ZERO);
  if (delta > f - t->bot) return (uintptr_t)refuse_chain(ls, SPF_REFUSED_LINK_OUTSIDE);
  switch (link & FRAME_TYPEP) {
  case FRAME_C:
  case FRAME_CP:
    if (!chain_pass(ls, t)) return (uintptr_t)refuse_chain(ls, SPF_REFUSED_CALL_NO_CFRAME);
    *pc = chain_savedpc(ls, t);
    return prev;
  case FRAME_CONT: return cont_read(ls, t, f, prev, pc) ? prev : 0;
  case FRAME_VARG: /* The lower part holds the same function. */
    if (!word(ls, f - 8, &here) || !word(ls, prev - 8, &there) || here != there)
      return (uintptr_t)refuse_chain(ls, SPF_REFUSED_VARARG_DIFFERS);
    return prev;
  default: /* FRAME_PCALL, FRAME_PCALLH */
    if (!func_read(ls, t, prev, &sf) || (sf.ffid != FF_pcall && sf.ffid != FF_xpcall))
      return (uintptr_t)refuse_chain(ls, SPF_REFUSED_PCALL_DIFFERS);
    return prev;
  }
}

/* Read the frames of a coroutine from f to the bottom. trace: address of the call in the trace
** that runs on f, or 0.
*/
static int walk_thread(LuaSleep *ls, Thread *t, uintptr_t f, uintptr_t pc, uintptr_t trace)
{
  int skip = 0;
  for (; ls->steps < STEPS_MAX; ls->steps++) {
    SlotFunc sf;
    uintptr_t link;
    while (has_noframe(ls, t, t->cf, f))
      if (!chain_pass(ls, t)) return refuse_chain(ls, SPF_REFUSED_CFRAME_UNREADABLE);
    if (f == t->bot) return t->cf == 0 || refuse_chain(ls, SPF_REFUSED_CFRAME_LEFT);
    if (!func_read(ls, t, f, &sf)) return 0;
#if LJ_HASJIT
    if (trace) {
      int found = push_trace(ls, trace);
      if (found == 0) return 0;
      if (found < 0) return refuse(ls, SPF_BROKEN_TRACE, SPF_REFUSED_NO_POSITION);
      skip = 1;
      trace = 0;
    }
#endif
    if (!skip && !push_func(ls, &sf, pc)) return 0;
    if (!word(ls, f, &link)) return refuse_chain(ls, SPF_REFUSED_FRAME_UNREADABLE);
    skip = 0;
    if ((link & FRAME_TYPE) == FRAME_LUA) {
      pc = link;
      f = lua_caller(ls, t, f, pc);
    } else {
      skip = ((link & FRAME_TYPEP) == FRAME_VARG);
      f = link_other(ls, t, f, link, &pc);
    }
    if (f == 0) return 0;
  }
  return refuse_chain(ls, SPF_REFUSED_THREADS_MAX);
}

/* -- Coroutines -------------------------------------------------------------- */

static int thread_read(LuaSleep *ls, Thread *t, uintptr_t L)
{
  uintptr_t stack;
  memset(t, 0, sizeof(*t));
  t->L = L;
  if (!lj_cframe_isthread(ls->pk, ls->g, L) || !copy(ls, &t->copy, L, sizeof(t->copy)))
    return refuse(ls, SPF_BROKEN_NO_BASE, SPF_REFUSED_NO_THREAD);
  stack = (uintptr_t)tvref(t->copy.stack);
  t->bot = stack + LJ_FR2 * sizeof(TValue);
  t->end = stack + (uintptr_t)t->copy.stacksize * sizeof(TValue);
  if (stack == 0 || (stack & 7) != 0 || t->end <= t->bot)
    return refuse(ls, SPF_BROKEN_NO_BASE, SPF_REFUSED_NO_STACK);
  chain_set(t, (uintptr_t)t->copy.cframe);
  return 1;
}

/* Find the coroutine that resumed another one, whose outermost VM frame is cf. Sets *L to 0 if a
** host program resumed it.
*/
static int find_resumer(LuaSleep *ls, uintptr_t cf, uintptr_t *L)
{
  const HostWalk *hs = ls->hs;
  uintptr_t ret, inner;
  uint32_t i;
  *L = 0;
  if (!word(ls, cf + CFRAME_SIZE - 8, &ret))
    return refuse(ls, SPF_BROKEN_NO_CFI, SPF_REFUSED_RESUMER_UNREADABLE);
  if (lj_hostwalk_isvm(ret)) { /* coroutine.resume called lj_vm_resume. */
    uintptr_t below = cf + CFRAME_SIZE;
    if (!word(ls, below + CFRAME_OFS_L, L) || !lj_cframe_isthread(ls->pk, ls->g, *L) ||
	!word(ls, *L + offsetof(lua_State, cframe), &inner) ||
	(inner & (uintptr_t)CFRAME_RAWMASK) != below)
      return refuse(ls, SPF_BROKEN_NO_CFI, SPF_REFUSED_RESUMER_UNLINKED);
    return 1;
  }
  for (i = 0; i < hs->nvm && i < HOSTWALK_VMFRAMES; i++) /* lua_resume() */
    if (hs->vm[i].cf > cf) {
      *L = (uintptr_t)hs->vm[i].L;
      return 1;
    }
  return (hs->broken < 0 && hs->nvm <= HOSTWALK_VMFRAMES) ||
	 refuse(ls, SPF_BROKEN_NO_CFI, SPF_REFUSED_RESUMER_UNKNOWN);
}

/* Find the top frame, and its PC or the place in its trace. */
static int find_top(LuaSleep *ls, const Thread *t, uintptr_t *f, uintptr_t *pc,
		    uintptr_t *trace)
{
  const HostWalk *hs = ls->hs;
  const VMFrame *vf = &hs->vm[0];
  uintptr_t base = (uintptr_t)t->copy.base;
  SlotFunc sf;
  uint32_t i;
  *pc = *trace = 0;
  for (i = 1; i < hs->nvm && i < HOSTWALK_VMFRAMES && (uintptr_t)hs->vm[i].L == t->L &&
	      has_noframe(ls, t, vf->cf, base - 8);
       i++)
    vf = &hs->vm[i];
  *f = base - 8;
  if (vf->place == VMF_INTERP) {
    if (!func_read(ls, t, *f, &sf)) return 0;
    if (sf.pt && pc_isin(sf.pt, &sf.head, vf->pc)) *pc = vf->pc;
    return 1;
  }
  if (vf->place == VMF_TRACE && vf->code != 0) {
    *f = (uintptr_t)tvref(ls->g->jit_base) - 8;
    *trace = vf->code;
    return 1;
  }
  return refuse(ls, SPF_BROKEN_NO_BASE, SPF_REFUSED_NO_STACK);
}

static int walk_all(LuaSleep *ls)
{
  uintptr_t L = (uintptr_t)ls->hs->vm[0].L, f, pc, trace;
  int n;
  for (n = 0; n < COROUTINES; n++) {
    Thread t;
    if (!thread_read(ls, &t, L)) return 0;
    if (ls->label == 0) ls->label = t.copy.sysprof_label;
    f = (uintptr_t)t.copy.base - 8;
    pc = trace = 0;
    if (n == 0 && !find_top(ls, &t, &f, &pc, &trace)) return 0;
    if (!walk_thread(ls, &t, f, pc, trace)) return 0;
    /* The host is below the main thread, and below a coroutine without a VM frame. */
    if (t.last == 0 || L == (uintptr_t)mainthread(ls->g)) return 1;
    if (!find_resumer(ls, t.last, &L)) return 0;
    if (L == 0) return 1;
  }
  return refuse_chain(ls, SPF_REFUSED_THREADS_MAX);
}

void lj_luasleep_walk(LuaSleep *ls)
{
  ls->res.top = TOP_NONE;
  ls->res.broken = -1;
  ls->res.nbounds = 0;
  ls->nfunc = ls->ncfunc = ls->steps = ls->label = 0;
  if (ls->hs->nvm == 0) return; /* The host has not entered the VM. */
  if (!walk_all(ls)) {
    ls->res.top = TOP_UNKNOWN;
  } else if (ls->hs->nvm != ls->res.nbounds && ls->hs->broken < 0) {
    refuse(ls, SPF_BROKEN_JOIN,
	   ls->hs->nvm > ls->res.nbounds ? SPF_REFUSED_LUA_FEWER : SPF_REFUSED_HOST_FEWER);
  }
}
