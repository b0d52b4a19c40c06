/*
** Heap names of C functions: modules, globals, metatables of userdata, variables.
** Context: VM thread; see the header.
*/

#define lj_heapcname_c
#define LUA_CORE

#include <string.h>

#include "lj_obj.h"
#include "profile/symbols/lj_cfunctab.h"
#include "profile/symbols/lj_heapcname.h"

/* Names of a lower grade are better: functions of modules, then globals, then by the length of
** the path. The registry comes after these, and variables come last.
*/
static uint32_t grade_of(const HeapSearch *s, uint32_t at, NameRank rank)
{
  uint32_t depth = s->item[at].depth, root = at;
  if (rank == NAME_UPVAL) return 16 + depth;
  while (s->item[root].parent) root = s->item[root].parent;
  if (root == s->loaded) return depth > 0 ? 2 * depth - 2 : 0;
  return root == s->globals ? 2 * depth + 1 : 8 + depth;
}

static int is_metakey(const NamePart *key)
{
  return key->len > 2 && key->s[0] == '_' && key->s[1] == '_';
}

/* Append to a name, as much as it has room for. Returns its length. */
static uint32_t append(char *name, uint32_t len, const char *s, uint32_t n)
{
  if (n > CFUNCTAB_NAME_MAX - len) n = CFUNCTAB_NAME_MAX - len;
  memcpy(name + len, s, n);
  return len + n;
}

/* Name of a C function in an item: a.b, or a:b for a method. Returns its length. */
static uint32_t cfunc_name(const HeapSearch *s, uint32_t at, const NamePart *key,
			   char *name)
{
  NamePart part[HEAPSEARCH_PARTS];
  uint32_t n = lj_heapsearch_path(s, at, key, part), i, len = 0;
  int is_method = s->item[at].methods && !is_metakey(key);
  for (i = HEAPSEARCH_PARTS - n; i < HEAPSEARCH_PARTS; i++) {
    int is_last = (i + 1 == HEAPSEARCH_PARTS);
    if (is_last && is_method) len = append(name, len, ":", 1);
    else if (i > HEAPSEARCH_PARTS - n) len = append(name, len, ".", 1);
    len = append(name, len, part[i].s, part[i].len);
  }
  return len;
}

void lj_heapcname_found(HeapSearch *s, const GCfuncC *fn, uint32_t at, NameRank rank,
			HeapKey *key)
{
  CFuncTab *ct = &s->ft->cfuncs;
  uintptr_t f = (uintptr_t)fn->f;
  const CFuncEntry *all = cfunctab_find(ct, 0, f), *e;
  char name[CFUNCTAB_NAME_MAX];
  uint32_t len, grade;
  if (!all) return;
  if (fn->nupvalues) cfunctab_names(ct, all)->has_upvals = 1;
  if (!lj_heapread_name(&s->read, key)) return;
  len = cfunc_name(s, at, &key->name, name);
  grade = grade_of(s, at, rank);
  lj_cfunctab_offer(ct, all, grade, name, len);
  e = cfunctab_find(ct, (uintptr_t)fn, f);
  if (e && lj_cfunctab_offer(ct, e, grade, name, len) && s->wanted > 0) s->wanted--;
}

/* Does a table look like a metatable? */
static int is_meta(HeapSearch *s, const GCtab *t)
{
  const Node *n;
  uint32_t i;
  if (!lj_heapread_istab(&s->read, t)) return 0;
  for (i = 0; (n = lj_heapread_node(&s->read, t, i)) != NULL; i++) {
    HeapKey key;
    lj_heapread_key(&key, &n->key);
    if (!tvisnil(&n->val) && lj_heapread_name(&s->read, &key) && is_metakey(&key.name))
      return 1;
  }
  return 0;
}

void lj_heapcname_meta(HeapSearch *s, const GCtab *mt, uint32_t at, NameRank rank,
		       const NamePart *name)
{
  HeapKey own;
  cTValue *o;
  HeapItem *it;
  if (!lj_heapread_istab(&s->read, mt) || !lj_heapsearch_visit(s, obj2gco(mt))) return;
  lj_heapread_key(&own, lj_heapread_field(&s->read, mt, "__name"));
  if (lj_heapread_name(&s->read, &own)) {
    at = 0;
    name = &own.name;
  }
  it = lj_heapsearch_enqueue(s, mt, at, s->item[at].depth + 1u, rank, name);
  if (!it) return;
  it->is_meta = 1;
  o = lj_heapread_field(&s->read, mt, "__index");
  it->methods = o && tvistab(o) && heapread_obj(o) == mt;
}

void lj_heapcname_metas(HeapSearch *s, const GCtab *reg, uint32_t at)
{
  const Node *n;
  uint32_t i;
  for (i = 0; (n = lj_heapread_node(&s->read, reg, i)) != NULL; i++) {
    const GCtab *t = (const GCtab *)heapread_obj(&n->val);
    HeapKey key;
    if (!tvistab(&n->val) || !is_meta(s, t)) continue;
    lj_heapread_key(&key, &n->key);
    lj_heapread_name(&s->read, &key);
    lj_heapcname_meta(s, t, at, NAME_PATH, &key.name);
  }
}
