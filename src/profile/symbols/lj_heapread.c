/*
** Checked reading of a VM's heap: objects, strings, keys of tables.
** Context: VM thread; see the header.
*/

#define lj_heapread_c
#define LUA_CORE

#include "lj_obj.h"
#include "lj_tab.h"
#include "profile/symbols/lj_heapread.h"

/* -- Objects ------------------------------------------------------------------ */

int lj_heapread_ok(HeapRead *r, const void *p, size_t sz)
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

int lj_heapread_isobj(HeapRead *r, const void *o, size_t sz, uint32_t it)
{
  return ((uintptr_t)o & 7) == 0 && lj_heapread_ok(r, o, sz) &&
	 ((const GChead *)o)->gct == (uint8_t)~it;
}

const GCproto *lj_heapread_proto(HeapRead *r, const GCfunc *fn)
{
  if (!lj_heapread_isobj(r, fn, offsetof(GCfuncL, uvptr), LJ_TFUNC) || !isluafunc(fn))
    return NULL;
  return funcproto(fn);
}

int lj_heapread_iscfunc(HeapRead *r, const GCfunc *fn)
{
  return lj_heapread_isobj(r, fn, offsetof(GCfuncC, upvalue), LJ_TFUNC) && iscfunc(fn);
}

int lj_heapread_isproto(HeapRead *r, const GCproto *pt)
{
  const GCstr *str;
  if (!lj_heapread_isobj(r, pt, sizeof(GCproto), LJ_TPROTO)) return 0;
  str = proto_chunkname(pt);
  if (!lj_heapread_isobj(r, str, sizeof(GCstr), LJ_TSTR)) return 0;
  return lj_heapread_ok(r, strdata(str),
			str->len < FUNCTAB_CHUNK_MAX ? str->len + 1 : FUNCTAB_CHUNK_MAX);
}

/* -- Keys --------------------------------------------------------------------- */

/* Get the text of a string, cut to FUNCTAB_NAME_MAX bytes; empty if it cannot be read. */
static void read_str(HeapRead *r, const GCstr *str, NamePart *name)
{
  name->s = NULL;
  name->len = 0;
  if (!lj_heapread_isobj(r, str, sizeof(GCstr), LJ_TSTR)) return;
  name->s = strdata(str);
  name->len = str->len < FUNCTAB_NAME_MAX ? str->len : FUNCTAB_NAME_MAX;
  if (name->len && !lj_heapread_ok(r, name->s, name->len)) name->len = 0;
}

int lj_heapread_name(HeapRead *r, HeapKey *key)
{
  const GCstr *str = key->str;
  key->str = NULL;
  if (str) read_str(r, str, &key->name);
  return key->name.len != 0;
}

void lj_heapread_key(HeapKey *key, cTValue *o)
{
  key->str = o && tvisstr(o) ? (const GCstr *)heapread_obj(o) : NULL;
  key->name.s = NULL;
  key->name.len = 0;
}

int lj_heapread_is(const NamePart *np, const char *name)
{
  uint32_t i;
  for (i = 0; i < np->len; i++)
    if (np->s[i] != name[i] || !name[i]) return 0;
  return name[i] == '\0';
}

/* -- Tables ------------------------------------------------------------------- */

int lj_heapread_istab(HeapRead *r, const GCtab *t)
{
  return lj_heapread_isobj(r, t, sizeof(GCtab), LJ_TTAB) &&
	 ((mrefu(t->array) | mrefu(t->node)) & 7) == 0;
}

const Node *lj_heapread_node(HeapRead *r, const GCtab *t, uint32_t i)
{
  const Node *n = noderef(t->node) + i;
  if (i > t->hmask || i >= HEAPREAD_TABLE || r->slots == 0) return NULL;
  r->slots--;
  return lj_heapread_ok(r, n, sizeof(Node)) ? n : NULL;
}

cTValue *lj_heapread_field(HeapRead *r, const GCtab *t, const char *name)
{
  const Node *n;
  uint32_t i;
  for (i = 0; (n = lj_heapread_node(r, t, i)) != NULL; i++) {
    HeapKey key;
    lj_heapread_key(&key, &n->key);
    if (!tvisnil(&n->val) && lj_heapread_name(r, &key) && lj_heapread_is(&key.name, name))
      return &n->val;
  }
  return NULL;
}
