/*
** Names of Lua functions, as they are called.
** Runs in the signal handler; see the header for the contract.
*/

#define lj_callname_c
#define LUA_CORE

#include "lj_obj.h"
#include "profile/lj_callname.h"

void lj_callname_frame(Symtab *st, Peek *pk, global_State *g,
		       const CallFrame *cf)
{
  UNUSED(st); UNUSED(pk); UNUSED(g); UNUSED(cf);
}

void lj_callname_inlined(Symtab *st, Peek *pk, global_State *g,
			 const GCproto *pt, const GCproto *caller, uintptr_t pc)
{
  UNUSED(st); UNUSED(pk); UNUSED(g); UNUSED(pt); UNUSED(caller); UNUSED(pc);
}
