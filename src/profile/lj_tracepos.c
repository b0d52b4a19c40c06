/*
** Positions of compiled code. Runs on the VM's thread, outside of the handler;
** see the header.
*/

#define lj_tracepos_c
#define LUA_CORE

#include <stdlib.h>
#include <string.h>

#include "lj_obj.h"

#if LJ_HASJIT

#include "lj_frame.h"
#include "lj_ff.h"
#include "lj_ir.h"
#include "lj_state.h"
#include "profile/lj_tracepos.h"

#define SEGS_MIN	256	/* First sizes of the buffers. */
#define NODES_MIN	32
#define SAVED_MIN	64
#define NODES_MAX	TRACENODE_NONE

/* Parts of mov [r14+disp32], reg. */
#define MOV_GL_SIZE	7
#define MOV_GL_REX	0x49
#define MOV_GL_REXR	0x04
#define MOV_GL_OP	0x89
#define MOV_GL_MODRM	0x86
#define MOV_GL_REG	0x38

/* The handler runs on this thread: it is enough that the compiler keeps the
** order in which things become visible to it.
*/
#define publish()	__asm__ __volatile__("" : : : "memory")

/* Make room for one more item. Returns the buffer, or NULL. */
static void *buf_grow(void *buf, uint32_t *size, uint32_t min, size_t szitem)
{
  uint32_t n = *size ? *size * 2 : min;
  void *p = realloc(buf, n * szitem);
  if (p) *size = n;
  return p;
}

/* -- Recording ---------------------------------------------------------------- */

/* Append a segment. Returns 0 without memory. */
static int seg_add(TracePos *tp, IRRef ref, BCPos pos, uint32_t node)
{
  TraceSeg *seg;
  if (LJ_UNLIKELY(tp->nseg == tp->szseg)) {
    seg = (TraceSeg *)buf_grow(tp->seg, &tp->szseg, SEGS_MIN, sizeof(TraceSeg));
    if (!seg) return 0;
    tp->seg = seg;
  }
  seg = &tp->seg[tp->nseg++];
  seg->ref = (uint16_t)ref;
  seg->pos = pos;
  seg->node = (uint16_t)node;
  return 1;
}

/* Node of a function that is called by the node parent at callpos. An old one
** is taken if it says the same.
*/
static uint32_t node_get(TracePos *tp, const GCfunc *fn, uint32_t parent,
			 BCPos callpos, uint32_t old)
{
  const GCproto *pt = isluafunc(fn) ? funcproto(fn) : NULL;
  lua_CFunction cfunc = iscfunc(fn) ? fn->c.f : NULL;
  TraceNode *n;
  if (old < tp->nnode) {
    n = &tp->node[old];
    if (n->parent == parent && n->callpos == callpos && n->pt == pt &&
	n->ffid == fn->c.ffid && n->cfunc == cfunc)
      return old;
  }
  if (tp->nnode == tp->sznode) {
    if (tp->nnode >= NODES_MAX) return TRACENODE_NONE;
    n = (TraceNode *)buf_grow(tp->node, &tp->sznode, NODES_MIN,
			      sizeof(TraceNode));
    if (!n) return TRACENODE_NONE;
    tp->node = n;
  }
  if (tp->nnode >= NODES_MAX) return TRACENODE_NONE;
  n = &tp->node[tp->nnode];
  n->pt = pt;
  n->cfunc = cfunc;
  n->ffid = fn->c.ffid;
  n->parent = (uint16_t)parent;
  n->callpos = callpos;
  return tp->nnode++;
}

/* A frame on the way down from the current one. */
typedef struct FrameSeen {
  const GCfunc *fn;
  ptrdiff_t slot;
  BCPos callpos;		/* Where its caller called it. */
} FrameSeen;

/* Position of a call in a caller that continues at pc. */
static BCPos call_pos(cTValue *caller, const BCIns *pc)
{
  const GCfunc *fn = frame_func(caller);
  if (!isluafunc(fn)) return TRACEPOS_NONE;
  return proto_bcpos(funcproto(fn), pc) - 1;
}

/* Node of the function that runs, from the real frames above the trace's base:
** recording goes along with the interpreter.
*/
static uint32_t frames_node(TracePos *tp, jit_State *J)
{
  lua_State *L = J->L;
  FrameSeen seen[TRACEPOS_LEVELS];
  cTValue *f = L->base - 1;
  cTValue *bottom = f - (J->baseslot - (1+LJ_FR2));
  uint32_t n = 0, i, node = TRACENODE_NONE;
  if (bottom < tvref(L->stack)) return TRACENODE_NONE;
  for (;;) {
    cTValue *prev;
    if (n == TRACEPOS_LEVELS || f < bottom) return TRACENODE_NONE;
    seen[n].fn = frame_func(f);
    seen[n].slot = savestack(L, f);
    seen[n].callpos = TRACEPOS_NONE;
    n++;
    if (f == bottom) break;
    while (frame_isvarg(f)) {  /* The lower part holds the same function. */
      f = frame_prevd(f);
      if (f <= bottom) break;
    }
    if (f == bottom) break;
    if (frame_islua(f)) {
      prev = frame_prevl(f);
      seen[n-1].callpos = call_pos(prev, frame_pc(f));
    } else {
      prev = frame_prevd(f);
      if (frame_isc(f)) return TRACENODE_NONE;
      if (frame_iscont(f)) seen[n-1].callpos = call_pos(prev, frame_contpc(f));
    }
    f = prev;
  }
  for (i = 0; i < n; i++) {
    FrameSeen *s = &seen[n-1-i];
    uint32_t old = i < tp->nlevel && tp->level[i].slot == s->slot ?
		   tp->level[i].node : TRACENODE_NONE;
    node = node_get(tp, s->fn, node, s->callpos, old);
    if (node == TRACENODE_NONE) return node;
    tp->level[i].slot = s->slot;
    tp->level[i].node = node;
  }
  tp->nlevel = n;
  return node;
}

/* Note that a bytecode, or none of Lua, begins at an IR instruction. */
static void seg_note(TracePos *tp, jit_State *J, IRRef ref, const BCIns *pc,
		     uint32_t node)
{
  BCPos pos = J->pt ? proto_bcpos(J->pt, pc) : TRACEPOS_NONE;
  if (node == TRACENODE_NONE || !seg_add(tp, ref, pos, node)) {
    tp->failed = 1;
    tp->base = NULL;
  }
}

void lj_tracepos_bytecode(TracePos *tp, jit_State *J)
{
  IRRef ref = J->cur.nins;
  uint32_t node;
  if (tp->failed) return;
  /* Bytecode that emitted nothing, or what it emitted has been taken back. */
  while (tp->nseg > 0 && tp->seg[tp->nseg-1].ref >= ref)
    tp->nseg--;
  tp->copyref = 0;
  if (tp->nseg > 0 && J->L->base == tp->base && J->fn == tp->fn &&
      tp->nlevel > 0)
    node = tp->level[tp->nlevel-1].node;
  else
    node = frames_node(tp, J);
  tp->base = J->L->base;
  tp->fn = J->fn;
  seg_note(tp, J, ref, J->pc, node);
}

void lj_tracepos_start(jit_State *J)
{
  GG_State *gg = J2GG(J);
  TracePos *tp = gg->tracepos;
  if (LJ_UNLIKELY(!tp)) {
    tp = (TracePos *)calloc(1, sizeof(TracePos));
    if (!tp) return;
    tp->seg = (TraceSeg *)buf_grow(NULL, &tp->szseg, SEGS_MIN,
				   sizeof(TraceSeg));
    if (!tp->seg) {
      free(tp);
      return;
    }
    publish();
    gg->tracepos = tp;
  }
  tp->nseg = tp->nnode = tp->nlevel = 0;
  tp->failed = 0;
  tp->copyref = 0;
  tp->base = J->L->base;
  tp->fn = J->fn;
  seg_note(tp, J, REF_FIRST, mref(J->cur.startpc, const BCIns),
	   frames_node(tp, J));
}

/* -- Loop unrolling ----------------------------------------------------------- */

void lj_tracepos_copied(TracePos *tp, jit_State *J, IRRef ins)
{
  if (ins == REF_FIRST) {
    tp->ncopied = 0;
    tp->ncopy = tp->nseg;
  }
  while (tp->ncopied < tp->ncopy && tp->seg[tp->ncopied].ref <= ins) {
    TraceSeg s = tp->seg[tp->ncopied++];
    if (tp->nseg > tp->ncopy && tp->seg[tp->nseg-1].ref == J->cur.nins)
      tp->nseg--;  /* Nothing of it was copied. */
    if (!seg_add(tp, J->cur.nins, s.pos, s.node)) tp->failed = 1;
  }
  tp->copyref = tp->ncopied < tp->ncopy ? tp->seg[tp->ncopied].ref : ~(IRRef)0;
}

/* -- Assembling --------------------------------------------------------------- */

void lj_tracepos_assembled(TracePos *tp, IRRef ref, const MCode *mcp)
{
  uint32_t k = tp->asmseg;
  /* Addresses within a trace differ in the lower 32 bits only. */
  while (k > 0 && (k == tp->nseg || ref < tp->seg[k].ref)) {
    if (k < tp->nseg) tp->seg[k].ofs = (uint32_t)(uintptr_t)mcp;
    k--;
  }
  tp->asmseg = k;
  tp->asmref = k ? tp->seg[k].ref : 0;
}

/* -- Compiled traces ---------------------------------------------------------- */

/* Entry of a trace. The handler may be looking at the old table. */
static TraceSaved *saved_get(TracePos *tp, TraceNo traceno)
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

/* Behind the instruction of IR_RETF that sets jit_base: from there on the code
** stands in the frame below, though registers may still be loaded for IR_RETF.
** It is mov [DISPATCH+disp32], reg; see asm_retf. Returns ofs if there is none.
*/
static uint32_t retf_ofs(jit_State *J, const GCtrace *T, uint32_t from,
			 uint32_t ofs)
{
  const uint8_t *mc = (const uint8_t *)T->mcode;
  int32_t disp = (int32_t)((char *)&J2G(J)->jit_base -
			   (char *)J2GG(J)->dispatch);
  uint32_t i;
  for (i = from; i + MOV_GL_SIZE <= ofs; i++)
    if ((mc[i] & ~MOV_GL_REXR) == MOV_GL_REX && mc[i+1] == MOV_GL_OP &&
	(mc[i+2] & ~MOV_GL_REG) == MOV_GL_MODRM &&
	memcmp(&mc[i+3], &disp, sizeof(disp)) == 0)
      return i + MOV_GL_SIZE;
  return ofs;
}

#else
#define retf_ofs(J, T, from, ofs)	(ofs)
#endif

/* Keep the positions of the trace in one block. */
static TraceBlock *block_new(jit_State *J, const TracePos *tp,
			     const GCtrace *T)
{
  size_t szseg = offsetof(TraceBlock, seg) + tp->nseg*sizeof(TraceSeg);
  size_t sznode = tp->nnode*sizeof(TraceNode);
  uint32_t mcode = (uint32_t)(uintptr_t)T->mcode, i;
  TraceBlock *b;
  TraceNode *node;
  if (tp->failed || tp->nseg == 0) return NULL;
  szseg = (szseg + 7) & ~(size_t)7;
  b = (TraceBlock *)malloc(szseg + sznode);
  if (!b) return NULL;
  node = (TraceNode *)((char *)b + szseg);
  memcpy(node, tp->node, sznode);
  b->node = node;
  b->nnode = tp->nnode;
  b->nseg = tp->nseg;
  memcpy(b->seg, tp->seg, tp->nseg*sizeof(TraceSeg));
  for (i = 0; i < b->nseg; i++)
    b->seg[i].ofs = i <= tp->asmseg ? 0 : b->seg[i].ofs - mcode;
  for (i = 1; i < b->nseg; i++)
    if (T->ir[b->seg[i].ref-1].o == IR_RETF)
      b->seg[i].ofs = retf_ofs(J, T, b->seg[i-1].ofs, b->seg[i].ofs);
  return b;
}

void lj_tracepos_save(jit_State *J, const GCtrace *T)
{
  TracePos *tp = J2GG(J)->tracepos;
  TraceSaved *t;
  if (!tp) return;
  t = saved_get(tp, T->traceno);
  if (!t) return;
  saved_clear(t);
  t->szmcode = T->szmcode;
  t->T = T;
  t->block = block_new(J, tp, T);
  publish();
  t->mcode = (uintptr_t)T->mcode;
}

void lj_tracepos_free(jit_State *J, TraceNo traceno)
{
  TracePos *tp = J2GG(J)->tracepos;
  if (tp && traceno < tp->szsaved) saved_clear(&tp->saved[traceno]);
}

void lj_tracepos_flush(jit_State *J)
{
  TracePos *tp = J2GG(J)->tracepos;
  uint32_t i;
  if (!tp) return;
  for (i = 0; i < tp->szsaved; i++)
    if (tp->saved[i].mcode) saved_clear(&tp->saved[i]);
}

void lj_tracepos_close(global_State *g)
{
  TracePos *tp = G2GG(g)->tracepos;
  if (!tp) return;
  lj_tracepos_flush(G2J(g));
  G2GG(g)->tracepos = NULL;
  publish();
  free(tp->seg);
  free(tp->node);
  free(tp->saved);
  free(tp);
}

#endif
