/*
** Names of Lua functions, as the program keeps them.
** Never runs in the handler; see the header for the contract.
*/

#define lj_heapname_c
#define LUA_CORE

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* For MAP_ANONYMOUS. */
#endif
#include <sys/mman.h>

#include "lj_obj.h"
#include "lj_bc.h"
#include "lj_tab.h"
#include "profile/symbols/lj_heapname.h"
#include "profile/symbols/lj_bcname.h"
#include "profile/symbols/lj_vmread.h"

#define OBJECTS_MAX (1u << 17) /* Objects visited, a power of two. */
#define SLOTS_MAX   (1u << 20) /* Slots of tables read in total, */
#define TABLE_MAX   (1u << 17) /* and of one table. */
#define INS_MAX     (1u << 21) /* Instructions read. */
#define STACK_MAX   10000      /* Slots of a Lua stack read. */
#define DEPTH_MAX   3          /* Tables on the way to a function. */

/* An object to be searched, and how it is reached. */
typedef struct Item {
  const GCobj *o;  /* A table, a Lua function, a prototype. */
  uint32_t parent; /* Item that holds it, 0 for none. */
  uint8_t depth;   /* Tables on the way. */
  uint8_t rank;    /* SymNameRank of the names found in it. */
  NamePart key;    /* Under which it is held, may be empty. */
} Item;

/* All memory of a search, in one mapping. */
typedef struct Search {
  Symtab *st;
  HeapRead read;
  global_State *g;
  uint32_t nitem;                        /* Items used. The first one is none. */
  uint32_t slots, ins;                   /* Still to be read at most. */
  uint32_t wanted;                       /* Functions without a good name. */
  const GCobj *visited[OBJECTS_MAX * 2]; /* Hash set. */
  Item item[OBJECTS_MAX];                /* Queue. */
} Search;

/* -- Keys ------------------------------------------------------------------- */

/* What a value is held under: a string of the VM, read when it is needed, or
** a name.
*/
typedef struct Key {
  const GCstr *str; /* NULL if the name is known, or empty. */
  NamePart name;
} Key;

/* Read it, if it was not. Returns 0 if it is empty, or cannot be read. */
static int key_name(Search *s, Key *key)
{
  const GCstr *str = key->str;
  key->str = NULL;
  if (str) lj_vmread_str(&s->read, str, &key->name);
  return key->name.len != 0;
}

/* Set a key to that of a table's slot, NULL for none. */
static void key_set(Key *key, cTValue *o)
{
  key->str = o && tvisstr(o) ? (const GCstr *)vmread_obj(o) : NULL;
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
  const uint32_t mask = OBJECTS_MAX * 2 - 1;
  uint64_t h = (uint64_t)(uintptr_t)o * U64x(9e3779b9, 7f4a7c15);
  uint32_t i = (uint32_t)(h >> 40);
  for (;; i++) {
    if (s->visited[i & mask] == o) return 0;
    if (!s->visited[i & mask]) break;
  }
  if (s->nitem == OBJECTS_MAX) return 0; /* At most half full. */
  s->visited[i & mask] = o;
  return 1;
}

static void enqueue(Search *s, const void *o, uint32_t parent, uint32_t depth,
		    SymNameRank rank, const NamePart *key)
{
  Item *it;
  if (((uintptr_t)o & 7) != 0 || !lj_vmread_ok(&s->read, o, sizeof(GChead))) return;
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
  return lf->pt && lf->rank < SYMNAME_DEF && lj_symtab_find(st, lf->pt) == lf &&
	 !lj_symtab_ismain(lf->pt); /* That needs none. */
}

static void name_func(Search *s, SymLFunc *lf, SymNameRank rank, const NamePart *part,
		      uint32_t n)
{
  int wanted = is_wanted(s->st, lf);
  lj_symtab_setname(lf, rank, part, n);
  if (wanted && lf->rank >= SYMNAME_DEF) s->wanted--;
}

/* A value was found in an item. */
static void found(Search *s, cTValue *o, uint32_t at, SymNameRank rank, Key *key)
{
  if (tvisfunc(o)) {
    const GCproto *pt = lj_vmread_proto(&s->read, (const GCfunc *)vmread_obj(o));
    SymLFunc *lf = pt ? lj_symtab_find(s->st, pt) : NULL;
    if (lf && lf->rank < rank && key_name(s, key)) {
      NamePart part[DEPTH_MAX + 2];
      uint32_t n = DEPTH_MAX + 2, up = at;
      part[--n] = key->name;
      for (; up && n > 0; up = s->item[up].parent)
	if (s->item[up].key.len) part[--n] = s->item[up].key;
      name_func(s, lf, rank, part + n, DEPTH_MAX + 2 - n);
    }
    if (pt) push(s, vmread_obj(o), 0, 0, SYMNAME_UPVAL, NULL);
  } else if (tvistab(o) && s->item[at].depth < DEPTH_MAX && key_name(s, key)) {
    /* What a class inherits is its own. */
    int inherits = at && key_is(&key->name, "__index");
    push(s, vmread_obj(o), at, s->item[at].depth + 1u, rank, inherits ? NULL : &key->name);
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
  if (!lj_vmread_isobj(&s->read, t, sizeof(GCtab), LJ_TTAB) ||
      ((mrefu(t->array) | mrefu(t->node)) & 7) != 0)
    return;
  for (i = 0; i < t->asize && i < TABLE_MAX && s->slots > 0; i++) {
    cTValue *o = tvref(t->array) + i;
    s->slots--;
    if (!lj_vmread_ok(&s->read, o, sizeof(TValue))) break;
    key_set(&key, NULL);
    found(s, o, at, rank, &key);
  }
  for (i = 0; i <= t->hmask && i < TABLE_MAX && s->slots > 0; i++) {
    const Node *n = noderef(t->node) + i;
    s->slots--;
    if (!lj_vmread_ok(&s->read, n, sizeof(Node))) break;
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
    if (!lj_vmread_ok(&s->read, &fn->uvptr[i], sizeof(GCRef))) return;
    uv = (const GCupval *)gcref(fn->uvptr[i]);
    if (!lj_vmread_isobj(&s->read, uv, sizeof(GCupval), LJ_TUPVAL)) continue;
    o = uvval(uv);
    if (((uintptr_t)o & 7) != 0 || !lj_vmread_ok(&s->read, o, sizeof(TValue)) ||
	!(tvisfunc(o) || tvistab(o)))
      continue;
    if (!lj_bcname_upval(s->read.pk, pt, i, &key.name)) key.name.len = 0;
    found(s, o, 0, SYMNAME_UPVAL, &key);
  }
}

/* Search the functions that are made in a function. */
static void search_proto(Search *s, const GCproto *pt)
{
  BCPos pos;
  if (!lj_vmread_isobj(&s->read, pt, sizeof(GCproto), LJ_TPROTO) ||
      !(pt->flags & PROTO_CHILD))
    return;
  for (pos = 1; pos < pt->sizebc && s->ins > 0; pos++, s->ins--) {
    const BCIns *ins = proto_bc(pt) + pos;
    const GCproto *child;
    const GCRef *k;
    SymLFunc *lf;
    if (!lj_vmread_ok(&s->read, ins, sizeof(BCIns))) return;
    if (bc_op(*ins) != BC_FNEW) continue;
    k = mref(pt->k, const GCRef) - 1 - (ptrdiff_t)bc_d(*ins);
    if (bc_d(*ins) >= pt->sizekgc || ((uintptr_t)k & 7) != 0 ||
	!lj_vmread_ok(&s->read, k, sizeof(GCRef)))
      continue;
    child = (const GCproto *)gcref(*k);
    lf = lj_symtab_find(s->st, child);
    if (lf && lf->rank < SYMNAME_DEF) {
      NamePart part[NAMEPATH_MAX];
      uint32_t n = lj_bcname_new(s->read.pk, pt, pos, part);
      name_func(s, lf, SYMNAME_DEF, part, n);
    }
    if (lj_vmread_isobj(&s->read, child, sizeof(GCproto), LJ_TPROTO) &&
	(child->flags & PROTO_CHILD))
      push(s, child, 0, 0, SYMNAME_DEF, NULL);
  }
}

/* Search the functions that a coroutine holds in its stack. */
static void search_stack(Search *s, const lua_State *L)
{
  cTValue *o, *end;
  if (!lj_vmread_isobj(&s->read, L, sizeof(lua_State), LJ_TTHREAD)) return;
  o = tvref(L->stack);
  end = o + (L->stacksize < STACK_MAX ? L->stacksize : STACK_MAX);
  if (end > L->top) end = L->top;
  if (((uintptr_t)o & 7) != 0) return;
  for (; o < end && lj_vmread_ok(&s->read, o, sizeof(TValue)); o++) {
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
    if (!lj_vmread_ok(&s->read, n, sizeof(Node))) break;
    key_set(&key, &n->key);
    if (tvistab(&n->val) && key_name(s, &key) && key_is(&key.name, "_LOADED"))
      return (const GCtab *)vmread_obj(&n->val);
  }
  return NULL;
}

/* Is there still a VM? A program may have freed its memory without closing it.
** What cannot be read is forgotten.
*/
static int check_vm(Search *s)
{
  uint32_t i;
  int valid = lj_vmread_ok(&s->read, s->g, sizeof(global_State)) &&
	      lj_vmread_isobj(&s->read, mainthread(s->g), sizeof(lua_State), LJ_TTHREAD);
  for (i = 0; i < SYMTAB_LFUNCS; i++) {
    SymLFunc *lf = &s->st->lfunc[i];
    if (lf->pt && !(valid && lj_vmread_isproto(&s->read, lf->pt))) lf->pt = NULL;
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
  const GCtab *reg = tvistab(o) ? (const GCtab *)vmread_obj(o) : NULL;
  visit(s, obj2gco(globals)); /* Is a loaded module, too, but has no name. */
  if (reg && !lj_vmread_isobj(&s->read, reg, sizeof(GCtab), LJ_TTAB)) reg = NULL;
  if (reg) loaded = find_loaded(s, reg);
  if (loaded) push(s, loaded, 0, 0, SYMNAME_PATH, NULL);
  enqueue(s, globals, 0, 0, SYMNAME_PATH, NULL);
  if (reg) push(s, reg, 0, 0, SYMNAME_PATH, NULL);
}

/* Search a Lua function or a prototype. */
static void search_code(Search *s, const GCobj *o)
{
  if (o->gch.gct == (uint8_t)~LJ_TFUNC) {
    const GCproto *pt = lj_vmread_proto(&s->read, &o->fn);
    if (!pt || !lj_vmread_isobj(&s->read, pt, sizeof(GCproto), LJ_TPROTO)) return;
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
  for (i = first; i < s->nitem; i++) /* The likely ones first. */
    search_code(s, s->item[i].o);
  end = s->nitem;
  search_stack(s, mainthread(s->g));
  search_stack(s, gco2th(gcref(s->g->cur_L)));
  for (i = 1; i < s->nitem && s->wanted > 0; i++) {
    if (i >= first && i < end) continue; /* Done above. */
    if (i >= end && s->item[i].rank == SYMNAME_UPVAL &&
	s->item[i].o->gch.gct == (uint8_t)~LJ_TTAB)
      search_table(s, i);
    else search_code(s, s->item[i].o);
  }
}

void lj_heapname_find(Symtab *st, SafeLoad *pk, global_State *g)
{
  Search *s;
  if (st->nfid == 0) return;
  s = (Search *)mmap(NULL, sizeof(Search), PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (s == MAP_FAILED) return;
  lj_safeload_reset(pk);
  s->st = st;
  s->read.pk = pk;
  s->g = g;
  s->nitem = 1;
  s->slots = SLOTS_MAX;
  s->ins = INS_MAX;
  st->vm_readable = check_vm(s);
  if (st->vm_readable) search_all(s);
  munmap(s, sizeof(Search));
}
