/*
** Lookup of machine code: trace, bytecode position and inlined functions of an address.
** Context: handler.
*/

#define lj_jitfind_c
#define LUA_CORE

#include "lj_obj.h"

#if LJ_HASJIT

#include "lj_dispatch.h"
#include "lj_trace.h"
#include "profile/lua/lj_jitfind.h"

/* Bytes of the last instructions of a trace that links to another one:
** add rsp, imm8 or imm32; jmp rel32.
*/
#define TAIL_ADD_RSP8  4
#define TAIL_ADD_RSP32 7
#define TAIL_JMP       5

static const TraceSaved *saved_get(global_State *g, TraceNo traceno)
{
  const JitMap *tp = G2GG(g)->tracepos;
  const TraceSaved *t;
  if (!tp || traceno >= tp->szsaved) return NULL;
  t = &tp->saved[traceno];
  return t->mcode ? t : NULL;
}

static int saved_has(const TraceSaved *t, uintptr_t addr)
{
  return t->mcode && addr - t->mcode < t->szmcode;
}

/* Find the trace of an address. Usually it is the current trace. Otherwise tries all: the
** collector may run, or one trace may have jumped to another one.
*/
static const TraceSaved *saved_find(global_State *g, uintptr_t addr)
{
  const JitMap *tp = G2GG(g)->tracepos;
  int32_t current = g->vmstate;
  uint32_t i;
  if (!tp) return NULL;
  if (current > 0 && (uint32_t)current < tp->szsaved &&
      saved_has(&tp->saved[current], addr))
    return &tp->saved[current];
  for (i = 1; i < tp->szsaved; i++)
    if (saved_has(&tp->saved[i], addr)) return &tp->saved[i];
  return NULL;
}

/* Find the last segment that begins at or below ofs. If several begin at one offset, only the
** last one has code.
*/
static const TraceSeg *seg_byofs(const TraceBlock *b, uint32_t ofs)
{
  uint32_t lo = 0, hi = b->nseg;
  while (hi - lo > 1) {
    uint32_t mid = (lo + hi) / 2;
    if (b->seg[mid].ofs <= ofs) lo = mid;
    else hi = mid;
  }
  return &b->seg[lo];
}

/* The segment of an IR instruction. */
static const TraceSeg *seg_byref(const TraceBlock *b, IRRef ref)
{
  uint32_t lo = 0, hi = b->nseg;
  while (hi - lo > 1) {
    uint32_t mid = (lo + hi) / 2;
    if (b->seg[mid].ref <= ref) lo = mid;
    else hi = mid;
  }
  return &b->seg[lo];
}

/* At the end of a trace that links to another trace, jit_base already belongs to the other
** trace. A stitched trace returns to the VM instead.
*/
static int tail_islinked(const GCtrace *T, uint32_t ofs)
{
  uint32_t tail = TAIL_JMP;
  if (T->link == 0 || T->mcloop || T->linktype == LJ_TRLINK_STITCH) return 0;
  if (T->spadjust)
    tail += (int8_t)T->spadjust == (int32_t)T->spadjust ? TAIL_ADD_RSP8 : TAIL_ADD_RSP32;
  return ofs + tail >= T->szmcode;
}

int lj_jitfind_code(global_State *g, uintptr_t addr, JitFind *ta)
{
  const TraceSaved *t = saved_find(g, addr);
  uint32_t ofs;
  if (!t) return 0;
  ofs = (uint32_t)(addr - t->mcode);
  if (tail_islinked(t->T, ofs)) {
    t = saved_get(g, t->T->link);
    if (!t) return 0;
    ofs = 0;
  }
  ta->number = t->T->traceno;
  ta->in_loop = t->T->mcloop && ofs >= t->T->mcloop;
  ta->block = t->block;
  ta->seg = t->block ? seg_byofs(t->block, ofs) : NULL;
  return 1;
}

/* Does a trace return below its first function between two places? jit_base changes there.
*/
static int returns_between(const GCtrace *T, IRRef from, IRRef to)
{
  IRRef ref;
  for (ref = from; ref < to && ref < T->nins; ref++)
    if (T->ir[ref].o == IR_RETF) return 1;
  return 0;
}

int lj_jitfind_waited(global_State *g, uintptr_t addr, JitFind *ta)
{
  JitFind before;
  if (!lj_jitfind_code(g, addr, ta)) return 0;
  /* Not at the beginning of the trace or of its loop, since jumps lead there. Not at the end
  ** of a trace that links to itself, since that counts as its beginning.
  */
  if (ta->seg && lj_jitfind_code(g, addr - 1, &before) && before.number == ta->number &&
      before.in_loop == ta->in_loop && before.seg <= ta->seg &&
      !returns_between(lj_jitfind_trace(g, ta->number), before.seg->ref, ta->seg->ref))
    *ta = before;
  return 1;
}

int lj_jitfind_exit(global_State *g, TraceNo traceno, ExitNo exitno, JitFind *ta)
{
  const TraceSaved *t = saved_get(g, traceno);
  if (!t || exitno >= t->T->nsnap) return 0;
  ta->number = traceno;
  ta->in_loop = 0;
  ta->block = t->block;
  ta->seg = t->block ? seg_byref(t->block, t->T->snap[exitno].ref) : NULL;
  return 1;
}

const GCtrace *lj_jitfind_trace(global_State *g, TraceNo traceno)
{
  const TraceSaved *t = saved_get(g, traceno);
  return t ? t->T : NULL;
}

#endif
