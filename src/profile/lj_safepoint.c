/*
** Safe points.
**
** LuaJIT's profiler sets its hook in the handler by lj_dispatch_update. If the handler
** interrupts that very function, the mode and the tables that it stands for may differ
** afterwards, and stay so: hooks of the program are lost. Here the handler puts the
** hook into the table, which is all that the interpreter looks at, and leaves the mode
** alone. An update that was interrupted, or comes before the next bytecode, writes the
** table as it should be; then the mask lets the next update set the hook, if the next
** request does not. At the safe point all of it is written anew.
*/

#define lj_safepoint_c
#define LUA_CORE

#include "lj_obj.h"
#include "lj_dispatch.h"
#include "lj_vm.h"
#include "profile/lj_safepoint.h"
#include "profile/lj_shared.h"
#include "profile/lj_sysprof.h"

#if !LJ_HASPROFILE
#error "sysprof needs the hook of LuaJIT's profiler: build without LUAJIT_DISABLE_PROFILE"
#endif

/* A mode of which lj_dispatch_update changes every part. That the compiler has been
** on in it keeps the counters of hot code as they are.
*/
#define MODE_ALL	0xff

void lj_safepoint_request(global_State *g, int what)
{
  GG_State *gg = G2GG(g);
  uint32_t i;
  __atomic_fetch_or(&gg->safepoint, (uint32_t)what, __ATOMIC_RELAXED);
  g->hookmask |= HOOK_PROFILE;
  for (i = 0; i < GG_LEN_SDISP; i++)
    shared_set(&gg->dispatch[i], (ASMFunction)lj_vm_profhook);
}

int lj_safepoint_reached(lua_State *L, int hooked)
{
  global_State *g = G(L);
  uint32_t *wanted = &G2GG(g)->safepoint;
  int what = 0;
  do {  /* Again, if a handler interrupts this. */
    what |= (int)__atomic_exchange_n(wanted, 0, __ATOMIC_RELAXED);
    if (!hooked) {
      g->hookmask &= (uint8_t)~HOOK_PROFILE;
      g->dispatchmode = MODE_ALL;
      lj_dispatch_update(g);
    }
  } while (shared_get(wanted) != 0);
  if (what) lj_sysprof_safepoint(L, what);
  return !hooked;
}
