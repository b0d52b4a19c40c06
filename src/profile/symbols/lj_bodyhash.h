/*
** Body hash: what the bytecode of a Lua function does, whatever its file, place and name.
** Context: VM thread, while it stops or dumps a profile. The VM does not run.
**
** Covers instructions as compiled, constants, parameters, the functions that it makes, and the
** variables of enclosing functions that it uses: their order, names, and whether the next
** function has them. Functions without debug information have no names: their hashes may be
** equal although they use other outer variables. Of a long string, the length, the beginning
** and the end count.
**
** The VM patches instructions while it runs; the hash restores them. So a function has the same
** hash in all runs on the same base.
*/

#ifndef _LJ_BODYHASH_H
#define _LJ_BODYHASH_H

#include "lj_obj.h"
#include "profile/symbols/lj_functab.h"
#include "profile/symbols/lj_heapread.h"

/* Limit of what a stop or a dump reads for body hashes, in bytes: (functions without a hash) */
#define BODYHASH_WORK (1u << 26)
/* Limit of functions in each other, for a body hash: (no hash) */
#define BODYHASH_LEVELS 24
/* Limit of the beginning of a string in a body hash, in bytes: (does not count) */
#define BODYHASH_STRING 4096
/* Limit of the end of a long string in a body hash, in bytes: (does not count) */
#define BODYHASH_TAIL 64

/* Hash all functions of a table that no call has tried. The prototypes have been checked. One
** that cannot be read, or whose own functions are too deep in each other, gets none.
*/
LJ_FUNC void lj_bodyhash_all(FuncTab *ft, HeapRead *r, const global_State *g);

#endif
