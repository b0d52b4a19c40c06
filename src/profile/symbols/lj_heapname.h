/*
** Names of Lua functions, as the program keeps them.
**
** At stop, outside of the handler: looks for the functions that were seen in
** the globals, the loaded modules and the tables in them, in the upvalues of
** what is found there, and for their definitions in the bytecode of the
** functions around them.
**
** The VM is only read: no metamethod runs, nothing is allocated in it, and no
** error can be raised. It may be in any state, so every load is checked and
** the search is bounded. It must not run meanwhile.
*/

#ifndef _LJ_HEAPNAME_H
#define _LJ_HEAPNAME_H

#include "lj_obj.h"
#include "profile/symbols/lj_symtab.h"

/* Find names for the functions seen that have none yet, or have one that is
** less telling. Without memory none is found. On the thread of the VM.
*/
LJ_FUNC void lj_heapname_find(Symtab *st, SafeLoad *pk, global_State *g);

#endif
