/*
** Names of Lua functions, as the program keeps them.
** Never runs in the handler; see the header for the contract.
*/

#define lj_funcname_c
#define LUA_CORE

#ifndef _GNU_SOURCE
#define _GNU_SOURCE	/* For MAP_ANONYMOUS. */
#endif
#include <sys/mman.h>

#include "lj_obj.h"
#include "lj_bc.h"
#include "lj_tab.h"
#include "profile/lj_funcname.h"
#include "profile/lj_protoname.h"

#define OBJECTS_MAX	(1u << 17)  /* Objects visited, a power of two. */
#define SLOTS_MAX	(1u << 20)  /* Slots of tables read in total, */
#define TABLE_MAX	(1u << 17)  /* and of one table. */
#define INS_MAX		(1u << 21)  /* Instructions read. */
#define STACK_MAX	10000	/* Slots of a Lua stack read. */
#define DEPTH_MAX	3	/* Tables on the way to a function. */
#define PAGES		16384	/* Pages remembered, a power of two. */

/* An object to be searched, and how it is reached. */
typedef struct Item {
  const GCobj *o;		/* A table, a Lua function, a prototype. */
  uint32_t parent;		/* Item that holds it, 0 for none. */
  uint8_t depth;		/* Tables on the way. */
  uint8_t rank;			/* SymNameRank of the names found in it. */
  NamePart key;			/* Under which it is held, may be empty. */
} Item;

/* All memory of a search, in one mapping. */
typedef struct Search {
  Symtab *st;
  Peek *pk;
  global_State *g;
  uint32_t nitem;		/* Items used. The first one is none. */
  uint32_t slots, ins;		/* Still to be read at most. */
  uint32_t wanted;		/* Functions without a good name. */
  uint64_t page[PAGES];		/* Numbers of readable pages. */
  const GCobj *visited[OBJECTS_MAX*2];	/* Hash set. */
  Item item[OBJECTS_MAX];	/* Queue. */
} Search;

/* -- Checked reading -------------------------------------------------------- */

/* May memory be read? As lj_peek_ok, but remembers more pages. */
static int can_read(Search *s, const void *p, size_t sz)
{
  uintptr_t first = (uintptr_t)p >> PEEK_PAGE_BITS;
  uintptr_t last = ((uintptr_t)p + sz - 1) >> PEEK_PAGE_BITS;
  if (first == 0 || ((uintptr_t)p >> PEEK_ADDR_BITS) != 0) return 0;
  for (;; first++) {
    uint64_t *slot = &s->page[first & (PAGES-1)];
    if (*slot != first) {
      if (!lj_peek_probe(s->pk, first)) return 0;
      *slot = first;
    }
    if (first == last) return 1;
  }
}

static int obj_ok(Search *s, const void *o, size_t sz, uint32_t it)
{
  return ((uintptr_t)o & 7) == 0 && can_read(s, o, sz) &&
	 ((const GChead *)o)->gct == (uint8_t)~it;
}

/* The object of a value. Its pointer may be anything. */
static const void *val_obj(cTValue *o)
{
  return (const void *)gcval(o);
}

/* Get the prototype of a Lua function, NULL for other functions. */
static const GCproto *func_proto(Search *s, const GCfunc *fn)
{
  if (!obj_ok(s, fn, offsetof(GCfuncL, uvptr), LJ_TFUNC) || !isluafunc(fn))
    return NULL;
  return funcproto(fn);
}

/* What a value is held under: a string of the VM, read when it is needed, or
** a name. Returns 0 if there is none.
*/
typedef struct Key {
  const GCstr *str;		/* NULL if the name is known, or empty. */
  NamePart name;
} Key;

static int key_name(Search *s, Key *key)
{
  const GCstr *str = key->str;
  key->str = NULL;
  if (str && obj_ok(s, str, sizeof(GCstr), LJ_TSTR)) {
    key->name.s = strdata(str);
    key->name.len = str->len < SYMTAB_NAME_MAX ? str->len : SYMTAB_NAME_MAX;
    if (key->name.len && !can_read(s, key->name.s, key->name.len))
      key->name.len = 0;
  }
  return key->name.len != 0;
}

/* Set a key to that of a table's slot, NULL for none. */
static void key_set(Key *key, cTValue *o)
{
  key->str = o && tvisstr(o) ? (const GCstr *)val_obj(o) : NULL;
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

/* Note an object once. Returns 0 if it is known, or if there is no room. */
static int visit(Search *s, const GCobj *o)
{
  const uint32_t mask = OBJECTS_MAX*2 - 1;
  uint64_t h = (uint64_t)(uintptr_t)o * U64x(9e3779b9,7f4a7c15);
  uint32_t i = (uint32_t)(h >> 40);
  for (;; i++) {
    if (s->visited[i & mask] == o) return 0;
    if (!s->visited[i & mask]) break;
  }
  if (s->nitem == OBJECTS_MAX) return 0;  /* At most half full. */
  s->visited[i & mask] = o;
  return 1;
}

static void enqueue(Search *s, const void *o, uint32_t parent, uint32_t depth,
		    SymNameRank rank, const NamePart *key)
{
  Item *it;
  if (((uintptr_t)o & 7) != 0 || !can_read(s, o, sizeof(GChead))) return;
  it = &s->item[s->nitem++];
  it->o = (const GCobj *)o;
  it->parent = parent;
  it->depth = (uint8_t)depth;
  it->rank = (uint8_t)rank;
  it->key.s = key ? key->s : NULL;
  it->key.len = key ? key->len : 0;
}

static void push(Search *s, const void *o, uint32_t parent, uint32_t depth,
		 SymNameRank rank, const NamePart *key)
{
  if (visit(s, (const GCobj *)o)) enqueue(s, o, parent, depth, rank, key);
}

/* Is this an entry of a function that lives and has no good name yet? */
static int is_wanted(Symtab *st, const SymLFunc *lf)
{
  return lf->pt && lf->rank < SYMNAME_DEF &&
	 lj_symtab_find(st, lf->pt) == lf &&
	 lf->pt->firstline != 0;  /* A main chunk needs none. */
}

static void name_func(Search *s, SymLFunc *lf, SymNameRank rank,
		      const NamePart *part, uint32_t n)
{
  int wanted = is_wanted(s->st, lf);
  lj_symtab_setname(lf, rank, part, n);
  if (wanted && lf->rank >= SYMNAME_DEF) s->wanted--;
}

/* A value was found in an item. */
static void found(Search *s, cTValue *o, uint32_t at, SymNameRank rank,
		  Key *key)
{
  if (tvisfunc(o)) {
    const GCproto *pt = func_proto(s, (const GCfunc *)val_obj(o));
    SymLFunc *lf = pt ? lj_symtab_find(s->st, pt) : NULL;
    if (lf && lf->rank < rank && key_name(s, key)) {
      NamePart part[DEPTH_MAX+2];
      uint32_t n = DEPTH_MAX+2, up = at;
      part[--n] = key->name;
      for (; up && n > 0; up = s->item[up].parent)
	if (s->item[up].key.len) part[--n] = s->item[up].key;
      name_func(s, lf, rank, part + n, DEPTH_MAX+2 - n);
    }
    if (pt) push(s, val_obj(o), 0, 0, SYMNAME_UPVAL, NULL);
  } else if (tvistab(o) && s->item[at].depth < DEPTH_MAX && key_name(s, key)) {
    /* What a class inherits is its own. */
    int inherits = at && key_is(&key->name, "__index");
    push(s, val_obj(o), at, s->item[at].depth + 1u, rank,
	 inherits ? NULL : &key->name);
  }
}

/* -- Searching objects ------------------------------------------------------ */

/* Search a table, and its metatable later. */
static void search_table(Search *s, uint32_t at)
{
  const GCtab *t = &s->item[at].o->tab;
  SymNameRank rank = (SymNameRank)s->item[at].rank;
  Key key;
  uint32_t i;
  if (!obj_ok(s, t, sizeof(GCtab), LJ_TTAB) ||
      ((mrefu(t->array) | mrefu(t->node)) & 7) != 0)
    return;
  for (i = 0; i < t->asize && i < TABLE_MAX && s->slots > 0; i++) {
    cTValue *o = tvref(t->array) + i;
    s->slots--;
    if (!can_read(s, o, sizeof(TValue))) break;
    key_set(&key, NULL);
    found(s, o, at, rank, &key);
  }
  for (i = 0; i <= t->hmask && i < TABLE_MAX && s->slots > 0; i++) {
    const Node *n = noderef(t->node) + i;
    s->slots--;
    if (!can_read(s, n, sizeof(Node))) break;
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
    const GCupval *uv;
    cTValue *o;
    Key key = { NULL, { NULL, 0 } };
    s->slots--;
    if (!can_read(s, &fn->uvptr[i], sizeof(GCRef))) return;
    uv = (const GCupval *)gcref(fn->uvptr[i]);
    if (!obj_ok(s, uv, sizeof(GCupval), LJ_TUPVAL)) continue;
    o = uvval(uv);
    if (((uintptr_t)o & 7) != 0 || !can_read(s, o, sizeof(TValue)) ||
	!(tvisfunc(o) || tvistab(o)))
      continue;
    if (!lj_protoname_upval(s->pk, pt, i, &key.name)) key.name.len = 0;
    found(s, o, 0, SYMNAME_UPVAL, &key);
  }
}

/* Search the functions that are made in a function. */
static void search_proto(Search *s, const GCproto *pt)
{
  BCPos pos;
  if (!obj_ok(s, pt, sizeof(GCproto), LJ_TPROTO) || !(pt->flags & PROTO_CHILD))
    return;
  for (pos = 1; pos < pt->sizebc && s->ins > 0; pos++, s->ins--) {
    const BCIns *ins = proto_bc(pt) + pos;
    const GCproto *child;
    const GCRef *k;
    SymLFunc *lf;
    if (!can_read(s, ins, sizeof(BCIns))) return;
    if (bc_op(*ins) != BC_FNEW) continue;
    k = mref(pt->k, const GCRef) - 1 - (ptrdiff_t)bc_d(*ins);
    if (bc_d(*ins) >= pt->sizekgc || ((uintptr_t)k & 7) != 0 ||
	!can_read(s, k, sizeof(GCRef)))
      continue;
    child = (const GCproto *)gcref(*k);
    lf = lj_symtab_find(s->st, child);
    if (lf && lf->rank < SYMNAME_DEF) {
      NamePart part[NAMEPATH_MAX];
      uint32_t n = lj_protoname_new(s->pk, pt, pos, part);
      name_func(s, lf, SYMNAME_DEF, part, n);
    }
    if (obj_ok(s, child, sizeof(GCproto), LJ_TPROTO) &&
	(child->flags & PROTO_CHILD))
      push(s, child, 0, 0, SYMNAME_DEF, NULL);
  }
}

/* Search the functions that a coroutine holds in its stack. */
static void search_stack(Search *s, const lua_State *L)
{
  cTValue *o, *end;
  if (!obj_ok(s, L, sizeof(lua_State), LJ_TTHREAD)) return;
  o = tvref(L->stack);
  end = o + (L->stacksize < STACK_MAX ? L->stacksize : STACK_MAX);
  if (end > L->top) end = L->top;
  if (((uintptr_t)o & 7) != 0) return;
  for (; o < end && can_read(s, o, sizeof(TValue)); o++) {
    Key key;
    key_set(&key, NULL);
    found(s, o, 0, SYMNAME_UPVAL, &key);
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
    if (!can_read(s, n, sizeof(Node))) break;
    key_set(&key, &n->key);
    if (tvistab(&n->val) && key_name(s, &key) && key_is(&key.name, "_LOADED"))
      return (const GCtab *)val_obj(&n->val);
  }
  return NULL;
}

/* Can a prototype and the name of its chunk be read? */
static int proto_ok(Search *s, const GCproto *pt)
{
  const GCstr *str;
  if (!obj_ok(s, pt, sizeof(GCproto), LJ_TPROTO)) return 0;
  str = proto_chunkname(pt);
  if (!obj_ok(s, str, sizeof(GCstr), LJ_TSTR)) return 0;
  return can_read(s, strdata(str), str->len < SYMTAB_CHUNK_MAX ? str->len + 1 :
								 SYMTAB_CHUNK_MAX);
}

/* Is there still a VM? A program may have freed its memory without closing it.
** What cannot be read is forgotten.
*/
static int check_vm(Search *s)
{
  uint32_t i;
  int valid = can_read(s, s->g, sizeof(global_State)) &&
	      obj_ok(s, mainthread(s->g), sizeof(lua_State), LJ_TTHREAD);
  for (i = 0; i < SYMTAB_LFUNCS; i++) {
    SymLFunc *lf = &s->st->lfunc[i];
    if (lf->pt && !(valid && proto_ok(s, lf->pt))) lf->pt = NULL;
  }
  return valid;
}

/* Where all that has a name begins: the loaded modules, the globals, and what
** C libraries keep in the registry.
*/
static void search_roots(Search *s)
{
  cTValue *o = &s->g->registrytv;
  const GCtab *globals = tabref(mainthread(s->g)->env), *loaded = NULL;
  const GCtab *reg = tvistab(o) ? (const GCtab *)val_obj(o) : NULL;
  visit(s, obj2gco(globals));  /* Is a loaded module, too, but has no name. */
  if (reg && !obj_ok(s, reg, sizeof(GCtab), LJ_TTAB)) reg = NULL;
  if (reg) loaded = find_loaded(s, reg);
  if (loaded) push(s, loaded, 0, 0, SYMNAME_PATH, NULL);
  enqueue(s, globals, 0, 0, SYMNAME_PATH, NULL);
  if (reg) push(s, reg, 0, 0, SYMNAME_PATH, NULL);
}

/* Search a Lua function or a prototype. */
static void search_code(Search *s, const GCobj *o)
{
  if (o->gch.gct == (uint8_t)~LJ_TFUNC) {
    const GCproto *pt = func_proto(s, &o->fn);
    if (!pt || !obj_ok(s, pt, sizeof(GCproto), LJ_TPROTO)) return;
    search_func(s, &o->fn.l, pt);
    push(s, pt, 0, 0, SYMNAME_DEF, NULL);
  } else if (o->gch.gct == (uint8_t)~LJ_TPROTO) {
    search_proto(s, &o->pt);
  }
}

/* Search what has a path first, then upvalues and definitions. */
static void search_all(Search *s)
{
  uint32_t i, first, end;
  search_roots(s);
  for (i = 1; i < s->nitem; i++)
    if (s->item[i].o->gch.gct == (uint8_t)~LJ_TTAB) search_table(s, i);
  first = s->nitem;
  s->wanted = 0;
  for (i = 0; i < SYMTAB_LFUNCS; i++) {
    SymLFunc *lf = &s->st->lfunc[i];
    if (lf->pt && lj_symtab_find(s->st, lf->pt) == lf)
      push(s, lf->pt, 0, 0, SYMNAME_DEF, NULL);
    s->wanted += (uint32_t)is_wanted(s->st, lf);
  }
  for (i = first; i < s->nitem; i++)  /* The likely ones first. */
    search_code(s, s->item[i].o);
  end = s->nitem;
  search_stack(s, mainthread(s->g));
  search_stack(s, gco2th(gcref(s->g->cur_L)));
  for (i = 1; i < s->nitem && s->wanted > 0; i++) {
    if (i >= first && i < end) continue;  /* Done above. */
    if (i >= end && s->item[i].rank == SYMNAME_UPVAL &&
	s->item[i].o->gch.gct == (uint8_t)~LJ_TTAB)
      search_table(s, i);
    else
      search_code(s, s->item[i].o);
  }
}

void lj_funcname_find(Symtab *st, Peek *pk, global_State *g)
{
  Search *s;
  if (st->nfid == 0) return;
  s = (Search *)mmap(NULL, sizeof(Search), PROT_READ|PROT_WRITE,
		     MAP_PRIVATE|MAP_ANONYMOUS, -1, 0);
  if (s == MAP_FAILED) return;
  lj_peek_reset(pk);
  s->st = st;
  s->pk = pk;
  s->g = g;
  s->nitem = 1;
  s->slots = SLOTS_MAX;
  s->ins = INS_MAX;
  st->vm_readable = check_vm(s);
  if (st->vm_readable) search_all(s);
  munmap(s, sizeof(Search));
}
