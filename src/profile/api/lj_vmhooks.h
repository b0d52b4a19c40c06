/*
** VM hooks: calls from LuaJIT's own files into the profiler, see etc/luajit/edits.cmake.
** Context: VM thread, outside of the handler. Only close and safepoint take a lock.
**
** LuaJIT's edited files include only this header. The headers below declare the other
** calls of the edits: jit.profile's clock (lj_clock.h), positions of compiled code
** (lj_jitmap.h), pages that the allocator unmaps (lj_safeload.h), and how much it has mapped
** (lj_procmem.h).
*/

#ifndef _LJ_VMHOOKS_H
#define _LJ_VMHOOKS_H

#include "lj_obj.h"
#include "profile/base/lj_procmem.h"
#include "profile/base/lj_safeload.h"
#include "profile/clock/lj_clock.h"
#include "profile/lua/lj_jitmap.h"

/* lua_close is about to free the VM. Takes the lock. */
LJ_FUNC void lj_vmhooks_close(global_State *g);

/* The VM begins to move a Lua stack (begin = 1), or has moved it or failed to (0). */
LJ_FUNC void lj_vmhooks_stack_move(lua_State *L, int begin);

/* The collector has swept all objects. */
LJ_FUNC void lj_vmhooks_gc_swept(global_State *g);

/* The collector is about to free a prototype. */
LJ_FUNC void lj_vmhooks_proto_free(global_State *g, GCproto *pt);

/* The collector is about to free a coroutine. */
LJ_FUNC void lj_vmhooks_thread_free(global_State *g, lua_State *L);

/* The VM begins to free all machine code (begin = 1), or has freed it (0). */
LJ_FUNC void lj_vmhooks_code_free(global_State *g, int begin);

/* The VM reached the hook of jit.profile. Returns 1 if only the profiler asked for it, so
** that jit.profile has nothing to do.
*/
LJ_FUNC int lj_vmhooks_safepoint(lua_State *L);

/* The VM is about to call a function, and a hook, a recording or a request wants to know. */
LJ_FUNC void lj_vmhooks_call(lua_State *L);

/* The VM has rewritten the dispatch table. */
LJ_FUNC void lj_vmhooks_dispatch(global_State *g);

#endif
