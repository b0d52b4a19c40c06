/*
** Lua stack that a source names.
** Context: ordinary code of the thread that runs the VM.
*/

#define lj_givenstack_c
#define LUA_CORE

#include "lj_obj.h"
#include "profile/coroutine/lj_cowalk.h"
#include "profile/sample/lj_givenstack.h"

static void push_coroutine(LuaWalk *ls, lua_State *L)
{
  CoWalk w;
  CoStep callee, caller;
  int more;
  lj_cowalk_begin(&w, L);
  for (more = lj_cowalk_next(&w, &callee); more; callee = caller) {
    CallFrame cf = { callee.fn, (uintptr_t)callee.frame, (uintptr_t)callee.slots, 0, 0 };
    lj_luathread_push(ls, callee.fn, (uintptr_t)callee.pc);
    if ((more = lj_cowalk_next(&w, &caller)) == 0) return;
    cf.prev = (uintptr_t)caller.frame;
    cf.pc = (uintptr_t)caller.pc;
    lj_luathread_name(ls, &cf);
  }
}

/* No call names the body of a coroutine. The code that defines it does, and often runs below the
** resume: so the search for names must know that code.
*/
static void see_running(LuaWalk *ls, lua_State *L)
{
  CoWalk w;
  CoStep step;
  for (lj_cowalk_begin(&w, L); !ls->funcs->is_full && lj_cowalk_next(&w, &step);)
    if (isluafunc(step.fn)) lj_functab_see(ls->funcs, ls->in.pk, funcproto(step.fn));
}

void lj_givenstack_push(LuaWalk *ls, const SampleStack *st)
{
  uint32_t nfid = ls->funcs->nfid;
  GCobj *running = gcref(ls->in.g->cur_L);
  ls->memo.records = 0;
  ls->unnamed = NULL;
  ls->top = TOP_NONE;
  ls->has_lua = 0;
  if (st->L) push_coroutine(ls, st->L);
  else if (st->pt) lj_luathread_pushproto(ls, st->pt, (uintptr_t)st->pc);
  if (LJ_UNLIKELY(ls->funcs->nfid != nfid) && running) see_running(ls, gco2th(running));
}
