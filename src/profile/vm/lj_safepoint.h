/*
** Safe points: the interpreter calls us before its next bytecode or call.
** Context: request: handler, on the VM thread | keep, reached: VM thread.
**
** A handler must not wait for a disk or change data of the VM. It asks for a safe point
** instead, and the VM thread reaches that before its next bytecode. The request uses the
** hook of LuaJIT's own profiler, and that of calls, which cost nothing until then. A trace that
** calls a function which is not compiled reaches one there. C code and other compiled code have
** none: the VM reaches the next one when the interpreter runs again.
*/

#ifndef _LJ_SAFEPOINT_H
#define _LJ_SAFEPOINT_H

#include "lj_obj.h"

/* Work for the safe point, a bit mask. */
#define SAFEPOINT_FLUSH   1 /* Write the chunks that wait, look at the loaded objects. */
#define SAFEPOINT_CONTROL 2 /* Serve a start, stop or dump. */

/* Ask for a safe point of a VM. Only on the thread that runs it, or while none does.
** Async-signal-safe.
*/
LJ_FUNC void lj_safepoint_request(global_State *g, int what);

/* Write the hook into the dispatch table again if a request is pending, after LuaJIT has
** rewritten the table.
*/
LJ_FUNC void lj_safepoint_keep(global_State *g);

/* Is a safe point requested? */
LJ_FUNC int lj_safepoint_iswanted(const global_State *g);

/* The VM is at a safe point. Sets what to the requested work. Returns 1 if only a request
** set the hook, so that jit.profile has nothing to do.
*/
LJ_FUNC int lj_safepoint_reached(global_State *g, int *what);

#endif
