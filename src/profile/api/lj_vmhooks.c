/*
** VM hooks: calls from LuaJIT's own files into the profiler.
** Context: VM thread, outside of the handler.
**
** lj_vmgate.h explains how the VM frees memory that a handler may be reading.
*/

#define lj_vmhooks_c
#define LUA_CORE

#include <errno.h>

#include "lj_obj.h"
#include "lj_frame.h"
#include "lj_dispatch.h"
#include "profile/alloc/lj_allochook.h"
#include "profile/control/lj_control.h"
#include "profile/live/lj_live.h"
#include "profile/process/lj_process.h"
#include "profile/start/lj_sysprof.h"
#include "profile/api/lj_vmhooks.h"
#include "profile/api/lj_memprof.h"
#include "profile/base/lj_nanotime.h"
#include "profile/base/lj_osthread.h"
#include "profile/base/lj_relaxed.h"
#include "profile/host/lj_vmcode.h"
#include "profile/host/lj_vmstub.h"
#include "profile/session/lj_registry.h"
#include "profile/vm/lj_safepoint.h"

/* Begin a hook. Returns the running profile of the VM, or NULL. */
static Profile *vmhook_enter(global_State *g)
{
  Profile *p = lj_registry_of(g);
  return p && lj_vmgate_enter(&p->gate) ? p : NULL;
}

static void vmhook_leave(Profile *p)
{
  lj_vmgate_leave(&p->gate);
}

/* -- Safe point -------------------------------------------------------------- */

/* Write the chunks that wait now. Chunks that fill up during the write wait for the next
** flush: otherwise a slow writer could hold the VM for ever. The claim keeps the session.
** The thread that stops the profile waits for the claim.
*/
static void flush(global_State *g)
{
  Profile *p = vmhook_enter(g);
  ChunkQueue *q;
  if (!p) return;
  q = lj_vmprofile_claim(p);
  vmhook_leave(p);
  if (!q) return;
  lj_chunkqueue_drain(q);
  lj_chunkqueue_release(q);
}

int lj_vmhooks_safepoint(lua_State *L)
{
  int err = errno, what, is_ours = lj_safepoint_reached(G(L), &what);
  if (what & SAFEPOINT_FLUSH) {
    lj_process_objects();
    flush(G(L));
  }
  if (what & SAFEPOINT_CONTROL) {
    lj_process_settle();
    if (lj_control_serve(L)) lj_live_serve(L);
  }
  errno = err;
  return is_ours;
}

void lj_vmhooks_call(lua_State *L)
{
  if (lj_safepoint_iswanted(G(L))) lj_vmhooks_safepoint(L);
  if (L2GG(L)->cowait) lj_vmstub_call(L);
}

void lj_vmhooks_dispatch(global_State *g)
{
  const CoWait *w = G2GG(g)->cowait;
  if (w && relaxed_get(&w->on)) lj_vmstub_put(g);
  lj_safepoint_keep(g);
}

/* -- End of the VM ----------------------------------------------------------- */

/* The collection runs finalizers, so it comes before the end. Those that lua_close runs find the VM
** closed.
*/
void lj_vmhooks_close(global_State *g)
{
  Profile *p;
  lj_process_settle();
  lj_memprof_close();
  if (!lj_control_has(g) && !lj_registry_of(g)) { /* Never started. */
    lj_registry_close(g);
    lj_labels_close(g);
    return;
  }
  lj_sysprof_collectlast(mainthread(g));
  lj_process_lock();
  lj_control_close(g);
  p = lj_registry_of(g);
  if (p) {
    vmgate_seton(&p->gate, lj_osthread_self()); /* Another thread may have run it before. */
    lj_vmprofile_freed(p);
    lj_process_close(p);
    lj_allochook_close(g);
    lj_cowait_close(g);
    lj_jitevents_close(g);
    lj_corecord_close(g);
  }
  lj_registry_close(g);
  lj_labels_close(g);
  lj_process_unlock();
}

/* -- Memory that is freed or moved ------------------------------------------- */

/* A full collection first ends the sweep of the cycle before, or one that has nothing to free.
** Only a cycle that has marked changes the colour of new objects.
*/
void lj_vmhooks_gc_swept(global_State *g)
{
  Profile *p = vmhook_enter(g);
  if (!p) return;
  if (p->gate.white != g->gc.currentwhite) {
    EventDoor *door = &p->gate.door;
    p->gate.white = g->gc.currentwhite;
    relaxed_set(&door->gc_cycles, door->gc_cycles + 1);
    relaxed_set(&door->gc_end_ns, mono_ns());
    relaxed_set(&door->gc_held, (uint64_t)g->gc.total);
  }
  vmhook_leave(p);
}

void lj_vmhooks_gc_marked(global_State *g)
{
  Profile *p;
  if (G2GG(g)->cowait) lj_cowait_marked(G2GG(g)->cowait);
  if (G2GG(g)->jitevents) lj_jitevents_marked(G2GG(g)->jitevents);
  p = vmhook_enter(g);
  if (!p) return;
  lj_vmgate_change_begin(&p->gate);
  lj_functab_marked(&p->plan.vm->funcs, g);
  lj_vmgate_change_end(&p->gate);
  vmhook_leave(p);
}

void lj_vmhooks_stack_move(lua_State *L, int begin)
{
  Profile *p = vmhook_enter(G(L));
  if (!p) return;
  if (begin) {
    lj_vmgate_change_begin(&p->gate);
    p->gate.moving_from = (uintptr_t)tvref(L->stack);
    relaxed_set(&p->gate.door.moving_from, p->gate.moving_from);
    p->gate.unmaps = lj_safeload_unmaps();
    p->gate.moving = L;
  } else {
    p->gate.moving = NULL;
    relaxed_set(&p->gate.door.moving_from, 0);
    lj_vmgate_change_end(&p->gate);
  }
  vmhook_leave(p);
}

void lj_vmhooks_setallocf(global_State *g)
{
  if (LJ_LIKELY(!lj_allochook_any())) return;
  lj_process_lock();
  lj_allochook_replace(g);
  lj_process_unlock();
}

void lj_vmhooks_proto_free(global_State *g, GCproto *pt)
{
  Profile *p = vmhook_enter(g);
  if (!p) return;
  lj_vmgate_change_begin(&p->gate);
  lj_functab_free(&p->plan.vm->funcs, pt);
  lj_vmgate_change_end(&p->gate);
  vmhook_leave(p);
}

void lj_vmhooks_thread_clear(global_State *g, lua_State *L)
{
  GG_State *gg = G2GG(g);
  if (gg->cowait) lj_cowait_threadfree(gg->cowait, L);
  if (L->sysprof_label && gg->labels) labels_set(gg->labels, L, 0);
  if (L->sysprof_record && gg->corecords) lj_corecord_free(gg->corecords, L);
}

void lj_vmhooks_thread_free(global_State *g, lua_State *L)
{
  Profile *p;
  lj_vmhooks_thread_clear(g, L);
  p = vmhook_enter(g);
  if (!p) return;
  if (obj2gco(L) == gcref(g->cur_L)) relaxed_set(&g->cur_L.gcptr64, 0);
  lj_vmgate_change_begin(&p->gate);
  lj_vmgate_change_end(&p->gate);
  vmhook_leave(p);
}

void lj_vmhooks_code_free(global_State *g, int begin)
{
  Profile *p = vmhook_enter(g);
  if (!begin) lj_vmcode_freed();
  if (!p) return;
  if (begin) lj_vmgate_change_begin(&p->gate);
  else lj_vmgate_change_end(&p->gate);
  vmhook_leave(p);
}
