/*
** VM hooks: calls from LuaJIT's own files into the profiler, see etc/luajit/edits.cmake.
** Context: VM thread, outside of the handler. Only close, setallocf and safepoint take a lock.
**
** LuaJIT's edited files include only this header. The headers below declare the other
** calls of the edits: jit.profile's clock (lj_clock.h), events of the compiler
** (lj_jitevents.h), positions of compiled code (lj_jitmap.h), pages that the allocator unmaps (lj_safeload.h), and how much it has mapped
** (lj_procmem.h).
*/

#ifndef _LJ_VMHOOKS_H
#define _LJ_VMHOOKS_H

#include "lj_obj.h"
#include "lj_dispatch.h"
#include "lj_vm.h"
#include "profile/base/lj_procmem.h"
#include "profile/base/lj_safeload.h"
#include "profile/clock/lj_clock.h"
#include "profile/coroutine/lj_cowait.h"
#include "profile/jit/lj_jitevents.h"
#include "profile/labels/lj_labels.h"
#include "profile/lua/lj_jitmap.h"

/* lua_close is about to free the VM. Takes the lock. */
LJ_FUNC void lj_vmhooks_close(global_State *g);

/* The VM begins to move a Lua stack (begin = 1), or has moved it or failed to (0). */
LJ_FUNC void lj_vmhooks_stack_move(lua_State *L, int begin);

/* The program is about to replace the VM's allocator. Takes the lock. */
LJ_FUNC void lj_vmhooks_setallocf(global_State *g);

/* The collector has marked all that lives. It frees the rest from here on. */
LJ_FUNC void lj_vmhooks_gc_marked(global_State *g);

/* The collector has swept all objects. */
LJ_FUNC void lj_vmhooks_gc_swept(global_State *g);

/* The collector is about to free a prototype. */
LJ_FUNC void lj_vmhooks_proto_free(global_State *g, GCproto *pt);

/* LuaJIT creates a coroutine. L: its creator. */
static LJ_AINLINE void lj_vmhooks_thread_new(lua_State *L, lua_State *L1)
{
  L1->sysprof_label = L1->sysprof_record = 0;
  if (LJ_UNLIKELY(L2GG(L)->labels != NULL)) lj_labels_inherit(L, L1);
}

/* A host program moves values to a coroutine. A used one that is empty begins like a new one. */
static LJ_AINLINE void lj_vmhooks_xmove(lua_State *L, lua_State *to)
{
  if (LJ_UNLIKELY(L2GG(L)->labels != NULL) && to->sysprof_label == 0 && !to->cframe &&
      to->status == LUA_OK && to->top == tvref(to->stack) + 1 + LJ_FR2)
    lj_labels_inherit(L, to);
}

/* A coroutine loses its labels and its record: it begins anew, or ends. */
LJ_FUNC void lj_vmhooks_thread_clear(global_State *g, lua_State *L);

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

/* A host program makes a coroutine yield, or resumes it. */
static LJ_AINLINE void lj_vmhooks_yield(lua_State *L)
{
  if (LJ_UNLIKELY(L2GG(L)->cowait != NULL)) lj_cowait_yield(L);
}

static LJ_AINLINE int lj_vmhooks_resume(lua_State *L, TValue *base, int nres1, ptrdiff_t ef)
{
  int status;
  if (LJ_LIKELY(L2GG(L)->cowait == NULL)) return lj_vm_resume(L, base, nres1, ef);
  lj_cowait_resume(L);
  status = lj_vm_resume(L, base, nres1, ef);
  lj_cowait_left(L);
  return status;
}

/* The VM has rewritten the dispatch table. */
LJ_FUNC void lj_vmhooks_dispatch(global_State *g);

#endif
