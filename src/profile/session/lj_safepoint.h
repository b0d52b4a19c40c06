/*
** Safe points: have the interpreter call us outside of the signal handler.
**
** A handler may neither wait for a disk nor change what the VM uses. It asks for a
** safe point, and the VM comes by before its next bytecode, on its own thread. The
** means is the hook of LuaJIT's own profiler, which costs nothing until it is asked
** for. Compiled code has no such point: one that is asked for there comes when it is
** left, and one that is asked for in C code when Lua runs again.
*/

#ifndef _LJ_SAFEPOINT_H
#define _LJ_SAFEPOINT_H

#include "lj_obj.h"

/* What there is to do; bits. */
#define SAFEPOINT_FLUSH   1 /* Buffers wait to be written. */
#define SAFEPOINT_CONTROL 2 /* A start, stop or dump was asked for. */

/* Ask for a safe point of a VM. Only on the thread that runs it, or while none does.
** Async-signal-safe.
*/
LJ_FUNC void lj_safepoint_request(global_State *g, int what);

/* LuaJIT has written its dispatch table anew: put the hook in it again if a safe point is
** asked for.
*/
LJ_FUNC void lj_safepoint_keep(global_State *g);

/* The VM is at a safe point. what gets what was asked for. Returns 1 if the hook was set
** for that alone, so that jit.profile has nothing to do.
*/
LJ_FUNC int lj_safepoint_reached(global_State *g, int *what);

#endif
