/*
** Heap names of C functions: where the program keeps a function of C.
** Context: VM thread; see lj_heapname.h.
*/

#ifndef _LJ_HEAPCNAME_H
#define _LJ_HEAPCNAME_H

#include "lj_obj.h"
#include "profile/symbols/lj_heapsearch.h"

/* The search has found a C function under a key of an item, or without one in a variable. */
LJ_FUNC void lj_heapcname_found(HeapSearch *s, const GCfuncC *fn, uint32_t at,
				NameRank rank, HeapKey *key);

/* Queue a metatable of userdata. __name is its name, or else the path of a value that has it. */
LJ_FUNC void lj_heapcname_meta(HeapSearch *s, const GCtab *mt, uint32_t at, NameRank rank,
			       const NamePart *name);

/* C libraries keep metatables in the registry. Queue them before other values lead there. */
LJ_FUNC void lj_heapcname_metas(HeapSearch *s, const GCtab *reg, uint32_t at);

#endif
