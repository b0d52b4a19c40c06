/*
** Stack of a coroutine in a heap snapshot: its frames, and its slots with their names.
** Context: child of a snapshot.
*/

#ifndef _LJ_HEAPSTACK_H
#define _LJ_HEAPSTACK_H

#include "profile/heap/lj_heapref.h"

/* Write what a coroutine has behind its size. Its head is readable. */
LJ_FUNC void lj_heapstack(HeapWalk *w, const lua_State *th);

#endif
