/*
** Safe points.
**
** LuaJIT's profiler sets its hook in the handler, in the mask of hooks and by
** lj_dispatch_update. If the handler interrupts that very function, or a change of the
** mask, the modes and the table that they stand for may differ afterwards, and stay
** so: hooks of the program are lost. And while the mask has it, an exit of a trace is
** not counted and not told of. Here the handler puts the hook into the table of
** bytecodes, which is all that the interpreter looks at. An update that it interrupts,
** or that comes before the next bytecode, writes the table as it would be without, and
** then puts the hook there again. At the safe point all of the table is written anew.
*/

#define lj_safepoint_c
#define LUA_CORE

#include "lj_obj.h"
#include "lj_dispatch.h"
#include "lj_vm.h"
#include "lj_base.h"
#include "profile/session/lj_safepoint.h"
#include "profile/base/lj_relaxed.h"

#if !LJ_HASPROFILE
#error "sysprof needs the hook of LuaJIT's profiler: build without LUAJIT_DISABLE_PROFILE"
#endif

/* A mode of which lj_dispatch_update changes every part. That the compiler has been
** on in it keeps the counters of hot code as they are.
*/
#define MODE_ALL 0xff

/* Writes the table of bytecodes anew. LuaJIT's profiler holds its lock, if it has one. */
static void update_table(global_State *g)
{
#if LUAJIT_UPDATE_NOLOCK
  lj_dispatch_update(g, 1);
#else
  lj_dispatch_update(g);
#endif
}

static void set_hook(GG_State *gg)
{
  uint32_t i;
  for (i = 0; i < GG_LEN_SDISP; i++)
    relaxed_set(&gg->dispatch[i], (ASMFunction)lj_vm_profhook);
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

int lj_safepoint_reached(global_State *g, int *what)
{
  uint32_t *wanted = &G2GG(g)->safepoint;
  int hooked = (g->hookmask & HOOK_PROFILE) != 0;
  *what = 0;
  do { /* Again, if a handler interrupts this. */
    *what |= (int)__atomic_exchange_n(wanted, 0, __ATOMIC_RELAXED);
    if (!hooked) {
      g->dispatchmode = MODE_ALL;
      update_table(g);
    }
  } while (relaxed_get(wanted) != 0);
  return !hooked;
}
