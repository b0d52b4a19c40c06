/*
** Exact counts of allocations: blocks and bytes by type, while a VM runs.
** Context: the thread that runs the VM, under the lock of lj_process.
**
** A block that is resized counts as freed, and as a new one of its new size. What the compiler
** allocates for itself is apart: it does so once, when code gets hot.
*/

#ifndef _LJ_ALLOCCOUNT_H
#define _LJ_ALLOCCOUNT_H

#include "lj_obj.h"
#include "lmisclib.h"
#include "profile/alloc/lj_allochook.h"
#include "profile/alloc/lj_alloctype.h"

typedef struct AllocCount {
  struct luam_Memprof_Count sums; /* So far. The owner may clear them. */
  global_State *g;
  AllocHook *hook;
  AllocTypes types;
} AllocCount;

/* Begin to count the allocations of a VM. *c is clear, and stays in place until the end. Needs
** lj_hostwalk_warmup. Returns 0, or an errno: EBUSY, if the VM's allocations are being counted
** already, or ENOMEM.
*/
LJ_FUNC int lj_alloccount_begin(AllocCount *c, global_State *g);

/* End. Returns 0 if the program has replaced the VM's allocator: blocks may be missing. */
LJ_FUNC int lj_alloccount_end(AllocCount *c);

#endif
