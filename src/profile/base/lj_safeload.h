/*
** Fault-safe loads: reading memory that may be unmapped.
** Context: handler, except warmup, unmap and unmapped. Async-signal-safe; may change errno.
**
** Every read of the interrupted program's state goes through here. There is no lock, no
** allocation and no SIGSEGV handler. Who may unmap an address decides how it is read:
** - Nobody: the part of the thread's own stack that is in use. It is loaded.
** - The VM's thread only: memory of the VM. That thread is in the handler, or waits for
**   the handler (lj_vmgate.h), so a readable page stays readable. lj_safeload_ok and
**   lj_safeload_vm probe the page by a system call that fails with EFAULT, and the caller
**   loads. The answer is cached for this sample. For pages that are known to be the VM's,
**   it is cached until LuaJIT's allocator announces the unmap (lj_safeload_unmap). Where an
**   address may be anything, lj_safeload_vmcopy copies at first sight. While the VM moves a
**   Lua stack, and after an unmap since then, lj_safeload_keptonly refuses new pages.
** - Any thread: all other memory, such as a library, or the target of a wrong register.
**   Another thread may unmap it between a probe and a load. So lj_safeload_word and
**   lj_safeload_copy load from a copy of the page, which process_vm_readv(2) makes once a
**   sample. Where that call is refused or deadly, they probe, load and count.
*/

#ifndef _LJ_SAFELOAD_H
#define _LJ_SAFELOAD_H

#include <string.h>

#include "lj_def.h"

#define SAFELOAD_BITS      9
#define SAFELOAD_SLOTS     (1 << SAFELOAD_BITS) /* Cached pages. */
#define SAFELOAD_PAGE_BITS 12                   /* Smallest page size of the platform. */
#define SAFELOAD_ADDR_BITS 47                   /* User addresses have no more bits. */
#define SAFELOAD_COPIES    8                    /* Copied pages at a time, */
#define SAFELOAD_COPY_MAX  4096                 /* and in one sample. */
#define SAFELOAD_PAGE      (1u << SAFELOAD_PAGE_BITS)

#define SAFELOAD_SETS 16 /* With more memory: sets of copied pages, a power of two, */
#define SAFELOAD_WAYS \
  4 /* and pages of a set. A walk goes to and fro between a few pages. */
#define SAFELOAD_MORE (SAFELOAD_SETS * SAFELOAD_WAYS)

/* Copies in place of those of SafeLoad. Clear it before use. */
typedef struct SafeCopies {
  uint32_t turn[SAFELOAD_SETS]; /* Of each set: the page that is replaced next. */
  uint64_t copied[SAFELOAD_MORE];
  uint64_t copy[SAFELOAD_MORE][SAFELOAD_PAGE / 8];
} SafeCopies;

typedef struct SafeLoad {
  SafeCopies *more; /* More copies, or NULL. */
  /* Of this sample. */
  uint64_t generation;         /* Its number, in the upper bits. */
  uint64_t kept;               /* The same for pages that are kept. */
  uint64_t owned;              /* The same, or no number while a page may be unmapped. */
  uintptr_t stack, stack_size; /* Part of the thread's stack in use. */
  uintptr_t near, near_size;   /* Addresses of two words in the page of the
				** last lj_safeload_near. */
  uint32_t probes;             /* Pages probed. */
  uint32_t fresh;              /* Calls of lj_safeload_vm for a page not kept. */
  uint32_t copies;             /* Pages copied. */
  int keeping;                 /* lj_safeload_vm keeps its pages. */
  int kept_only;               /* lj_safeload_vm refuses pages that are not kept. */
  /* Of all samples. */
  uint64_t kept_pages;              /* Generation of the pages that are kept. */
  uint32_t unmaps;                  /* Announcements that they reflect. */
  uint32_t uncopied;                /* Pages probed because copying is refused. */
  uint64_t page[SAFELOAD_SLOTS];    /* Generation and number of readable pages, each in
				** its first or in its second slot. */
  uint64_t copied[SAFELOAD_COPIES]; /* Generation and number of copied pages, */
  uint64_t copy[SAFELOAD_COPIES][SAFELOAD_PAGE / 8]; /* and the copies. */
} SafeLoad;

/* Find out whether pages can be copied. Any thread, not in the handler, before samples. */
LJ_FUNC void lj_safeload_warmup(void);

/* Does the kernel copy pages? If not, lj_safeload_copy loads from the pages themselves. */
LJ_FUNC int lj_safeload_cancopy(void);

/* Begin a sample: forget the pages that are not kept. */
LJ_FUNC void lj_safeload_reset(SafeLoad *sl);

/* Forget all pages. For callers without an allocator that announces unmaps. */
LJ_FUNC void lj_safeload_forget(SafeLoad *sl);

/* Set the sampled thread's stack, from lo to hi, or both 0 if unknown. sp: its stack
** pointer at the interrupt.
*/
LJ_FUNC void lj_safeload_stack(SafeLoad *sl, uintptr_t lo, uintptr_t hi, uintptr_t sp);

/* LuaJIT's allocator is about to unmap or move memory; it has done so. Any thread, not in
** the handler.
*/
LJ_FUNC void lj_safeload_unmap(const void *p, size_t sz);
LJ_FUNC void lj_safeload_unmapped(void);

/* Unmaps that allocators have announced so far, of all VMs. Any thread. */
LJ_FUNC uint32_t lj_safeload_unmaps(void);

/* The VM has begun to move a Lua stack when there were so many unmaps. If there are more, the
** old memory may be another thread's: this sample reads only pages that are kept.
*/
LJ_FUNC void lj_safeload_keptonly(SafeLoad *sl, uint32_t unmaps);

/* Copy sz bytes at p; returns 0 if they are not readable. Any thread may unmap them. */
LJ_FUNC int lj_safeload_copy(SafeLoad *sl, void *to, const void *p, size_t sz);

/* Copy at most SAFELOAD_PAGE bytes as they are now, even if this sample has copied the
** page before.
*/
LJ_FUNC int lj_safeload_copynow(SafeLoad *sl, void *to, const void *p, size_t sz);

/* Copy sz bytes at p as they are now, without a SafeLoad. Returns 0 if they are not readable,
** or if the kernel refuses to copy.
*/
LJ_FUNC int lj_safeload_once(void *to, const void *p, size_t sz);

/* Slow path of lj_safeload_word. */
LJ_FUNC int lj_safeload_wordslow(SafeLoad *sl, uintptr_t addr, uintptr_t *w);
/* Slow path of lj_safeload_ok: search the second slot for a page, then probe it. */
LJ_FUNC int lj_safeload_probe(SafeLoad *sl, uintptr_t pageno);
/* Slow path of lj_safeload_vm. */
LJ_FUNC int lj_safeload_vmslow(SafeLoad *sl, const void *p, size_t sz);
/* Slow path of lj_safeload_vmcopy. */
LJ_FUNC int lj_safeload_vmcopyslow(SafeLoad *sl, void *to, const void *p, size_t sz);
/* Slow path of lj_safeload_near. */
LJ_FUNC int lj_safeload_nearslow(SafeLoad *sl, uintptr_t addr);

/* Does the first slot of a page say that it is readable? */
static LJ_AINLINE int lj_safeload_known(const SafeLoad *sl, uintptr_t pageno)
{
  uint64_t g = sl->page[pageno & (SAFELOAD_SLOTS - 1)] ^ pageno;
  return g == sl->kept || g == sl->generation;
}

/* Are sz bytes at p readable? sz is at most the size of a page. Only of memory that no
** other thread unmaps now.
*/
static LJ_AINLINE int lj_safeload_ok(SafeLoad *sl, const void *p, size_t sz)
{
  uintptr_t first = (uintptr_t)p >> SAFELOAD_PAGE_BITS;
  uintptr_t last = ((uintptr_t)p + sz - 1) >> SAFELOAD_PAGE_BITS;
  if ((uintptr_t)p >> SAFELOAD_ADDR_BITS) return 0;
  if (!lj_safeload_known(sl, first) && !lj_safeload_probe(sl, first)) return 0;
  return first == last || lj_safeload_known(sl, last) || lj_safeload_probe(sl, last);
}

/* Are sz bytes at p readable, if they are memory of the VM: an object of the garbage
** collector, or a valid Lua stack?
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

/* Has an earlier walk found sz bytes at p in the VM's memory? Probes nothing. */
static LJ_AINLINE int lj_safeload_isowned(const SafeLoad *sl, const void *p, size_t sz)
{
  uintptr_t first = (uintptr_t)p >> SAFELOAD_PAGE_BITS;
  uintptr_t last = ((uintptr_t)p + sz - 1) >> SAFELOAD_PAGE_BITS;
  return ((uintptr_t)p >> SAFELOAD_ADDR_BITS) == 0 &&
	 (sl->page[first & (SAFELOAD_SLOTS - 1)] ^ first) == sl->owned &&
	 (first == last || (sl->page[last & (SAFELOAD_SLOTS - 1)] ^ last) == sl->owned);
}

/* Copy sz bytes at p; returns 0 if they are not readable. The address may be anything, but on
** a valid walk it is of the VM. Only the first sight of a page costs a system call.
*/
static LJ_AINLINE int lj_safeload_vmcopy(SafeLoad *sl, void *to, const void *p, size_t sz)
{
  uintptr_t first = (uintptr_t)p >> SAFELOAD_PAGE_BITS;
  uintptr_t last = ((uintptr_t)p + sz - 1) >> SAFELOAD_PAGE_BITS;
  if (LJ_UNLIKELY(
	((uintptr_t)p >> SAFELOAD_ADDR_BITS) != 0 ||
	(sl->page[first & (SAFELOAD_SLOTS - 1)] ^ first) != sl->owned ||
	(first != last && (sl->page[last & (SAFELOAD_SLOTS - 1)] ^ last) != sl->owned)))
    return lj_safeload_vmcopyslow(sl, to, p, sz);
  memcpy(to, p, sz);
  return 1;
}

#define SAFELOAD_NEAR (2 * sizeof(uintptr_t))

/* Are two words of the VM's memory readable? Most often they are in the page of the last
** two.
*/
static LJ_AINLINE int lj_safeload_near(SafeLoad *sl, uintptr_t addr)
{
  return LJ_LIKELY(addr - sl->near < sl->near_size) || lj_safeload_nearslow(sl, addr);
}

/* Load an aligned word; returns 0 and leaves *w alone if it is not readable. Any thread
** may unmap it.
*/
static LJ_AINLINE int lj_safeload_word(SafeLoad *sl, uintptr_t addr, uintptr_t *w)
{
  uintptr_t pageno = addr >> SAFELOAD_PAGE_BITS;
  if ((addr & (sizeof(uintptr_t) - 1)) != 0 || addr >> SAFELOAD_ADDR_BITS) return 0;
  if (addr - sl->stack >= sl->stack_size &&
      (sl->page[pageno & (SAFELOAD_SLOTS - 1)] ^ pageno) != sl->owned)
    return lj_safeload_wordslow(sl, addr, w);
  *w = *(const uintptr_t *)addr;
  return 1;
}

#endif
