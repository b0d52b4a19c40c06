/*
** Lua stack of a sample, read from the interrupted machine state.
**
** The VM keeps no record of its top frame while it runs Lua code, so the frame
** base is looked for where the VM may hold it at that instruction, and a
** candidate counts only if everything fits: function slots, links and PCs are
** checked against each other from the top frame down to the bottom of the
** stack. What does not fit is broken, never guessed.
**
** Runs in the signal handler: no lock, no allocation, every load checked.
*/

#ifndef _LJ_LUAWALK_H
#define _LJ_LUAWALK_H

#include <ucontext.h>

#include "lj_obj.h"
#include "profile/host/lj_hostwalk.h"
#include "profile/lua/lj_luaframe.h"
#include "profile/lua/lj_luasites.h"
#include "profile/lua/lj_luamemo.h"
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
  SafeLoad *pk;          /* Fault-safe loads. */
  global_State *g;       /* The VM. */
  const HostWalk *hs;    /* Walked host stack: VM frames, leaf. */
  FuncTab *funcs;        /* Gives Lua functions their ids. */
  FrameList *frames;     /* Where the frames go. */
  int leaf_only;         /* Only the top function is kept of them. */
  lua_State *moving;     /* Its stack is being moved, or NULL. */
  uintptr_t moving_from; /* Where that stack was before, */
  uintptr_t moving_to;   /* and where it is if that is gone, or 0. */
  /* Results. */
  TopFunc top;      /* Kind of the top function. */
  int broken;       /* SPF_BROKEN_* or -1. */
  uint32_t nbounds; /* CBOUND and RESUME frames pushed. */
  /* Kept from walk to walk. */
  FuncEntry *unnamed; /* The last pushed function if it wants a name, else NULL. */
  LuaSites sites;     /* Places in functions. */
  LuaMemo tail;       /* Steps of the last walk. */
} LuaWalk;

/* Set up the stack of a coroutine, wherever it is. Returns 0 if it has none. */
LJ_FUNC int lj_luawalk_area(const LuaWalk *ls, LuaArea *a, lua_State *L);

/* Walk the Lua stack of an interrupted thread. Async-signal-safe. */
LJ_FUNC void lj_luawalk_walk(LuaWalk *ls, const ucontext_t *uc);

#endif
