/*
** Fault-safe loads: is memory at an address readable?
** Context: handler, except unmap and unmapped. Async-signal-safe; may change errno.
**
** Every read of the interrupted program's state goes through here. There is no lock, no
** allocation and no SIGSEGV handler: a system call that fails with EFAULT probes a page.
** The answer is cached
** - for this sample, for any page: the sampled thread cannot unmap memory while it is in
**   the handler;
** - until it is unmapped, for a page of the VM's memory (lj_safeload_vm): LuaJIT's
**   allocator announces what it unmaps (lj_safeload_unmap).
** The part of the thread's own stack that is in use needs no probe.
*/

#ifndef _LJ_SAFELOAD_H
#define _LJ_SAFELOAD_H

#include "lj_def.h"

#define SAFELOAD_BITS      9
#define SAFELOAD_SLOTS     (1 << SAFELOAD_BITS) /* Cached pages. */
#define SAFELOAD_PAGE_BITS 12                   /* Smallest page size of the platform. */
#define SAFELOAD_ADDR_BITS 47                   /* User addresses have no more bits. */

typedef struct SafeLoad {
  /* Of this sample. */
  uint64_t generation;         /* Its number, in the upper bits. */
  uint64_t kept;               /* The same for pages that are kept. */
  uintptr_t stack, stack_size; /* Part of the thread's stack in use. */
  uintptr_t near, near_size;   /* Addresses of two words in the page of the
				** last lj_safeload_near. */
  uint32_t probes;             /* Pages probed. */
  uint32_t fresh;              /* Calls of lj_safeload_vm for a page not kept. */
  int keeping;                 /* lj_safeload_vm keeps its pages. */
  /* Of all samples. */
  uint64_t kept_pages;           /* Generation of the pages that are kept. */
  uint32_t unmaps;               /* Announcements that they reflect. */
  uint64_t page[SAFELOAD_SLOTS]; /* Generation and number of readable pages, each in
				** its first or in its second slot. */
} SafeLoad;

/* Begin a sample: forget the pages that are not kept. */
LJ_FUNC void lj_safeload_reset(SafeLoad *sl);

/* Forget all pages, where no allocator announces what it unmaps. */
LJ_FUNC void lj_safeload_forget(SafeLoad *sl);

/* The sampled thread's stack is from lo to hi, both 0 if unknown, and it was interrupted
** with the stack pointer sp.
*/
LJ_FUNC void lj_safeload_stack(SafeLoad *sl, uintptr_t lo, uintptr_t hi, uintptr_t sp);

/* LuaJIT's allocator is about to unmap or move memory; it has done so. Any thread, not in
** the handler.
*/
LJ_FUNC void lj_safeload_unmap(const void *p, size_t sz);
LJ_FUNC void lj_safeload_unmapped(void);

/* Slow path of lj_safeload_ok: search the second slot for a page, then probe it. */
LJ_FUNC int lj_safeload_probe(SafeLoad *sl, uintptr_t pageno);
/* Slow path of lj_safeload_vm. */
LJ_FUNC int lj_safeload_vmslow(SafeLoad *sl, const void *p, size_t sz);
/* Slow path of lj_safeload_near. */
LJ_FUNC int lj_safeload_nearslow(SafeLoad *sl, uintptr_t addr);

/* Does the first slot of a page say that it is readable? */
static LJ_AINLINE int lj_safeload_known(const SafeLoad *sl, uintptr_t pageno)
{
  uint64_t g = sl->page[pageno & (SAFELOAD_SLOTS - 1)] ^ pageno;
  return g == sl->kept || g == sl->generation;
}

/* Are sz bytes at p readable? sz is at most the size of a page. */
static LJ_AINLINE int lj_safeload_ok(SafeLoad *sl, const void *p, size_t sz)
{
  uintptr_t first = (uintptr_t)p >> SAFELOAD_PAGE_BITS;
  uintptr_t last = ((uintptr_t)p + sz - 1) >> SAFELOAD_PAGE_BITS;
  if ((uintptr_t)p >> SAFELOAD_ADDR_BITS) return 0;
  if (!lj_safeload_known(sl, first) && !lj_safeload_probe(sl, first)) return 0;
  return first == last || lj_safeload_known(sl, last) || lj_safeload_probe(sl, last);
}

/* The same for memory of the VM only: objects of the garbage collector and Lua stacks, if
** the stacks are what they seem to be.
*/
static LJ_AINLINE int lj_safeload_vm(SafeLoad *sl, const void *p, size_t sz)
{
  uintptr_t first = (uintptr_t)p >> SAFELOAD_PAGE_BITS;
  uintptr_t last = ((uintptr_t)p + sz - 1) >> SAFELOAD_PAGE_BITS;
  if (LJ_LIKELY(
	((uintptr_t)p >> SAFELOAD_ADDR_BITS) == 0 &&
	(sl->page[first & (SAFELOAD_SLOTS - 1)] ^ first) == sl->kept &&
	(first == last || (sl->page[last & (SAFELOAD_SLOTS - 1)] ^ last) == sl->kept)))
    return 1;
  return lj_safeload_vmslow(sl, p, sz);
}

#define SAFELOAD_NEAR (2 * sizeof(uintptr_t))

/* The same for two words, most often in the page of the last two. */
static LJ_AINLINE int lj_safeload_near(SafeLoad *sl, uintptr_t addr)
{
  return LJ_LIKELY(addr - sl->near < sl->near_size) || lj_safeload_nearslow(sl, addr);
}

/* Load an aligned word; returns 0 and leaves *w alone if it is not readable. */
static LJ_AINLINE int lj_safeload_word(SafeLoad *sl, uintptr_t addr, uintptr_t *w)
{
  if ((addr & (sizeof(uintptr_t) - 1)) != 0 ||
      (addr - sl->stack >= sl->stack_size &&
       !lj_safeload_ok(sl, (const void *)addr, sizeof(uintptr_t))))
    return 0;
  *w = *(const uintptr_t *)addr;
  return 1;
}

#endif
