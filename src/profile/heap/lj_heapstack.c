/*
** Stack of a coroutine in a heap snapshot: its frames, and its slots with their names.
** Context: child of a snapshot.
*/

#define lj_heapstack_c
#define LUA_CORE

#include "lj_obj.h"
#include "lj_bc.h"
#include "lj_debug.h"
#include "lj_frame.h"
#include "profile/format/lj_heap_format.h"
#include "profile/heap/lj_heapstack.h"
#include "profile/symbols/lj_bcname.h"

#define NO_POS (~(uint32_t)0)

/* -- Frames ------------------------------------------------------------------ */

/* The prototype of a function, if both are whole. */
static const GCproto *proto_of(HeapWalk *w, const GCfunc *fn)
{
  const GCproto *pt;
  if (!lj_heapref_isobj(w, fn, offsetof(GCfuncL, uvptr), LJ_TFUNC) || !isluafunc(fn))
    return NULL;
  pt = funcproto(fn);
  return lj_heapref_isobj(w, pt, sizeof(GCproto), LJ_TPROTO) &&
	     heapmem_ok(&w->mem, pt, pt->sizept)
	   ? pt
	   : NULL;
}

/* Position of the instruction before a PC. */
static uint32_t pos_of(const GCproto *pt, const BCIns *pc)
{
  const BCIns *bc = proto_bc(pt);
  return pc > bc && pc <= bc + pt->sizebc ? proto_bcpos(pt, pc) - 1 : NO_POS;
}

/* Is the instruction before a PC readable? */
static int pc_ok(HeapWalk *w, const BCIns *pc)
{
  return heapmem_ok(&w->mem, (const void *)((uintptr_t)(pc - 1) & ~(uintptr_t)7), 8);
}

/* Read the frames from the top on. Returns their number. */
static uint32_t read_frames(HeapWalk *w, const lua_State *th)
{
  cTValue *stack = tvref(th->stack), *bot = stack + LJ_FR2, *f = th->base - 1;
  const BCIns *pc = NULL;
  uint32_t n = 0;
  if (f >= stack + th->stacksize) return 0;
  while (f > bot) {
    cTValue *below;
    if (n == HEAPWALK_FRAMES) {
      w->state |= HPS_CUT;
      break;
    }
    w->frame[n].fn = &frame_gc(f)->fn;
    w->frame[n].pt = proto_of(w, w->frame[n].fn);
    w->frame[n].base = (uint32_t)(f + 1 - stack);
    w->frame[n].pos = w->frame[n].pt && pc ? pos_of(w->frame[n].pt, pc) : NO_POS;
    if (w->frame[n].pt || lj_heapref_isobj(w, w->frame[n].fn, sizeof(GChead), LJ_TFUNC))
      n++;
    while (f > bot && frame_isvarg(f)) { /* The same function again. */
      below = frame_prevd(f);
      if (below >= f) return n;
      f = below;
    }
    if (f <= bot) break;
    if (frame_islua(f)) {
      pc = frame_pc(f);
      if (((uintptr_t)pc & 3) || !pc_ok(w, pc)) break;
      below = frame_prevl(f);
    } else {
      below = frame_prevd(f);
      pc = frame_iscont(f) && f > stack + 3 ? frame_contpc(f) : NULL;
    }
    if (below >= f) break;
    f = below;
  }
  return n;
}

static uint32_t line_of(const HeapFrame *fr)
{
  const uint8_t *info = (const uint8_t *)proto_lineinfo(fr->pt);
  const uint8_t *bot = (const uint8_t *)fr->pt;
  BCLine line;
  if (fr->pos == NO_POS || info <= bot || info >= bot + fr->pt->sizept) return 0;
  line = lj_debug_line((GCproto *)fr->pt, fr->pos);
  return line > 0 ? (uint32_t)line : 0;
}

static void put_frames(HeapWalk *w, uint32_t n)
{
  uint32_t i;
  lj_heapout_uleb(&w->out, n);
  for (i = 0; i < n; i++) {
    const HeapFrame *fr = &w->frame[i];
    lj_heapref(w, fr->fn);
    lj_heapout_uleb(&w->out, fr->pt ? line_of(fr) : 0);
    lj_heapout_uleb(&w->out, fr->base);
  }
}

/* -- Slots ------------------------------------------------------------------- */

static void put_name(HeapWalk *w, const HeapFrame *fr, uint32_t slot)
{
  NamePart np;
  np.len = 0;
  if (fr && fr->pt && fr->pos != NO_POS && slot >= fr->base &&
      !lj_bcname_local(&w->mem.load, fr->pt, fr->pos, slot - fr->base, &np))
    np.len = 0;
  lj_heapout_uleb(&w->out, np.len);
  lj_heapout_bytes(&w->out, np.s, np.len);
}

void lj_heapstack(HeapWalk *w, const lua_State *th)
{
  cTValue *stack = tvref(th->stack);
  uint64_t size = (uint64_t)th->stacksize * sizeof(TValue);
  uint32_t nframe = 0, slot = 1 + LJ_FR2, top = 0, next = 0;
  heapout_byte(&w->out, (uint8_t)((th == mainthread(w->g) ? HPO_MAIN : 0) |
				  (obj2gco(th) == gcref(w->g->cur_L) ? HPO_RUNNING : 0)));
  lj_heapout_uleb(&w->out, th->status);
  lj_heapref(w, gcrefp(th->env, void));
  if (size && heapmem_ok(&w->mem, stack, size) && th->top >= stack &&
      th->top <= stack + th->stacksize) {
    top = (uint32_t)(th->top - stack);
    if (th->base > stack && th->base <= th->top) nframe = read_frames(w, th);
  } else {
    w->state |= HPS_DAMAGED;
  }
  put_frames(w, nframe);
  for (; slot < top; slot++) {
    if (!tvisgcv(&stack[slot])) continue;
    while (nframe > 1 && w->frame[nframe - 2].base <= slot) nframe--;
    lj_heapout_uleb(&w->out, slot + 1 - next);
    lj_heapref_value(w, &stack[slot]);
    put_name(w, nframe ? &w->frame[nframe - 1] : NULL, slot);
    next = slot + 1;
  }
  heapout_byte(&w->out, 0);
}
