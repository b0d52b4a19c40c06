/*
** Search of a VM's heap: set of visited objects, queue.
** Context: VM thread; see the header.
*/

#define lj_heapsearch_c
#define LUA_CORE

#include "lj_obj.h"
#include "profile/base/lj_hash.h"
#include "profile/symbols/lj_heapsearch.h"

int lj_heapsearch_visit(HeapSearch *s, const GCobj *o)
{
  const uint32_t mask = HEAPSEARCH_MAX * 2 - 1;
  uint32_t i = hash_slot((uintptr_t)o, HEAPSEARCH_BITS + 1);
  for (;; i++) {
    if (s->visited[i & mask] == o) return 0;
    if (!s->visited[i & mask]) break;
  }
  if (s->nitem == HEAPSEARCH_MAX) return 0; /* The hash set is half full. */
  s->visited[i & mask] = o;
  return 1;
}

HeapItem *lj_heapsearch_enqueue(HeapSearch *s, const void *o, uint32_t parent,
				uint32_t depth, NameRank rank, const NamePart *key)
{
  HeapItem *it;
  if (((uintptr_t)o & 7) != 0 || !lj_heapread_ok(&s->read, o, sizeof(GChead))) return NULL;
  it = &s->item[s->nitem++];
  it->o = (const GCobj *)o;
  it->parent = parent;
  it->depth = (uint8_t)depth;
  it->rank = (uint8_t)rank;
  it->key.s = key ? key->s : NULL;
  it->key.len = key ? key->len : 0;
  return it;
}

HeapItem *lj_heapsearch_push(HeapSearch *s, const void *o, uint32_t parent, uint32_t depth,
			     NameRank rank, const NamePart *key)
{
  return lj_heapsearch_visit(s, (const GCobj *)o)
	   ? lj_heapsearch_enqueue(s, o, parent, depth, rank, key)
	   : NULL;
}

uint32_t lj_heapsearch_path(const HeapSearch *s, uint32_t at, const NamePart *key,
			    NamePart *part)
{
  uint32_t n = HEAPSEARCH_PARTS;
  part[--n] = *key;
  for (; at && n > 0; at = s->item[at].parent)
    if (s->item[at].key.len) part[--n] = s->item[at].key;
  return HEAPSEARCH_PARTS - n;
}
