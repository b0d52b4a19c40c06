/*
** Heap names: names of functions from the globals, modules and upvalues that hold them.
** Context: VM thread, while it stops or dumps a profile. The VM does not run.
**
** Searches the globals and the loaded modules, with the tables in them, for the functions
** of the profile. Then searches the upvalues of the functions there. Last, searches the
** bytecode of enclosing functions for their definitions.
**
** A C function has the name of the place that holds its closure: module.name, then a global, then
** the shortest path. Methods of userdata have the name of the metatable: in the registry, or
** __name, or else the path of a value that has it. Several names are possible.
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

/* Find names for functions without a name, better names for others, and the hashes of their
** bodies. Finds nothing without memory. Returns 1 if the VM and the prototypes that are left are readable.
*/
LJ_FUNC int lj_heapname_find(FuncTab *ft, SafeLoad *pk, global_State *g);

#endif
