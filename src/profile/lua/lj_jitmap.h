/*
** Map of machine code: bytecode positions and inlined functions of compiled traces.
** Context: VM thread
**
** LuaJIT calls the functions below while it records, unrolls and assembles a trace
** (etc/luajit/edits.cmake). They change nothing in what it compiles. A trace keeps its map
** until it is freed, so a profile covers traces that are older than the profile.
**
** Recording numbers the IR, so the map keeps the first IR instruction of each bytecode.
** Machine code has the order of the IR, so the map keeps where the code of each IR
** instruction begins. The handler reads the map through lj_jitfind.h at any time.
*/

#ifndef _LJ_JITMAP_H
#define _LJ_JITMAP_H

#include "lj_obj.h"
#include "lj_jit.h"
#include "lj_dispatch.h"

#if LJ_HASJIT

#define TRACENODE_NONE 0xffff      /* No node: below it is the Lua stack. */
#define JITMAP_NONE    (~(BCPos)0) /* Not in Lua code. */

/* A function that runs in a trace, as one place called it. */
typedef struct TraceNode {
  const GCproto *pt;   /* Of a Lua function, else NULL. */
  lua_CFunction cfunc; /* Of a C function, else NULL. */
  uint16_t ffid;       /* FF_*. */
  uint16_t parent;     /* Node of the caller, or TRACENODE_NONE. */
  BCPos callpos;       /* Position in the caller, or JITMAP_NONE. */
} TraceNode;

/* The stretch of code that was made from one bytecode. */
typedef struct TraceSeg {
  uint32_t ofs;  /* Where its machine code begins. */
  BCPos pos;     /* Position in the node's prototype, if any. */
  uint16_t ref;  /* First IR instruction. */
  uint16_t node; /* Function. */
} TraceSeg;

/* Positions of one trace: one block of memory. */
typedef struct TraceBlock {
  uint32_t nseg;
  uint32_t nnode;
  const TraceNode *node;
  TraceSeg seg[1]; /* In the order of ofs and ref. */
} TraceBlock;

/* A compiled trace. */
typedef struct TraceSaved {
  uintptr_t mcode; /* Its machine code, 0 for none. */
  uint32_t szmcode;
  const GCtrace *T;
  TraceBlock *block; /* NULL if there was no memory. */
} TraceSaved;

/* A frame of the trace that is being recorded. */
typedef struct TraceLevel {
  ptrdiff_t slot; /* Offset of its base in the Lua stack. */
  uint32_t node;
} TraceLevel;

#define JITMAP_LEVELS (LJ_MAX_JSLOTS / 2 + 2)
#define JITMAP_REFS   (0x10000 - REF_BIAS)

/* State of a VM, see GG_State. The large arrays are touched only as far as
** traces reach.
*/
typedef struct JitMap {
  /* The trace that is being compiled. */
  TraceSeg *next;     /* Next segment to write. */
  const TValue *base; /* Base and function of the last bytecode, */
  const GCfunc *fn;
  const BCIns *bc;  /* where its bytecode begins, */
  MSize sizebc;     /* its length, 0 if it has none, */
  uint32_t current; /* and its node. */
  int failed;       /* No memory, or too large. */
  TraceNode *node;
  uint32_t nnode, sznode;
  IRRef copyref;     /* Next IR instruction to copy that begins one. */
  TraceSeg *copy;    /* Its segment. */
  TraceSeg *copyend; /* Those below are copied. */
  IRRef asmref;      /* Assembled last, the lowest. */
  uint32_t nlevel;
  /* All others, by number. */
  TraceSaved *saved;
  uint32_t szsaved;
  uint32_t nsaved; /* The others are empty. */
  TraceLevel level[JITMAP_LEVELS];
  /* Where the code of each IR instruction ends: addresses within a trace differ
  ** in the lower 32 bits only.
  */
  uint32_t mcend[JITMAP_REFS];
  /* Each has a higher ref than the one before; the first is none and has 0. */
  TraceSeg seg[JITMAP_REFS + 1];
} JitMap;

/* Slow paths of the functions below. */
LJ_FUNC void lj_jitmap_bytecode(JitMap *tp, jit_State *J);
LJ_FUNC void lj_jitmap_copied(JitMap *tp, jit_State *J, IRRef ins);

/* -- Called by LuaJIT's own code ---------------------------------------------- */

/* A trace has been set up: it is about to be recorded, or complete. */
LJ_FUNC void lj_jitmap_start(jit_State *J);
/* It is compiled. */
LJ_FUNC void lj_jitmap_save(jit_State *J, const GCtrace *T);
/* A trace is about to be freed. */
LJ_FUNC void lj_jitmap_free(jit_State *J, TraceNo traceno);
/* All traces are. */
LJ_FUNC void lj_jitmap_flush(jit_State *J);
/* The VM is being closed. */
LJ_FUNC void lj_jitmap_close(global_State *g);

/* A bytecode instruction is about to be recorded. */
static LJ_AINLINE void lj_jitmap_ins(jit_State *J)
{
  JitMap *tp = J2GG(J)->tracepos;
  if (LJ_LIKELY(tp != NULL)) {
    TraceSeg *seg = tp->next;
    IRRef ref = J->cur.nins, last = seg[-1].ref;
    BCPos pos = (BCPos)(J->pc - tp->bc);
    if (LJ_LIKELY(pos < tp->sizebc && J->L->base == tp->base && last <= ref)) {
      if (last == ref) seg--; /* The bytecode before emitted nothing. */
      seg->pos = pos;
      seg->ref = (uint16_t)ref;
      seg->node = (uint16_t)tp->current;
      tp->next = seg + 1;
    } else {
      lj_jitmap_bytecode(tp, J);
    }
  }
}

/* Loop unrolling is about to copy an IR instruction. */
static LJ_AINLINE void lj_jitmap_copy(jit_State *J, IRRef ins)
{
  JitMap *tp = J2GG(J)->tracepos;
  if (tp && LJ_UNLIKELY(ins >= tp->copyref)) lj_jitmap_copied(tp, J, ins);
}

/* An IR instruction is about to be assembled; its code ends at mcp. They come
** from the last to the first, and possibly all again.
*/
static LJ_AINLINE void lj_jitmap_asm(jit_State *J, IRRef ref, const MCode *mcp)
{
  JitMap *tp = J2GG(J)->tracepos;
  if (tp) {
    tp->asmref = ref;
    tp->mcend[ref - REF_BIAS] = (uint32_t)(uintptr_t)mcp;
  }
}

#endif

#endif
