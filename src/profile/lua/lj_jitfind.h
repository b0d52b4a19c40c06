/*
** Lookup of machine code: trace, bytecode position and inlined functions of an address.
** Context: handler
**
** The handler reads what lj_jitmap.h records, and may interrupt the VM thread while that
** records. It takes no lock and allocates nothing. What it can see is always complete.
*/

#ifndef _LJ_JITFIND_H
#define _LJ_JITFIND_H

#include "lj_obj.h"
#include "lj_jit.h"
#include "profile/base/lj_safeload.h"
#include "profile/lua/lj_jitmap.h"

typedef struct JitFind {
  uint32_t number;                /* Number of the trace. */
  int in_loop;                    /* In the part that is repeated. */
  const struct TraceBlock *block; /* Its positions, NULL if not known. */
  const struct TraceSeg *seg;     /* The place. */
} JitFind;

#if LJ_HASJIT

/* Place of an address of machine code, inside of a call if one was made.
** Returns 0 if it is in no trace. Async-signal-safe.
*/
LJ_FUNC int lj_jitfind_code(global_State *g, uintptr_t addr, JitFind *ta);

/* Place that the processor waited for when it was interrupted at an address, or
** called a function there. It takes an interrupt when an instruction is completed
** that took its time, and tells the address of the next one. Else as above.
*/
LJ_FUNC int lj_jitfind_waited(global_State *g, uintptr_t addr, JitFind *ta);

/* Place of an exit of a trace. Returns 0 if there is none. Async-signal-safe. */
LJ_FUNC int lj_jitfind_exit(global_State *g, TraceNo traceno, ExitNo exitno, JitFind *ta);

/* A compiled trace, or NULL. Async-signal-safe. */
LJ_FUNC const GCtrace *lj_jitfind_trace(global_State *g, TraceNo traceno);

#endif

#endif
