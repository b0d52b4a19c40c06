/*
** Unwinder of the Lua stack: frames of a sample, from the interrupted machine state.
** Context: handler.
*/

#define lj_luawalk_c
#define LUA_CORE

#include "lj_obj.h"
#include "lj_frame.h"
#include "profile/base/lj_relaxed.h"
#include "profile/lua/lj_luawalk.h"

#define LUAWALK_THREADS 1000 /* Nested coroutines walked at most. */

/* -- Walking all coroutines -------------------------------------------------- */

/* Find the coroutine that resumed another one, whose outermost VM frame is cf.
** Sets *L to NULL if a host program resumed it. Returns -1, or SPF_REFUSED_* if unknown.
*/
static int find_resumer(const LuaWalk *ls, uintptr_t cf, lua_State **L)
{
  const HostWalk *hs = ls->in.hs;
  uintptr_t ret, p;
  uint32_t i;
  *L = NULL;
  if (!lj_safeload_word(ls->in.pk, cf + CFRAME_SIZE - 8, &ret))
    return SPF_REFUSED_RESUMER_UNREADABLE;
  if (lj_hostwalk_isvm(ret)) { /* coroutine.resume called lj_vm_resume. */
    uintptr_t cf2 = cf + CFRAME_SIZE;
    if (!lj_safeload_word(ls->in.pk, cf2 + CFRAME_OFS_L, &p) ||
	!lj_cframe_isthread(ls->in.pk, ls->in.g, p) ||
	(uintptr_t)cframe_raw(((lua_State *)p)->cframe) != cf2)
      return SPF_REFUSED_RESUMER_UNLINKED;
    *L = (lua_State *)p;
    return -1;
  }
  for (i = 0; i < hs->nvm && i < HOSTWALK_VMFRAMES; i++) /* lua_resume() */
    if (hs->vm[i].cf > cf) {
      *L = hs->vm[i].L;
      return -1;
    }
  return hs->broken < 0 && hs->nvm <= HOSTWALK_VMFRAMES ? -1 : SPF_REFUSED_RESUMER_UNKNOWN;
}

/* Walk from a top frame of L to the bottom of the last resumer. Returns 1 if all
** frames are valid, 0 if not, -1 if a VM frame lacks a Lua frame.
*/
static int walk_threads(LuaWalk *ls, lua_State *L, const LuaTop *top, int i,
			int no_lua_frame)
{
  Candidate c = top->c[i];
  const JitFind *at = top->ts.runs ? &top->ts.at : NULL;
  uintptr_t last;
  int n, refused;
  for (n = 0; n < LUAWALK_THREADS; n++) {
    LuaArea a;
    int res;
    if (!lj_luaframe_area(&a, &ls->in, L) ||
	!lj_safeload_vm(ls->in.pk, L, sizeof(lua_State)))
      return lj_luathread_refuse(ls, 0, SPF_REFUSED_RESUMER_NO_STACK);
    if (ls->label == 0) ls->label = relaxed_get(&L->sysprof_label);
    res = lj_luathread_walk(ls, &a, &c, no_lua_frame && n == 0, at);
    if (res <= 0) return res;
    last = ls->memo.walked_last;
    /* The host is below the main thread, and below a coroutine without a VM frame. */
    if (last == 0 || L == mainthread(ls->in.g)) return 1;
    refused = find_resumer(ls, last, &L);
    if (refused >= 0) {
      ls->broken = SPF_BROKEN_NO_CFI;
      ls->refused = refused;
      lj_framelist_push(ls->frames, frame_word(SPF_FRAME_BROKEN, ls->broken));
      return 1;
    }
    if (!L) return 1;
    c.frame = (uintptr_t)L->base - 8;
    c.pc = 0;
    at = NULL;
  }
  return lj_luathread_refuse(ls, 0, SPF_REFUSED_THREADS_MAX);
}

int lj_luawalk_try(LuaWalk *ls, lua_State *L, const LuaTop *top, int i, int no_lua_frame)
{
  int res;
  lj_framelist_reset(ls->frames);
  ls->top = TOP_NONE;
  ls->has_lua = 0;
  ls->broken = -1;
  ls->nbounds = ls->passed = 0;
  ls->label = 0;
  lj_luathread_pushtop(ls, top, i);
  res = walk_threads(ls, L, top, i, no_lua_frame);
  if (res > 0 && ls->broken == SPF_BROKEN_TRACE) ls->refused = SPF_REFUSED_NO_POSITION;
  return res;
}

int lj_luawalk_begin(LuaWalk *ls, lua_State **L, LuaArea *a)
{
  const HostWalk *hs = ls->in.hs;
  *L = hs->nvm ? hs->vm[0].L : mainthread(ls->in.g);
  ls->passed = ls->furthest = 0;
  if (!lj_cframe_isthread(ls->in.pk, ls->in.g, (uintptr_t)*L))
    return lj_luathread_refuse(ls, 0, SPF_REFUSED_NO_THREAD);
  return lj_luaframe_area(a, &ls->in, *L) ||
	 lj_luathread_refuse(ls, 0, SPF_REFUSED_NO_STACK);
}

/* Walk from the candidates for the top frame. Returns 1 if one of them is valid,
** 0 without a Lua stack, -1 if no candidate is valid.
*/
static int walk_candidates(LuaWalk *ls)
{
  SafeLoad *pk = ls->in.pk;
  lua_State *L;
  LuaTop top;
  LuaArea a;
  int i;
  if (!lj_luawalk_begin(ls, &L, &a)) return 0;
  lj_luatop_find(&top, &ls->in, &a);
  for (i = 0; i < top.n; i++) {
    int no_lua_frame, res;
    /* While a VM frame is entered or left, it has no Lua frame of its own. */
    for (no_lua_frame = 0; no_lua_frame <= 1; no_lua_frame++) {
      uint32_t fresh = pk->fresh;
      res = lj_luawalk_try(ls, L, &top, i, no_lua_frame);
      if (res > 0) {
	if (pk->fresh == fresh && ls->broken < 0) lj_luamemo_end(&ls->memo, ls->funcs);
	/* All memory of a valid walk belongs to the VM, so the next sample need not
	** probe it. Walk again to keep these pages only: other candidates may have
	** read other pages.
	*/
	if (pk->fresh != fresh && ls->broken < 0 && pk->kept != pk->generation) {
	  pk->keeping = 1;
	  lj_luawalk_try(ls, L, &top, i, no_lua_frame);
	  pk->keeping = 0;
	}
	return 1;
      }
      if (res == 0) break;
    }
  }
  return -1;
}

void lj_luawalk_walk(LuaWalk *ls, const WalkRegs *regs)
{
  int res;
  if (!luaframe_istold(ls->in.g)) lj_safeload_forget(ls->in.pk);
  else if (ls->in.moving) lj_safeload_keptonly(ls->in.pk, ls->in.unmaps);
  lj_luamemo_sample(&ls->memo);
  ls->in.moving_to = 0;
  ls->label = 0;
  res = walk_candidates(ls);
  if (res < 0 && ls->in.moving) {
    ls->in.moving_to = lj_luatop_newstack(&ls->in, regs);
    if (ls->in.moving_to) res = walk_candidates(ls);
  }
  if (res > 0) return;
  ls->broken = res < 0 ? SPF_BROKEN_CHAIN : SPF_BROKEN_NO_BASE;
  ls->top = TOP_UNKNOWN;
  ls->nbounds = 0;
  ls->label = 0;
  lj_framelist_reset(ls->frames);
  lj_framelist_push(ls->frames, frame_word(SPF_FRAME_BROKEN, ls->broken));
}
