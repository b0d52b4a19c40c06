/*
** Lua stack that is being moved. Runs in the signal handler; see the header.
*/

#define lj_lmove_c
#define LUA_CORE

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* For REG_RSP. */
#endif
#include "lj_obj.h"
#include "profile/lua/lj_lmove.h"

#define LMOVE_CWORDS 128 /* Words of the C stack looked at. */
#define LMOVE_LOST   8   /* Words of freed memory that may be overwritten. */

/* Is the stack of L, which was at from, at this address, too? Its first slot is L
** itself. Of the slots in use, all others must be the same, but for those that are
** lost in the old memory.
*/
static int is_copy(SafeLoad *pk, lua_State *L, uintptr_t from, uintptr_t to)
{
  const uintptr_t used = (uintptr_t)L->top - from;
  uintptr_t ofs, old, new;
  if (to == from || !lj_safeload_word(pk, to, &new) ||
      new != (((uint64_t)LJ_TTHREAD << 47) | (uintptr_t)L))
    return 0;
  for (ofs = sizeof(TValue); ofs < used; ofs += sizeof(TValue)) {
    if (!lj_safeload_word(pk, to + ofs, &new) || !lj_safeload_word(pk, from + ofs, &old))
      return 0;
    if (old != new &&ofs >= LMOVE_LOST * sizeof(TValue)) return 0;
  }
  return 1;
}

uintptr_t lj_lmove_find(SafeLoad *pk, lua_State *L, uintptr_t from, const ucontext_t *uc)
{
  const greg_t *greg = uc->uc_mcontext.gregs;
  uintptr_t sp = (uintptr_t)greg[REG_RSP] & ~(uintptr_t)7, to;
  int i;
  if ((uintptr_t)tvref(L->stack) != from ||
      (uintptr_t)L->top - from > (uintptr_t)L->stacksize * sizeof(TValue))
    return 0;
  for (i = REG_R8; i <= REG_RCX; i++)
    if (is_copy(pk, L, from, (uintptr_t)greg[i])) return (uintptr_t)greg[i];
  for (i = 0; i < LMOVE_CWORDS; i++)
    if (lj_safeload_word(pk, sp + (uintptr_t)i * 8, &to) && is_copy(pk, L, from, to))
      return to;
  return 0;
}
