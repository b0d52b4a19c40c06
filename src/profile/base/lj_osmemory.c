/*
** Memory of a handler: map, touch, unmap.
** Context: any thread, outside of the handler.
*/

#define lj_osmemory_c
#define LUA_CORE

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* For madvise. */
#endif
#include <errno.h>
#include <stdint.h>
#include <sys/mman.h>

#include "profile/base/lj_osmemory.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Since Linux 5.14. */
#endif

void lj_osmemory_touch(void *p, size_t size)
{
  uintptr_t lo = (uintptr_t)p & ~(OSMEMORY_PAGE - 1), hi = (uintptr_t)p + size;
  int err = errno;
  if (size == 0) return;
  if (madvise((void *)lo, hi - lo, MADV_POPULATE_WRITE) != 0)
    for (lo = (uintptr_t)p; lo < hi; lo = (lo & ~(OSMEMORY_PAGE - 1)) + OSMEMORY_PAGE)
      __atomic_fetch_or((uint8_t *)lo, 0, __ATOMIC_RELAXED);
  errno = err;
}

void *lj_osmemory_new(size_t size, size_t touched)
{
  void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) return NULL;
  madvise(p, size, MADV_NOHUGEPAGE); /* A huge page would fill memory that nobody uses. */
  lj_osmemory_touch(p, touched < size ? touched : size);
  return p;
}

void lj_osmemory_free(void *p, size_t size)
{
  if (p) munmap(p, size);
}
