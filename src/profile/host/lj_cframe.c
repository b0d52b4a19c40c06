/*
** C frames of the VM: layout and chains.
** Context: handler; see the header.
*/

#define lj_cframe_c
#define LUA_CORE

#include "lj_obj.h"
#include "lj_frame.h"
#include "profile/host/lj_cframe.h"

/* Any word on a stack may seem to be a coroutine. */
global_State *lj_cframe_vm(SafeLoad *pk, uintptr_t p)
{
  uintptr_t gct = p + (offsetof(lua_State, gct) & ~(size_t)7), type, g;
  if (p == 0 || !lj_safeload_word(pk, gct, &type) ||
      !lj_safeload_word(pk, p + offsetof(lua_State, glref), &g) ||
      (uint8_t)(type >> (offsetof(lua_State, gct) % 8 * 8)) != (uint8_t)~LJ_TTHREAD)
    return NULL;
  return (global_State *)g;
}

int lj_cframe_isthread(SafeLoad *pk, const global_State *g, uintptr_t p)
{
  return lj_cframe_vm(pk, p) == g;
}

lua_State *lj_cframe_L(SafeLoad *pk, const global_State *g, uintptr_t cf)
{
  uintptr_t p;
  if (!lj_safeload_word(pk, cf + CFRAME_OFS_L, &p) || !lj_cframe_isthread(pk, g, p))
    return NULL;
  return (lua_State *)p;
}

/* -- Chains --------------------------------------------------------------- */

static uintptr_t cframe_next(SafeLoad *pk, uintptr_t cf)
{
  uintptr_t prev;
  if (!lj_safeload_word(pk, cf + CFRAME_OFS_PREV, &prev)) return 0;
  return prev & (uintptr_t)CFRAME_RAWMASK;
}

/* Entry of a coroutine, or -1. */
static int chains_find(const CFrameChains *cc, const lua_State *L)
{
  int i;
  for (i = 0; i < CFRAME_CHAINS; i++)
    if (cc->c[i].L == L) return i;
  return -1;
}

/* First frame of a coroutine that has not been passed. */
static uintptr_t chains_head(SafeLoad *pk, const CFrameChains *cc, const lua_State *L)
{
  int i = chains_find(cc, L);
  uintptr_t cf;
  if (i >= 0) return cc->c[i].next;
  if (!lj_safeload_word(pk, (uintptr_t)&L->cframe, &cf)) return 0;
  return cf & (uintptr_t)CFRAME_RAWMASK;
}

int lj_cframe_linked(SafeLoad *pk, CFrameChains *cc, lua_State *L, uintptr_t cf)
{
  uintptr_t c = chains_head(pk, cc, L);
  for (; c != 0 && cc->links < CFRAME_LINKS_MAX; cc->links++) {
    if (c == cf) return 1;
    c = cframe_next(pk, c);
  }
  return 0;
}

int lj_cframe_unlinked(SafeLoad *pk, CFrameChains *cc, lua_State *L, uintptr_t cf)
{
  uintptr_t c = cf, head = chains_head(pk, cc, L);
  for (; c != 0 && cc->links < CFRAME_LINKS_MAX; cc->links++) {
    c = cframe_next(pk, c);
    if (c == head) return 1;
  }
  return 0;
}

uintptr_t lj_cframe_pass(SafeLoad *pk, CFrameChains *cc, lua_State *L, uintptr_t cf)
{
  int i = chains_find(cc, L);
  if (i < 0) {
    i = cc->turn;
    cc->turn = (cc->turn + 1) & (CFRAME_CHAINS - 1);
    cc->c[i].L = L;
  }
  return (cc->c[i].next = cframe_next(pk, cf));
}
