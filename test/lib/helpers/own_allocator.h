/*
** Allocator of a host for its VMs: counts what it provides, and what is left of it; wrappers
** around any allocator.
*/

#ifndef OWN_ALLOCATOR_H
#define OWN_ALLOCATOR_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lua.h"

/* What the allocator has provided and taken back, on this thread. */
typedef struct Given {
  uint64_t blocks, bytes, freed;
} Given;

static __thread Given given;

/* What is left of the blocks that threads have provided since a moment. */
typedef struct Left {
  uint32_t moment; /* Blocks with this mark count. */
  uint64_t blocks, bytes;
} Left;

static Left left;
static __thread uint32_t given_mark; /* Of the blocks that this thread provides. */

/* Stands in front of each block. */
typedef struct BlockHead {
  uint32_t mark;
  uint64_t size;
} BlockHead;

/* From now on, the blocks that this thread provides count. */
static inline void left_begin(void)
{
  memset(&given, 0, sizeof(given));
  left.blocks = left.bytes = 0;
  given_mark = ++left.moment;
}

static inline void left_count(const BlockHead *b, int sign)
{
  if (b->mark == 0 || b->mark != __atomic_load_n(&left.moment, __ATOMIC_RELAXED)) return;
  __atomic_add_fetch(&left.blocks, (uint64_t)sign, __ATOMIC_RELAXED);
  __atomic_add_fetch(&left.bytes, (uint64_t)sign * b->size, __ATOMIC_RELAXED);
}

/* Data of the allocator. Clear it before use. */
typedef struct Host {
  int64_t live;    /* Blocks that are not freed. */
  size_t most;     /* It refuses larger blocks; 0: none. */
  int64_t refused; /* So many. */
} Host;

static inline void *host_alloc(void *ud, void *p, size_t osize, size_t nsize)
{
  Host *h = (Host *)ud;
  BlockHead *b = p ? (BlockHead *)p - 1 : NULL;
  if (nsize == 0 && !p) return NULL;
  if (h->most && nsize > h->most && nsize > osize) {
    h->refused++;
    return NULL;
  }
  if (p) left_count(b, -1);
  if (p) given.freed += osize;
  if (nsize == 0) {
    __atomic_sub_fetch(&h->live, 1, __ATOMIC_RELAXED);
    free(b);
    return NULL;
  }
  b = (BlockHead *)realloc(b, sizeof(*b) + nsize);
  if (!b) abort();
  if (!p) __atomic_add_fetch(&h->live, 1, __ATOMIC_RELAXED);
  given.blocks++;
  given.bytes += nsize;
  b->mark = given_mark;
  b->size = nsize;
  left_count(b, 1);
  return b + 1;
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
