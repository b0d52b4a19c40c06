/*
** Map of machine code: bytecode positions and inlined functions of compiled traces.
** Context: VM thread.
**
** LuaJIT calls the functions below while it records, unrolls and assembles a trace
** (etc/luajit/edits.cmake). They do not change the compiled code. A trace keeps its map
** until LuaJIT frees it. So a profile can place samples in traces that are older.
**
** Recording numbers the IR, so the map keeps the first IR instruction of each bytecode.
** Machine code has the order of the IR, so the map keeps the place where the code of each
** IR instruction begins. The handler reads the map through lj_jitfind.h at any time.
*/

#ifndef _LJ_JITMAP_H
#define _LJ_JITMAP_H

#include "lj_obj.h"
#include "lj_jit.h"
#include "lj_dispatch.h"

#if LJ_HASJIT

#define TRACENODE_NONE 0xffff      /* No node: the caller is on the Lua stack. */
#define JITMAP_NONE    (~(BCPos)0) /* Not in Lua code. */

/* A function that runs in a trace, as one place called it. */
typedef struct TraceNode {
  const GCproto *pt;   /* Prototype of a Lua function, else NULL. */
  lua_CFunction cfunc; /* Address of a C function, else NULL. */
  uint16_t ffid;       /* FF_*. */
  uint16_t parent;     /* Node of the caller, or TRACENODE_NONE. */
  BCPos callpos;       /* Position in the caller, or JITMAP_NONE. */
} TraceNode;

/* Machine code of one bytecode. */
typedef struct TraceSeg {
  uint32_t ofs;  /* Offset where its machine code begins. */
  BCPos pos;     /* Position in the node's prototype, if any. */
  uint16_t ref;  /* First IR instruction. */
  uint16_t node; /* Node of its function. */
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
  uintptr_t mcode; /* Address of its machine code, or 0. */
  uint32_t szmcode;
  const GCtrace *T;
  TraceBlock *block; /* Positions, NULL without memory. */
} TraceSaved;

/* A frame of the trace under recording. */
typedef struct TraceLevel {
  ptrdiff_t slot; /* Offset of its base in the Lua stack. */
  uint32_t node;
} TraceLevel;

/* A frame on the way down from the current one. */
typedef struct TraceFrame {
  const GCfunc *fn;
  ptrdiff_t slot;
  BCPos callpos; /* Position of the call in its caller. */
} TraceFrame;

#define JITMAP_LEVELS (LJ_MAX_JSLOTS / 2 + 2)
#define JITMAP_REFS   (0x10000 - REF_BIAS)

/* State of a VM, see GG_State. LuaJIT touches the large arrays only as far as traces reach.
*/
typedef struct JitMap {
  /* The current trace of the compiler. */
  TraceSeg *next;     /* Next segment to write. */
  const TValue *base; /* Base and function of the last bytecode, */
  const GCfunc *fn;
  const BCIns *bc;  /* where its bytecode begins, */
  MSize sizebc;     /* its length, 0 without bytecode, */
  uint32_t current; /* and its node. */
  int failed;       /* No memory, or too large. */
  TraceNode *node;
  uint32_t nnode, sznode;
  IRRef copyref;     /* Next IR instruction to copy that begins a segment. */
  TraceSeg *copy;    /* Segment of copyref. */
  TraceSeg *copyend; /* End of the segments to copy. */
  IRRef asmref;      /* IR instruction assembled last, the lowest. */
  uint32_t nlevel;
  /* All compiled traces, by number. */
  TraceSaved *saved;
  uint32_t szsaved;
  uint32_t nsaved; /* Entries in use; the rest is empty. */
  TraceLevel level[JITMAP_LEVELS];
  TraceFrame seen[JITMAP_LEVELS];
  /* End of the code of each IR instruction. Addresses within a trace differ in the lower 32
  ** bits only.
  */
  uint32_t mcend[JITMAP_REFS];
  /* Segments with increasing ref. The first entry is a sentinel with ref 0. */
  TraceSeg seg[JITMAP_REFS + 1];
} JitMap;

/* Slow paths of the functions below. */
LJ_FUNC void lj_jitmap_bytecode(JitMap *tp, jit_State *J);
LJ_FUNC void lj_jitmap_copied(JitMap *tp, jit_State *J, IRRef ins);

/* -- Called by LuaJIT's own code ---------------------------------------------- */

/* LuaJIT has set up a trace: it records next, or the trace is complete. */
LJ_FUNC void lj_jitmap_start(jit_State *J);
/* LuaJIT has compiled the trace. */
LJ_FUNC void lj_jitmap_save(jit_State *J, const GCtrace *T);
/* LuaJIT is about to free a trace. */
LJ_FUNC void lj_jitmap_free(jit_State *J, TraceNo traceno);
/* LuaJIT is about to free all traces. */
LJ_FUNC void lj_jitmap_flush(jit_State *J);
/* lua_close is freeing the VM. */
LJ_FUNC void lj_jitmap_close(global_State *g);

/* LuaJIT is about to record a bytecode instruction. */
static LJ_AINLINE void lj_jitmap_ins(jit_State *J)
{
  JitMap *tp = J2GG(J)->tracepos;
  if (LJ_LIKELY(tp != NULL)) {
    TraceSeg *seg = tp->next;
    IRRef ref = J->cur.nins, last = seg[-1].ref;
    BCPos pos = (BCPos)(J->pc - tp->bc);
    if (LJ_LIKELY(pos < tp->sizebc && J->L->base == tp->base && last <= ref)) {
      if (last == ref) seg--; /* The previous bytecode emitted no IR. */
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

/* LuaJIT is about to assemble an IR instruction, whose code ends at mcp. It goes from the
** last instruction to the first, and may start again.
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
