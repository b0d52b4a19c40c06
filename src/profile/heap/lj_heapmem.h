/*
** Checked memory of a heap snapshot: may bytes of the VM be read?
** Context: child of a snapshot.
**
** The child has its own copy of the memory, which nobody unmaps: a page that was readable once
** stays so.
*/

#ifndef _LJ_HEAPMEM_H
#define _LJ_HEAPMEM_H

#include "profile/base/lj_safeload.h"

#define HEAPMEM_PAGES (1u << 20) /* Pages remembered: of 4 GB. */

/* Zero at first. */
typedef struct HeapMem {
  SafeLoad load;
  uint64_t page[HEAPMEM_PAGES]; /* Numbers of readable pages. */
} HeapMem;

/* Are all of sz bytes at p readable, and is p aligned for words? */
static LJ_AINLINE int heapmem_ok(HeapMem *m, const void *p, uint64_t sz)
{
  uintptr_t first = (uintptr_t)p >> SAFELOAD_PAGE_BITS, last;
  if (((uintptr_t)p & 7) || first == 0 || sz == 0 || sz >> SAFELOAD_ADDR_BITS ||
      ((uintptr_t)p + sz - 1) >> SAFELOAD_ADDR_BITS)
    return 0;
  last = ((uintptr_t)p + sz - 1) >> SAFELOAD_PAGE_BITS;
  for (;; first++) {
    uint64_t *slot = &m->page[first & (HEAPMEM_PAGES - 1)];
    if (*slot != first) {
      if (!lj_safeload_probe(&m->load, first)) return 0;
      *slot = first;
    }
    if (first == last) return 1;
  }
}

#endif
