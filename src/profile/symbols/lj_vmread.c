/*
** Reading objects of a VM that may be in any state.
*/

#define lj_vmread_c
#define LUA_CORE

#include "lj_obj.h"
#include "profile/symbols/lj_vmread.h"

int lj_vmread_ok(HeapRead *r, const void *p, size_t sz)
{
  uintptr_t first = (uintptr_t)p >> SAFELOAD_PAGE_BITS;
  uintptr_t last = ((uintptr_t)p + sz - 1) >> SAFELOAD_PAGE_BITS;
  if (first == 0 || ((uintptr_t)p >> SAFELOAD_ADDR_BITS) != 0) return 0;
  for (;; first++) {
    uint64_t *slot = &r->page[first & (HEAPREAD_PAGES - 1)];
    if (*slot != first) {
      if (!lj_safeload_probe(r->pk, first)) return 0;
      *slot = first;
    }
    if (first == last) return 1;
  }
}

int lj_vmread_isobj(HeapRead *r, const void *o, size_t sz, uint32_t it)
{
  return ((uintptr_t)o & 7) == 0 && lj_vmread_ok(r, o, sz) &&
	 ((const GChead *)o)->gct == (uint8_t)~it;
}

const GCproto *lj_vmread_proto(HeapRead *r, const GCfunc *fn)
{
  if (!lj_vmread_isobj(r, fn, offsetof(GCfuncL, uvptr), LJ_TFUNC) || !isluafunc(fn))
    return NULL;
  return funcproto(fn);
}

int lj_vmread_isproto(HeapRead *r, const GCproto *pt)
{
  const GCstr *str;
  if (!lj_vmread_isobj(r, pt, sizeof(GCproto), LJ_TPROTO)) return 0;
  str = proto_chunkname(pt);
  if (!lj_vmread_isobj(r, str, sizeof(GCstr), LJ_TSTR)) return 0;
  return lj_vmread_ok(r, strdata(str),
		      str->len < SYMTAB_CHUNK_MAX ? str->len + 1 : SYMTAB_CHUNK_MAX);
}

void lj_vmread_str(HeapRead *r, const GCstr *str, NamePart *name)
{
  name->s = NULL;
  name->len = 0;
  if (!lj_vmread_isobj(r, str, sizeof(GCstr), LJ_TSTR)) return;
  name->s = strdata(str);
  name->len = str->len < SYMTAB_NAME_MAX ? str->len : SYMTAB_NAME_MAX;
  if (name->len && !lj_vmread_ok(r, name->s, name->len)) name->len = 0;
}
