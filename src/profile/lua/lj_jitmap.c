/*
** Map of machine code: bytecode positions and inlined functions of compiled traces.
** Context: VM thread.
*/

#define lj_jitmap_c
#define LUA_CORE

#include <stdlib.h>
#include <string.h>

#include "lj_obj.h"

#if LJ_HASJIT

#include "lj_frame.h"
#include "lj_ff.h"
#include "lj_ir.h"
#include "lj_state.h"
#include "profile/lua/lj_jitmap.h"

#define NODES_MIN 32 /* First sizes of the buffers. */
#define SAVED_MIN 64
#define NODES_MAX TRACENODE_NONE

/* Parts of mov [r14+disp32], reg. */
#define MOV_GL_SIZE  7
#define MOV_GL_REX   0x49
#define MOV_GL_REXR  0x04
#define MOV_GL_OP    0x89
#define MOV_GL_MODRM 0x86
#define MOV_GL_REG   0x38

/* Order stores for the handler. It runs on this thread, so an order of the compiler is
** enough.
*/
#define publish() __asm__ __volatile__("" : : : "memory")

/* -- Recording ---------------------------------------------------------------- */

/* Make room for one more node. Returns 0 without memory. */
static int node_grow(JitMap *tp)
{
  uint32_t n = tp->sznode ? tp->sznode * 2 : NODES_MIN;
  TraceNode *p;
  if (tp->nnode >= NODES_MAX) return 0;
  p = (TraceNode *)realloc(tp->node, n * sizeof(TraceNode));
  if (!p) return 0;
  tp->node = p;
  tp->sznode = n;
  return 1;
}

static int node_is(const TraceNode *n, const GCfunc *fn)
{
  if (isluafunc(fn)) return n->pt == funcproto(fn);
  return !n->pt && n->ffid == fn->c.ffid && (!iscfunc(fn) || n->cfunc == fn->c.f);
}

/* Node of a function that the node parent calls at callpos. Reuses an equal node. */
static uint32_t node_get(JitMap *tp, const GCfunc *fn, uint32_t parent, BCPos callpos,
			 uint32_t old)
{
  TraceNode *n;
  if (old < tp->nnode) {
    n = &tp->node[old];
    if (n->parent == parent && n->callpos == callpos && node_is(n, fn)) return old;
  }
  if (LJ_UNLIKELY(tp->nnode == tp->sznode || tp->nnode >= NODES_MAX) && !node_grow(tp))
    return TRACENODE_NONE;
  n = &tp->node[tp->nnode];
  n->pt = isluafunc(fn) ? funcproto(fn) : NULL;
  n->cfunc = iscfunc(fn) ? fn->c.f : NULL;
  n->ffid = fn->c.ffid;
  n->parent = (uint16_t)parent;
  n->callpos = callpos;
  return tp->nnode++;
}

/* Position of a call in a caller that continues at pc. */
static BCPos call_pos(cTValue *caller, const BCIns *pc)
{
  const GCfunc *fn = frame_func(caller);
  if (!isluafunc(fn)) return JITMAP_NONE;
  return proto_bcpos(funcproto(fn), pc) - 1;
}

/* Node of the current function, from the frames on the Lua stack above the trace's base.
** These exist during recording, since the interpreter runs the same code.
*/
static uint32_t frames_node(JitMap *tp, jit_State *J)
{
  lua_State *L = J->L;
  TraceFrame *seen = tp->seen;
  cTValue *f = L->base - 1;
  cTValue *bottom = f - (J->baseslot - (1 + LJ_FR2));
  uint32_t n = 0, i, node = TRACENODE_NONE;
  if (bottom < tvref(L->stack)) return TRACENODE_NONE;
  for (;;) {
    cTValue *prev;
    if (n == JITMAP_LEVELS || f < bottom) return TRACENODE_NONE;
    seen[n].fn = frame_func(f);
    seen[n].slot = savestack(L, f);
    seen[n].callpos = JITMAP_NONE;
    n++;
    if (f == bottom) break;
    while (frame_isvarg(f)) { /* The lower part of a vararg frame has the same function. */
      f = frame_prevd(f);
      if (f <= bottom) break;
    }
    if (f == bottom) break;
    if (frame_islua(f)) {
      prev = frame_prevl(f);
      seen[n - 1].callpos = call_pos(prev, frame_pc(f));
    } else {
      prev = frame_prevd(f);
      if (frame_isc(f)) return TRACENODE_NONE;
      if (frame_iscont(f)) seen[n - 1].callpos = call_pos(prev, frame_contpc(f));
    }
    f = prev;
  }
  for (i = 0; i < n; i++) {
    TraceFrame *s = &seen[n - 1 - i];
    uint32_t old = i < tp->nlevel && tp->level[i].slot == s->slot ? tp->level[i].node
								  : TRACENODE_NONE;
    node = node_get(tp, s->fn, node, s->callpos, old);
    if (node == TRACENODE_NONE) return node;
    tp->level[i].slot = s->slot;
    tp->level[i].node = node;
  }
  tp->nlevel = n;
  return node;
}

/* Node of the current function. The function must be one of the known frames, or the
** innermost known frame must have called it. While a function runs, the frames below it do
** not change, and the map notes each bytecode that runs.
*/
static uint32_t frames_step(JitMap *tp, jit_State *J)
{
  lua_State *L = J->L;
  cTValue *f = L->base - 1, *prev;
  ptrdiff_t slot = savestack(L, f);
  uint32_t n = tp->nlevel, old = TRACENODE_NONE;
  TraceLevel *top;
  while (n > 0 && tp->level[n - 1].slot > slot) n--;
  if (n == 0) return TRACENODE_NONE;
  top = &tp->level[n - 1];
  if (top->slot == slot) { /* A callee has returned to it. */
    tp->nlevel = n;
    return node_is(&tp->node[top->node], J->fn) ? top->node : TRACENODE_NONE;
  }
  if (!frame_islua(f) || n == JITMAP_LEVELS) return TRACENODE_NONE;
  prev = frame_prevl(f);
  if (savestack(L, prev) != top->slot) return TRACENODE_NONE;
  if (n < tp->nlevel && top[1].slot == slot) old = top[1].node;
  old = node_get(tp, J->fn, top->node, call_pos(prev, frame_pc(f)), old);
  top[1].slot = slot;
  top[1].node = old;
  tp->nlevel = n + 1;
  return old;
}

/* Note the node of the bytecode that follows. */
static void node_enter(JitMap *tp, jit_State *J, uint32_t node)
{
  tp->current = node;
  tp->base = J->L->base;
  tp->fn = J->fn;
  if (LJ_LIKELY(J->pt != NULL)) {
    tp->bc = proto_bc(J->pt);
    tp->sizebc = J->pt->sizebc;
  } else {
    tp->sizebc = 0;
  }
  if (LJ_UNLIKELY(node == TRACENODE_NONE)) tp->failed = 1;
}

/* Append a segment that begins at ref. */
static void seg_add(JitMap *tp, jit_State *J, IRRef ref, const BCIns *pc)
{
  TraceSeg *seg = tp->next++;
  seg->pos = J->pt ? proto_bcpos(J->pt, pc) : JITMAP_NONE;
  seg->ref = (uint16_t)ref;
  seg->node = (uint16_t)tp->current;
}

void lj_jitmap_bytecode(JitMap *tp, jit_State *J)
{
  if (J->L->base != tp->base || J->fn != tp->fn) {
    uint32_t node;
    if (tp->failed) return;
    node = frames_step(tp, J);
    if (LJ_UNLIKELY(node == TRACENODE_NONE)) node = frames_node(tp, J);
    node_enter(tp, J, node);
  }
  /* The last bytecode emitted no IR, or LuaJIT has undone its IR. */
  while (tp->next[-1].ref >= J->cur.nins) {
    tp->next--;
    tp->copyref = 0;
  }
  seg_add(tp, J, J->cur.nins, J->pc);
}

void lj_jitmap_start(jit_State *J)
{
  GG_State *gg = J2GG(J);
  JitMap *tp = gg->tracepos;
  if (LJ_UNLIKELY(!tp)) {
    tp = (JitMap *)malloc(sizeof(JitMap));
    if (!tp) return;
    memset(tp, 0, offsetof(JitMap, level));
    memset(&tp->seg[0], 0, sizeof(TraceSeg));
    publish();
    gg->tracepos = tp;
  }
  tp->next = &tp->seg[1];
  tp->nnode = tp->nlevel = 0;
  tp->failed = 0;
  tp->copyref = 0;
  tp->asmref = ~(IRRef)0;
  node_enter(tp, J, frames_node(tp, J));
  seg_add(tp, J, REF_FIRST, mref(J->cur.startpc, const BCIns));
}

/* -- Loop unrolling ----------------------------------------------------------- */

void lj_jitmap_copied(JitMap *tp, jit_State *J, IRRef ins)
{
  if (ins == REF_FIRST) {
    tp->copy = &tp->seg[1];
    tp->copyend = tp->next;
  }
  if (tp->copy->ref == ins) {
    TraceSeg *seg = tp->next;
    IRRef ref = J->cur.nins;
    if (seg > tp->copyend && seg[-1].ref == ref)
      seg--; /* Unrolling copied none of its IR. */
    *seg = *tp->copy;
    seg->ref = (uint16_t)ref;
    tp->next = seg + 1;
    tp->copy++;
  }
  tp->copyref = tp->copy < tp->copyend ? tp->copy->ref : ~(IRRef)0;
}

/* -- Compiled traces ---------------------------------------------------------- */

/* Entry of a trace. The handler may be reading the old table. */
static TraceSaved *saved_get(JitMap *tp, TraceNo traceno)
{
  if (traceno >= tp->szsaved) {
    uint32_t size = tp->szsaved ? tp->szsaved * 2 : SAVED_MIN;
    TraceSaved *t, *old = tp->saved;
    while (size <= traceno) size *= 2;
    t = (TraceSaved *)calloc(size, sizeof(TraceSaved));
    if (!t) return NULL;
    if (old) memcpy(t, old, tp->szsaved * sizeof(TraceSaved));
    publish();
    tp->saved = t;
    publish();
    tp->szsaved = size;
    publish();
    free(old);
  }
  return &tp->saved[traceno];
}

static void saved_clear(TraceSaved *t)
{
  TraceBlock *b = t->block;
  t->mcode = 0;
  publish();
  t->block = NULL;
  publish();
  free(b);
}

#if LJ_TARGET_X64

/* Offset behind the instruction of IR_RETF that sets jit_base. From there on the code
** belongs to the frame below, though it may still load registers for IR_RETF. The
** instruction is mov [DISPATCH+disp32], reg; see asm_retf. Returns ofs if it is missing.
*/
static uint32_t retf_ofs(jit_State *J, const GCtrace *T, uint32_t from, uint32_t ofs)
{
  const uint8_t *mc = (const uint8_t *)T->mcode;
  int32_t disp = (int32_t)((char *)&J2G(J)->jit_base - (char *)J2GG(J)->dispatch);
  uint32_t i;
  for (i = from; i + MOV_GL_SIZE <= ofs; i++)
    if ((mc[i] & ~MOV_GL_REXR) == MOV_GL_REX && mc[i + 1] == MOV_GL_OP &&
	(mc[i + 2] & ~MOV_GL_REG) == MOV_GL_MODRM &&
	memcmp(&mc[i + 3], &disp, sizeof(disp)) == 0)
      return i + MOV_GL_SIZE;
  return ofs;
}

#else
#define retf_ofs(J, T, from, ofs) (ofs)
#endif

/* Copy the positions of the trace into one block. */
static TraceBlock *block_new(jit_State *J, const JitMap *tp, const GCtrace *T)
{
  uint32_t nseg = (uint32_t)(tp->next - &tp->seg[1]), i;
  size_t szseg = offsetof(TraceBlock, seg) + nseg * sizeof(TraceSeg);
  uint32_t mcode = (uint32_t)(uintptr_t)T->mcode;
  TraceBlock *b;
  if (tp->failed || nseg == 0) return NULL;
  szseg = (szseg + 7) & ~(size_t)7;
  b = (TraceBlock *)malloc(szseg + tp->nnode * sizeof(TraceNode));
  if (!b) return NULL;
  b->nseg = nseg;
  b->nnode = tp->nnode;
  b->node = (TraceNode *)((char *)b + szseg);
  memcpy((char *)b + szseg, tp->node, tp->nnode * sizeof(TraceNode));
  memcpy(b->seg, &tp->seg[1], nseg * sizeof(TraceSeg));
  for (i = 0; i < nseg && b->seg[i].ref <= tp->asmref; i++) b->seg[i].ofs = 0;
  /* The code begins where the previous instruction ends. */
  for (; i < nseg; i++) b->seg[i].ofs = tp->mcend[b->seg[i].ref - 1 - REF_BIAS] - mcode;
  if (LJ_UNLIKELY(J->chain[IR_RETF])) {
    for (i = 1; i < nseg; i++)
      if (T->ir[b->seg[i].ref - 1].o == IR_RETF)
	b->seg[i].ofs = retf_ofs(J, T, b->seg[i - 1].ofs, b->seg[i].ofs);
  }
  return b;
}

void lj_jitmap_save(jit_State *J, const GCtrace *T)
{
  JitMap *tp = J2GG(J)->tracepos;
  TraceSaved *t;
  if (!tp) return;
  t = saved_get(tp, T->traceno);
  if (!t) return;
  saved_clear(t);
  if (T->traceno >= tp->nsaved) tp->nsaved = T->traceno + 1u;
  t->szmcode = T->szmcode;
  t->T = T;
  t->block = block_new(J, tp, T);
  publish();
  t->mcode = (uintptr_t)T->mcode;
}

void lj_jitmap_free(jit_State *J, TraceNo traceno)
{
  JitMap *tp = J2GG(J)->tracepos;
  if (tp && traceno < tp->szsaved) saved_clear(&tp->saved[traceno]);
}

void lj_jitmap_flush(jit_State *J)
{
  JitMap *tp = J2GG(J)->tracepos;
  uint32_t i;
  if (!tp) return;
  for (i = 0; i < tp->nsaved; i++)
    if (tp->saved[i].mcode) saved_clear(&tp->saved[i]);
  tp->nsaved = 0;
}

void lj_jitmap_close(global_State *g)
{
  JitMap *tp = G2GG(g)->tracepos;
  if (!tp) return;
  lj_jitmap_flush(G2J(g));
  G2GG(g)->tracepos = NULL;
  publish();
  free(tp->node);
  free(tp->saved);
  free(tp);
}

#endif
