/*
** Safe points: the hooks in the dispatch table.
** Context: request: handler | keep, reached: VM thread.
**
** LuaJIT's profiler sets its hook in the handler, by the mask of hooks and by
** lj_dispatch_update. This is unsafe if the handler interrupts that function, or a change
** of the mask. Then modes and table differ from each other, and the program loses its
** hooks. While the mask has the hook, LuaJIT neither counts nor reports exits of traces.
**
** This handler writes the hook into the dispatch table only: the interpreter reads nothing
** else. lj_dispatch_update may overwrite the hook, so lj_safepoint_keep writes it again
** after each update. The safe point rewrites the whole table.
*/

#define lj_safepoint_c
#define LUA_CORE

#include "lj_obj.h"
#include "lj_dispatch.h"
#include "lj_vm.h"
#include "lj_base.h"
#include "profile/vm/lj_safepoint.h"
#include "profile/base/lj_relaxed.h"

#if !LJ_HASPROFILE
#error "sysprof needs the hook of LuaJIT's profiler: build without LUAJIT_DISABLE_PROFILE"
#endif

/* A mode that differs from every real one, so that lj_dispatch_update rewrites all parts.
** It has the bit of the compiler, so that the update keeps the counters of hot code.
*/
#define MODE_ALL 0xff

/* Rewrite the dispatch table. If LuaJIT's profiler has a lock, the caller holds it. */
static void update_table(global_State *g)
{
#if LUAJIT_UPDATE_NOLOCK
  lj_dispatch_update(g, 1);
#else
  lj_dispatch_update(g);
#endif
}

/* Compiled code interprets no instruction, but it may call builtin functions and C functions.
** The hook of calls makes the VM forget the current line. A line hook of the program would see
** that line twice.
*/
static void set_hook(GG_State *gg)
{
  uint32_t i;
  for (i = 0; i < GG_LEN_SDISP; i++)
    relaxed_set(&gg->dispatch[i], (ASMFunction)lj_vm_profhook);
  if (relaxed_get(&gg->g.hookmask) & LUA_MASKLINE) return;
  for (; i < GG_LEN_DDISP; i++) relaxed_set(&gg->dispatch[i], (ASMFunction)lj_vm_callhook);
}

void lj_safepoint_request(global_State *g, int what)
{
  __atomic_fetch_or(&G2GG(g)->safepoint, (uint32_t)what, __ATOMIC_RELAXED);
  set_hook(G2GG(g));
}

void lj_safepoint_keep(global_State *g)
{
  if (relaxed_get(&G2GG(g)->safepoint) != 0) set_hook(G2GG(g));
}

int lj_safepoint_iswanted(const global_State *g)
{
  return relaxed_get(&G2GG((global_State *)g)->safepoint) != 0;
}

int lj_safepoint_reached(global_State *g, int *what)
{
  uint32_t *wanted = &G2GG(g)->safepoint;
  int hooked = (g->hookmask & HOOK_PROFILE) != 0;
  *what = 0;
  do { /* Repeat if a handler has asked again. */
    *what |= (int)__atomic_exchange_n(wanted, 0, __ATOMIC_RELAXED);
    g->dispatchmode = MODE_ALL;
    update_table(g);
  } while (relaxed_get(wanted) != 0);
  return !hooked;
}
