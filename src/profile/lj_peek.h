/*
** Fault-safe loads: is memory at an address readable?
**
** Used by everything that reads the interrupted program's state. Runs in the
** signal handler: takes no lock, allocates nothing and installs no SIGSEGV
** handler. A page is probed with a system call that fails with EFAULT instead
** of faulting; pages probed during one sample are remembered until the next,
** because the sampled thread cannot unmap anything while it is in the handler.
*/

#ifndef _LJ_PEEK_H
#define _LJ_PEEK_H

#include "lj_def.h"

#define PEEK_SLOTS	128	/* Remembered pages, a power of two. */
#define PEEK_PAGE_BITS	12	/* Smallest page size of the platform. */
#define PEEK_ADDR_BITS	47	/* User addresses have no more bits. */

typedef struct Peek {
  uint64_t generation;		/* Number of this sample, in the upper bits. */
  uint64_t page[PEEK_SLOTS];	/* Generation and number of readable pages. */
} Peek;

/* Forget all pages. Call it at the start of each sample. */
LJ_FUNC void lj_peek_reset(Peek *pk);
/* Slow path of lj_peek_ok: probe one page. */
LJ_FUNC int lj_peek_probe(Peek *pk, uintptr_t pageno);

/* May sz bytes at p be read? sz is at most the size of a page.
** Async-signal-safe. May change errno.
*/
static LJ_AINLINE int lj_peek_ok(Peek *pk, const void *p, size_t sz)
{
  uintptr_t first = (uintptr_t)p >> PEEK_PAGE_BITS;
  uintptr_t last = ((uintptr_t)p + sz - 1) >> PEEK_PAGE_BITS;
  if ((uintptr_t)p >> PEEK_ADDR_BITS) return 0;
  if (pk->page[first & (PEEK_SLOTS-1)] != (pk->generation | first) &&
      !lj_peek_probe(pk, first))
    return 0;
  return first == last ||
	 pk->page[last & (PEEK_SLOTS-1)] == (pk->generation | last) ||
	 lj_peek_probe(pk, last);
}

/* Load an aligned word; returns 0 and leaves *w alone if it is not readable. */
static LJ_AINLINE int lj_peek_word(Peek *pk, uintptr_t addr, uintptr_t *w)
{
  if ((addr & (sizeof(uintptr_t)-1)) != 0 ||
      !lj_peek_ok(pk, (const void *)addr, sizeof(uintptr_t)))
    return 0;
  *w = *(const uintptr_t *)addr;
  return 1;
}

#endif
