/*
** Top function by registers alone: what the VM runs, without walking a stack.
** Context: handler.
**
** For samples that count states only. Reads only memory of the VM that earlier walks have
** found readable. It decides where one answer is certain: the interpreter runs a Lua
** function at its PC, or C code runs for a function of the VM. Everywhere else, such as
** within a call or a return, the caller walks the stacks.
*/

#ifndef _LJ_LUASTATE_H
#define _LJ_LUASTATE_H

#include "profile/lua/lj_luathread.h"

/* Find the kind of the top function of a VM that runs on this thread and moves no stack.
** Returns TOP_UNKNOWN if only a walk can tell. Async-signal-safe.
*/
LJ_FUNC TopFunc lj_luastate_top(SafeLoad *pk, global_State *g, const WalkRegs *regs);

#endif
