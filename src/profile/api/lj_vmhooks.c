/*
** Sysprof: what LuaJIT tells of a VM that is profiled. Runs on the VM's thread,
** outside of the handler, and takes no lock; see lj_vmprofile.h for how memory is
** freed that a handler may read.
*/

#define lj_vmhooks_c
#define LUA_CORE

#include <errno.h>
#include <sched.h>

#include "lj_obj.h"
#include "lj_frame.h"
#include "lj_dispatch.h"
#include "profile/api/lj_control.h"
#include "profile/session/lj_safepoint.h"
#include "profile/session/lj_session.h"
#include "profile/base/lj_relaxed.h"
#include "profile/api/lj_sysprof.h"
#include "profile/base/lj_osthread.h"

/* A hook of a VM that is profiled runs. Returns NULL if it is not. */
static Profile *vmhook_enter(global_State *g)
{
  Profile *p = __atomic_load_n(&G2GG(g)->sysprof, __ATOMIC_ACQUIRE);
  if (LJ_LIKELY(!p || !__atomic_load_n(&p->running, __ATOMIC_RELAXED))) return NULL;
  __atomic_store_n(&p->in_hook, lj_osthread_self(), __ATOMIC_SEQ_CST);
  if (!__atomic_load_n(&p->running, __ATOMIC_SEQ_CST)) {
    __atomic_store_n(&p->in_hook, 0, __ATOMIC_SEQ_CST);
    return NULL;
  }
  profile_seton(p, lj_osthread_self()); /* Its host may have moved it. */
  return p;
}

static void vmhook_leave(Profile *p)
{
  __atomic_store_n(&p->in_hook, 0, __ATOMIC_SEQ_CST);
}

/* -- Safe point -------------------------------------------------------------- */

/* Write the chunks that wait: not those that are filled meanwhile, or a slow writer
** could keep the VM for ever. A claim keeps a session, so that who stops the profile
** meanwhile waits for it and not for a hook.
*/
static void flush(global_State *g)
{
  Profile *p = vmhook_enter(g);
  ChunkQueue *q = NULL;
  Session *s;
  if (!p) return;
  for (s = __atomic_load_n(&p->first, __ATOMIC_SEQ_CST); s && !q;
       s = __atomic_load_n(&s->next, __ATOMIC_SEQ_CST))
    if (session_isqueued(s) && lj_chunkqueue_claim(&s->queue)) q = &s->queue;
  vmhook_leave(p);
  if (!q) return;
  lj_chunkqueue_drain(q);
  lj_chunkqueue_release(q);
}

void lj_vmhooks_safepoint(lua_State *L, int what)
{
  int err = errno;
  if (what & SAFEPOINT_FLUSH) flush(G(L));
  if (what & SAFEPOINT_CONTROL) lj_control_serve(L);
  errno = err;
}

/* -- Memory that is freed or moved ------------------------------------------- */

/* From here on no handler of another thread looks at the VM. */
static void change_begin(Profile *p)
{
  __atomic_store_n(&p->changing, 1, __ATOMIC_SEQ_CST);
  while (__atomic_load_n(&p->readers, __ATOMIC_SEQ_CST) != 0) sched_yield();
}

static void change_end(Profile *p)
{
  __atomic_store_n(&p->changing, 0, __ATOMIC_SEQ_CST);
}

void lj_vmhooks_stack_move(lua_State *L, int begin)
{
  Profile *p = vmhook_enter(G(L));
  if (!p) return;
  if (begin) {
    change_begin(p);
    p->moving_from = (uintptr_t)tvref(L->stack);
    p->moving = L;
  } else {
    p->moving = NULL;
    change_end(p);
  }
  vmhook_leave(p);
}

void lj_vmhooks_proto_free(global_State *g, GCproto *pt)
{
  Profile *p = vmhook_enter(g);
  Session *s;
  if (!p) return;
  change_begin(p);
  for (s = __atomic_load_n(&p->first, __ATOMIC_SEQ_CST); s;
       s = __atomic_load_n(&s->next, __ATOMIC_SEQ_CST))
    if (s->symtab.funcs.nfid) lj_functab_free(&s->symtab.funcs, pt);
  change_end(p);
  vmhook_leave(p);
}

void lj_vmhooks_thread_free(global_State *g, lua_State *L)
{
  Profile *p = vmhook_enter(g);
  if (!p) return;
  if (obj2gco(L) == gcref(g->cur_L)) relaxed_set(&g->cur_L.gcptr64, 0);
  change_begin(p);
  change_end(p);
  vmhook_leave(p);
}

void lj_vmhooks_code_free(global_State *g, int begin)
{
  Profile *p = vmhook_enter(g);
  if (!begin) lj_vmcode_freed();
  if (!p) return;
  if (begin) change_begin(p);
  else change_end(p);
  vmhook_leave(p);
}
