/*
** Body hash: what the bytecode of a Lua function does, whatever its file, place and name.
** Context: VM thread, while it stops or dumps a profile. The VM does not run.
**
** Covers instructions as compiled, constants, parameters, the number of upvalues, and the
** functions that it makes. The VM patches instructions while it runs; the hash restores
** them. So a function has the same hash in all runs on the same base.
*/

#ifndef _LJ_BODYHASH_H
#define _LJ_BODYHASH_H

#include "lj_obj.h"
#include "profile/symbols/lj_functab.h"
#include "profile/symbols/lj_heapread.h"

#define BODYHASH_WORK   (1u << 24) /* Instructions and constants read. */
#define BODYHASH_DEPTH  24         /* Functions in each other. */
#define BODYHASH_STRING 4096       /* Bytes of a constant that count. */

/* Hash all functions of a table without a hash. The prototypes have been checked. One that
** cannot be read, or is too deep, gets none.
*/
LJ_FUNC void lj_bodyhash_all(FuncTab *ft, HeapRead *r, const global_State *g);

#endif
