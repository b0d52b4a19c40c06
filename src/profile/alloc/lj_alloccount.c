/*
** Exact counts of allocations: blocks and bytes by type, while a VM runs.
** Context: the thread that runs the VM, under the lock of lj_process.
*/

#define lj_alloccount_c
#define LUA_CORE

#include <errno.h>

#include "profile/alloc/lj_alloccount.h"

/* Ordinary code of the VM's thread. */
static void count(void *ud, size_t osize, size_t nsize, const WalkRegs *regs)
{
  AllocCount *c = (AllocCount *)ud;
  AllocSums *sums = &c->sums;
  AllocAmount *amount;
  AllocSite site;
  sums->freed += osize;
  if (nsize == 0) return;
  site = lj_alloctype_find(&c->types, regs, c->g, osize, nsize);
  amount = site.is_compiler ? &sums->compiler : &sums->of[site.type];
  amount->blocks++;
  amount->bytes += nsize;
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
