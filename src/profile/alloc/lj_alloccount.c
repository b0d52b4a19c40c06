/*
** Exact counts of allocations: blocks and bytes by type, while a VM runs.
** Context: the thread that runs the VM, under the lock of lj_process.
*/

#define lj_alloccount_c
#define LUA_CORE

#include <errno.h>

#include "profile/alloc/lj_alloccount.h"

/* The public numbers of types are those of the samples. */
LJ_STATIC_ASSERT(LUAM_MEMPROF_STRING == (int)ALLOC_STRING);
LJ_STATIC_ASSERT(LUAM_MEMPROF_TABLE == (int)ALLOC_TABLE);
LJ_STATIC_ASSERT(LUAM_MEMPROF_TABLE_PART == (int)ALLOC_TABLE_PART);
LJ_STATIC_ASSERT(LUAM_MEMPROF_FUNCTION == (int)ALLOC_FUNCTION);
LJ_STATIC_ASSERT(LUAM_MEMPROF_UPVALUE == (int)ALLOC_UPVALUE);
LJ_STATIC_ASSERT(LUAM_MEMPROF_THREAD == (int)ALLOC_THREAD);
LJ_STATIC_ASSERT(LUAM_MEMPROF_CDATA == (int)ALLOC_CDATA);
LJ_STATIC_ASSERT(LUAM_MEMPROF_USERDATA == (int)ALLOC_USERDATA);
LJ_STATIC_ASSERT(LUAM_MEMPROF_BUFFER == (int)ALLOC_BUFFER);
LJ_STATIC_ASSERT(LUAM_MEMPROF_PROTOTYPE == (int)ALLOC_PROTOTYPE);
LJ_STATIC_ASSERT(LUAM_MEMPROF_TRACE == (int)ALLOC_TRACE);
LJ_STATIC_ASSERT(LUAM_MEMPROF_VM == (int)ALLOC_VM);
LJ_STATIC_ASSERT(LUAM_MEMPROF_OTHER == (int)ALLOC_OTHER);
LJ_STATIC_ASSERT(LUAM_MEMPROF__MAX == (int)ALLOC__MAX);

static void add(struct luam_Memprof_Amount *to, size_t size)
{
  to->allocs++;
  to->bytes += size;
}

/* Ordinary code of the VM's thread. */
static void count(void *ud, size_t osize, size_t nsize, const WalkRegs *regs)
{
  AllocCount *c = (AllocCount *)ud;
  AllocSite site;
  c->sums.freed += osize;
  if (nsize == 0) return;
  site = lj_alloctype_find(&c->types, regs, c->g, osize, nsize);
  if (site.is_compiler) {
    add(&c->sums.compiler, nsize);
  } else {
    add(&c->sums.all, nsize);
    add(&c->sums.type[site.type], nsize);
  }
}

int lj_alloccount_begin(AllocCount *c, global_State *g)
{
  AllocHook *h = lj_allochook_of(g);
  if (!h) return ENOMEM;
  if (h->each) return EBUSY;
  c->g = g;
  c->hook = h;
  lj_allochook_watch(h, count, c);
  return 0;
}

int lj_alloccount_end(AllocCount *c)
{
  return lj_allochook_unwatch(c->hook);
}
