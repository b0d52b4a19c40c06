/*
** VM hooks: what LuaJIT's own files call, see etc/luajit/edits.cmake.
** Context: VM thread, outside of the handler. No hook takes a lock.
**
** This is the only header that edited files of LuaJIT include. The headers below declare
** the other calls of the edits: jit.profile's clock (lj_clock.h), positions of compiled
** code (lj_jitmap.h) and pages that the allocator unmaps (lj_safeload.h).
*/

#ifndef _LJ_VMHOOKS_H
#define _LJ_VMHOOKS_H

#include "lj_obj.h"
#include "profile/base/lj_safeload.h"
#include "profile/clock/lj_clock.h"
#include "profile/lua/lj_jitmap.h"

/* The VM is about to be closed. Takes the lock: no other hook does. */
LJ_FUNC void lj_vmhooks_close(global_State *g);

/* The Lua stack is being moved (begin = 1), or has been (0). */
LJ_FUNC void lj_vmhooks_stack_move(lua_State *L, int begin);

/* A prototype is about to be freed. */
LJ_FUNC void lj_vmhooks_proto_free(global_State *g, GCproto *pt);

/* A coroutine is about to be freed. */
LJ_FUNC void lj_vmhooks_thread_free(global_State *g, lua_State *L);

/* All machine code is about to be freed (begin = 1), or has been (0). */
LJ_FUNC void lj_vmhooks_code_free(global_State *g, int begin);

/* The hook of jit.profile was called. Returns 1 if that was for us alone, so that
** jit.profile has nothing to do.
*/
LJ_FUNC int lj_vmhooks_safepoint(lua_State *L);

/* The dispatch table was written anew. */
LJ_FUNC void lj_vmhooks_dispatch(global_State *g);

#endif
