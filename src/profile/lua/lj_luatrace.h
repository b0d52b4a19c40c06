/*
** Lua stack of compiled code: running traces and trace exits.
** Context: handler.
**
** Functions inlined into a running trace have no frames on the Lua stack. The stack ends
** at jit_base, like at the trace's entry. The position in the machine code gives the
** functions above. An exit goes through an exit stub, lj_vm_exit_handler and
** lj_trace_exit, which rebuilds the frames at some point.
*/

#ifndef _LJ_LUATRACE_H
#define _LJ_LUATRACE_H

#include "lj_obj.h"
#include "profile/host/lj_hostwalk.h"
#include "profile/lua/lj_luaframe.h"
#include "profile/lua/lj_jitfind.h"

typedef struct TraceStack {
  int runs;        /* The inlined frames are not on the Lua stack. */
  uintptr_t base;  /* Base of the trace's first frame or, with pc, of
				** the top frame. */
  JitFind at;      /* Place; at.block is NULL if unknown. */
  int exits;       /* The VM is leaving a trace. */
  uint32_t from;   /* Number of that trace. */
  uint32_t exitno; /* Number of its exit. */
  uintptr_t pc;    /* PC behind the next instruction if the frames
				** are rebuilt, else 0. */
} TraceStack;

/* What runs on the innermost VM frame. */
typedef struct TraceLeaf {
  const uintptr_t *reg; /* Registers of the VM's interrupted code, by WALKREG_*; NULL: the
			** VM has called C. */
} TraceLeaf;

/* Find the trace or the exit that runs on a VM frame. leaf: of the innermost VM frame, NULL
** for another one. base: address of L->base. moves: the VM is moving the Lua
** stack. Async-signal-safe.
*/
LJ_FUNC void lj_luatrace_look(TraceStack *ts, const LuaArea *a, global_State *g,
			      const VMFrame *vf, uintptr_t base, int moves,
			      const TraceLeaf *leaf);

#endif
