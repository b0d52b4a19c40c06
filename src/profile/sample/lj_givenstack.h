/*
** Lua stack that a source names: of a suspended coroutine, or one function alone.
** Context: ordinary code of the thread that runs the VM.
*/

#ifndef _LJ_GIVENSTACK_H
#define _LJ_GIVENSTACK_H

#include "profile/event/lj_event.h"
#include "profile/lua/lj_luathread.h"

/* Push the frames of a stack. The caller has claimed ls and reset its list of frames. */
LJ_FUNC void lj_givenstack_push(LuaWalk *ls, const SampleStack *st);

#endif
