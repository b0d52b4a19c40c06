/*
** Unwinder of the Lua stack: frames of a sample, from the interrupted machine state.
** Context: handler.
**
** The walk tries each candidate for the top frame (lj_luatop.h). It checks function
** slots, links and PCs against each other, from the top frame to the bottom of the
** stack. It takes the first candidate that passes every check. If none does, the stack
** is broken, and the walk returns the check that refused it.
**
** It takes no lock, allocates nothing, and checks every load.
*/

#ifndef _LJ_LUAWALK_H
#define _LJ_LUAWALK_H

#include "profile/lua/lj_luathread.h"

/* Walk the Lua stack of this thread, after its host stack and from the same registers.
** Async-signal-safe.
*/
LJ_FUNC void lj_luawalk_walk(LuaWalk *ls, const WalkRegs *regs);

/* Find the coroutine where the walk of an interrupted thread begins, and its stack. Returns
** 0 and sets ls->refused without one. Async-signal-safe.
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
