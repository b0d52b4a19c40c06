/*
** Memory of the process: what is resident, and what LuaJIT's allocator has mapped.
** Context: any thread, outside of the handler.
*/

#define lj_procmem_c
#define LUA_CORE

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profile/base/lj_procfile.h"
#include "profile/base/lj_procmem.h"
#include "profile/base/lj_relaxed.h"

static uint64_t mapped_bytes;

void lj_procmem_count(size_t mapped, size_t unmapped)
{
  __atomic_add_fetch(&mapped_bytes, (uint64_t)mapped - unmapped, __ATOMIC_RELAXED);
}

uint64_t lj_procmem_mapped(void)
{
  return relaxed_get(&mapped_bytes);
}

/* The second number of the file is in pages. */
uint64_t lj_procmem_resident(void)
{
  char text[128];
  int err = errno;
  const char *second = NULL;
  if (lj_procfile_read("/proc/self/statm", text, sizeof(text)) > 0)
    second = strchr(text, ' ');
  errno = err;
  return second ? strtoull(second, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
}
