/*
** Heap names: where the program keeps a Lua function.
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
#include "lj_tab.h"
#include "profile/base/lj_hash.h"
#include "profile/symbols/lj_bcname.h"
#include "profile/symbols/lj_heapname.h"

#define OBJECTS_BITS 17
#define OBJECTS_MAX  (1u << OBJECTS_BITS) /* Objects visited. */
#define SLOTS_MAX    (1u << 20)           /* Slots of tables read in total, */
#define TABLE_MAX    (1u << 17)           /* and of one table. */
#define INS_MAX      (1u << 21)           /* Instructions read. */
#define STACK_MAX    10000                /* Slots of a Lua stack read. */
#define DEPTH_MAX    3                    /* Tables on the way to a function. */

/* -- Checked reading -------------------------------------------------------- */

#define HEAPREAD_PAGES 16384 /* Pages remembered, a power of two. */

/* Reader of the VM's memory. Zero, except pk. */
typedef struct HeapRead {
  SafeLoad *pk;
  uint64_t page[HEAPREAD_PAGES]; /* Numbers of readable pages. */
} HeapRead;

/* May memory be read? As lj_safeload_ok, but remembers more pages. */
static int read_ok(HeapRead *r, const void *p, size_t sz)
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

/* Is an object of sz bytes and a type LJ_T* there? */
static int read_isobj(HeapRead *r, const void *o, size_t sz, uint32_t it)
{
  return ((uintptr_t)o & 7) == 0 && read_ok(r, o, sz) &&
	 ((const GChead *)o)->gct == (uint8_t)~it;
}

/* The object of a value. Its pointer may be anything. */
static const void *value_obj(cTValue *o)
{
  return (const void *)gcval(o);
}

/* The prototype of a Lua function, not checked; NULL for other functions and values. */
static const GCproto *read_proto(HeapRead *r, const GCfunc *fn)
{
  if (!read_isobj(r, fn, offsetof(GCfuncL, uvptr), LJ_TFUNC) || !isluafunc(fn)) return NULL;
  return funcproto(fn);
}

/* Is this a prototype, and can the name of its chunk be read? */
static int read_isproto(HeapRead *r, const GCproto *pt)
{
  const GCstr *str;
  if (!read_isobj(r, pt, sizeof(GCproto), LJ_TPROTO)) return 0;
  str = proto_chunkname(pt);
  if (!read_isobj(r, str, sizeof(GCstr), LJ_TSTR)) return 0;
  return read_ok(r, strdata(str),
		 str->len < FUNCTAB_CHUNK_MAX ? str->len + 1 : FUNCTAB_CHUNK_MAX);
}

/* Get the text of a string, cut to FUNCTAB_NAME_MAX bytes; empty if it cannot be read. */
static void read_str(HeapRead *r, const GCstr *str, NamePart *name)
{
  name->s = NULL;
  name->len = 0;
  if (!read_isobj(r, str, sizeof(GCstr), LJ_TSTR)) return;
  name->s = strdata(str);
  name->len = str->len < FUNCTAB_NAME_MAX ? str->len : FUNCTAB_NAME_MAX;
  if (name->len && !read_ok(r, name->s, name->len)) name->len = 0;
}

/* -- The search ------------------------------------------------------------- */

/* An object of the search, and the path to it. */
typedef struct Item {
  const GCobj *o;  /* A table, a Lua function, a prototype. */
  uint32_t parent; /* Item that holds it, 0 for none. */
  uint8_t depth;   /* Tables on the way. */
  uint8_t rank;    /* NameRank of the names found in it. */
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
  uint32_t nitem;                        /* Items used. The first one is none. */
  uint32_t slots, ins;                   /* Still to be read at most. */
  uint32_t wanted;                       /* Functions without a good name. */
  HeapPath path[FUNCTAB_FUNCS];          /* By entry. */
  const GCobj *visited[OBJECTS_MAX * 2]; /* Hash set. */
  Item item[OBJECTS_MAX];                /* Queue. */
} Search;

/* -- Keys ------------------------------------------------------------------- */

/* Key or name that holds a value. A string of the VM is read as late as possible. */
typedef struct Key {
  const GCstr *str; /* NULL if the name is known, or empty. */
  NamePart name;
} Key;

/* Read the text of a key, once. Returns 0 if the key is empty or not readable. */
static int key_name(Search *s, Key *key)
{
  const GCstr *str = key->str;
  key->str = NULL;
  if (str) read_str(&s->read, str, &key->name);
  return key->name.len != 0;
}

/* Set a key to that of a table's slot, NULL for none. */
static void key_set(Key *key, cTValue *o)
{
  key->str = o && tvisstr(o) ? (const GCstr *)value_obj(o) : NULL;
  key->name.s = NULL;
  key->name.len = 0;
}

/* Compare a name, which may be cut. */
static int key_is(const NamePart *np, const char *name)
{
  uint32_t i;
  for (i = 0; i < np->len; i++)
    if (np->s[i] != name[i] || !name[i]) return 0;
  return name[i] == '\0';
}

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

static void enqueue(Search *s, const void *o, uint32_t parent, uint32_t depth,
		    NameRank rank, const NamePart *key)
{
  Item *it;
  if (((uintptr_t)o & 7) != 0 || !read_ok(&s->read, o, sizeof(GChead))) return;
  it = &s->item[s->nitem++];
  it->o = (const GCobj *)o;
  it->parent = parent;
  it->depth = (uint8_t)depth;
  it->rank = (uint8_t)rank;
  it->key.s = key ? key->s : NULL;
  it->key.len = key ? key->len : 0;
}

static void push(Search *s, const void *o, uint32_t parent, uint32_t depth, NameRank rank,
		 const NamePart *key)
{
  if (visit(s, (const GCobj *)o)) enqueue(s, o, parent, depth, rank, key);
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
static void found_func(Search *s, FuncEntry *lf, uint32_t at, NameRank rank, Key *key)
{
  HeapPath *path = &s->path[lf - s->ft->func];
  NamePart part[DEPTH_MAX + 2];
  uint32_t n = DEPTH_MAX + 2, up = at;
  if (lf->rank == NAME_PATH || (at ? path->rank : lf->rank) >= rank || !key_name(s, key))
    return;
  part[--n] = key->name;
  for (; up && n > 0; up = s->item[up].parent)
    if (s->item[up].key.len) part[--n] = s->item[up].key;
  if (at) {
    path->rank = (uint8_t)rank;
    join(s, lf, &path->text, part + n, DEPTH_MAX + 2 - n);
  } else {
    name_func(s, lf, rank, part + n, DEPTH_MAX + 2 - n);
  }
}

/* Read an upvalue of a function. Returns NULL if it cannot be read. */
static cTValue *read_upval(Search *s, const GCfuncL *fn, uint32_t i)
{
  const GCupval *uv;
  cTValue *o;
  s->slots--;
  if (!read_ok(&s->read, &fn->uvptr[i], sizeof(GCRef))) return NULL;
  uv = (const GCupval *)gcref(fn->uvptr[i]);
  if (!read_isobj(&s->read, uv, sizeof(GCupval), LJ_TUPVAL)) return NULL;
  o = uvval(uv);
  return ((uintptr_t)o & 7) == 0 && read_ok(&s->read, o, sizeof(TValue)) ? o : NULL;
}

/* If an upvalue holds the function itself, the function was defined as this variable. */
static void found_itself(Search *s, FuncEntry *lf, const GCfuncL *fn)
{
  NamePart name;
  uint32_t i;
  for (i = 0; i < fn->nupvalues && s->slots > 0 && lf->rank < NAME_DEF; i++) {
    cTValue *o = read_upval(s, fn, i);
    if (o && tvisfunc(o) && value_obj(o) == (const void *)fn &&
	lj_bcname_upval(s->read.pk, lf->pt, i, &name))
      name_func(s, lf, NAME_DEF, &name, 1);
  }
}

/* The search has found a value in an item. */
static void found(Search *s, cTValue *o, uint32_t at, NameRank rank, Key *key)
{
  if (tvisfunc(o)) {
    const GCproto *pt = read_proto(&s->read, (const GCfunc *)value_obj(o));
    FuncEntry *lf = pt ? lj_functab_find(s->ft, pt) : NULL;
    if (lf) {
      found_func(s, lf, at, rank, key);
      found_itself(s, lf, (const GCfuncL *)value_obj(o));
    }
    if (pt) push(s, value_obj(o), 0, 0, NAME_UPVAL, NULL);
  } else if (tvistab(o) && s->item[at].depth < DEPTH_MAX && key_name(s, key)) {
    /* The fields that a class inherits are its own. */
    int inherits = at && key_is(&key->name, "__index");
    push(s, value_obj(o), at, s->item[at].depth + 1u, rank, inherits ? NULL : &key->name);
  }
}

/* -- Searching objects ------------------------------------------------------ */

/* Search a table, and its metatable later. */
static void search_table(Search *s, uint32_t at)
{
  const GCtab *t = &s->item[at].o->tab;
  NameRank rank = (NameRank)s->item[at].rank;
  Key key;
  uint32_t i;
  if (!read_isobj(&s->read, t, sizeof(GCtab), LJ_TTAB) ||
      ((mrefu(t->array) | mrefu(t->node)) & 7) != 0)
    return;
  for (i = 0; i < t->asize && i < TABLE_MAX && s->slots > 0; i++) {
    cTValue *o = tvref(t->array) + i;
    s->slots--;
    if (!read_ok(&s->read, o, sizeof(TValue))) break;
    key_set(&key, NULL);
    found(s, o, at, rank, &key);
  }
  for (i = 0; i <= t->hmask && i < TABLE_MAX && s->slots > 0; i++) {
    const Node *n = noderef(t->node) + i;
    s->slots--;
    if (!read_ok(&s->read, n, sizeof(Node))) break;
    key_set(&key, &n->key);
    found(s, &n->val, at, rank, &key);
  }
  if (gcref(t->metatable) && s->item[at].depth < DEPTH_MAX)
    push(s, gcref(t->metatable), at, s->item[at].depth + 1u, rank, NULL);
}

/* Search the upvalues of a function. */
static void search_func(Search *s, const GCfuncL *fn, const GCproto *pt)
{
  uint32_t i;
  for (i = 0; i < fn->nupvalues && s->slots > 0; i++) {
    cTValue *o = read_upval(s, fn, i);
    Key key = { NULL, { NULL, 0 } };
    if (!o || !(tvisfunc(o) || tvistab(o))) continue;
    if (!lj_bcname_upval(s->read.pk, pt, i, &key.name)) key.name.len = 0;
    found(s, o, 0, NAME_UPVAL, &key);
  }
}

/* Search the functions that a function makes. */
static void search_proto(Search *s, const GCproto *pt)
{
  BCPos pos;
  if (!read_isobj(&s->read, pt, sizeof(GCproto), LJ_TPROTO) || !(pt->flags & PROTO_CHILD))
    return;
  for (pos = 1; pos < pt->sizebc && s->ins > 0; pos++, s->ins--) {
    const BCIns *ins = proto_bc(pt) + pos;
    const GCproto *child;
    const GCRef *k;
    FuncEntry *lf;
    if (!read_ok(&s->read, ins, sizeof(BCIns))) return;
    if (bc_op(*ins) != BC_FNEW) continue;
    k = mref(pt->k, const GCRef) - 1 - (ptrdiff_t)bc_d(*ins);
    if (bc_d(*ins) >= pt->sizekgc || ((uintptr_t)k & 7) != 0 ||
	!read_ok(&s->read, k, sizeof(GCRef)))
      continue;
    child = (const GCproto *)gcref(*k);
    lf = lj_functab_find(s->ft, child);
    if (lf && lf->rank < NAME_DEF) {
      NamePart part[NAMEPATH_MAX];
      uint32_t n = lj_bcname_new(s->read.pk, pt, pos, part);
      name_func(s, lf, NAME_DEF, part, n);
    }
    if (read_isobj(&s->read, child, sizeof(GCproto), LJ_TPROTO) &&
	(child->flags & PROTO_CHILD))
      push(s, child, 0, 0, NAME_DEF, NULL);
  }
}

/* Search the functions on the stack of a coroutine. */
static void search_stack(Search *s, const lua_State *L)
{
  cTValue *o, *end;
  if (!read_isobj(&s->read, L, sizeof(lua_State), LJ_TTHREAD)) return;
  o = tvref(L->stack);
  end = o + (L->stacksize < STACK_MAX ? L->stacksize : STACK_MAX);
  if (end > L->top) end = L->top;
  if (((uintptr_t)o & 7) != 0) return;
  for (; o < end && read_ok(&s->read, o, sizeof(TValue)); o++) {
    Key key;
    key_set(&key, NULL);
    found(s, o, 0, NAME_UPVAL, &key);
  }
}

/* The table of loaded modules, which the registry holds. */
static const GCtab *find_loaded(Search *s, const GCtab *reg)
{
  uint32_t i;
  if ((mrefu(reg->node) & 7) != 0) return NULL;
  for (i = 0; i <= reg->hmask && i < TABLE_MAX; i++) {
    const Node *n = noderef(reg->node) + i;
    Key key;
    if (!read_ok(&s->read, n, sizeof(Node))) break;
    key_set(&key, &n->key);
    if (tvistab(&n->val) && key_name(s, &key) && key_is(&key.name, "_LOADED"))
      return (const GCtab *)value_obj(&n->val);
  }
  return NULL;
}

/* Is a prototype alive, and readable? The collector frees strings before prototypes: the name
** of a dead one's chunk may be another string by now.
*/
static int is_alive(Search *s, const GCproto *pt)
{
  return read_isproto(&s->read, pt) && !isdead(s->g, obj2gco(pt));
}

/* Does the VM still exist? A program may have freed its memory without lua_close. Forgets
** prototypes that are not alive.
*/
static int check_vm(Search *s)
{
  uint32_t i;
  int valid = read_ok(&s->read, s->g, sizeof(global_State)) &&
	      read_isobj(&s->read, mainthread(s->g), sizeof(lua_State), LJ_TTHREAD);
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
  const GCtab *globals = tabref(mainthread(s->g)->env), *loaded = NULL;
  const GCtab *reg = tvistab(o) ? (const GCtab *)value_obj(o) : NULL;
  visit(s, obj2gco(globals)); /* The globals are also a loaded module, without a name. */
  if (reg && !read_isobj(&s->read, reg, sizeof(GCtab), LJ_TTAB)) reg = NULL;
  if (reg) loaded = find_loaded(s, reg);
  if (loaded) push(s, loaded, 0, 0, NAME_PATH, NULL);
  enqueue(s, globals, 0, 0, NAME_PATH, NULL);
  if (reg) push(s, reg, 0, 0, NAME_PATH, NULL);
}

/* Search a Lua function or a prototype. */
static void search_code(Search *s, const GCobj *o)
{
  if (o->gch.gct == (uint8_t)~LJ_TFUNC) {
    const GCproto *pt = read_proto(&s->read, &o->fn);
    if (!pt || !read_isobj(&s->read, pt, sizeof(GCproto), LJ_TPROTO)) return;
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
  if (ft->nfid == 0) return 0;
  s = (Search *)mmap(NULL, sizeof(Search), PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (s == MAP_FAILED) return 0;
  lj_safeload_reset(pk);
  s->ft = ft;
  s->read.pk = pk;
  s->g = g;
  s->nitem = 1;
  s->slots = SLOTS_MAX;
  s->ins = INS_MAX;
  valid = check_vm(s);
  if (valid) {
    search_all(s);
    name_paths(s);
  }
  munmap(s, sizeof(Search));
  return valid;
}
