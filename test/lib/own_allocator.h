/*
** Allocator of a host for its VMs: counts what it provides; wrappers around any allocator.
*/

#ifndef OWN_ALLOCATOR_H
#define OWN_ALLOCATOR_H

#include <stdint.h>
#include <stdlib.h>

#include "lua.h"

/* What the allocator has provided and taken back, on this thread. */
typedef struct Given {
  uint64_t blocks, bytes, freed;
} Given;

static __thread Given given;

/* Data of the allocator. Clear it before use. */
typedef struct Host {
  int64_t live; /* Blocks that are not freed. */
} Host;

static inline void *host_alloc(void *ud, void *p, size_t osize, size_t nsize)
{
  Host *h = (Host *)ud;
  void *q = NULL;
  if (nsize == 0) {
    if (p) __atomic_sub_fetch(&h->live, 1, __ATOMIC_RELAXED);
    free(p);
  } else {
    q = realloc(p, nsize);
    if (!q) return NULL;
    if (!p) __atomic_add_fetch(&h->live, 1, __ATOMIC_RELAXED);
    given.blocks++;
    given.bytes += nsize;
  }
  if (p) given.freed += osize;
  return q;
}

typedef struct Wrapper {
  lua_Alloc f;
  void *ud;
} Wrapper;

static inline void *wrap_alloc(void *ud, void *p, size_t osize, size_t nsize)
{
  Wrapper *w = (Wrapper *)ud;
  return w->f(w->ud, p, osize, nsize);
}

/* Put a wrapper around the VM's allocator. */
static inline void wrap(lua_State *L, Wrapper *w)
{
  w->f = lua_getallocf(L, &w->ud);
  lua_setallocf(L, wrap_alloc, w);
}

#endif
