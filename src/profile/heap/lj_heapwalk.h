/*
** Walk of a VM's heap: each object with its size and its edges, for a snapshot.
** Context: child of a snapshot. The VM may have damaged its heap.
**
** The walk follows the VM's lists of all objects, not the edges. So it needs no memory for each
** object, and sees the garbage, too.
*/

#ifndef _LJ_HEAPWALK_H
#define _LJ_HEAPWALK_H

#include <sys/types.h>

#include "lj_obj.h"
#include "profile/heap/lj_heapref.h"

/* Write the snapshot of a VM of the process pid. w: zero, but out has begun. */
LJ_FUNC void lj_heapwalk(HeapWalk *w, global_State *g, pid_t pid, int no_strings);

#endif
