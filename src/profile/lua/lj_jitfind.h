/*
** Lookup of machine code: trace, bytecode position and inlined functions of an address.
** Context: handler.
**
** The handler reads the map of lj_jitmap.h, and may interrupt the VM thread while that
** records the map. It takes no lock and allocates nothing. All that it can see is complete.
** The processor reports the address after the instruction that it waited for. So a sample counts
** for the instruction before the address, unless a jump leads there.
*/

#ifndef _LJ_JITFIND_H
#define _LJ_JITFIND_H

#include "lj_obj.h"
#include "lj_jit.h"
#include "profile/base/lj_safeload.h"
#include "profile/lua/lj_jitmap.h"

typedef struct JitFind {
  uint32_t number;                /* Number of the trace. */
  int in_loop;                    /* In the loop of the trace. */
  const struct TraceBlock *block; /* Its positions, NULL if unknown. */
  const struct TraceSeg *seg;     /* The place. */
} JitFind;

#if LJ_HASJIT

/* Find the place of an address of machine code. For a return address, find the place of
** the call. Returns 0 outside of all traces. Async-signal-safe.
*/
LJ_FUNC int lj_jitfind_code(global_State *g, uintptr_t addr, JitFind *ta);

/* Find the place where the processor spent the time before an interrupt at an address, or
** where it called a function. The processor takes an interrupt after a slow instruction,
** and reports the address of the next one. Returns 0 outside of all traces.
** Async-signal-safe.
*/
LJ_FUNC int lj_jitfind_waited(global_State *g, uintptr_t addr, JitFind *ta);

/* Find the place of an exit of a trace. Returns 0 if it does not exist. Async-signal-safe. */
LJ_FUNC int lj_jitfind_exit(global_State *g, TraceNo traceno, ExitNo exitno, JitFind *ta);

/* Return a compiled trace, or NULL. Async-signal-safe. */
LJ_FUNC const GCtrace *lj_jitfind_trace(global_State *g, TraceNo traceno);

#endif

#endif
