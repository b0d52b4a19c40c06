/*
** Main chunk that has returned: its local variables, which its frame has left on the stack.
** Context: VM thread, outside of the handler, while no function of the VM runs.
**
** The VM clears no slot at a return, and the collector clears all slots above the top in each cycle.
** So a slot that is not clear holds a value that exists.
*/

#ifndef _LJ_LUAMAIN_H
#define _LJ_LUAMAIN_H

#include "lj_obj.h"

/* Return the end of the local variables of the last main chunk that luajit has run to its last line, or
** NULL: it is not known, or a function runs. Up to there, all slots of the stack hold values. is_hidden: what
** only local variables of a main chunk hold cannot be told from garbage.
*/
LJ_FUNC TValue *lj_luamain_end(lua_State *L, int *is_hidden);

#endif
