/*
** Unwinder of the Lua stack: frames of a sample, from the interrupted machine state.
** Context: handler
**
** The walk tries each candidate for the top frame (lj_luatop.h). It checks function
** slots, links and PCs against each other, from the top frame to the bottom of the
** stack. It takes the first candidate that passes every check. If none does, the stack
** is broken, and the walk tells which check refused it.
**
** It takes no lock, allocates nothing, and checks every load.
*/

#ifndef _LJ_LUAWALK_H
#define _LJ_LUAWALK_H

#include <ucontext.h>

#include "lj_obj.h"
#include "profile/host/lj_hostwalk.h"
#include "profile/lua/lj_luaframe.h"
#include "profile/lua/lj_luasites.h"
#include "profile/lua/lj_luamemo.h"
#include "profile/lua/lj_luatop.h"
#include "profile/symbols/lj_functab.h"

/* Kind of the top function. */
typedef enum TopFunc {
  TOP_NONE, /* No Lua frame at all: code of the host program. */
  TOP_LUA,
  TOP_FAST,
  TOP_C,
  TOP_UNKNOWN /* The stack is broken. */
} TopFunc;

typedef struct LuaWalk {
  /* Set by the caller, the rest cleared. */
  LuaInput in;       /* What the walk starts from; moving_to is a result. */
  FuncTab *funcs;    /* Gives Lua functions their ids. */
  FrameList *frames; /* Where the frames go. */
  int leaf_only;     /* Only the top function is kept of them. */
  /* Results. */
  TopFunc top;      /* Kind of the top function. */
  int broken;       /* SPF_BROKEN_* or -1. */
  int refused;      /* SPF_REFUSED_* of a broken stack. */
  uint32_t nbounds; /* CBOUND and RESUME frames pushed. */
  /* Of the candidates. */
  uint32_t passed;   /* Steps of this one in the coroutines above the current one. */
  uint32_t furthest; /* 1 + steps of the one that gives refused, 0 if none does. */
  /* Kept from walk to walk. */
  FuncEntry *unnamed; /* The last pushed function if it wants a name, else NULL. */
  LuaSites sites;     /* Places in functions. */
  LuaMemo memo;       /* Steps of the last walk. */
} LuaWalk;

/* Walk the Lua stack of an interrupted thread. Async-signal-safe. */
LJ_FUNC void lj_luawalk_walk(LuaWalk *ls, const ucontext_t *uc);

/* Coroutine that the walk of an interrupted thread begins with, and its stack. Returns
** 0 if there is none, with ls->refused. Async-signal-safe.
*/
LJ_FUNC int lj_luawalk_begin(LuaWalk *ls, lua_State **L, LuaArea *a);

/* Walk from the i-th candidate. no_lua_frame: no frame runs on the innermost VM frame.
** Returns 1 if all frames are valid, 0 if not, -1 if a VM frame is left over. If not 1,
** and no candidate came further since ls->furthest was 0, it sets ls->refused.
** Async-signal-safe.
*/
LJ_FUNC int lj_luawalk_try(LuaWalk *ls, lua_State *L, const LuaTop *top, int i,
			   int no_lua_frame);

#endif
