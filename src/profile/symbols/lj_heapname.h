/*
** Heap names: names of Lua functions from the globals, modules and upvalues that hold them.
** Context: VM thread, while it stops or dumps a profile. The VM does not run.
**
** Searches for the functions of the profile in the globals, the loaded modules and the
** tables in them, in the upvalues of the functions there, and for their definitions in
** the bytecode of the functions around them.
**
** Only reads the VM: no metamethod runs, nothing allocates memory of the VM, and nothing
** can raise an error. The VM may be in any state, so every load is checked and the search
** is bounded.
*/

#ifndef _LJ_HEAPNAME_H
#define _LJ_HEAPNAME_H

#include "lj_obj.h"
#include "profile/base/lj_safeload.h"
#include "profile/symbols/lj_functab.h"

/* Find names for the functions that have none yet, or a less telling one. Without
** memory, the search finds none. Returns 1 if the VM and the prototypes that are left
** can be read.
*/
LJ_FUNC int lj_heapname_find(FuncTab *ft, SafeLoad *pk, global_State *g);

#endif
