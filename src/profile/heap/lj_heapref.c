/*
** State of the walk of a VM's heap, and references to objects in a snapshot.
** Context: child of a snapshot.
*/

#define lj_heapref_c
#define LUA_CORE

#include "lj_obj.h"
#include "profile/heap/lj_heapref.h"

void lj_heapref(HeapWalk *w, const void *o)
{
  uintptr_t addr = (uintptr_t)o;
  int64_t d = (int64_t)(addr >> 3) - (int64_t)(w->own >> 3);
  if (addr == 0 || (addr & 7) || addr >> SAFELOAD_ADDR_BITS) heapout_byte(&w->out, 0);
  else lj_heapout_uleb(&w->out, 1 + (((uint64_t)d << 1) ^ (uint64_t)(d >> 63)));
}

void lj_heapref_value(HeapWalk *w, cTValue *o)
{
  lj_heapref(w, tvisgcv(o) ? (const void *)gcval(o) : NULL);
}

int lj_heapref_isobj(HeapWalk *w, const void *o, size_t sz, uint32_t it)
{
  return heapmem_ok(&w->mem, o, sz) && ((const GChead *)o)->gct == (uint8_t)~it;
}
