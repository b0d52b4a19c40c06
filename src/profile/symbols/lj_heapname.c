/*
** Heap names: where the program keeps a function.
** Context: VM thread; see the header.
*/

#define lj_heapname_c
#define LUA_CORE

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* For MAP_ANONYMOUS. */
#endif
#include <string.h>
#include <sys/mman.h>

#include "lj_obj.h"
#include "lj_gc.h"
#include "lj_bc.h"
#include "profile/base/lj_hash.h"
#include "profile/symbols/lj_bcname.h"
#include "profile/symbols/lj_bodyhash.h"
#include "profile/symbols/lj_heapcname.h"
#include "profile/symbols/lj_heapname.h"
#include "profile/symbols/lj_heapsearch.h"

#define SLOTS_MAX   (1u << 20) /* Slots of tables read in total. */
#define INS_MAX     (1u << 21) /* Instructions read. */
#define STACK_MAX   10000      /* Slots of a Lua stack read. */
#define MODULES_MAX 1024       /* Modules that are compared with one of two names. */

/* -- Lua functions ----------------------------------------------------------- */

/* Slot of the entry that leads those of a prototype. */
static uint16_t *lead_slot(HeapSearch *s, const GCproto *pt)
{
  const uint32_t mask = FUNCTAB_FUNCS * 2 - 1;
  uint32_t i = hash_slot((uintptr_t)pt, FUNCTAB_BITS + 1);
  while (s->lead[i] && s->ft->func[s->lead[i] - 1].pt != pt) i = (i + 1) & mask;
  return &s->lead[i];
}

/* The entry of a prototype that gets its names, NULL if no sample has seen it. A full table gives
** a function several ids.
*/
static FuncEntry *lead_of(HeapSearch *s, const GCproto *pt)
{
  uint32_t e = *lead_slot(s, pt);
  return e ? &s->ft->func[e - 1] : NULL;
}

/* Is this the entry of a live function without a good name or path? */
static int is_wanted(HeapSearch *s, const FuncEntry *lf)
{
  return lf->pt && lf->rank < NAME_DEF && s->path[lf - s->ft->func].rank < NAME_DEF &&
	 lead_of(s, lf->pt) == lf && !lj_functab_ismain(lf->pt); /* That needs none. */
}

/* Join the parts of a name. A function with the parameter self is a method. */
static void join(HeapSearch *s, const FuncEntry *lf, NameText *to, const NamePart *part,
		 uint32_t n)
{
  lj_functab_join(to, part, n, n > 1 && lj_bcname_isself(s->read.pk, lf->pt) ? ':' : '.');
}

static void name_func(HeapSearch *s, FuncEntry *lf, NameRank rank, const NamePart *part,
		      uint32_t n)
{
  int wanted = is_wanted(s, lf);
  NameText text;
  if (n == 0) return;
  join(s, lf, &text, part, n);
  lj_functab_settext(s->ft, lf, rank, &text, NULL);
  if (wanted && lf->rank >= NAME_DEF) s->wanted--;
}

/* The search has found a Lua function in a table of an item, or without one in a variable. */
static void found_func(HeapSearch *s, FuncEntry *lf, uint32_t at, NameRank rank,
		       HeapKey *key)
{
  HeapPath *path = &s->path[lf - s->ft->func];
  NamePart part[HEAPSEARCH_PARTS];
  uint32_t n;
  if (lf->rank == NAME_PATH || (at ? path->rank : lf->rank) >= rank ||
      !lj_heapread_name(&s->read, key))
    return;
  n = lj_heapsearch_path(s, at, &key->name, part);
  if (at) {
    path->rank = (uint8_t)rank;
    join(s, lf, &path->text, part + HEAPSEARCH_PARTS - n, n);
  } else {
    name_func(s, lf, rank, part + HEAPSEARCH_PARTS - n, n);
  }
}

/* Read an upvalue of a function. Returns NULL if it cannot be read. */
static cTValue *read_upval(HeapSearch *s, const GCfuncL *fn, uint32_t i)
{
  const GCupval *uv;
  cTValue *o;
  s->read.slots--;
  if (!lj_heapread_ok(&s->read, &fn->uvptr[i], sizeof(GCRef))) return NULL;
  uv = (const GCupval *)gcref(fn->uvptr[i]);
  if (!lj_heapread_isobj(&s->read, uv, sizeof(GCupval), LJ_TUPVAL)) return NULL;
  o = uvval(uv);
  return ((uintptr_t)o & 7) == 0 && lj_heapread_ok(&s->read, o, sizeof(TValue)) ? o : NULL;
}

/* If an upvalue holds the function itself, the function was defined as this variable. */
static void found_itself(HeapSearch *s, FuncEntry *lf, const GCfuncL *fn)
{
  NamePart name;
  uint32_t i;
  for (i = 0; i < fn->nupvalues && s->read.slots > 0 && lf->rank < NAME_DEF; i++) {
    cTValue *o = read_upval(s, fn, i);
    if (o && tvisfunc(o) && heapread_obj(o) == (const void *)fn &&
	lj_bcname_upval(s->read.pk, lf->pt, i, &name))
      name_func(s, lf, NAME_DEF, &name, 1);
  }
}

static void found_lua(HeapSearch *s, const GCfunc *fn, const GCproto *pt, uint32_t at,
		      NameRank rank, HeapKey *key)
{
  FuncEntry *lf = lead_of(s, pt);
  if (lf) {
    found_func(s, lf, at, rank, key);
    found_itself(s, lf, &fn->l);
  }
  lj_heapsearch_push(s, fn, 0, 0, NAME_UPVAL, NULL);
}

/* -- Values found ----------------------------------------------------------- */

/* Does a global name lead to the module, as vim to vim.shared? */
static int is_above(const NamePart *global, const NamePart *module)
{
  return global->len < module->len && module->s[global->len] == '.' &&
	 memcmp(global->s, module->s, global->len) == 0;
}

/* Of two names of a module, the shorter one counts. at: the loaded modules, or the globals. */
static void prefer_name(HeapSearch *s, const void *module, uint32_t at,
			const NamePart *name)
{
  uint32_t i;
  for (i = 1; i < s->nitem && i < MODULES_MAX; i++) {
    HeapItem *it = &s->item[i];
    if ((const void *)it->o != module || it->parent != s->loaded) continue;
    if (at == s->globals
	  ? is_above(name, &it->key)
	  : name->len < it->key.len ||
	      (name->len == it->key.len && memcmp(name->s, it->key.s, name->len) < 0))
      it->key = *name;
    return;
  }
}

/* The fields that a class inherits are its own. */
static void found_table(HeapSearch *s, const GCtab *t, uint32_t at, NameRank rank,
			const NamePart *name)
{
  int inherits = at && lj_heapread_is(name, "__index");
  HeapItem *it = lj_heapsearch_push(s, t, at, s->item[at].depth + 1u, rank,
				    inherits ? NULL : name);
  if (it) it->methods = (uint8_t)(inherits && s->item[at].is_meta);
  else if (at && (at == s->loaded || at == s->globals)) prefer_name(s, t, at, name);
}

/* The search has found a value in an item. */
static void found(HeapSearch *s, cTValue *o, uint32_t at, NameRank rank, HeapKey *key)
{
  const void *obj = heapread_obj(o);
  if (tvisfunc(o)) {
    const GCfunc *fn = (const GCfunc *)obj;
    const GCproto *pt = lj_heapread_proto(&s->read, fn);
    if (pt) found_lua(s, fn, pt, at, rank, key);
    else if (lj_heapread_iscfunc(&s->read, fn))
      lj_heapcname_found(s, &fn->c, at, rank, key);
  } else if (s->item[at].depth < HEAPSEARCH_DEPTH && tvistab(o)) {
    if (lj_heapread_name(&s->read, key))
      found_table(s, (const GCtab *)obj, at, rank, &key->name);
  } else if (s->item[at].depth < HEAPSEARCH_DEPTH && tvisudata(o)) {
    const GCudata *ud = (const GCudata *)obj;
    if (lj_heapread_isobj(&s->read, ud, sizeof(GCudata), LJ_TUDATA) &&
	gcref(ud->metatable) && lj_heapread_name(&s->read, key))
      lj_heapcname_meta(s, (const GCtab *)gcref(ud->metatable), at, rank, &key->name);
  }
}

/* -- Searching objects ------------------------------------------------------ */

/* Search a table, and its metatable later. */
static void search_table(HeapSearch *s, uint32_t at)
{
  const GCtab *t = &s->item[at].o->tab;
  NameRank rank = (NameRank)s->item[at].rank;
  const Node *n;
  HeapKey key;
  uint32_t i;
  if (!lj_heapread_istab(&s->read, t)) return;
  for (i = 0; i < t->asize && i < HEAPREAD_TABLE && s->read.slots > 0; i++) {
    cTValue *o = tvref(t->array) + i;
    s->read.slots--;
    if (!lj_heapread_ok(&s->read, o, sizeof(TValue))) break;
    lj_heapread_key(&key, NULL);
    found(s, o, at, rank, &key);
  }
  for (i = 0; (n = lj_heapread_node(&s->read, t, i)) != NULL; i++) {
    lj_heapread_key(&key, &n->key);
    found(s, &n->val, at, rank, &key);
  }
  if (gcref(t->metatable) && s->item[at].depth < HEAPSEARCH_DEPTH)
    lj_heapsearch_push(s, gcref(t->metatable), at, s->item[at].depth + 1u, rank, NULL);
}

/* Search the upvalues of a function. */
static void search_func(HeapSearch *s, const GCfuncL *fn, const GCproto *pt)
{
  uint32_t i;
  for (i = 0; i < fn->nupvalues && s->read.slots > 0; i++) {
    cTValue *o = read_upval(s, fn, i);
    HeapKey key = { NULL, { NULL, 0 } };
    if (!o || !(tvisfunc(o) || tvistab(o) || tvisudata(o))) continue;
    if (!lj_bcname_upval(s->read.pk, pt, i, &key.name)) key.name.len = 0;
    found(s, o, 0, NAME_UPVAL, &key);
  }
}

/* Search the functions that a function makes. */
static void search_proto(HeapSearch *s, const GCproto *pt)
{
  BCPos pos;
  if (!lj_heapread_isobj(&s->read, pt, sizeof(GCproto), LJ_TPROTO) ||
      !(pt->flags & PROTO_CHILD))
    return;
  for (pos = 1; pos < pt->sizebc && s->ins > 0; pos++, s->ins--) {
    const BCIns *ins = proto_bc(pt) + pos;
    const GCproto *child;
    const GCRef *k;
    FuncEntry *lf;
    if (!lj_heapread_ok(&s->read, ins, sizeof(BCIns))) return;
    if (bc_op(*ins) != BC_FNEW) continue;
    k = mref(pt->k, const GCRef) - 1 - (ptrdiff_t)bc_d(*ins);
    if (bc_d(*ins) >= pt->sizekgc || ((uintptr_t)k & 7) != 0 ||
	!lj_heapread_ok(&s->read, k, sizeof(GCRef)))
      continue;
    child = (const GCproto *)gcref(*k);
    lf = lead_of(s, child);
    if (lf && lf->rank < NAME_DEF) {
      NamePart part[NAMEPATH_MAX];
      uint32_t n = lj_bcname_new(s->read.pk, pt, pos, part);
      name_func(s, lf, NAME_DEF, part, n);
    }
    if (lj_heapread_isobj(&s->read, child, sizeof(GCproto), LJ_TPROTO) &&
	(child->flags & PROTO_CHILD))
      lj_heapsearch_push(s, child, 0, 0, NAME_DEF, NULL);
  }
}

/* Search the functions on the stack of a coroutine. */
static void search_stack(HeapSearch *s, const lua_State *L)
{
  cTValue *o, *end;
  if (!lj_heapread_isobj(&s->read, L, sizeof(lua_State), LJ_TTHREAD)) return;
  o = tvref(L->stack);
  end = o + (L->stacksize < STACK_MAX ? L->stacksize : STACK_MAX);
  if (end > L->top) end = L->top;
  if (((uintptr_t)o & 7) != 0) return;
  for (; o < end && lj_heapread_ok(&s->read, o, sizeof(TValue)); o++) {
    HeapKey key;
    lj_heapread_key(&key, NULL);
    found(s, o, 0, NAME_UPVAL, &key);
  }
}

/* Is the prototype of an entry alive, and readable? The collector frees strings before prototypes:
** the name of a dead one's chunk may be another string by now. The table may have missed that the
** VM freed it: then another prototype may be in its place.
*/
static int is_alive(HeapSearch *s, const FuncEntry *lf)
{
  const GCproto *pt = lf->pt;
  return lj_heapread_isproto(&s->read, pt) && !isdead(s->g, obj2gco(pt)) &&
	 lj_functab_key(pt, pt, proto_chunkname(pt)) == lf->key;
}

/* Does the VM still exist? A program may have freed its memory without lua_close. Forgets
** prototypes that are not alive.
*/
static int check_vm(HeapSearch *s)
{
  uint32_t i;
  int valid = lj_heapread_ok(&s->read, s->g, sizeof(global_State)) &&
	      lj_heapread_isobj(&s->read, mainthread(s->g), sizeof(lua_State), LJ_TTHREAD);
  for (i = 0; i < FUNCTAB_FUNCS; i++) {
    FuncEntry *lf = &s->ft->func[i];
    if (lf->pt && !(valid && is_alive(s, lf))) lf->pt = NULL;
  }
  return valid;
}

/* Begin with the roots of all paths: the loaded modules, the globals, and the registry,
** where C libraries keep their tables.
*/
static void search_roots(HeapSearch *s)
{
  cTValue *o = &s->g->registrytv;
  const GCtab *globals = tabref(mainthread(s->g)->env);
  const GCtab *reg = tvistab(o) ? (const GCtab *)heapread_obj(o) : NULL;
  const HeapItem *it;
  lj_heapsearch_visit(
    s, obj2gco(globals)); /* The globals are also a loaded module, without a name. */
  if (reg && !lj_heapread_istab(&s->read, reg)) reg = NULL;
  o = reg ? lj_heapread_field(&s->read, reg, "_LOADED") : NULL;
  it = o && tvistab(o) ? lj_heapsearch_push(s, heapread_obj(o), 0, 0, NAME_PATH, NULL)
		       : NULL;
  if (it) s->loaded = (uint32_t)(it - s->item);
  it = lj_heapsearch_enqueue(s, globals, 0, 0, NAME_PATH, NULL);
  if (it) s->globals = (uint32_t)(it - s->item);
  it = reg ? lj_heapsearch_push(s, reg, 0, 0, NAME_PATH, NULL) : NULL;
  if (it) lj_heapcname_metas(s, reg, (uint32_t)(it - s->item));
}

/* Search a Lua function or a prototype. */
static void search_code(HeapSearch *s, const GCobj *o)
{
  if (o->gch.gct == (uint8_t)~LJ_TFUNC) {
    const GCproto *pt = lj_heapread_proto(&s->read, &o->fn);
    if (!pt || !lj_heapread_isobj(&s->read, pt, sizeof(GCproto), LJ_TPROTO)) return;
    search_func(s, &o->fn.l, pt);
    lj_heapsearch_push(s, pt, 0, 0, NAME_DEF, NULL);
  } else if (o->gch.gct == (uint8_t)~LJ_TPROTO) {
    search_proto(s, &o->pt);
  }
}

/* Search the objects with a path first, then upvalues and definitions. */
static void search_all(HeapSearch *s)
{
  uint32_t i, first, end;
  search_roots(s);
  for (i = 1; i < s->nitem; i++)
    if (s->item[i].o->gch.gct == (uint8_t)~LJ_TTAB) search_table(s, i);
  first = s->nitem;
  s->wanted = 0;
  for (i = 0; i < FUNCTAB_FUNCS; i++) {
    FuncEntry *lf = &s->ft->func[i];
    if (lf->pt) lj_heapsearch_push(s, lf->pt, 0, 0, NAME_DEF, NULL);
    s->wanted += (uint32_t)is_wanted(s, lf);
  }
  for (i = 0; i < CFUNCTAB_FUNCS; i++) {
    const CFuncEntry *e = &s->ft->cfuncs.entry[i];
    s->wanted += (uint32_t)(cfunctab_isclosure(e) && !cfunctab_names(&s->ft->cfuncs, e)->n);
  }
  for (i = first; i < s->nitem; i++) /* Likely objects first. */
    search_code(s, s->item[i].o);
  end = s->nitem;
  search_stack(s, mainthread(s->g));
  if (gcref(s->g->cur_L)) search_stack(s, gco2th(gcref(s->g->cur_L)));
  for (i = 1; i < s->nitem && s->wanted > 0; i++) {
    if (i >= first && i < end) continue; /* Visited above. */
    if (i >= end && s->item[i].rank == NAME_UPVAL &&
	s->item[i].o->gch.gct == (uint8_t)~LJ_TTAB)
      search_table(s, i);
    else search_code(s, s->item[i].o);
  }
}

/* -- Names and paths --------------------------------------------------------- */

/* Where the last part of a name begins. */
static uint32_t last_part(const char *s, uint32_t len)
{
  while (len > 0 && s[len - 1] != '.' && s[len - 1] != ':') len--;
  return len;
}

static int same_end(const FuncEntry *lf, const NameText *path)
{
  uint32_t i = last_part(lf->name, lf->namelen), j = last_part(path->s, path->len);
  return lf->namelen - i == path->len - j &&
	 memcmp(lf->name + i, path->s + j, path->len - j) == 0;
}

/* The name of a definition leads. The path follows it, or takes its place if both end alike. Other
** names are worse than a path.
*/
static void name_paths(HeapSearch *s)
{
  uint32_t i;
  for (i = 0; i < FUNCTAB_FUNCS; i++) {
    FuncEntry *lf = &s->ft->func[i];
    const HeapPath *path = &s->path[i];
    NameText def;
    if (path->rank == NAME_NONE || !lf->pt) continue;
    if (lf->rank != NAME_DEF || same_end(lf, &path->text)) {
      lj_functab_settext(s->ft, lf, (NameRank)path->rank, &path->text, NULL);
    } else {
      def.len = lf->namelen;
      memcpy(def.s, lf->name, def.len);
      lj_functab_settext(s->ft, lf, NAME_PATH, &def, &path->text);
    }
  }
}

/* -- Functions with several ids ----------------------------------------------- */

/* Give an entry the name of another one of its function. Callers may have named them differently:
** then a higher rank tells that the name is new.
*/
static void copy_name(HeapSearch *s, FuncEntry *to, const FuncEntry *from)
{
  int is_tie = to->rank == from->rank;
  NameText name, path;
  if (is_tie && to->namelen == from->namelen &&
      memcmp(to->name, from->name, to->namelen) == 0)
    return;
  name.len = from->namelen;
  memcpy(name.s, from->name, name.len);
  path.len = from->pathlen;
  memcpy(path.s, functab_path(s->ft, from), path.len);
  lj_functab_settext(s->ft, to, is_tie ? NAME_SAME : (NameRank)from->rank, &name, &path);
}

/* Of each function, an entry with the best name leads. */
static void choose_leads(HeapSearch *s)
{
  uint32_t i;
  for (i = 0; i < FUNCTAB_FUNCS; i++) {
    const FuncEntry *lf = &s->ft->func[i];
    uint16_t *slot;
    if (!lf->pt) continue;
    slot = lead_slot(s, lf->pt);
    if (*slot == 0 || s->ft->func[*slot - 1].rank < lf->rank) *slot = (uint16_t)(i + 1);
  }
}

/* All ids of a function get the same name. */
static void name_all_ids(HeapSearch *s)
{
  uint32_t i;
  for (i = 0; i < FUNCTAB_FUNCS; i++) {
    FuncEntry *lf = &s->ft->func[i];
    const FuncEntry *lead = lf->pt ? lead_of(s, lf->pt) : NULL;
    if (lead && lead != lf && lead->rank != NAME_NONE) copy_name(s, lf, lead);
  }
}

int lj_heapname_find(FuncTab *ft, SafeLoad *pk, global_State *g)
{
  HeapSearch *s;
  int valid;
  if (ft->nfid == 0 && ft->cfuncs.n == 0) return 0;
  s = (HeapSearch *)mmap(NULL, sizeof(HeapSearch), PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (s == MAP_FAILED) return 0;
  lj_safeload_reset(pk);
  s->ft = ft;
  s->read.pk = pk;
  s->g = g;
  s->nitem = 1;
  lj_cfunctab_unname(&ft->cfuncs);
  s->read.slots = SLOTS_MAX;
  s->ins = INS_MAX;
  valid = check_vm(s);
  if (valid) {
    choose_leads(s);
    search_all(s);
    name_paths(s);
    name_all_ids(s);
    lj_bodyhash_all(ft, &s->read, g);
  }
  munmap(s, sizeof(HeapSearch));
  return valid;
}
