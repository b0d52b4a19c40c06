/*
** Fault-safe loads: is memory at an address readable?
**
** Used by everything that reads the interrupted program's state. Runs in the
** signal handler: takes no lock, allocates nothing and installs no SIGSEGV
** handler. A page is probed with a system call that fails with EFAULT instead
** of faulting. What was found out holds
** - for this sample, of any page: the sampled thread cannot unmap anything while
**   it is in the handler;
** - until it is unmapped, of a page of the VM's memory (lj_safeload_vm): LuaJIT's
**   allocator says what it unmaps (lj_safeload_unmap);
** - without a probe, of the part of the thread's own stack that is in use.
*/

#ifndef _LJ_SAFELOAD_H
#define _LJ_SAFELOAD_H

#include "lj_def.h"

#define SAFELOAD_BITS      9
#define SAFELOAD_SLOTS     (1 << SAFELOAD_BITS) /* Remembered pages. */
#define SAFELOAD_PAGE_BITS 12                   /* Smallest page size of the platform. */
#define SAFELOAD_ADDR_BITS 47                   /* User addresses have no more bits. */

typedef struct SafeLoad {
  /* Of this sample. */
  uint64_t generation;         /* Its number, in the upper bits. */
  uint64_t kept;               /* Likewise, of the pages that are kept. */
  uintptr_t stack, stack_size; /* Part of the thread's stack in use. */
  uintptr_t near, near_size;   /* Where the VM's two words may be that are
				** in the page that was asked for last. */
  uint32_t probes;             /* Pages probed. */
  uint32_t fresh;              /* Times that lj_safeload_vm got a page not kept. */
  int keeping;                 /* lj_safeload_vm keeps what it gets. */
  /* Of all samples. */
  uint64_t kept_pages;           /* Number of the pages that are kept. */
  uint32_t unmaps;               /* Unmapped so far, as far as these know. */
  uint64_t page[SAFELOAD_SLOTS]; /* Generation and number of readable pages, each in
				** its first or in its second slot. */
} SafeLoad;

/* Forget the pages that are not kept. Call it at the start of each sample. */
LJ_FUNC void lj_safeload_reset(SafeLoad *pk);

/* Forget all pages: nobody says what is unmapped. */
LJ_FUNC void lj_safeload_forget(SafeLoad *pk);

/* This sample's thread, whose stack is from lo to hi, 0 if that is not known, was
** interrupted with this stack pointer.
*/
LJ_FUNC void lj_safeload_stack(SafeLoad *pk, uintptr_t lo, uintptr_t hi, uintptr_t sp);

/* LuaJIT's allocator is about to unmap memory, or to move it; it has done so.
** Outside of the handler, in any thread.
*/
LJ_FUNC void lj_safeload_unmap(const void *p, size_t sz);
LJ_FUNC void lj_safeload_unmapped(void);

/* Slow path of lj_safeload_ok: look further for one page, and probe it. */
LJ_FUNC int lj_safeload_probe(SafeLoad *pk, uintptr_t pageno);
/* Slow path of lj_safeload_vm. */
LJ_FUNC int lj_safeload_vmslow(SafeLoad *pk, const void *p, size_t sz);
/* Slow path of lj_safeload_near. */
LJ_FUNC int lj_safeload_nearslow(SafeLoad *pk, uintptr_t addr);

/* Is a page known to be readable, by its first slot? */
static LJ_AINLINE int lj_safeload_known(const SafeLoad *pk, uintptr_t pageno)
{
  uint64_t g = pk->page[pageno & (SAFELOAD_SLOTS - 1)] ^ pageno;
  return g == pk->kept || g == pk->generation;
}

/* May sz bytes at p be read? sz is at most the size of a page.
** Async-signal-safe. May change errno.
*/
static LJ_AINLINE int lj_safeload_ok(SafeLoad *pk, const void *p, size_t sz)
{
  uintptr_t first = (uintptr_t)p >> SAFELOAD_PAGE_BITS;
  uintptr_t last = ((uintptr_t)p + sz - 1) >> SAFELOAD_PAGE_BITS;
  if ((uintptr_t)p >> SAFELOAD_ADDR_BITS) return 0;
  if (!lj_safeload_known(pk, first) && !lj_safeload_probe(pk, first)) return 0;
  return first == last || lj_safeload_known(pk, last) || lj_safeload_probe(pk, last);
}

/* The same, of what is memory of the VM if the stacks are what they seem to be:
** objects of the collector and Lua stacks. Of no other memory.
*/
static LJ_AINLINE int lj_safeload_vm(SafeLoad *pk, const void *p, size_t sz)
{
  uintptr_t first = (uintptr_t)p >> SAFELOAD_PAGE_BITS;
  uintptr_t last = ((uintptr_t)p + sz - 1) >> SAFELOAD_PAGE_BITS;
  if (LJ_LIKELY(
	((uintptr_t)p >> SAFELOAD_ADDR_BITS) == 0 &&
	(pk->page[first & (SAFELOAD_SLOTS - 1)] ^ first) == pk->kept &&
	(first == last || (pk->page[last & (SAFELOAD_SLOTS - 1)] ^ last) == pk->kept)))
    return 1;
  return lj_safeload_vmslow(pk, p, sz);
}

#define SAFELOAD_NEAR (2 * sizeof(uintptr_t))

/* The same of two words, which are most often in the page of the last ones. */
static LJ_AINLINE int lj_safeload_near(SafeLoad *pk, uintptr_t addr)
{
  return LJ_LIKELY(addr - pk->near < pk->near_size) || lj_safeload_nearslow(pk, addr);
}

/* Load an aligned word; returns 0 and leaves *w alone if it is not readable. */
static LJ_AINLINE int lj_safeload_word(SafeLoad *pk, uintptr_t addr, uintptr_t *w)
{
  if ((addr & (sizeof(uintptr_t) - 1)) != 0 ||
      (addr - pk->stack >= pk->stack_size &&
       !lj_safeload_ok(pk, (const void *)addr, sizeof(uintptr_t))))
    return 0;
  *w = *(const uintptr_t *)addr;
  return 1;
}

#endif
