/*
** Unwind rows that a module has computed: lookup, and the table.
** Context: handler, under the lock for add; see the header.
*/

#define lj_rowtab_c
#define LUA_CORE

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* For _dl_find_object. */
#endif
#include <string.h>

#include "profile/base/lj_osloaded.h"
#include "profile/host/lj_rowtab.h"

/* The first nobjects never change. */
static RowObject objects[ROWTAB_OBJECTS];
static uint32_t nobjects;

int lj_rowtab_add(const RowObject *o)
{
  uint32_t n = nobjects;
  if (n == ROWTAB_OBJECTS) return 0;
  objects[n] = *o;
  __atomic_store_n(&nobjects, n + 1, __ATOMIC_RELEASE);
  return 1;
}

/* Rows of the object that begins at an address, by its build-id, or NULL. */
static const RowObject *object_find(SafeLoad *pk, uintptr_t begin)
{
  uint32_t n = 0, len = 0, count = __atomic_load_n(&nobjects, __ATOMIC_ACQUIRE), i;
  uint8_t id[ELFNOTE_ID_MAX];
  const void *ph = lj_elfnote_headers(pk, begin, &n);
  const uint8_t *at =
    ph ? lj_elfnote_segments(pk, ph, n, lj_elfnote_bias(pk, begin, ph, n), &len) : NULL;
  if (!at || len > sizeof(id) || !lj_safeload_copy(pk, id, at, len)) return NULL;
  for (i = 0; i < count; i++)
    if (objects[i].idlen == len && memcmp(objects[i].id, id, len) == 0) return &objects[i];
  return NULL;
}

const CfiRule *lj_rowtab_find(RowMemo *memo, SafeLoad *pk, uintptr_t pc)
{
  const TabRow *row;
  uintptr_t ofs;
  uint32_t lo, hi;
  if (memo->generation != pk->generation || pc - memo->begin >= memo->end - memo->begin) {
    struct dl_find_object found;
    if (osloaded_find(pk, pc, &found) != 0) return NULL;
    memo->begin = (uintptr_t)found.dlfo_map_start;
    memo->end = (uintptr_t)found.dlfo_map_end;
    memo->generation = pk->generation;
    memo->object = object_find(pk, memo->begin);
  }
  if (!memo->object) {
    memo->missing |= memo->begin != memo->asked;
    memo->asked = memo->begin;
    return NULL;
  }
  row = memo->object->row;
  ofs = pc - memo->begin;
  for (lo = 0, hi = memo->object->n; lo < hi;) { /* First row above the address. */
    uint32_t mid = lo + (hi - lo) / 2;
    if (ofs < row[mid].begin) hi = mid;
    else lo = mid + 1;
  }
  return lo > 0 && row[lo - 1].rule.depth ? &row[lo - 1].rule : NULL;
}
