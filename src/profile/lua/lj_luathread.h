/*
** Unwinder of one coroutine: checks its Lua frames and lists them.
** Context: handler.
**
** A walk goes from the top frame to the bottom of the coroutine's stack. It passes one
** VM frame for each boundary between C and Lua. It ends at the first check that fails.
*/

#ifndef _LJ_LUATHREAD_H
#define _LJ_LUATHREAD_H

#include "lj_obj.h"
#include "profile/lua/lj_luaframe.h"
#include "profile/lua/lj_luasites.h"
#include "profile/lua/lj_luamemo.h"
#include "profile/lua/lj_luatop.h"
#include "profile/symbols/lj_callname.h"
#include "profile/symbols/lj_functab.h"

/* Kind of the top function. */
typedef enum TopFunc {
  TOP_NONE, /* No Lua frame at all: code of the host program. */
  TOP_LUA,
  TOP_FAST,
  TOP_C,
  TOP_UNKNOWN /* The stack is broken. */
} TopFunc;

/* What the walk of a sample has found. */
typedef struct LuaResult {
  TopFunc top;      /* Kind of the top function. */
  int broken;       /* SPF_BROKEN_* or -1. */
  int refused;      /* SPF_REFUSED_* of a broken stack. */
  uint32_t nbounds; /* CBOUND and RESUME frames pushed. */
} LuaResult;

typedef struct LuaWalk {
  /* Set by the caller, which clears the rest. */
  LuaInput in;       /* Start of the walk; moving_to is a result. */
  FuncTab *funcs;    /* Gives Lua functions their ids. */
  FrameList *frames; /* Gets the frames. */
  int leaf_only;     /* Keep only the top function, and the innermost Lua function. */
  /* Results. */
  TopFunc top;      /* Kind of the top function. */
  int has_lua;      /* Has a Lua function been pushed? */
  int broken;       /* SPF_BROKEN_* or -1. */
  int refused;      /* SPF_REFUSED_* of a broken stack. */
  uint32_t nbounds; /* CBOUND and RESUME frames pushed. */
  uint32_t label;   /* Labels of the innermost coroutine that has some, see lj_labels.h. */
  /* Kept from walk to walk. */
  FuncEntry *unnamed;    /* The last pushed function if it needs a name, else NULL. */
  CFuncEntry *unnamed_c; /* The same of C functions, until the step is named. */
  /* Functions that the collector calls, if the walk proves to be valid. While a finalizer begins or ends,
  ** other walks take its VM frame for that of another function.
  */
  FuncEntry *finalizer;
  CFuncEntry *finalizer_c;
  LuaSites sites; /* Places in functions. */
  LuaMemo memo;   /* Steps of the last walk. */
  /* Progress of the candidates. */
  uint32_t passed;   /* Steps of this candidate above the current coroutine. */
  uint32_t furthest; /* 1 + steps of the candidate that gives refused, or 0. */
} LuaWalk;

/* Push the entries above the top frame of the i-th candidate: the VM's own work, and a
** builtin whose frame is gone.
*/
LJ_FUNC void lj_luathread_pushtop(LuaWalk *ls, const LuaTop *top, int i);

/* Walk the frames of one coroutine from its top frame. no_lua_frame: no frame runs on the
** innermost VM frame. at: the trace that runs on the top frame, or NULL. Returns 1 if all
** frames are valid to the bottom; then ls->memo.walked_last is the outermost VM frame.
** Returns 0 if a check failed, -1 if VM frames are left over; both set ls->refused.
*/
LJ_FUNC int lj_luathread_walk(LuaWalk *ls, const LuaArea *a, const Candidate *top,
			      int no_lua_frame, const JitFind *at);

/* Push a function of a valid frame, which runs at pc; 0: unknown. A Lua function without an id is
** left out.
*/
LJ_FUNC void lj_luathread_push(LuaWalk *ls, const GCfunc *fn, uintptr_t pc);
LJ_FUNC void lj_luathread_pushproto(LuaWalk *ls, const GCproto *pt, uintptr_t pc);

/* Search for a name of the function that was pushed last, if it needs one. */
LJ_FUNC void lj_luathread_name(LuaWalk *ls, const CallFrame *cf);

/* Note that a check refused the current candidate after this number of steps in this
** coroutine. code: SPF_REFUSED_*. Returns 0.
*/
LJ_FUNC LUAFRAME_COLD int lj_luathread_refuse(LuaWalk *ls, uint32_t depth, int code);

#endif
