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
#include "profile/symbols/lj_heapname.h"
#include "profile/symbols/lj_heapread.h"

#define OBJECTS_BITS 17
#define OBJECTS_MAX  (1u << OBJECTS_BITS) /* Objects visited. */
#define SLOTS_MAX    (1u << 20)           /* Slots of tables read in total. */
#define INS_MAX      (1u << 21)           /* Instructions read. */
#define STACK_MAX    10000                /* Slots of a Lua stack read. */
#define DEPTH_MAX    3                    /* Tables on the way to a function. */
#define PARTS_MAX    (DEPTH_MAX + 2)      /* Parts of a path. */
#define MODULES_MAX  1024 /* Modules that are compared with one of two names. */

/* -- The search ------------------------------------------------------------- */

/* An object of the search, and the path to it. */
typedef struct Item {
  const GCobj *o;  /* A table, a Lua function, a prototype. */
  uint32_t parent; /* Item that holds it, 0 for none. */
  uint8_t depth;   /* Tables on the way. */
  uint8_t rank;    /* NameRank of the names found in it. */
  uint8_t is_meta; /* Metatable of userdata: its __index holds methods. */
  uint8_t methods; /* Its functions are methods of userdata. */
  NamePart key;    /* Under which it is held, may be empty. */
} Item;

/* Path to a function. */
typedef struct HeapPath {
  uint8_t rank; /* NAME_UPVAL, NAME_PATH, or NAME_NONE without one. */
  NameText text;
} HeapPath;

/* All memory of a search, in one mapping. */
typedef struct Search {
  FuncTab *ft;
  HeapRead read;
  global_State *g;
  uint32_t nitem;               /* Items used. The first one is none. */
  uint32_t loaded, globals;     /* Items of the loaded modules and the globals, or 0. */
  uint32_t ins;                 /* Instructions still to be read at most. */
  uint32_t wanted;              /* Functions without a good name. */
  HeapPath path[FUNCTAB_FUNCS]; /* By entry. */
  const GCobj *visited[OBJECTS_MAX * 2]; /* Hash set. */
  Item item[OBJECTS_MAX];                /* Queue. */
} Search;

/* -- Objects found ---------------------------------------------------------- */

/* Add an object to the set. Returns 0 if it is known, or without room. */
static int visit(Search *s, const GCobj *o)
{
  const uint32_t mask = OBJECTS_MAX * 2 - 1;
  uint32_t i = hash_slot((uintptr_t)o, OBJECTS_BITS + 1);
  for (;; i++) {
    if (s->visited[i & mask] == o) return 0;
    if (!s->visited[i & mask]) break;
  }
  if (s->nitem == OBJECTS_MAX) return 0; /* The hash set is half full. */
  s->visited[i & mask] = o;
  return 1;
}

/* Returns the item, NULL if the object is not readable. */
static Item *enqueue(Search *s, const void *o, uint32_t parent, uint32_t depth,
		     NameRank rank, const NamePart *key)
{
  Item *it;
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

/* Returns the item of an object that is new, else NULL. */
static Item *push(Search *s, const void *o, uint32_t parent, uint32_t depth, NameRank rank,
		  const NamePart *key)
{
  return visit(s, (const GCobj *)o) ? enqueue(s, o, parent, depth, rank, key) : NULL;
}

/* Path to a value in an item. Returns the number of parts, which are the last ones of part. */
static uint32_t path_of(const Search *s, uint32_t at, const NamePart *key, NamePart *part)
{
  uint32_t n = PARTS_MAX;
  part[--n] = *key;
  for (; at && n > 0; at = s->item[at].parent)
    if (s->item[at].key.len) part[--n] = s->item[at].key;
  return PARTS_MAX - n;
}

/* Is this the entry of a live function without a good name or path? */
static int is_wanted(Search *s, const FuncEntry *lf)
{
  return lf->pt && lf->rank < NAME_DEF && s->path[lf - s->ft->func].rank < NAME_DEF &&
	 lj_functab_find(s->ft, lf->pt) == lf &&
	 !lj_functab_ismain(lf->pt); /* That needs none. */
}

/* Join the parts of a name. A function with the parameter self is a method. */
static void join(Search *s, const FuncEntry *lf, NameText *to, const NamePart *part,
		 uint32_t n)
{
  lj_functab_join(to, part, n, n > 1 && lj_bcname_isself(s->read.pk, lf->pt) ? ':' : '.');
}

static void name_func(Search *s, FuncEntry *lf, NameRank rank, const NamePart *part,
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
static void found_func(Search *s, FuncEntry *lf, uint32_t at, NameRank rank, HeapKey *key)
{
  HeapPath *path = &s->path[lf - s->ft->func];
  NamePart part[PARTS_MAX];
  uint32_t n;
  if (lf->rank == NAME_PATH || (at ? path->rank : lf->rank) >= rank ||
      !lj_heapread_name(&s->read, key))
    return;
  n = path_of(s, at, &key->name, part);
  if (at) {
    path->rank = (uint8_t)rank;
    join(s, lf, &path->text, part + PARTS_MAX - n, n);
  } else {
    name_func(s, lf, rank, part + PARTS_MAX - n, n);
  }
}

/* Read an upvalue of a function. Returns NULL if it cannot be read. */
static cTValue *read_upval(Search *s, const GCfuncL *fn, uint32_t i)
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
static void found_itself(Search *s, FuncEntry *lf, const GCfuncL *fn)
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

static void found_lua(Search *s, const GCfunc *fn, const GCproto *pt, uint32_t at,
		      NameRank rank, HeapKey *key)
{
  FuncEntry *lf = lj_functab_find(s->ft, pt);
  if (lf) {
    found_func(s, lf, at, rank, key);
    found_itself(s, lf, &fn->l);
  }
  push(s, fn, 0, 0, NAME_UPVAL, NULL);
}

/* -- C functions ------------------------------------------------------------ */

/* Names of a lower grade are better: functions of modules, then globals, then by the length of
** the path. The registry comes after these, and variables come last.
*/
static uint32_t grade_of(const Search *s, uint32_t at, NameRank rank)
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

/* Name of a C function in an item: a.b, or a:b for a method. Returns its length. */
static uint32_t cfunc_name(const Search *s, uint32_t at, const NamePart *key, char *name)
{
  NamePart part[PARTS_MAX];
  uint32_t n = path_of(s, at, key, part), i, len = 0;
  int is_method = s->item[at].methods && !is_metakey(key);
  for (i = PARTS_MAX - n; i < PARTS_MAX; i++) {
    int is_last = (i + 1 == PARTS_MAX);
    uint32_t room;
    if (is_last && is_method) name[len++] = ':';
    else if (i > PARTS_MAX - n) name[len++] = '.';
    room = CFUNCTAB_NAME_MAX - 1 - len;
    if (part[i].len < room) room = part[i].len;
    memcpy(name + len, part[i].s, room);
    len += room;
  }
  return len;
}

static void found_c(Search *s, const GCfuncC *fn, uint32_t at, NameRank rank, HeapKey *key)
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
static int is_meta(Search *s, const GCtab *t)
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

/* Push a metatable of userdata. __name is its name, or else the path of a value that has it. */
static void push_meta(Search *s, const GCtab *mt, uint32_t at, NameRank rank,
		      const NamePart *name)
{
  HeapKey own;
  cTValue *o;
  Item *it;
  if (!lj_heapread_istab(&s->read, mt) || !visit(s, obj2gco(mt))) return;
  lj_heapread_key(&own, lj_heapread_field(&s->read, mt, "__name"));
  if (lj_heapread_name(&s->read, &own)) {
    at = 0;
    name = &own.name;
  }
  it = enqueue(s, mt, at, s->item[at].depth + 1u, rank, name);
  if (!it) return;
  it->is_meta = 1;
  o = lj_heapread_field(&s->read, mt, "__index");
  it->methods = o && tvistab(o) && heapread_obj(o) == mt;
}

/* C libraries keep metatables in the registry. Push them before other values lead there. */
static void push_metas(Search *s, const GCtab *reg, uint32_t at)
{
  const Node *n;
  uint32_t i;
  for (i = 0; (n = lj_heapread_node(&s->read, reg, i)) != NULL; i++) {
    const GCtab *t = (const GCtab *)heapread_obj(&n->val);
    HeapKey key;
    if (!tvistab(&n->val) || !is_meta(s, t)) continue;
    lj_heapread_key(&key, &n->key);
    lj_heapread_name(&s->read, &key);
    push_meta(s, t, at, NAME_PATH, &key.name);
  }
}

/* -- Values found ----------------------------------------------------------- */

/* Does a global name lead to the module, as vim to vim.shared? */
static int is_above(const NamePart *global, const NamePart *module)
{
  return global->len < module->len && module->s[global->len] == '.' &&
	 memcmp(global->s, module->s, global->len) == 0;
}

/* Of two names of a module, the shorter one counts. at: the loaded modules, or the globals. */
static void prefer_name(Search *s, const void *module, uint32_t at, const NamePart *name)
{
  uint32_t i;
  for (i = 1; i < s->nitem && i < MODULES_MAX; i++) {
    Item *it = &s->item[i];
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
static void found_table(Search *s, const GCtab *t, uint32_t at, NameRank rank,
			const NamePart *name)
{
  int inherits = at && lj_heapread_is(name, "__index");
  Item *it = push(s, t, at, s->item[at].depth + 1u, rank, inherits ? NULL : name);
  if (it) it->methods = (uint8_t)(inherits && s->item[at].is_meta);
  else if (at && (at == s->loaded || at == s->globals)) prefer_name(s, t, at, name);
}

/* The search has found a value in an item. */
static void found(Search *s, cTValue *o, uint32_t at, NameRank rank, HeapKey *key)
{
  const void *obj = heapread_obj(o);
  if (tvisfunc(o)) {
    const GCfunc *fn = (const GCfunc *)obj;
    const GCproto *pt = lj_heapread_proto(&s->read, fn);
    if (pt) found_lua(s, fn, pt, at, rank, key);
    else if (lj_heapread_iscfunc(&s->read, fn)) found_c(s, &fn->c, at, rank, key);
  } else if (s->item[at].depth < DEPTH_MAX && tvistab(o)) {
    if (lj_heapread_name(&s->read, key))
      found_table(s, (const GCtab *)obj, at, rank, &key->name);
  } else if (s->item[at].depth < DEPTH_MAX && tvisudata(o)) {
    const GCudata *ud = (const GCudata *)obj;
    if (lj_heapread_isobj(&s->read, ud, sizeof(GCudata), LJ_TUDATA) &&
	gcref(ud->metatable) && lj_heapread_name(&s->read, key))
      push_meta(s, (const GCtab *)gcref(ud->metatable), at, rank, &key->name);
  }
}

/* -- Searching objects ------------------------------------------------------ */

/* Search a table, and its metatable later. */
static void search_table(Search *s, uint32_t at)
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
  if (gcref(t->metatable) && s->item[at].depth < DEPTH_MAX)
    push(s, gcref(t->metatable), at, s->item[at].depth + 1u, rank, NULL);
}

/* Search the upvalues of a function. */
static void search_func(Search *s, const GCfuncL *fn, const GCproto *pt)
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
static void search_proto(Search *s, const GCproto *pt)
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
    lf = lj_functab_find(s->ft, child);
    if (lf && lf->rank < NAME_DEF) {
      NamePart part[NAMEPATH_MAX];
      uint32_t n = lj_bcname_new(s->read.pk, pt, pos, part);
      name_func(s, lf, NAME_DEF, part, n);
    }
    if (lj_heapread_isobj(&s->read, child, sizeof(GCproto), LJ_TPROTO) &&
	(child->flags & PROTO_CHILD))
      push(s, child, 0, 0, NAME_DEF, NULL);
  }
}

/* Search the functions on the stack of a coroutine. */
static void search_stack(Search *s, const lua_State *L)
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

/* Is a prototype alive, and readable? The collector frees strings before prototypes: the name
** of a dead one's chunk may be another string by now.
*/
static int is_alive(Search *s, const GCproto *pt)
{
  return lj_heapread_isproto(&s->read, pt) && !isdead(s->g, obj2gco(pt));
}

/* Does the VM still exist? A program may have freed its memory without lua_close. Forgets
** prototypes that are not alive.
*/
static int check_vm(Search *s)
{
  uint32_t i;
  int valid = lj_heapread_ok(&s->read, s->g, sizeof(global_State)) &&
	      lj_heapread_isobj(&s->read, mainthread(s->g), sizeof(lua_State), LJ_TTHREAD);
  for (i = 0; i < FUNCTAB_FUNCS; i++) {
    FuncEntry *lf = &s->ft->func[i];
    if (lf->pt && !(valid && is_alive(s, lf->pt))) lf->pt = NULL;
  }
  return valid;
}

/* Begin with the roots of all paths: the loaded modules, the globals, and the registry,
** where C libraries keep their tables.
*/
static void search_roots(Search *s)
{
  cTValue *o = &s->g->registrytv;
  const GCtab *globals = tabref(mainthread(s->g)->env);
  const GCtab *reg = tvistab(o) ? (const GCtab *)heapread_obj(o) : NULL;
  const Item *it;
  visit(s, obj2gco(globals)); /* The globals are also a loaded module, without a name. */
  if (reg && !lj_heapread_istab(&s->read, reg)) reg = NULL;
  o = reg ? lj_heapread_field(&s->read, reg, "_LOADED") : NULL;
  it = o && tvistab(o) ? push(s, heapread_obj(o), 0, 0, NAME_PATH, NULL) : NULL;
  if (it) s->loaded = (uint32_t)(it - s->item);
  it = enqueue(s, globals, 0, 0, NAME_PATH, NULL);
  if (it) s->globals = (uint32_t)(it - s->item);
  it = reg ? push(s, reg, 0, 0, NAME_PATH, NULL) : NULL;
  if (it) push_metas(s, reg, (uint32_t)(it - s->item));
}

/* Search a Lua function or a prototype. */
static void search_code(Search *s, const GCobj *o)
{
  if (o->gch.gct == (uint8_t)~LJ_TFUNC) {
    const GCproto *pt = lj_heapread_proto(&s->read, &o->fn);
    if (!pt || !lj_heapread_isobj(&s->read, pt, sizeof(GCproto), LJ_TPROTO)) return;
    search_func(s, &o->fn.l, pt);
    push(s, pt, 0, 0, NAME_DEF, NULL);
  } else if (o->gch.gct == (uint8_t)~LJ_TPROTO) {
    search_proto(s, &o->pt);
  }
}

/* Search the objects with a path first, then upvalues and definitions. */
static void search_all(Search *s)
{
  uint32_t i, first, end;
  search_roots(s);
  for (i = 1; i < s->nitem; i++)
    if (s->item[i].o->gch.gct == (uint8_t)~LJ_TTAB) search_table(s, i);
  first = s->nitem;
  s->wanted = 0;
  for (i = 0; i < FUNCTAB_FUNCS; i++) {
    FuncEntry *lf = &s->ft->func[i];
    if (lf->pt && lj_functab_find(s->ft, lf->pt) == lf)
      push(s, lf->pt, 0, 0, NAME_DEF, NULL);
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
static void name_paths(Search *s)
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

int lj_heapname_find(FuncTab *ft, SafeLoad *pk, global_State *g)
{
  Search *s;
  int valid;
  if (ft->nfid == 0 && ft->cfuncs.n == 0) return 0;
  s = (Search *)mmap(NULL, sizeof(Search), PROT_READ | PROT_WRITE,
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
    search_all(s);
    name_paths(s);
  }
  munmap(s, sizeof(Search));
  return valid;
}
