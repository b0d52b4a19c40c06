/*
** Lua stack that is being moved: where it is, once its old memory has been freed.
**
** LuaJIT reallocates a stack, and stores where it is only then. In between, the
** allocator may have put words of its own into the old memory. The new address is
** with the interrupted code already: in a register, or on the C stack. It is told
** from other values by what it points to: the same stack. Runs in the signal handler.
*/

#ifndef _LJ_LMOVE_H
#define _LJ_LMOVE_H

#include <ucontext.h>

#include "profile/base/lj_safeload.h"

/* New address of the stack of L, which is still said to be at the address from; 0 if
** it is not found. Async-signal-safe.
*/
LJ_FUNC uintptr_t lj_lmove_find(SafeLoad *pk, lua_State *L, uintptr_t from,
				const ucontext_t *uc);

#endif
